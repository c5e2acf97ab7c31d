/** Opens the shared log of the settings, and the store of a node. */

import type { Io } from '../../core/cli/io.ts';
import { type Config, checkConfig } from '../../core/config/config.ts';
import { AppError } from '../../core/terms/app-error.ts';
import type { Logger } from '../../core/terms/ports.ts';
import { requireDatabase } from '../../store/engine/database.ts';
import { openSharedParts, type SharedStore, type StoreIo, silent } from '../../store/store.ts';
import { tablesOf } from '../../store/tables.ts';
import type { SharedLog } from './postgres-log.ts';
import { createFileSync } from './shared-files.ts';

export const noSharedLog = (): AppError =>
  new AppError('configuration', 'EARSHOT_LOG_URL is not set: there is no shared log.', {
    advice: 'Set EARSHOT_LOG_URL to a PostgreSQL database. See docs/several-receivers.md.',
  });

/** Opens the shared log without a store. Throws `configuration` if it is not configured. */
async function openConfiguredLog(
  { sharedLog }: Pick<Config, 'sharedLog'>,
  { newId, random }: Pick<StoreIo, 'newId' | 'random'>,
  nodeId: string,
  log: Logger = silent,
): Promise<SharedLog> {
  if (sharedLog === null) throw noSharedLog();
  const { openSharedLog } = await import('./postgres-log.ts');
  return openSharedLog({ ...sharedLog, nodeId, newId, random, log });
}

/** Runs work with the shared log, as a new node or with the id of a known one. */
export async function withLog<Result>(
  config: Pick<Config, 'sharedLog'>,
  io: Pick<StoreIo, 'newId' | 'random'>,
  work: (log: SharedLog, nodeId: string) => Promise<Result>,
  nodeId: string = io.newId(),
): Promise<Result> {
  const log = await openConfiguredLog(config, io, nodeId);
  return work(log, nodeId).finally(log.close);
}

/** Opens the store of a node, or what all receivers share. */
export const sharedStore: SharedStore = {
  open: async (config, io, { log: logger = silent, mustExist, onCommit }) => {
    const { sharedLog, dataDir, diskReserveBytes } = config;
    if (sharedLog === null) return null;
    if (mustExist === true) requireDatabase(dataDir);
    const { openNodeStore } = await import('./node-store.ts');
    const { newId, features } = io;
    return openNodeStore({
      ...{ dataDir, diskReserveBytes, onCommit, tables: tablesOf(features), features },
      ...{ newId, logger, openLog: (nodeId) => openConfiguredLog(config, io, nodeId, logger) },
    });
  },
  openParts: async (config, io) => {
    if (config.sharedLog === null) return null;
    const { acquireLease, files, close } = await openConfiguredLog(config, io, io.newId());
    const syncFiles = createFileSync(config.dataDir, files, io.features);
    return { acquireLock: acquireLease, syncFiles, close };
  },
};

/** Copies the shared files before `earshot start` reads them. */
export async function copySharedFiles(io: Io): Promise<void> {
  const { config, problems } = checkConfig(io, ['data']);
  const { dataDir, sharedLog, diskReserveBytes } = config;
  // Problems are reported with those of all other settings.
  if (problems.length > 0 || !sharedLog || dataDir === undefined) return;
  const shared = await openSharedParts({ dataDir, sharedLog, diskReserveBytes }, io);
  await shared.syncFiles?.().finally(shared.close);
}
