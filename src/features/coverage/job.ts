/** Automatic comparison: compares the hours that are due, every few minutes, as a background job. */

import { type Io, pause } from '../../core/cli/io.ts';
import { errorFields, type Job, type RoundTimes, startJob } from '../../core/host/job.ts';
import { errorText, isAppError } from '../../core/terms/app-error.ts';
import { formatDateUs, minuteUs } from '../../core/terms/dates.ts';
import type { Logger } from '../../core/terms/ports.ts';
import type { Products } from '../../filter/products.ts';
import { repeat } from '../../receiver/own-jobs.ts';
import type { Store } from '../../store/store.ts';
import { type Completeness, comparisonHorizonUs } from './completeness.ts';
import { sumCounts } from './coverage.ts';
import { type OpenedListing, openListing, reconcile } from './reconcile.ts';
import type { ReconcileConfig } from './settings.ts';
import { type DueKind, type DuePart, dueKinds, mergeWindows } from './tasks.ts';

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
  const startedAtUs = io.nowUs();
  return startJob(
    {
      every: { ...usual, ...timing },
      failed: failedText,
      acquireLock: () => parts.store.acquireLock('reconcile', { waitMs: 0 }),
      // A round with partial success counts as a success: the rest waits for the next round.
      run: async (signal) => {
        // Aborted with the lock of an earlier round, if another receiver had taken it over.
        if (rounds === undefined || rounds.signal.aborted) {
          const sinceUs = rounds === undefined ? startedAtUs : io.nowUs();
          rounds = { next: createReconcileRounds(parts, config, io, signal, sinceUs), signal };
        }
        return (await rounds.next()) !== 'none';
      },
    },
    { pause, random: io.random, log: parts.log },
  );
}

/**
 * Returns the function that runs one round. It resolves with the part of the due work that was compared. Entries of
 * queues that were received before `pulledUpToUs` are not counted.
 */
export function createReconcileRounds(
  parts: ReconcileParts,
  config: ReconcileConfig,
  io: ReconcileIo,
  signal: AbortSignal,
  pulledUpToUs = io.nowUs(),
): () => Promise<RoundOutcome> {
  const opened = openListing(
    config,
    { ...io, signal: AbortSignal.any([io.signal, signal]) },
    ({ cause, waitMs }) => parts.log.debug({ reason: cause, waitMs }, 'retrying a catalogue query'),
    { sizes: pageSizes },
  );
  const last = { checkedAtUs: null, pulledUpToUs, isAnswering: false };
  const deps: DueComparison = { ...opened, ownNowUs: io.nowUs, last, signal };
  return () => compareDue(parts, deps);
}

interface ReconcileParts {
  store: Pick<Store, 'administration' | 'completeness' | 'lastPosition' | 'acquireLock'>;
  products: Products;
  log: Logger;
}

interface DueComparison extends OpenedListing {
  /** Local clock. */
  ownNowUs: () => number;
  /** State after the last round. */
  last: {
    /** Later events were not checked; null before the catalogue has answered. */
    checkedAtUs: number | null;
    /** Entries of queues that were received earlier were counted. By the local clock. */
    pulledUpToUs: number;
    /** True if the catalogue answered. */
    isAnswering: boolean;
  };
  signal: AbortSignal;
}

/** Overlap of two rounds: covers events that arrived shortly before or during the first one. */
const checkOverlapUs = 5 * minuteUs;

/** Part of the due work that was compared; `all` if nothing was due. */
export type RoundOutcome = 'all' | 'some' | 'none';

/** Maximum number of failures of one kind in a round; while the catalogue does not answer, each may take minutes. */
const failuresMax = 5;
const failuresMaxWithoutAnswer = 2;

/** Comparison of a kind in a round. */
interface KindRound extends DueKind {
  /** Parts that were not compared. */
  left: DuePart[];
  failures: number;
  error: unknown;
}

/**
 * Compares each part of each kind once, and leaves those that fail to the next round. Logs each kind that could not be
 * compared. Rejects with the signal's reason, with `conflict` if another program holds a lock, and with unexpected
 * errors.
 */
async function compareDue(parts: ReconcileParts, deps: DueComparison): Promise<RoundOutcome> {
  const { last, nowUs, ownNowUs, signal } = deps;
  const [startedAtUs, ownStartedAtUs] = [nowUs(), ownNowUs()];
  const busy = await unreadQueues(parts, deps);
  const kinds = (await findDue(parts, deps, startedAtUs))
    .filter(({ subscription }) => !busy.has(subscription))
    .map((kind): KindRound => ({ ...kind, left: [], failures: 0, error: undefined }));
  let hasProgress = false;
  const isStopped = (kind: KindRound) => {
    const isAnswering = hasProgress || (last.isAnswering && kind === kinds[0]);
    const maximum = isAnswering ? failuresMax : failuresMaxWithoutAnswer;
    return kind.failures >= maximum || isFinal(kind.error);
  };
  for (const kind of kinds) {
    for (const part of kind.parts) {
      if (isStopped(kind)) {
        kind.left.push(part);
        continue;
      }
      try {
        await compare(parts, deps, part, () => {
          hasProgress = true;
        });
      } catch (error) {
        if (!isOfThisKind(error) || signal.aborted) throw error;
        kind.left.push(part);
        kind.failures += 1;
        kind.error = error;
      }
    }
  }
  const failed = kinds.filter(({ failures }) => failures > 0);
  for (const kind of failed) {
    const level = isAppError(kind.error, 'internal') ? 'error' : 'warn';
    parts.log[level]({ ...fieldsOf(kind), ...errorFields(kind.error) }, failedText);
  }
  if (kinds.length > 0) last.isAnswering = hasProgress;
  const outcome = failed.length === 0 ? 'all' : hasProgress ? 'some' : 'none';
  if (busy.size > 0) return outcome;
  // An early part that failed alone is compared with its hour.
  if (outcome !== 'none') last.checkedAtUs = startedAtUs - checkOverlapUs;
  if (outcome === 'all') {
    const entries = await parts.store.completeness.withoutRecord(last.pulledUpToUs);
    if (entries > 0) parts.log.warn({ entries }, withoutRecordText);
    last.pulledUpToUs = ownStartedAtUs;
  }
  return outcome;
}

const withoutRecordText =
  'queue entries stay without a record: the catalogue no longer lists them, or they are older than 30 days';

/** True for an error that another hour would cause, too. */
function isFinal(error: unknown): boolean {
  return error !== undefined && !isAppError(error, 'unavailable');
}

/** Log fields of a kind. Time intervals as in ISO 8601, 4.4: begin/end. */
function fieldsOf({ subscription, event, left }: KindRound) {
  const windows = mergeWindows(left.map(({ window }) => window));
  const notCompared = windows.map(({ fromUs, toUs }) => `${shortDate(fromUs)}/${shortDate(toUs)}`);
  return { subscription, event, notCompared };
}

function shortDate(us: number): string {
  return formatDateUs(us).replace(/\.0+Z$/, 'Z');
}

function isOfThisKind(error: unknown): boolean {
  return isAppError(error) && error.code !== 'cancelled' && error.code !== 'conflict';
}

async function findDue(
  { store }: ReconcileParts,
  { last: { checkedAtUs }, ownNowUs }: DueComparison,
  nowUs: number,
): Promise<DueKind[]> {
  const { administration, completeness } = store;
  const sinceUs = nowUs - comparisonHorizonUs;
  const aheadUs = nowUs - ownNowUs();
  const [definitions, registrations, coverage, gaps, wholeUs] = await Promise.all([
    completeness.definitions(),
    administration.registrations(),
    completeness.coverage({ sinceUs, untilUs: nowUs }),
    administration.gaps(),
    completeness.unprunedSinceUs(),
  ]);
  return dueKinds({
    ...{ definitions, registrations, coverage, gaps, nowUs },
    // A time in the future is of the local clock, used before the first answer of the catalogue.
    checkedAtUs: checkedAtUs !== null && checkedAtUs <= nowUs ? checkedAtUs : null,
    // Pushes of the last hour are dated by the local clock, which may be slow.
    unprunedSinceUs: wholeUs + Math.max(0, aheadUs),
  });
}

async function compare(
  { store, products, log }: ReconcileParts,
  { listing, nowUs, ownNowUs, signal }: DueComparison,
  { tasks, isEarly }: DuePart,
  onProgress: () => void,
): Promise<void> {
  const { completeness } = store;
  const reports = await reconcile(
    { listing, completeness, products, log: store, nowUs, ownNowUs, pause },
    { tasks, mode: 'write', coverage: !isEarly, signal, onProgress },
  );
  const kind = { subscription: tasks[0]?.subscription, event: tasks[0]?.event };
  const { missing: _, ...counts } = sumCounts(reports);
  const fields = { ...kind, ...counts };
  if (counts.recovered > 0) log.warn(fields, 'recovered missing notifications');
  else log.debug(fields, 'compared with the catalogue: nothing missing');
  for (const [key, message] of [
    ['unreadable', 'unreadable catalogue records were not counted'],
    ['undecided', 'catalogue records without the properties of the filter were not counted'],
  ] as const) {
    const count = reports.reduce((sum, report) => sum + report[key], 0);
    if (count > 0) log.warn({ ...kind, [key]: count }, message);
  }
}

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

const uptimeIntervalMs = 60_000;

/** Records when the receiver runs: hours without it are no losses of the catalogue. Records a heartbeat at the start, every minute, and at the stop. It fails when intake fails, as on a full disk. */
export function startUptimeMarks(options: {
  completeness: Pick<Completeness, 'recordUptime'>;
  nowUs: () => number;
  log: Logger;
}): Job {
  const { completeness, nowUs, log } = options;
  let fromUs = nowUs();
  let lastUs = fromUs;
  let isBroken = false;
  const mark = async () => {
    const toUs = nowUs();
    // After a failure, a sleep of the machine, or a clock set back, the uptime has a gap.
    if (isBroken || toUs < lastUs || toUs - lastUs > 3 * uptimeIntervalMs * 1_000) fromUs = toUs;
    lastUs = toUs;
    try {
      await completeness.recordUptime({ fromUs, toUs });
      isBroken = false;
    } catch (error) {
      isBroken = true;
      const reason = errorText(error);
      log.debug({ reason }, 'failed to record heartbeat');
    }
  };
  return repeat(mark, uptimeIntervalMs, mark());
}
