/** Opens the store of the settings: with a log of its own, or as a node of a shared log. */

import type { Io } from '../core/cli/io.ts';
import type { Config } from '../core/config/config.ts';
import { AppError } from '../core/terms/app-error.ts';
import type { CommitFacts, Logger } from '../core/terms/ports.ts';
import type { SharedLog } from '../features/shared-log/terms.ts';
import { requireDatabase } from './engine/database.ts';
import type { DataPlace } from './engine/disk-limit.ts';
import { openStore, type Store } from './store.ts';
import { tablesOf } from './tables.ts';

export interface StoreConfig extends DataPlace {
  sharedLog: Config['sharedLog'];
}

export interface StoreUse {
  /** Refuses to create a database: for commands that work on an existing one. */
  mustExist?: boolean;
  /** Called after each commit of deliveries; must not throw. */
  onCommit?: (commit: CommitFacts) => void;
  /** By default, nothing is logged. */
  log?: Logger;
}

/** The driver of the database is loaded only with a shared log. */
export async function openConfiguredStore(
  { sharedLog, ...place }: StoreConfig,
  { nowUs, newId, random, features }: Pick<Io, 'nowUs' | 'newId' | 'random' | 'features'>,
  { log: logger = silent, ...use }: StoreUse = {},
): Promise<Store> {
  const tables = tablesOf(features);
  if (sharedLog === null) return openStore({ ...place, ...use, tables, nowUs });
  if (use.mustExist === true) requireDatabase(place.dataDir);
  const [{ openNodeStore }, { openSharedLog }] = await Promise.all([
    import('../features/shared-log/node-store.ts'),
    import('../features/shared-log/postgres-log.ts'),
  ]);
  const { urls, needsStandby } = sharedLog;
  const openLog = (nodeId: string) =>
    openSharedLog({ urls, needsStandby, nodeId, newId, random, log: logger });
  return openNodeStore({ ...place, ...use, tables, openLog, newId, logger });
}

/** Opens the shared log without a store. Throws `configuration` if it is not configured. */
export async function openConfiguredLog(
  { sharedLog }: Pick<StoreConfig, 'sharedLog'>,
  { newId, random }: Pick<Io, 'newId' | 'random'>,
  nodeId: string,
): Promise<SharedLog> {
  if (sharedLog === null) {
    throw new AppError('configuration', 'EARSHOT_LOG_URL is not set: there is no shared log.', {
      advice: 'Set EARSHOT_LOG_URL to a PostgreSQL database. See docs/several-receivers.md.',
    });
  }
  const { openSharedLog } = await import('../features/shared-log/postgres-log.ts');
  return openSharedLog({ ...sharedLog, nodeId, newId, random, log: silent });
}

const nothing = () => undefined;
export const silent: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };
