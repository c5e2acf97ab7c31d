/** Pruning by itself, inside a receiver that serves: once a day, in short steps, and only as EARSHOT_KEEP says. */
import type { DataConfig } from '../../config/read-config.ts';
import { errorText, isAppError } from '../../domain/app-error.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import type { Logger } from '../../domain/ports.ts';
import type { Keep, LogSize } from '../../domain/pruning.ts';
import { doRounds, type RoundTimes } from '../../domain/rounds.ts';
import { sizeText } from '../../domain/size-text.ts';
import { createTakeLock } from '../../store/engine/locks.ts';
import { type Pruned, pruneLog } from '../../store/pruning/prune-log.ts';
import type { Store } from '../../store/store.ts';
import type { Io } from '../io.ts';
import { pause } from '../until-aborted.ts';
import { holderText } from './holder-hint.ts';

const minuteMs = 60_000;
const usual: RoundTimes = {
  firstMs: 10 * minuteMs,
  intervalMs: 24 * 60 * minuteMs,
  retryMs: 10 * minuteMs,
};

/** Of the file, what may stay free: what comes until tomorrow goes there, and no page is moved in vain. */
const freeShare = 0.05;

const dayUs = 86_400_000_000;

export interface PruneParts {
  store: Pick<Store, 'pruning' | 'find'>;
  log: Logger;
}

/** Starts the loop. Whatever fails is logged, and tried again later. Tests make the times shorter. */
export function startPruning(
  parts: PruneParts,
  { dataDir, keep }: Pick<DataConfig, 'dataDir'> & { keep: Keep },
  { nowUs, random }: Pick<Io, 'nowUs' | 'random'>,
  times: Partial<RoundTimes> = {},
): { stop(): Promise<void> } {
  const { log } = parts;
  const stopping = new AbortController();
  const { signal } = stopping;
  const takeLock = createTakeLock(dataDir);
  log.info({ keep: keepText(keep) }, 'what of the log is beyond that is removed once a day');
  const round = async (): Promise<boolean> => {
    try {
      const release = await takeLock('prune', { waitMs: 0 });
      try {
        await pruneOnce(parts, keep, { nowUs: nowUs(), signal });
        return true;
      } finally {
        release();
      }
    } catch (error) {
      // By a command: that prunes as well.
      if (isAppError(error, 'conflict')) return true;
      const reason = isAppError(error) ? errorText(error) : String(error);
      log.error({ reason, err: error }, 'the log could not be pruned; tried again later');
      return false;
    }
  };
  const running = doRounds(round, { ...usual, ...times }, { pause, random, signal });
  return {
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}

async function pruneOnce(
  { store, log }: PruneParts,
  keep: Keep,
  { nowUs, signal }: { nowUs: number; signal: AbortSignal },
): Promise<void> {
  const { pruning } = store;
  const lastUs = await newestUs(store);
  if (lastUs === null) return;
  // Age counts from the newest: neither a clock that runs ahead nor a log that gets nothing is emptied by it.
  const lateUs = Math.max(0, nowUs - lastUs);
  const ageUs = keep.ageUs === null ? null : keep.ageUs + lateUs;
  const wish = { keep: { ...keep, ageUs }, withHeld: false, freeShare, nowUs };
  const before = await pruning.logSize();
  const pruned = await pruneLog(wish, { pruning, pause, signal });
  const after = await pruning.logSize();
  tellPruned(pruned, { before, after, log });
  if (signal.aborted) return;
  const isTooOld = ageUs !== null && (after.firstReceivedAtUs ?? nowUs) < nowUs - ageUs;
  const isTooLarge = keep.bytes !== null && after.usedBytes > keep.bytes;
  if (isTooOld || isTooLarge) await tellHeld({ pruning, log }, after);
}

/** By the catalogue's clock where that is earlier: ours may have been ahead when it came. */
async function newestUs({ find }: Pick<Store, 'find'>): Promise<number | null> {
  for await (const { receivedAtUs, notificationDateUs } of find({ limit: 1 })) {
    return Math.min(receivedAtUs, notificationDateUs ?? receivedAtUs);
  }
  return null;
}

function tellPruned(
  pruned: Pruned,
  { before, after, log }: { before: LogSize; after: LogSize; log: Logger },
): void {
  const { notifications, quarantine: quarantined } = pruned;
  const fields = {
    notifications,
    quarantined,
    summaries: pruned['summary-jobs'] + pruned['summary-texts'],
    since: after.firstReceivedAtUs === null ? null : formatDateUs(after.firstReceivedAtUs),
    bytes: after.usedBytes,
    givenBackBytes: before.usedBytes + before.freeBytes - after.usedBytes - after.freeBytes,
  };
  if (notifications + quarantined > 0) log.info(fields, 'the log was pruned');
  else log.debug(fields, 'nothing of the log was to be pruned');
}

async function tellHeld(
  { pruning, log }: Pick<Store, 'pruning'> & { log: Logger },
  { firstPosition }: LogSize,
): Promise<void> {
  const holders = await pruning.logHolders();
  const heldBy = holders.filter(({ position }) => position <= firstPosition).map(holderText);
  if (heldBy.length === 0) return;
  log.warn(
    { heldBy },
    'the log cannot be pruned as far as EARSHOT_KEEP says; `earshot prune --dry-run` says what to do',
  );
}

/** Such as `365d, 46.5 GiB`. */
function keepText({ ageUs, bytes }: Keep): string {
  const age = ageUs === null ? [] : [`${Math.round((ageUs / dayUs) * 10) / 10}d`];
  return [...age, ...(bytes === null ? [] : [sizeText(bytes)])].join(', ');
}
