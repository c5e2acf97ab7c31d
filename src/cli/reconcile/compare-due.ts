/** Compares what is due, one kind of events of one subscription after the other: one's trouble is not another's. */
import { type DueTasks, dueTasks } from '../../admin/reconcile/due-windows.ts';
import { type ReconcileTask, reconcile, type TaskReport } from '../../admin/reconcile/reconcile.ts';
import { isAppError } from '../../domain/app-error.ts';
import {
  horizonUs,
  hourUs,
  secondLookUs,
  settlingUs,
  type Uptime,
} from '../../domain/completeness.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import type { Logger } from '../../domain/ports.ts';
import type { Products } from '../../domain/products.ts';
import type { Store } from '../../store/store.ts';
import { pause } from '../until-aborted.ts';
import type { OpenedListing } from './open-listing.ts';

export interface ReconcileParts {
  store: Pick<Store, 'administration' | 'completeness' | 'lastPosition'>;
  products: Products;
  log: Logger;
}

export interface DueComparison extends OpenedListing {
  /** Our own clock, by which uptimes are written. */
  ownNowUs: () => number;
  /** When what may have been missed while we were away was looked at last; null since the start never. */
  looked: { atUs: number | null };
  signal: AbortSignal;
}

/** What ended just before a look, or was told while it ran, is looked at once more. */
const lookedAgainUs = 5 * 60_000_000;

/** How much of what was due has been compared; `all` also where nothing was. */
export type RoundOutcome = 'all' | 'some' | 'none';

/**
 * Tells of each kind that could not be compared, and goes on with the others. Rejects with the signal's reason,
 * with `conflict` when another program is in the way, and as a bug does.
 */
export async function compareDue(parts: ReconcileParts, how: DueComparison): Promise<RoundOutcome> {
  const startedAtUs = how.nowUs();
  const kinds = byKind(await whatIsDue(parts, how, startedAtUs));
  const failed: DueTasks[] = [];
  for (const due of kinds) {
    try {
      await compare(parts, how, due.earlyLooks, false);
      await compare(parts, how, due.tasks, true);
      await compare(parts, how, due.secondLooks, true);
    } catch (error) {
      if (!isOfThisKind(error) || how.signal.aborted) throw error;
      const [task] = [...due.earlyLooks, ...due.tasks, ...due.secondLooks];
      const { subscription, event } = task ?? {};
      tellFailure(error, { subscription, event }, parts.log);
      failed.push(due);
    }
  }
  // What could not be looked at is looked at again, with the others.
  if (failed.every(({ earlyLooks }) => earlyLooks.length === 0)) {
    how.looked.atUs = startedAtUs - lookedAgainUs;
  }
  if (failed.length === 0) return 'all';
  return failed.length < kinds.length ? 'some' : 'none';
}

function byKind({ earlyLooks, tasks, secondLooks }: DueTasks): DueTasks[] {
  const key = ({ subscription, event }: ReconcileTask) => `${subscription} ${event}`;
  const keys = new Set([...earlyLooks, ...tasks, ...secondLooks].map(key));
  return [...keys].map((kind) => {
    const own = (some: readonly ReconcileTask[]) => some.filter((task) => key(task) === kind);
    return { earlyLooks: own(earlyLooks), tasks: own(tasks), secondLooks: own(secondLooks) };
  });
}

function isOfThisKind(error: unknown): boolean {
  return isAppError(error) && error.code !== 'cancelled' && error.code !== 'conflict';
}

/** Fields without a value are left out of the log. */
export function tellFailure(
  error: unknown,
  fields: { subscription?: string | undefined; event?: string | undefined },
  log: Logger,
): void {
  const message = 'the log could not be compared with the catalogue; tried again later';
  if (isAppError(error) && error.code !== 'internal') {
    log.warn({ ...fields, reason: error.message, details: error.details }, message);
  } else log.error({ ...fields, err: error }, message);
}

async function whatIsDue(
  { store }: ReconcileParts,
  { looked, ownNowUs }: DueComparison,
  nowUs: number,
): Promise<DueTasks> {
  const { administration, completeness } = store;
  const sinceUs = nowUs - horizonUs;
  const aheadUs = nowUs - ownNowUs();
  const [definitions, registrations, coverage, uptimes, gaps] = await Promise.all([
    completeness.definitions(),
    administration.registrations(),
    completeness.coverage({ sinceUs, untilUs: nowUs }),
    completeness.uptimes(sinceUs - aheadUs),
    administration.gaps(),
  ]);
  // A look that lies ahead was dated by a clock that was: before the first answer it is our own.
  const lookedAtUs = looked.atUs !== null && looked.atUs <= nowUs ? looked.atUs : null;
  const times = { nowUs, settlingUs, secondLookUs, horizonUs, lookedAtUs };
  const shifted = uptimes.map((one) => shift(one, aheadUs));
  return dueTasks({ definitions, registrations, coverage, uptimes: shifted, gaps, ...times });
}

function shift({ fromUs, toUs }: Uptime, byUs: number): Uptime {
  return { fromUs: fromUs + byUs, toUs: toUs + byUs };
}

async function compare(
  { store, products, log }: ReconcileParts,
  { listing, nowUs, signal }: DueComparison,
  tasks: readonly ReconcileTask[],
  coverage: boolean,
): Promise<void> {
  const [first] = tasks;
  if (first === undefined) return;
  const { completeness } = store;
  const { subscription, event } = first;
  const walk = { subscription, event, ...extentOf(tasks) };
  const isLong = walk.hours > longHours;
  if (isLong) log.info(walk, 'catching up with the catalogue, which may take a while');
  const reports = await reconcile(
    { listing, completeness, products, log: store, nowUs, pause },
    { tasks, mode: 'write', settlingUs, resumeSinceUs: null, coverage, signal },
  );
  const unreadable = sumOf(reports, 'unreadable');
  const fields = {
    ...{ subscription, event },
    expected: sumOf(reports, 'expected'),
    pushed: sumOf(reports, 'pushed'),
    late: sumOf(reports, 'late'),
    recovered: sumOf(reports, 'recovered'),
  };
  if (fields.recovered > 0) log.warn(fields, 'events that no push told of were fetched');
  else log.debug(fields, 'compared with the catalogue: nothing is missing');
  if (isLong) log.info({ ...walk, ...fields }, 'caught up with the catalogue');
  if (unreadable > 0) {
    const what = 'records of the catalogue could not be read and are not counted';
    log.warn({ subscription, event, unreadable }, what);
  }
  const undecided = sumOf(reports, 'undecided');
  if (undecided > 0) {
    const what = 'records of the catalogue lack what the filter asks for, and are not counted';
    log.warn({ subscription, event, undecided }, what);
  }
}

/** Walks over more hours may take minutes, and are told of. */
const longHours = 24;

/** How many hours of events tasks have, and from when to when. */
function extentOf(tasks: readonly ReconcileTask[]): { hours: number; from: string; to: string } {
  const us = tasks.reduce((sum, { fromUs, toUs }) => sum + toUs - fromUs, 0);
  return {
    hours: Math.ceil(us / hourUs),
    from: formatDateUs(Math.min(...tasks.map(({ fromUs }) => fromUs))),
    to: formatDateUs(Math.max(...tasks.map(({ toUs }) => toUs))),
  };
}

type Count = Exclude<keyof TaskReport, 'task'>;

function sumOf(reports: readonly TaskReport[], key: Count): number {
  return reports.reduce((sum, report) => sum + report[key], 0);
}
