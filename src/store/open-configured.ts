/** Opens the store of the settings: a log of its own, or one that several receivers share. */

import type { Io } from '../core/cli/io.ts';
import type { DataConfig } from '../core/config/config.ts';
import type { AcquireLock } from '../core/host/job.ts';
import type { CommitFacts, Logger } from '../core/terms/ports.ts';
import { createAcquireLock } from './engine/locks.ts';
import { type FileSync, openStore, type Store } from './store.ts';
import { tablesOf } from './tables.ts';

export interface StoreUse {
  /** Refuses to create a database: for commands that work on an existing one. */
  mustExist?: boolean;
  /** Called after each commit of deliveries; must not throw. */
  onCommit?: (commit: CommitFacts) => void;
  /** By default, nothing is logged. */
  log?: Logger;
}

export type StoreIo = Pick<Io, 'nowUs' | 'newId' | 'random' | 'features'>;

/** Parts that all receivers share, for commands that do not need the store. */
export interface SharedParts {
  acquireLock: AcquireLock;
  /** Null for a store of its own. */
  syncFiles: FileSync | null;
  close(): Promise<void>;
}

/** A feature by which several receivers share one log. Null: the settings name none. */
export interface SharedStore {
  open(config: DataConfig, io: StoreIo, use: StoreUse): Promise<Store> | null;
  openParts(config: DataConfig, io: StoreIo): Promise<SharedParts> | null;
}

async function sharedStoreOf({ features }: StoreIo): Promise<SharedStore | undefined> {
  return features.find(({ sharedStore }) => sharedStore !== undefined)?.sharedStore?.();
}

export async function openConfiguredStore(
  config: DataConfig,
  io: StoreIo,
  use: StoreUse = {},
): Promise<Store> {
  const shared = await (await sharedStoreOf(io))?.open(config, io, use);
  if (shared != null) return shared;
  const { dataDir, diskReserveBytes } = config;
  const tables = tablesOf(io.features);
  return openStore({ dataDir, diskReserveBytes, ...use, tables, nowUs: io.nowUs });
}

/** Opens what all receivers share. */
export async function openSharedParts(config: DataConfig, io: StoreIo): Promise<SharedParts> {
  const shared = await (await sharedStoreOf(io))?.openParts(config, io);
  if (shared != null) return shared;
  const acquireLock = createAcquireLock(config.dataDir);
  return { acquireLock, syncFiles: null, close: async () => undefined };
}

const nothing = () => undefined;
export const silent: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };
