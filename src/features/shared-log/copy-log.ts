/** Moves a log of its own into a shared log, and back. */
import type { AcquireLock } from '../../core/host/job.ts';
import type { Remote } from '../../core/host/rpc.ts';
import { moduleFile } from '../../core/host/rpc.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { hourUs } from '../../core/terms/dates.ts';
import type { DataPlace } from '../../store/engine/disk-limit.ts';
import { withThread } from '../../store/engine/thread.ts';
import type { CopiedPart, CopyOperations } from './copy-thread.ts';
import type { SharedLog } from './postgres-log.ts';

/** Positions that are compared at once. */
const comparedMax = 10_000;

/** Maximum wait for the end of a pruning. */
const lockWaitMs = 60_000;

/** Rows that were seen this long before the start of a copy count as unchanged: the clock may be set back meanwhile. */
const clockToleranceUs = hourUs;

export interface CopyOptions extends DataPlace {
  log: Pick<SharedLog, 'head' | 'copy' | 'saveCheckpoint'>;
  /** Locks of the log, or of the shared log: nothing is pruned meanwhile. */
  acquireLock: AcquireLock;
  nodeId: string;
  /** Random UUID. */
  newId: () => string;
  nowUs: () => number;
  signal: AbortSignal;
  onProgress: (progress: { step: 'copying' | 'comparing'; done: number; of: number }) => void;
}

export interface CopiedLog {
  notifications: number;
  /** Last entry of the shared log. */
  entries: number;
  /** True if the log was already part of the shared log. */
  wasMoved?: boolean;
}

/** Runs work on the thread that reads a log. */
export const withCopyThread = <Result>(
  { dataDir }: DataPlace,
  work: (log: Remote<CopyOperations>) => Promise<Result>,
): Promise<Result> =>
  withThread<CopyOperations, Result>(
    moduleFile('./copy-thread', import.meta.url),
    { dataDir },
    work,
  );

/** Does the same while nothing is pruned. */
async function withoutPruning(
  options: CopyOptions,
  work: (log: Remote<CopyOperations>) => Promise<CopiedLog>,
): Promise<CopiedLog> {
  const { acquireLock, signal } = options;
  const release = await acquireLock('prune', { waitMs: lockWaitMs, signal });
  try {
    return await withCopyThread(options, work);
  } finally {
    release();
  }
}

/**
 * Copies a log into an empty shared log while its receiver runs, compares both, and makes it a node of the shared log.
 * May be interrupted and called again. Rejects with `conflict` when the shared log is in use.
 */
export async function copyToSharedLog(options: CopyOptions): Promise<CopiedLog> {
  const { log, nodeId, newId, nowUs, onProgress, signal } = options;
  return withoutPruning(options, async (source) => {
    const place = await source.place();
    if (place !== null) return openCopied(log, place.logId);
    const sinceUs = nowUs() - clockToleranceUs;
    const logId = await log.copy.begin(await source.source());
    let [position, number, batchId] = [0, 0, ''];
    const append = async (part: CopiedPart) => {
      signal.throwIfAborted();
      batchId = newId();
      number = await log.copy.append(batchId, part);
    };
    const copyRows = async () => {
      const of = await source.lastPosition();
      for (let part = await source.rows(position); part !== null; ) {
        await append(part);
        position = part.lastPosition;
        onProgress({ step: 'copying', done: position, of: Math.max(of, position) });
        part = await source.rows(position);
      }
    };
    await copyRows();
    const upTo = position;
    const compared = await compare(source, options, 0, upTo);
    await source.lock();
    try {
      await copyRows();
      for (let after = 0; ; ) {
        const part = await source.changed({ after, upTo, sinceUs });
        if (part === null) break;
        await append(part);
        after = part.lastPosition;
      }
      const added = await compare(source, options, upTo, position);
      // Checkpoints have the number of an entry.
      if (number === 0) await append(await source.noRows());
      await log.saveCheckpoint(number, stateOf(source));
      await source.join({ logId, nodeId, applied: number, batchId, stateFrom: 0 });
      await log.copy.changeState('copying', 'open');
      return { notifications: compared + added, entries: number };
    } finally {
      await source.unlock();
    }
  });
}

/** Completes a copy that was interrupted in its last step. */
async function openCopied(log: CopyOptions['log'], joinedId: string): Promise<CopiedLog> {
  const { logId, state, number } = await log.head();
  if (logId !== joinedId) {
    throw new AppError('conflict', 'The data directory already belongs to another shared log.');
  }
  if (state === 'copying') await log.copy.changeState('copying', 'open');
  const { count } = await log.copy.keysOf(0, Number.MAX_SAFE_INTEGER);
  return { notifications: count, entries: number, wasMoved: state !== 'copying' };
}

/** Returns the encoded parts of the state tables. */
export async function* stateOf(log: Remote<CopyOperations>) {
  for (let part = await log.nextPart(); part !== null; part = await log.nextPart()) yield part;
}

/**
 * Compares the keys of both logs, from the position after `after` to `last`. Returns their number; rejects with `internal` for a difference. First
 * called while notifications arrive, so that they wait only while the last ones are compared.
 */
async function compare(
  own: Remote<CopyOperations>,
  { log, onProgress, signal }: CopyOptions,
  after: number,
  last: number,
): Promise<number> {
  let notifications = 0;
  for (let from = Math.max(after, await own.prunedTo()) + 1; from <= last; from += comparedMax) {
    signal.throwIfAborted();
    const to = Math.min(from + comparedMax, last + 1);
    const [found, expected] = [await log.copy.keysOf(from, to), await own.keysOf(from, to)];
    if (found.digest !== expected.digest) {
      const message = `The copy differs from the log at the positions from ${from} to ${to - 1}.`;
      throw new AppError('internal', message, { advice: 'Run the command again.' });
    }
    notifications += expected.count;
    onProgress({ step: 'comparing', done: to - 1, of: last });
  }
  return notifications;
}

/** Makes a node a log of its own, with the entries that it has applied, after the loss of the database. */
export const leaveWithoutDatabase = (place: DataPlace): Promise<CopiedLog> =>
  withCopyThread(place, (node) => node.leave());

/**
 * Closes the shared log, and makes this node a log of its own, with everything that the shared log contained.
 * `caughtUp` resolves when this node has applied all entries.
 */
export async function leaveSharedLog(
  options: CopyOptions & { caughtUp: () => Promise<void> },
): Promise<CopiedLog> {
  const { log, caughtUp } = options;
  return withoutPruning(options, async (node) => {
    await caughtUp();
    await compare(node, options, 0, await node.lastPosition());
    const { state } = await log.head();
    if (state === 'open') await log.copy.changeState('open', 'moved');
    try {
      await caughtUp();
      return await node.leave();
    } catch (error) {
      if (state === 'open') await log.copy.changeState('moved', 'open');
      throw error;
    }
  });
}
