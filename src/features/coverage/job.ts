/** Automatic comparison: compares the hours that are due, every few minutes, as a background job. */

import { type Io, pause } from '../../core/cli/io.ts';
import { errorFields, type Job, type RoundTimes, startJob } from '../../core/host/job.ts';
import { isAppError } from '../../core/terms/app-error.ts';
import { formatDateUs, hourUs, minuteUs } from '../../core/terms/dates.ts';
import type { Logger } from '../../core/terms/ports.ts';
import type { Products } from '../../filter/products.ts';
import type { Store } from '../../store/store.ts';
import { comparisonHorizonUs, recheckAfterUs, settlingUs } from './completeness.ts';
import {
  createKindRound,
  type DueTasks,
  dueTasks,
  type Kind,
  type KindRound,
  type RoundPart,
} from './due-windows.ts';
import { type OpenedListing, openListing } from './open-listing.ts';
import { reconcile } from './reconcile.ts';
import type { ReconcileConfig } from './settings.ts';
import type { ReconcileTask, TaskReport } from './tasks.ts';

/** The first round waits until pushes arrive again after the start. */
const usual: RoundTimes = {
  firstMs: 30_000,
  intervalMs: 300_000,
  retryMs: 60_000,
  retryMsMax: 3_600_000,
};

/** Values of `$top`, largest first. Pages of 1,000 products would need 60 MB more, and the comparison has time. */
const pageSizes = [400, 100, 50];

type ReconcileIo = Pick<Io, 'nowUs' | 'random' | 'fetch' | 'signal'>;

const failedText = 'failed to compare the log with the catalogue; retrying later';

/** Starts the job. A round is skipped while a command compares. */
export function startReconcile(
  parts: ReconcileParts,
  config: ReconcileConfig,
  io: ReconcileIo,
  timing: Partial<RoundTimes> = {},
): Job {
  let rounds: { next: () => Promise<RoundOutcome>; signal: AbortSignal } | undefined;
  return startJob(
    {
      every: { ...usual, ...timing },
      failed: failedText,
      acquireLock: () => parts.store.acquireLock('reconcile', { waitMs: 0 }),
      // A round with partial success counts as a success: the rest waits for the next round.
      run: async (signal) => {
        // Aborted with the lock of an earlier round, if another receiver had taken it over.
        if (rounds === undefined || rounds.signal.aborted) {
          rounds = { next: createReconcileRounds(parts, config, io, signal), signal };
        }
        return (await rounds.next()) !== 'none';
      },
    },
    { pause, random: io.random, log: parts.log },
  );
}

/** Returns the function that runs one round. It resolves with the part of the due work that was compared. */
export function createReconcileRounds(
  parts: ReconcileParts,
  config: ReconcileConfig,
  io: ReconcileIo,
  signal: AbortSignal,
): () => Promise<RoundOutcome> {
  const opened = openListing(
    { ...config, pageSizes },
    { ...io, signal: AbortSignal.any([io.signal, signal]) },
    ({ cause, waitMs }) => parts.log.debug({ reason: cause, waitMs }, 'retrying a catalogue query'),
  );
  const deps: DueComparison = { ...opened, ownNowUs: io.nowUs, lastCheck: { atUs: null }, signal };
  return () => compareDue(parts, deps);
}

/** Work after the comparisons of a round, with the same listing and its budget of requests. */
export type ComparisonStep = (
  context: Omit<ReconcileParts, 'afterRound'> &
    Pick<DueComparison, 'listing' | 'nowUs' | 'ownNowUs' | 'signal'> & {
      /** True if the catalogue has answered in this round. */
      isAnswering: boolean;
    },
) => Promise<void>;

interface ReconcileParts {
  afterRound?: readonly ComparisonStep[];
  store: Pick<Store, 'administration' | 'completeness' | 'lastPosition' | 'acquireLock'> &
    Pick<Store, 'find' | 'cursor' | 'moveCursor' | 'pruning'>;
  products: Products;
  log: Logger;
}

interface DueComparison extends OpenedListing {
  /** Local clock, by which uptimes are recorded. */
  ownNowUs: () => number;
  /** Time of the last complete early check; null for none since the start. */
  lastCheck: { atUs: number | null };
  signal: AbortSignal;
}

/** Overlap of two early checks: covers events that arrived shortly before or during the first one. */
const checkOverlapUs = 5 * minuteUs;

/** Part of the due work that was compared; `all` if nothing was due. */
export type RoundOutcome = 'all' | 'some' | 'none';

/** Maximum number of failures of one kind in a round. */
const failuresMax = 5;

/**
 * Logs each kind that could not be compared, and continues with the others. Skips an hour at which the catalogue
 * fails, and continues with later hours in the same round. Rejects with the signal's reason, with `conflict`
 * if another program holds a lock, and with unexpected errors.
 */
async function compareDue(parts: ReconcileParts, deps: DueComparison): Promise<RoundOutcome> {
  const startedAtUs = deps.nowUs();
  const busy = await unreadQueues(parts, deps);
  const kinds = byKind(await findDue(parts, deps, startedAtUs), busy);
  const failed = new Map<KindRound, unknown>();
  let isAnswered = false;
  // Each failure may take minutes. Until the catalogue answers, the first kind gets two attempts, the others one.
  const mayContinue = (kind: KindRound) => {
    const limit = isAnswered ? failuresMax : kind === kinds[0] ? 2 : 1;
    return kind.failures() < limit && !isFinal(failed.get(kind));
  };
  const compareKind = async (kind: KindRound) => {
    for (let part = kind.next(); part !== null && mayContinue(kind); part = kind.next()) {
      let reachedUs = 0;
      try {
        await compare(parts, deps, part, (upToUs) => {
          isAnswered = true;
          reachedUs = upToUs;
        });
        kind.done();
      } catch (error) {
        if (!isOfThisKind(error) || deps.signal.aborted) throw error;
        failed.set(kind, error);
        if (!isFinal(error)) kind.failed(reachedUs);
      }
    }
  };
  // Second pass: continues a kind that stopped before the catalogue answered a query of another kind.
  for (const kind of [...kinds, ...kinds]) await compareKind(kind);
  for (const [kind, error] of failed) {
    const level = isAppError(error, 'internal') ? 'error' : 'warn';
    parts.log[level]({ ...fieldsOf(kind), ...errorFields(error) }, failedText);
  }
  // If one early check failed, all are repeated.
  if (busy.size === 0 && kinds.every((kind) => kind.isEarlyChecked())) {
    deps.lastCheck.atUs = startedAtUs - checkOverlapUs;
  }
  // The comparison of a long queue comes later; it fetches 400 records with one request.
  if (busy.size === 0) {
    const { listing, nowUs, ownNowUs, signal } = deps;
    const context = { ...parts, listing, nowUs, ownNowUs, signal, isAnswering: isAnswered };
    for (const step of parts.afterRound ?? []) await step(context);
  }
  if (failed.size === 0) return 'all';
  return kinds.some((kind) => kind.hasProgress()) ? 'some' : 'none';
}

/** True for an error that another hour would cause, too. */
function isFinal(error: unknown): boolean {
  return error !== undefined && !isAppError(error, 'unavailable');
}

/** Log fields of a kind. Time intervals as in ISO 8601, 4.4: begin/end. */
function fieldsOf({ kind, left }: KindRound) {
  const notCompared = left().map(({ fromUs, toUs }) => `${shortDate(fromUs)}/${shortDate(toUs)}`);
  return { ...kind, notCompared };
}

function shortDate(us: number): string {
  return formatDateUs(us).replace(/\.0+Z$/, 'Z');
}

function byKind(due: DueTasks, busy: ReadonlySet<string>): KindRound[] {
  const key = ({ subscription, event }: Kind) => `${subscription} ${event}`;
  const all = [...due.earlyChecks, ...due.tasks, ...due.rechecks];
  return [...Map.groupBy(all, key)].flatMap(([name, [first]]) => {
    if (first === undefined || busy.has(first.subscription)) return [];
    const own = (some: readonly ReconcileTask[]) => some.filter((task) => key(task) === name);
    const { subscription, event } = first;
    const { earlyChecks, tasks, rechecks } = due;
    return createKindRound(
      { subscription, event },
      { earlyChecks: own(earlyChecks), tasks: own(tasks), rechecks: own(rechecks) },
    );
  });
}

function isOfThisKind(error: unknown): boolean {
  return isAppError(error) && error.code !== 'cancelled' && error.code !== 'conflict';
}

async function findDue(
  { store }: ReconcileParts,
  { lastCheck, ownNowUs }: DueComparison,
  nowUs: number,
): Promise<DueTasks> {
  const { administration, completeness } = store;
  const sinceUs = nowUs - comparisonHorizonUs;
  const aheadUs = nowUs - ownNowUs();
  const [definitions, registrations, coverage, uptimes, gaps, wholeUs] = await Promise.all([
    completeness.definitions(),
    administration.registrations(),
    completeness.coverage({ sinceUs, untilUs: nowUs }),
    completeness.uptimes(sinceUs - aheadUs),
    administration.gaps(),
    completeness.unprunedSinceUs(),
  ]);
  // A check in the future was dated by the local clock, used before the first answer of the catalogue.
  const { atUs } = lastCheck;
  const earlyCheckedAtUs = atUs !== null && atUs <= nowUs ? atUs : null;
  // Pushes of the last hour are dated by the local clock, which may be slow.
  const unprunedSinceUs = wholeUs + Math.max(0, aheadUs);
  const times = {
    nowUs,
    settlingUs,
    recheckAfterUs,
    comparisonHorizonUs,
    earlyCheckedAtUs,
    unprunedSinceUs,
  };
  const shifted = uptimes.map(({ fromUs, toUs }) => ({
    fromUs: fromUs + aheadUs,
    toUs: toUs + aheadUs,
  }));
  return dueTasks({ definitions, registrations, coverage, uptimes: shifted, gaps, ...times });
}

async function compare(
  { store, products, log }: ReconcileParts,
  { listing, nowUs, ownNowUs, signal }: DueComparison,
  { tasks, coverage }: RoundPart,
  onReached: (upToUs: number) => void,
): Promise<void> {
  const [first] = tasks;
  if (first === undefined) return;
  const { completeness } = store;
  const { subscription, event } = first;
  const extent = { subscription, event, ...extentOf(tasks) };
  const isLong = extent.hours > longHours;
  if (isLong) log.info(extent, 'catching up with the catalogue');
  const reports = await reconcile(
    { listing, completeness, products, log: store, nowUs, ownNowUs, pause },
    {
      ...{ tasks, mode: 'write', settlingUs, resumeSinceUs: null, coverage, signal },
      onProgress: ({ upToUs }) => onReached(upToUs),
    },
  );
  const sum = (key: Count) => reports.reduce((total, report) => total + report[key], 0);
  const fields = {
    ...{ subscription, event },
    expected: sum('expected'),
    pushed: sum('pushed'),
    late: sum('late'),
    recovered: sum('recovered'),
  };
  if (fields.recovered > 0) log.warn(fields, 'recovered missing notifications');
  else log.debug(fields, 'compared with the catalogue: nothing missing');
  if (isLong) log.info({ ...extent, ...fields }, 'caught up with the catalogue');
  for (const [key, message] of Object.entries(uncounted) as [Count, string][]) {
    const count = sum(key);
    if (count > 0) log.warn({ subscription, event, [key]: count }, message);
  }
}

type Count = Exclude<keyof TaskReport, 'task'>;

const uncounted: Partial<Record<Count, string>> = {
  unreadable: 'unreadable catalogue records were not counted',
  undecided: 'catalogue records without the properties of the filter were not counted',
};

/** A comparison of more hours may take minutes, so it is logged. */
const longHours = 24;

/** Returns the number of hours in the tasks, and their first and last time. */
function extentOf(tasks: readonly ReconcileTask[]): { hours: number; from: string; to: string } {
  const us = tasks.reduce((sum, { fromUs, toUs }) => sum + toUs - fromUs, 0);
  return {
    hours: Math.ceil(us / hourUs),
    from: formatDateUs(Math.min(...tasks.map(({ fromUs }) => fromUs))),
    to: formatDateUs(Math.max(...tasks.map(({ toUs }) => toUs))),
  };
}

/** Time for another program to complete a change of the account. */
/** A queue with more entries is read first. */
const unreadMax = 100;

/** Age of a state after which the queue counts as not being read. */
const queueStateMaxUs = 5 * minuteUs;

/**
 * Returns the subscriptions whose queues are being read: what they contain would be fetched twice, and out of order.
 * While a queue cannot be read, its events are compared as all others.
 */
async function unreadQueues(
  { store }: ReconcileParts,
  { ownNowUs }: DueComparison,
): Promise<ReadonlySet<string>> {
  const states = await store.administration.queues();
  const unread = states.filter(({ length, readAtUs, failure }) => {
    const isRead = failure === null && ownNowUs() - (readAtUs ?? 0) < queueStateMaxUs;
    return isRead && length !== null && length > unreadMax;
  });
  return new Set(unread.map(({ subscription }) => subscription));
}
