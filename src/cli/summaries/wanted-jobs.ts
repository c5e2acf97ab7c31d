/** The jobs that flags ask for, whatever the rules say. */
import { AppError } from '../../domain/app-error.ts';
import type { DigestWindow, NewSummaryJob } from '../../domain/summaries.ts';
import { readFilter } from '../filter/read-filter.ts';
import type { Io } from '../io.ts';
import { digestsOf, wantedWindows } from './wanted-digests.ts';
import { productsReceived, productsThatMatch, type Sources } from './wanted-products.ts';

export interface WantedFlags {
  each?: true;
  digest?: DigestWindow;
  since?: number;
  until?: number;
  filter?: string;
  subscription?: string;
  limit?: number;
}

/** Rejects with `usage` when there are more than may wait, with `cancelled` when the user ends it. */
export type FindJobs = (sources: Sources) => Promise<NewSummaryJob[]>;

const dayUs = 86_400_000_000;

/**
 * Reads the flags, so that what is wrong with them is told before anything is opened: throws `usage` for a
 * filter or a time that is none; warns on stderr. What it returns finds the jobs, the newest first.
 */
export function wantedJobs(flags: WantedFlags, io: Pick<Io, 'stderr' | 'env' | 'nowUs'>): FindJobs {
  const { filter, since, until, subscription, digest } = flags;
  const tree = filter === undefined ? null : readFilter(filter, 'Products', io);
  const byReceipt = [since, until, subscription].some((flag) => flag !== undefined);
  if (digest === undefined && tree !== null && !byReceipt) {
    return (sources) => productsThatMatch(tree, flags, sources);
  }
  const nowUs = io.nowUs();
  const untilUs = Math.min(until ?? nowUs, nowUs);
  if (since !== undefined && since >= untilUs) {
    throw new AppError('usage', 'The time of --since must lie before --until, and before now.');
  }
  if (digest !== undefined) {
    const windows = wantedWindows(digest, { sinceUs: since, untilUs }, nowUs);
    return (sources) => digestsOf(windows, tree, flags, sources);
  }
  const span = { sinceUs: since ?? untilUs - dayUs, untilUs: until };
  return (sources) => productsReceived(span, tree, flags, sources);
}
