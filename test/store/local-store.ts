/**
 * The store without threads: its operations over the test's own database, each change in one
 * transaction.
 */
import type { Database } from 'better-sqlite3';
import { onTestFinished } from 'vitest';
import {
  deserializeError,
  type Operation,
  type Operations,
  type Remote,
  serializeError,
} from '../../src/core/host/rpc.ts';
import type { Delivery } from '../../src/core/terms/ports.ts';
import { openForWriting } from '../../src/store/engine/database.ts';
import { storeError } from '../../src/store/engine/sqlite-error.ts';
import { IntakeActivity } from '../../src/store/log/intake-queue.ts';
import { quarantineReads } from '../../src/store/log/quarantine.ts';
import { logReads } from '../../src/store/log/queries.ts';
import { type RecoverOptions, recover } from '../../src/store/log/recovered-events.ts';
import { retryQuarantined, writeDeliveries } from '../../src/store/log/write-delivery.ts';
import type { Writes } from '../../src/store/log/writer-thread.ts';
import {
  logSize,
  prunable,
  pruneBlockers,
  pruneHorizon,
  prunePhases,
} from '../../src/store/pruning/prune-queries.ts';
import { changes } from '../../src/store/pruning/prune-writer.ts';
import type { Reads } from '../../src/store/query-thread.ts';
import { readPorts, writePorts } from '../../src/store/store.ts';
import { loadTables, tableFiles, withTables } from '../../src/store/tables.ts';
import { tables } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

await loadTables(tableFiles(tables));

const reads = withTables('reads', {
  log: logReads,
  quarantine: quarantineReads,
  pruning: { pruneHorizon, prunePhases, pruneBlockers, logSize, prunable },
});

const writes = withTables('writes', {
  ...changes,
  log: {
    ...changes.log,
    recover: (database: Database, options: RecoverOptions) => recover(database, options),
  },
});

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

const notHere = () => Promise.reject(new Error('This operation needs the writer thread.'));

function portsOver(database: () => Database) {
  const operations = (own: Operations<Database>) => localOperations(own, database) as unknown;
  const reader = readPorts(operations(reads) as Remote<Reads>, tables);
  const writer = operations(writes) as Remote<Writes>;
  const activity = new IntakeActivity();
  const ports = writePorts(
    { ...reader, close: async () => undefined },
    { ...writer, pruneStep: notHere, checkpoint: notHere },
    { tables, activity },
  );
  return {
    ...reader,
    ...ports,
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
