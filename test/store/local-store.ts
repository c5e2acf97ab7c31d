/**
 * The store without threads: its operations over the test's own database, each change in one
 * transaction.
 */
import type { Database } from 'better-sqlite3';
import { onTestFinished } from 'vitest';
import { accountReads, accountWrites } from '../../src/admin/operations.ts';
import {
  deserializeError,
  type Operation,
  type Operations,
  type Remote,
  serializeError,
} from '../../src/core/host/rpc.ts';
import type { Delivery } from '../../src/core/terms/ports.ts';
import { alertReads, alertWrites } from '../../src/features/alerts/operations.ts';
import { lastBackups, recordBackup } from '../../src/features/backup/operations.ts';
import type { Completeness } from '../../src/features/coverage/completeness.ts';
import { coverageReads, coverageWrites } from '../../src/features/coverage/operations.ts';
import {
  logSize,
  prunable,
  pruneBlockers,
  pruneHorizon,
} from '../../src/features/pruning/prune-queries.ts';
import { sinkReads, sinkWrites } from '../../src/features/sinks/operations.ts';
import { summaryReads, summaryWrites } from '../../src/features/summary/operations.ts';
import { openForWriting } from '../../src/store/engine/database.ts';
import { storeError } from '../../src/store/engine/sqlite-error.ts';
import { quarantineReads } from '../../src/store/log/quarantine.ts';
import { logReads, logWrites } from '../../src/store/log/queries.ts';
import { recover } from '../../src/store/log/recovered-events.ts';
import { retryQuarantined, writeDeliveries } from '../../src/store/log/write-delivery.ts';
import type { Writes } from '../../src/store/log/writer-thread.ts';
import type { Reads } from '../../src/store/query-thread.ts';
import { changePorts, readPorts } from '../../src/store/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

/** Operation groups of the query thread. */
const reads = {
  log: logReads,
  quarantine: quarantineReads,
  account: accountReads,
  alerts: alertReads,
  coverage: coverageReads,
  sinks: sinkReads,
  summaries: summaryReads,
  backups: { lastBackups },
  pruning: { pruneHorizon, pruneBlockers, logSize, prunable },
} satisfies Reads;

/** Operation groups of the writer thread whose changes are plain transactions. */
const changes = {
  log: logWrites,
  account: accountWrites,
  alerts: alertWrites,
  coverage: {
    ...coverageWrites,
    recover: (database: Database, options: Parameters<Completeness['recover']>[0]) =>
      recover(database, options),
  },
  sinks: sinkWrites,
  summaries: summaryWrites,
  backups: { recordBackup },
};

type Group = Readonly<Record<string, Operation<Database>>>;

/** An operation group, called as the main thread calls it. */
export function localOperations<Ops extends Operations<Database>>(
  operations: Ops,
  database: () => Database,
): Remote<Ops> {
  const calls = Object.entries(operations).map(([name, one]) => [
    name,
    typeof one === 'function'
      ? async (...args: never[]) => {
          try {
            return database().transaction(() => one(database(), ...args))();
          } catch (error) {
            throw deserializeError(serializeError(storeError(error)));
          }
        }
      : localOperations(one as Group, database),
  ]);
  return Object.fromEntries(calls) as Remote<Ops>;
}

function portsOver(database: () => Database) {
  const reader = readPorts(localOperations(reads, database));
  const writer = localOperations(changes, database);
  return {
    ...reader,
    ...changePorts(reader, { ...writer, pruning: {} } as unknown as Remote<Writes>),
    moveCursor: writer.log.moveCursor,
    accept: async (delivery: Delivery) => {
      const [receipt] = database().transaction(() => writeDeliveries(database(), [delivery]))();
      if (receipt === undefined) throw new Error('A delivery has no receipt.');
      return receipt;
    },
    retry: async (id: number, atUs: number) =>
      retryQuarantined((work) => database().transaction(() => work(database()))(), id, atUs),
  };
}

interface OpenedLocalStore {
  store: ReturnType<typeof portsOver>;
  dataDir: string;
  /** Closes the file and opens it again. */
  reopen(): Promise<ReturnType<typeof portsOver>>;
}

/** Another kind of store that the tests of this process use. */
let otherStore: (() => Promise<OpenedLocalStore>) | undefined;

/** Runs the tests of this process with another kind of store. */
export function useOtherStore(open: () => Promise<OpenedLocalStore>): void {
  otherStore = open;
}

/** Opens an empty store that is closed and removed after the test. */
export async function openLocalStore(): Promise<OpenedLocalStore> {
  if (otherStore !== undefined) return otherStore();
  const dataDir = temporaryDirectory();
  const open = () => {
    const opened = openForWriting(dataDir);
    // No test cuts the power.
    opened.pragma('synchronous = OFF');
    return opened;
  };
  let database = open();
  onTestFinished(() => void database.close());
  const store = portsOver(() => database);
  return {
    store,
    dataDir,
    reopen: async () => {
      database.close();
      database = open();
      return store;
    },
  };
}

export type LocalStore = Awaited<ReturnType<typeof openLocalStore>>['store'];
