/** What `earshot prune` does: tells, asks, removes step by step, and says what came of it. */
import { type KeepConfig, readKeepConfig } from '../../config/keep-config.ts';
import { AppError } from '../../domain/app-error.ts';
import type { Keep, Prunable, PruneWish } from '../../domain/pruning.ts';
import { requireDatabase } from '../../store/engine/database.ts';
import { createTakeLock } from '../../store/engine/locks.ts';
import { removeLeftovers } from '../../store/leftovers.ts';
import { pruneIndex } from '../../store/products/index-maintenance.ts';
import { pruneLog } from '../../store/pruning/prune-log.ts';
import { openStore, openStoreReader, type Store, type StoreReader } from '../../store/store.ts';
import { confirm } from '../confirm.ts';
import type { Io } from '../io.ts';
import { pause } from '../until-aborted.ts';
import { writeOut } from '../write-out.ts';
import { forgetReader } from './forget-reader.ts';
import { type Removed, toPruneJson } from './prune-json.ts';
import { previewText, prunedText, questionText } from './prune-output.ts';
import { createPruneProgress } from './prune-progress.ts';

export interface PruneFlags {
  /** Microseconds. */
  olderThan?: number;
  /** Bytes. */
  toSize?: number;
  quarantine?: true;
  forgetReader?: string;
  dryRun?: true;
  yes?: true;
  json?: true;
}

export async function runPrune(io: Io, flags: PruneFlags): Promise<void> {
  const config = readKeepConfig(io);
  if (flags.forgetReader !== undefined) return forgetReader(io, config, flags.forgetReader, flags);
  const wish: PruneWish = {
    keep: keepOf(flags, config),
    withHeld: flags.quarantine === true,
    freeShare: 0,
    nowUs: io.nowUs(),
  };
  if (flags.dryRun) {
    await closing(openStoreReader(config.dataDir), async (store) => {
      const found = await tellPrunable(io, store, wish, flags);
      await tellJson(io, flags, found, null);
    });
    return;
  }
  const options = { ...config, nowUs: io.nowUs, mustExist: true };
  requireDatabase(config.dataDir);
  await removeLeftovers(config.dataDir);
  await closing(await openStore(options), async (store) => {
    const found = await tellPrunable(io, store, wish, flags);
    if (found.notifications + found.quarantined > 0) await confirm(io, questionText(found), flags);
    const removed = await remove(io, { config, store, wish, found });
    if (flags.json) await tellJson(io, flags, found, removed);
    else io.stderr.write(prunedText(removed, await store.pruning.logSize()));
  });
}

/** What the flags say; without any, what the receiver would do by itself. */
function keepOf({ olderThan, toSize }: PruneFlags, { keep }: KeepConfig): Keep {
  if (olderThan !== undefined || toSize !== undefined) {
    return { ageUs: olderThan ?? null, bytes: toSize ?? null };
  }
  if (keep !== null) return keep;
  throw new AppError(
    'usage',
    'Say what is to go: --older-than 365d, --to-size 20GB, or both. EARSHOT_KEEP, which would say it as well, is not set.',
  );
}

async function tellPrunable(
  io: Io,
  { pruning }: Pick<StoreReader, 'pruning'>,
  wish: PruneWish,
  { json }: PruneFlags,
): Promise<Prunable> {
  const found = await pruning.prunable(wish);
  if (!json) io.stderr.write(previewText(found, await pruning.logSize(), wish.keep.bytes !== null));
  return found;
}

async function tellJson(
  io: Io,
  { json }: PruneFlags,
  found: Prunable,
  removed: Removed | null,
): Promise<void> {
  if (json) await writeOut(io.stdout, `${JSON.stringify(toPruneJson(found, removed))}\n`);
}

interface Means {
  config: KeepConfig;
  store: Store;
  wish: PruneWish;
  found: Prunable;
}

/** Rejects with `cancelled` when the user ends it, and with `conflict` while another program prunes. */
async function remove(io: Io, { config, store, wish, found }: Means): Promise<Removed> {
  const { pruning } = store;
  const { signal } = io;
  const release = await createTakeLock(config.dataDir)('prune', { waitMs: 0 });
  const progress = createPruneProgress(io, found);
  try {
    const before = await pruning.logSize();
    const pruned = await pruneLog(wish, { pruning, pause, signal, onStep: progress.show });
    const after = await pruning.logSize();
    if (!signal.aborted) {
      await pruneIndex({ ...config, signal, onPruned: progress.showIndex });
    }
    if (signal.aborted) throw stopped();
    const fileBytes = (size: typeof before) => size.usedBytes + size.freeBytes;
    return { pruned, givenBackBytes: Math.max(0, fileBytes(before) - fileBytes(after)) };
  } finally {
    progress.done();
    release();
  }
}

function stopped(): AppError {
  return new AppError(
    'cancelled',
    'Stopped. What was removed by then is gone; the same command goes on from there.',
  );
}

async function closing<Opened extends { close(): Promise<void> }>(
  opened: Opened,
  use: (opened: Opened) => Promise<void>,
): Promise<void> {
  try {
    await use(opened);
  } finally {
    await opened.close();
  }
}
