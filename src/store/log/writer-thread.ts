/** The writer thread: commits groups of deliveries, and changes of the store. */
import type { Database } from 'better-sqlite3';
import { type Operations, operationsByName } from '../../core/host/rpc.ts';
import type { Receipt } from '../../core/terms/ports.ts';
import { prepared } from '../engine/database.ts';
import { isEnvironmentFailure, sqliteCode } from '../engine/sqlite-error.ts';
import { serveThread } from '../engine/thread.ts';
import { createWriter, type Writer } from '../engine/writer-connection.ts';
import { changes, fileTasks } from '../pruning/prune-writer.ts';
import { loadTables, tables, withTables } from '../tables.ts';
import {
  type Committed,
  type PackedDeliveries,
  type SmallChange,
  unpackDeliveries,
} from './intake-queue.ts';
import type { RecoverOptions } from './recovered-events.ts';

/** Bytes written by a check: a disk without space for them has none for notifications. */
const checkBytes = 128 * 2 ** 10;

/** Operations that are not exactly one transaction, or need the intake code. */
const tasks = {
  /** Commits deliveries and small changes together. Quarantines a single delivery that our own code fails on. */
  async deliveries(
    { connection, requireSpace }: Writer,
    packed: PackedDeliveries,
    changes: readonly SmallChange[],
  ): Promise<Committed> {
    const { writeDeliveries, quarantineUnstorable, publicationDelay } = await loadIntake();
    const startedMs = performance.now();
    const deliveries = unpackDeliveries(packed);
    const [first] = deliveries;
    requireSpace();
    const write = () => {
      try {
        return connection.transact((database) => ({
          receipts: writeDeliveries(database, deliveries),
          values: changes.map(({ op, args }) =>
            changesByName.get(op)?.(database, ...(args as never[])),
          ),
        }));
      } catch (error) {
        const isAlone = first !== undefined && deliveries.length + changes.length === 1;
        if (!isAlone || isEnvironmentFailure(error)) throw error;
        const receipt = connection.transact((database) => quarantineUnstorable(database, first));
        return { receipts: [receipt], values: [] };
      }
    };
    const written = write();
    const durationSeconds = (performance.now() - startedMs) / 1_000;
    const stored = deliveries.find((_, i) => written.receipts[i]?.outcome === 'stored');
    return {
      ...written,
      durationSeconds,
      publicationDelay: stored ? publicationDelay(stored) : null,
    };
  },
  async check(writer: Writer): Promise<void> {
    await loadIntake();
    writer.requireSpace();
    proveWritable(writer);
  },
  async retry({ connection, requireSpace }: Writer, id: number): Promise<Receipt> {
    const { retryQuarantined } = await loadIntake();
    requireSpace();
    return retryQuarantined((work) => connection.transact(work), id);
  },
  log: {
    async recover(
      { connection, requireSpace }: Writer,
      options: RecoverOptions,
    ): Promise<(number | null)[]> {
      const { recover } = await loadIntake();
      requireSpace();
      return connection.transact((database) => recover(database, options));
    },
  },
  file: fileTasks,
};

export type Writes = typeof changes & typeof tasks;

let intake: Promise<typeof import('./write-delivery.ts') & typeof import('./recovered-events.ts')>;

/** Loads the code that reads and writes notifications on first use: it takes most of the load time. */
function loadIntake() {
  intake ??= Promise.all([import('./write-delivery.ts'), import('./recovered-events.ts')]).then(
    ([delivery, recovered]) => ({ ...delivery, ...recovered }),
  );
  return intake;
}

/** Changes of the store and of features, by name. */
let changesByName: ReturnType<typeof operationsByName<Database>>;

/** Returns all operations, with the changes wrapped in a transaction, and a space check if they add data. */
function createOperations(): Operations<Writer> {
  changesByName = operationsByName(withTables('writes', changes));
  const wrapped = [...changesByName].map(([path, change]) => {
    const [group = '', name = ''] = path.split('.');
    const needsSpace = tables().get(group)?.needsSpace?.includes(name) === true;
    const run = ({ connection, requireSpace }: Writer, ...args: never[]) => {
      if (needsSpace) requireSpace();
      return connection.transact((database) => change(database, ...args));
    };
    return [path, run];
  });
  return { ...tasks, ...Object.fromEntries(wrapped) };
}

/** Skips the write probe when the disk is full: the probe would fail and prevent startup. */
function begin({ connection, requireSpace }: Writer): void {
  let isFull = false;
  try {
    requireSpace();
  } catch {
    isFull = true;
  }
  try {
    if (isFull) connection.transact(() => undefined);
    else proveWritable({ connection });
  } catch (error) {
    isFull ||= sqliteCode(error) === 'SQLITE_FULL';
    if (!isFull || !isEnvironmentFailure(error)) throw error;
  }
}

function proveWritable({ connection }: Pick<Writer, 'connection'>): void {
  connection.transact((database) => {
    prepared(database, 'INSERT OR REPLACE INTO write_check VALUES (1, randomblob(?))').run(
      checkBytes,
    );
  });
}

export default serveThread<Writer>(async (place, changed) => {
  await loadTables(place.tables);
  const writer = createWriter(place, 'own', changed);
  begin(writer);
  return {
    operations: createOperations(),
    context: () => writer,
    close: () => writer.connection.close(),
  };
});
