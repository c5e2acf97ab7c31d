/** The jobs that flags ask for, whatever the rules say. */
import { AppError } from '../../domain/app-error.ts';
import type { FilterTree } from '../../domain/filter-tree.ts';
import type { Products } from '../../domain/products.ts';
import type { DigestWindow, NewSummaryJob } from '../../domain/summaries.ts';
import { requireFilter } from '../../filter/check.ts';
import { compileFilter } from '../../filter/evaluate.ts';
import { productView } from '../../filter/product-view.ts';
import type { StoreReader } from '../../store/store.ts';
import { windowsIn } from '../../summary/digest/digest-window.ts';
import { waitingMax } from '../../summary/worker/collect-jobs.ts';
import { productById } from '../../summary/worker/known-products.ts';
import { digestJob, productJob } from '../../summary/worker/summary-jobs.ts';

export interface WantedFlags {
  each?: true;
  digest?: DigestWindow;
  since?: number;
  until?: number;
  filter?: string;
  subscription?: string;
  limit?: number;
}

interface Sources {
  store: Pick<StoreReader, 'find'>;
  products: Products;
  nowUs: number;
  signal: AbortSignal;
}

/** Rejects with `usage` when there are more than may wait, with `cancelled` when the user ends it. */
export type FindJobs = (sources: Sources) => Promise<NewSummaryJob[]>;

const dayUs = 86_400_000_000;
/** More windows than these are a slip of the hand. */
const windowsMax = 1_000;

/**
 * Reads the flags, so that what is wrong with them is told before anything is opened: throws `invalid` for a
 * filter that is none, `usage` for a time that is. What it returns finds the jobs, the newest first.
 */
export function wantedJobs(flags: WantedFlags, nowUs: number): FindJobs {
  const tree = requireFilter(flags.filter ?? '', 'Products');
  const { since, until, subscription, digest } = flags;
  const byReceipt = [since, until, subscription].some((flag) => flag !== undefined);
  if (digest === undefined && tree !== null && !byReceipt) {
    return (sources) => productsThatMatch(tree, flags, sources);
  }
  const span = spanOf(flags, nowUs);
  if (digest === undefined) return (sources) => productsReceived(span, tree, flags, sources);
  const jobs = digests(span, digest, flags, nowUs);
  return async () => jobs;
}

interface Span {
  sinceUs: number;
  untilUs: number;
}

function spanOf({ since, until }: WantedFlags, nowUs: number): Span {
  const untilUs = Math.min(until ?? nowUs, nowUs);
  const sinceUs = since ?? untilUs - dayUs;
  if (sinceUs < untilUs) return { sinceUs, untilUs };
  throw new AppError('usage', 'The time of --since must lie before --until, and before now.');
}

function digests(
  { sinceUs, untilUs }: Span,
  window: DigestWindow,
  { subscription, filter = '', limit = windowsMax }: WantedFlags,
  nowUs: number,
): NewSummaryJob[] {
  const windows = windowsIn(window, sinceUs, untilUs);
  if (windows.length > windowsMax) {
    throw new AppError(
      'usage',
      `These are ${windows.length} windows, each of which is a request. Ask for ${windowsMax} at most: a later --since, or longer windows.`,
    );
  }
  const scope = {
    subscription: subscription ?? null,
    collection: null,
    area: null,
    filter: filter === '' ? null : filter,
  };
  return windows
    .toReversed()
    .slice(0, limit)
    .map((span) => ({ ...digestJob({ ...span, ...scope }), dueAtUs: nowUs }));
}

async function productsReceived(
  { sinceUs }: Span,
  tree: FilterTree | null,
  { until: untilUs, subscription, limit = Infinity }: WantedFlags,
  { store, products, nowUs, signal }: Sources,
): Promise<NewSummaryJob[]> {
  const matches = tree === null ? null : compileFilter(tree);
  const jobs: NewSummaryJob[] = [];
  const seen = new Set<string>();
  const query = { sinceUs, untilUs, subscription, time: 'received', order: 'newest' } as const;
  for await (const row of store.find(query)) {
    if (jobs.length >= limit) break;
    requireRoom(jobs, signal);
    const { productId, position } = row;
    if (seen.has(productId)) continue;
    seen.add(productId);
    if (matches !== null) {
      const found = await productById(products, productId);
      if (found === null || !matches(productView(found.record))) continue;
    }
    jobs.push(productJob(row, { subscription: row.subscription, position }, nowUs));
  }
  return jobs;
}

async function productsThatMatch(
  filter: FilterTree,
  { limit }: WantedFlags,
  { products, nowUs, signal }: Sources,
): Promise<NewSummaryJob[]> {
  const jobs: NewSummaryJob[] = [];
  const query = { entity: 'Products', filter, limit, records: false } as const;
  for await (const { row } of products.find(query, signal)) {
    requireRoom(jobs, signal);
    jobs.push(productJob(row, { subscription: null, position: null }, nowUs));
  }
  return jobs;
}

/** Of more than may wait, the first ones would be dropped. */
function requireRoom({ length }: readonly NewSummaryJob[], signal: AbortSignal): void {
  if (signal.aborted) throw new AppError('cancelled', 'Stopped before anything was asked.');
  if (length < waitingMax) return;
  throw new AppError(
    'usage',
    `These are more than ${waitingMax} products, which is more than may wait. Ask for fewer with --limit, --filter or a later --since, or for a --digest.`,
  );
}
