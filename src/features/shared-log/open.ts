/** Opens the shared log of the settings, and the store of a node. */

import type { Config } from '../../core/config/config.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { requireDatabase } from '../../store/engine/database.ts';
import { type SharedStore, type StoreIo, silent } from '../../store/open-configured.ts';
import { tablesOf } from '../../store/tables.ts';
import { createFileSync } from './shared-files.ts';
import type { SharedLog } from './terms.ts';

/** Opens the shared log without a store. Throws `configuration` if it is not configured. */
export async function openConfiguredLog(
  { sharedLog }: Pick<Config, 'sharedLog'>,
  { newId, random }: Pick<StoreIo, 'newId' | 'random'>,
  nodeId: string,
): Promise<SharedLog> {
  if (sharedLog === null) {
    throw new AppError('configuration', 'EARSHOT_LOG_URL is not set: there is no shared log.', {
      advice: 'Set EARSHOT_LOG_URL to a PostgreSQL database. See docs/several-receivers.md.',
    });
  }
  // The driver of the database is loaded only with a shared log.
  const { openSharedLog } = await import('./postgres-log.ts');
  return openSharedLog({ ...sharedLog, nodeId, newId, random, log: silent });
}

const openNode: SharedStore['open'] = (
  config,
  io,
  { log: logger = silent, mustExist, onCommit },
) => {
  const { sharedLog, dataDir, diskReserveBytes } = config;
  if (sharedLog === null) return null;
  const { newId, random, features } = io;
  const { urls, needsStandby } = sharedLog;
  return (async () => {
    if (mustExist === true) requireDatabase(dataDir);
    const [{ openNodeStore }, { openSharedLog }] = await Promise.all([
      import('./node-store.ts'),
      import('./postgres-log.ts'),
    ]);
    return openNodeStore({
      ...{ dataDir, diskReserveBytes, onCommit, tables: tablesOf(features), features },
      openLog: (nodeId) =>
        openSharedLog({ urls, needsStandby, nodeId, newId, random, log: logger }),
      ...{ newId, logger },
    });
  })();
};

const openParts: SharedStore['openParts'] = (config, io) => {
  const { sharedLog, dataDir } = config;
  if (sharedLog === null) return null;
  return openConfiguredLog({ sharedLog }, io, io.newId()).then((log) => ({
    acquireLock: log.acquireLease,
    syncFiles: createFileSync(dataDir, log.files, io.features),
    close: () => log.close(),
  }));
};

export const sharedStore: SharedStore = { open: openNode, openParts };
