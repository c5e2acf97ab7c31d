/** Automatic pruning of a receiver. Locks exclude commands and other receivers. */

import { type Io, pause } from '../../core/cli/io.ts';
import { type Job, type RoundTimes, startJob } from '../../core/host/job.ts';
import { dayUs, formatDateUs, minuteMs } from '../../core/terms/dates.ts';
import type { Logger } from '../../core/terms/ports.ts';
import { sizeText } from '../../core/terms/text.ts';
import { freeShare } from '../../store/bodies/compact-log.ts';
import { type Pruned, pruneLog } from '../../store/pruning/prune-log.ts';
import type { LogSize, Retention } from '../../store/pruning/terms.ts';
import type { Store } from '../../store/store.ts';
import { blockerText, othersOf } from './command.ts';

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
