/** Moves a log of its own into a shared log, and back. */

import type { AcquireLock } from '../../core/host/job.ts';
import { moduleFile, type Remote } from '../../core/host/rpc.ts';
import { AppError } from '../../core/terms/app-error.ts';
import type { DataPlace } from '../../store/engine/disk-limit.ts';
import { withThread } from '../../store/engine/thread.ts';
import type { CopiedPart } from './copied-rows.ts';
import type { CopyOperations } from './copy-thread.ts';
import type { LogHead, SharedLog } from './terms.ts';

/** Rows that are left for the last step, during which nothing is received. */
const lastRowsMax = 2_000;

/** Parts of changed rows that are copied before the last step. */
const changedPartsMax = 50;

/** Positions that are compared at once, and attempts while the receiver changes them. */
const comparedMax = 10_000;
const attemptsMax = 10;

/** Maximum wait for the end of a pruning. */
const lockWaitMs = 60_000;

export interface CopyOptions extends DataPlace {
  log: Pick<SharedLog, 'head' | 'copy' | 'saveCheckpoint'>;
  /** Locks of the log, or of the shared log: nothing is pruned meanwhile. */
  acquireLock: AcquireLock;
  nodeId: string;
  /** Random UUID. */
  newId: () => string;
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

/**
 * Copies a log into an empty shared log while its receiver runs, compares both, and makes it a node of the shared log.
 * May be interrupted and called again until the last step. Rejects with `conflict` when the shared log is in use.
 */
export async function copyToSharedLog(options: CopyOptions): Promise<CopiedLog> {
  const { log, signal } = options;
  return withCopyThread(options, async (source) => {
    const head = await beginCopy(source, log);
    if (head.isJoined) return openCopied(log, head);
    const copy = createCopy(source, head, options);
    for (;;) {
      signal.throwIfAborted();
      await copy.some();
      if ((await source.lastPosition()) - copy.position() <= lastRowsMax) break;
    }
    await copy.rest();
    // Before the last step, which then compares only what has arrived since.
    const compared = copy.position();
    const first = { from: await source.prunedTo(), to: compared, retry: copy.rest };
    const before = await compare(source, options, first);
    await source.lock();
    try {
      await copy.rest({ isLocked: true });
      const last = { from: compared, to: await source.lastPosition() };
      const notifications = before + (await compare(source, options, last));
      const entries = await copy.join();
      await log.copy.open();
      return { notifications, entries };
    } finally {
      await source.unlock();
    }
  });
}

/** Runs a copy, during which nothing is pruned. */
async function withCopyThread(
  options: CopyOptions,
  run: (thread: Remote<CopyOperations>) => Promise<CopiedLog>,
): Promise<CopiedLog> {
  const { acquireLock, signal } = options;
  const release = await acquireLock('prune', { waitMs: lockWaitMs, signal });
  try {
    return await withThread<CopyOperations, CopiedLog>(
      moduleFile('./copy-thread', import.meta.url),
      options,
      run,
    );
  } finally {
    release();
  }
}

/** Begins the copy, or continues one of the same log. */
async function beginCopy(
  source: Remote<CopyOperations>,
  log: CopyOptions['log'],
): Promise<LogHead & { isJoined: boolean }> {
  const known = await log.head();
  const isOurs = known.state === 'copying' && (await source.isCopying(known.logId));
  const place = await source.begin(known.logId);
  if (place !== null && place.logId === known.logId) return { ...known, isJoined: true };
  if (place !== null) {
    throw new AppError('conflict', 'The data directory already belongs to another shared log.');
  }
  if (isOurs) return { ...known, isJoined: false };
  if (known.state === 'copying') {
    throw new AppError('conflict', 'Another log is being copied into the shared log.', {
      advice: 'Continue that copy, or remove the shared log: DROP SCHEMA earshot CASCADE.',
    });
  }
  return { ...(await log.copy.begin()), isJoined: false };
}

/** Completes a copy that was interrupted in its last step. */
async function openCopied(log: CopyOptions['log'], { state, number }: LogHead): Promise<CopiedLog> {
  if (state === 'copying') await log.copy.open();
  const { count } = await log.copy.keysOf(0, Number.MAX_SAFE_INTEGER);
  return { notifications: count, entries: number, wasMoved: state !== 'copying' };
}

function createCopy(source: Remote<CopyOperations>, head: LogHead, options: CopyOptions) {
  const { log, nodeId, newId, onProgress, signal } = options;
  let { position, number } = head;
  let batchId: string | null = null;
  const append = async ({ keys, encoding, bytes, digest }: CopiedPart) => {
    signal.throwIfAborted();
    batchId = newId();
    const appended = await log.copy.append({ batchId, keys, encoding, bytes });
    if (appended.digest !== digest) {
      throw new AppError('internal', 'The database has stored another content than was copied.');
    }
    ({ number } = appended);
  };
  /** Copies new rows until none is left, or a limit is reached. */
  const copyRows = async () => {
    const of = await source.lastPosition();
    for (;;) {
      const part = await source.rows(position);
      if (part === null || position >= of) return;
      await append(part);
      position = part.lastPosition;
      onProgress({ step: 'copying', done: position, of: Math.max(of, position) });
    }
  };
  const copyChanged = async (partsMax: number) => {
    for (let parts = 0; parts < partsMax; parts += 1) {
      const part = await source.changed(position);
      if (part === null) return;
      await append(part);
      await source.dropChanges(part.seen);
    }
  };
  return {
    position: () => position,
    some: copyRows,
    /** Copies what is new and changed; not all changes while the receiver continues to make them. */
    rest: async ({ isLocked } = { isLocked: false }) => {
      await copyRows();
      await copyChanged(isLocked ? Number.POSITIVE_INFINITY : changedPartsMax);
    },
    /** Saves the state tables, and makes the log a node. */
    join: async () => {
      // Checkpoints have the number of an entry.
      if (number === 0) await append(await source.noRows());
      await log.saveCheckpoint(number, partsOf(source));
      const { logId } = head;
      await source.join({ logId, nodeId, applied: number, batchId, stateFrom: 0 });
      return number;
    },
  };
}

async function* partsOf(source: Remote<CopyOperations>) {
  for (let part = await source.nextPart(); part !== null; part = await source.nextPart())
    yield part;
}

/**
 * Compares the keys of both logs after `from`, up to `to`. Returns their number; rejects with `internal` for a
 * difference that remains after retries, which copy changes of the log.
 */
async function compare(
  source: Remote<CopyOperations>,
  { log, onProgress, signal }: CopyOptions,
  { from, to, retry }: { from: number; to: number; retry?: () => Promise<void> },
): Promise<number> {
  let notifications = 0;
  for (let first = from + 1; first <= to; first += comparedMax) {
    signal.throwIfAborted();
    const end = Math.min(first + comparedMax, to + 1);
    for (let attempt = 1; ; attempt += 1) {
      const copied = await log.copy.keysOf(first, end);
      const own = await source.keysOf(first, end);
      if (own.count === copied.count && own.digest === copied.digest) {
        notifications += own.count;
        break;
      }
      if (retry === undefined || attempt === attemptsMax) {
        const message = `The copy differs from the log at the positions from ${first} to ${end - 1}.`;
        throw new AppError('internal', message);
      }
      await retry();
    }
    onProgress({ step: 'comparing', done: end - 1, of: to });
  }
  return notifications;
}

/** Makes a node a log of its own, with the entries that it has applied, after the loss of the database. */
export async function leaveWithoutDatabase(place: DataPlace): Promise<CopiedLog> {
  return withThread<CopyOperations, CopiedLog>(
    moduleFile('./copy-thread', import.meta.url),
    place,
    async (node) => {
      const notifications = await node.keysOf(0, Number.MAX_SAFE_INTEGER);
      const entries = (await node.leave()).applied;
      return { notifications: notifications.count, entries };
    },
  );
}

/**
 * Closes the shared log, and makes this node a log of its own, with everything that the shared log contained.
 * `caughtUp` resolves when this node has applied all entries.
 */
export async function leaveSharedLog(
  options: CopyOptions & { caughtUp: () => Promise<void> },
): Promise<CopiedLog> {
  const { log, caughtUp } = options;
  return withCopyThread(options, async (node) => {
    await caughtUp();
    const { state } = await log.head();
    // Before it is closed, which then takes only a moment.
    const compared = await node.lastPosition();
    const first = { from: await node.prunedTo(), to: compared, retry: caughtUp };
    const before = await compare(node, options, first);
    if (state === 'open') await log.copy.moveAway();
    try {
      await caughtUp();
      const last = { from: compared, to: await node.lastPosition() };
      const notifications = before + (await compare(node, options, last));
      const { applied } = await node.leave();
      return { notifications, entries: applied };
    } catch (error) {
      if (state === 'open') await log.copy.reopen();
      throw error;
    }
  });
}
