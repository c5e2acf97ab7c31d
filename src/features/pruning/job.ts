/** Pruning step by step, and its automatic runs. */

import { type Io, pause } from '../../core/cli/io.ts';
import { type Job, type RoundTimes, startJob } from '../../core/host/job.ts';
import { formatDateUs, minuteMs, shortDateUs } from '../../core/terms/dates.ts';
import type { Logger } from '../../core/terms/ports.ts';
import { countText } from '../../core/terms/text.ts';
import { freeShare } from '../../store/bodies/compact-log.ts';
import type {
  LogSize,
  PruneBlocker,
  PruneRequest,
  PruneStep,
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
  log.info({ keep }, 'automatic pruning enabled');
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
  const pruned = await pruneLog(request, { pruning, pause, signal });
  const after = await pruning.logSize();
  const since = after.firstReceivedAtUs === null ? null : formatDateUs(after.firstReceivedAtUs);
  const isPruned = pruned.notifications + pruned.quarantine > 0;
  const fields = { ...countsOf(pruned), since, bytes: after.usedBytes };
  log[isPruned ? 'info' : 'debug'](fields, isPruned ? 'pruned the log' : 'nothing to prune');
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

async function warnBlocked(
  { pruning, log }: Pick<Store, 'pruning'> & { log: Logger },
  { firstPosition }: LogSize,
): Promise<void> {
  const blockers = await pruning.pruneBlockers();
  const heldBy = blockers.filter(({ position }) => position <= firstPosition).map(blockerText);
  if (heldBy.length === 0) return;
  log.warn({ heldBy }, 'pruning to EARSHOT_KEEP is blocked; see `earshot prune --dry-run`');
}

/** Removed rows by phase; for `space`, freed bytes. */
export type Pruned = Readonly<
  Record<string, number> & Record<'notifications' | 'quarantine' | 'space', number>
>;

export interface PruneContext {
  pruning: Store['pruning'];
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
  const phases = [...(await pruning.prunePhases()), 'space'];
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
      const { removed, next } = await pruneStep(pruning, { phase, request, after });
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

/** Removes some rows or, in the phase `space`, returns some free space to the file system. */
async function pruneStep(
  pruning: Store['pruning'],
  options: { phase: string; request: PruneRequest; after: number },
): Promise<PruneStep> {
  await pruning.checkpointIfFull();
  if (options.phase === 'space') return pruning.releaseFreePages(options.request.freeShare);
  const selected = await pruning.selectPrunable(options);
  if (selected === null) return { removed: 0, next: null };
  const { unit, next } = selected;
  return { removed: unit === null ? 0 : await pruning.removeSelected(unit), next };
}

/** Returns the counts of removed rows, and the bytes by which the file became smaller. */
export const countsOf = ({ quarantine: quarantined, space: givenBackBytes, ...rows }: Pruned) => ({
  ...rows,
  ...{ quarantined, givenBackBytes },
});

/** Describes a blocker: `reader downloads, at position 1,200 since 2026-01-03 …`. */
export function blockerText({ name, position, sinceUs }: PruneBlocker): string {
  const since = sinceUs === null ? '' : ` since ${shortDateUs(sinceUs)}`;
  return `${name}, at position ${countText(Math.max(position, 0))}${since}`;
}
