/** Pruning step by step, and its automatic runs. */

import { type Io, pause } from '../../core/cli/io.ts';
import { type Job, type RoundTimes, startJob } from '../../core/host/job.ts';
import { dayUs, formatDateUs, minuteMs, shortDateUs } from '../../core/terms/dates.ts';
import type { Logger } from '../../core/terms/ports.ts';
import { countText, sizeText } from '../../core/terms/text.ts';
import { freeShare } from '../../store/bodies/compact-log.ts';
import type {
  LogSize,
  PruneBlocker,
  PruneRequest,
  Pruning,
  Retention,
} from '../../store/pruning/terms.ts';
import type { Store } from '../../store/store.ts';

const pruneTimes: RoundTimes = {
  firstMs: 10 * minuteMs,
  intervalMs: 24 * 60 * minuteMs,
  retryMs: 10 * minuteMs,
};

interface PruneParts {
  store: Pick<Store, 'pruning' | 'find' | 'acquireLock'>;
  log: Logger;
}

/** Prunes the log once a day. A round is skipped while a command prunes. */
export function startPruning(
  parts: PruneParts,
  { keep }: { keep: Retention },
  { nowUs, random }: Pick<Io, 'nowUs' | 'random'>,
  times: Partial<RoundTimes> = {},
): Job {
  const { log } = parts;
  log.info({ keep: keepText(keep) }, 'automatic pruning enabled');
  return startJob(
    {
      every: { ...pruneTimes, ...times },
      failed: 'failed to prune the log; retrying later',
      acquireLock: () => parts.store.acquireLock('prune', { waitMs: 0 }),
      run: (signal) => pruneOnce(parts, keep, { nowUs: nowUs(), signal }),
    },
    { pause, random, log },
  );
}

async function pruneOnce(
  { store, log }: PruneParts,
  keep: Retention,
  { nowUs, signal }: { nowUs: number; signal: AbortSignal },
): Promise<void> {
  const { pruning } = store;
  const lastUs = await newestUs(store);
  if (lastUs === null) return;
  // Age counts from the newest notification, so a wrong clock or a long silence does not empty the log.
  const idleUs = Math.max(0, nowUs - lastUs);
  const ageUs = keep.ageUs === null ? null : keep.ageUs + idleUs;
  const request = { keep: { ...keep, ageUs }, withQuarantined: false, freeShare, nowUs };
  const before = await pruning.logSize();
  const pruned = await pruneLog(request, { pruning, pause, signal });
  const after = await pruning.logSize();
  logPruned(pruned, { before, after, log });
  if (signal.aborted) return;
  const isTooOld = ageUs !== null && (after.firstReceivedAtUs ?? nowUs) < nowUs - ageUs;
  const isTooLarge = keep.bytes !== null && after.usedBytes > keep.bytes;
  if (isTooOld || isTooLarge) await warnBlocked({ pruning, log }, after);
}

/** Returns the catalogue's time if it is earlier: the local clock may have been fast at the receipt. */
async function newestUs({ find }: Pick<Store, 'find'>): Promise<number | null> {
  for await (const { receivedAtUs, notificationDateUs } of find({ limit: 1 })) {
    return Math.min(receivedAtUs, notificationDateUs ?? receivedAtUs);
  }
  return null;
}

function logPruned(
  pruned: Pruned,
  { before, after, log }: { before: LogSize; after: LogSize; log: Logger },
): void {
  const { notifications, quarantine: quarantined } = pruned;
  const fields = {
    notifications,
    quarantined,
    ...othersOf(pruned),
    since: after.firstReceivedAtUs === null ? null : formatDateUs(after.firstReceivedAtUs),
    bytes: after.usedBytes,
    givenBackBytes: before.usedBytes + before.freeBytes - after.usedBytes - after.freeBytes,
  };
  if (notifications + quarantined > 0) log.info(fields, 'pruned the log');
  else log.debug(fields, 'nothing to prune');
}

async function warnBlocked(
  { pruning, log }: Pick<Store, 'pruning'> & { log: Logger },
  { firstPosition }: LogSize,
): Promise<void> {
  const blockers = await pruning.pruneBlockers();
  const heldBy = blockers.filter(({ position }) => position <= firstPosition).map(blockerText);
  if (heldBy.length === 0) return;
  log.warn({ heldBy }, 'pruning to EARSHOT_KEEP is blocked; see `earshot prune --dry-run`');
}

/** Example: `365d, 46.5 GiB`. */
function keepText({ ageUs, bytes }: Retention): string {
  const age = ageUs === null ? [] : [`${Math.round((ageUs / dayUs) * 10) / 10}d`];
  return [...age, ...(bytes === null ? [] : [sizeText(bytes)])].join(', ');
}

/** Removed rows by phase; for `space`, freed bytes. */
export type Pruned = Readonly<
  Record<string, number> & Record<'notifications' | 'quarantine' | 'space', number>
>;

export interface PruneContext {
  pruning: Pick<Pruning, 'prunePhases' | 'pruneStep' | 'checkpoint' | 'logSize'>;
  /** Resolves after the delay, or when the signal is aborted. Never rejects. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
  signal: AbortSignal;
  /** Called after each step with the totals so far. */
  onStep?: ((phase: string, pruned: Pruned) => void) | undefined;
  /** For tests. */
  walBytesMax?: number;
}

/** Pause after each step, so that intake gets the lock: this factor times the step's duration, within the limits. */
const pauseFactor = 2;
const pauseMsMin = 20;
const pauseMsMax = 1_000;

/**
 * Size of the write-ahead log above which pruning waits. It grows while an older snapshot is read, for example by a
 * backup, and pruning may run to free disk space.
 */
const walBytesMaxDefault = 64 * 2 ** 20;

/**
 * Runs all phases. May be interrupted by the signal; the next call continues. Rejects with `unavailable` when the
 * store cannot be written.
 */
export async function pruneLog(request: PruneRequest, context: PruneContext): Promise<Pruned> {
  const { pruning, pause, signal, onStep, walBytesMax = walBytesMaxDefault } = context;
  const phases = await pruning.prunePhases();
  const pruned: Record<string, number> & { -readonly [Phase in keyof Pruned]: number } = {
    ...Object.fromEntries(phases.map((phase) => [phase, 0])),
    ...{ notifications: 0, quarantine: 0, space: 0 },
  };
  for (const phase of phases) {
    for (let after: number | null = 0; after !== null && !signal.aborted; ) {
      if ((await pruning.logSize()).walBytes > walBytesMax) {
        await pruning.checkpoint();
        await pause(pauseMsMax, signal);
        continue;
      }
      const beganMs = performance.now();
      const { removed, next } = await pruning.pruneStep({ phase, request, after });
      const tookMs = performance.now() - beganMs;
      pruned[phase] = (pruned[phase] ?? 0) + removed;
      onStep?.(phase, pruned);
      after = next;
      await pause(Math.min(Math.max(pauseFactor * tookMs, pauseMsMin), pauseMsMax), signal);
    }
  }
  await pruning.checkpoint();
  return pruned;
}

/** Returns the removed rows of features, by group. */
export function othersOf(pruned: Pruned): Record<string, number> {
  const { notifications: _, quarantine: __, space: ___, ...others } = pruned;
  return others;
}

/** Describes a blocker: `reader downloads, at position 1,200 since 2026-01-03 …`. */
export function blockerText({ name, position, sinceUs }: PruneBlocker): string {
  const since = sinceUs === null ? '' : ` since ${shortDateUs(sinceUs)}`;
  return `${name}, at position ${countText(Math.max(position, 0))}${since}`;
}
