/** The writer thread of a node of a shared log: prepares and applies entries. */

import { type Operations, operationsByName } from '../../core/host/rpc.ts';
import type { Fault } from '../../core/terms/notification.ts';
import type { Database } from '../../store/engine/database.ts';
import { serveThread } from '../../store/engine/thread.ts';
import { createWriter, type Writer } from '../../store/engine/writer-connection.ts';
import { type PackedDeliveries, unpackDeliveries } from '../../store/log/intake-queue.ts';
import type { RecoverOptions } from '../../store/log/recovered-events.ts';
import { changes, fileTasks, removePruned } from '../../store/pruning/prune-writer.ts';
import { loadTables, withTables } from '../../store/tables.ts';
import {
  applyEntries,
  type ChangeResult,
  entryResult,
  joinLog,
  type NodePlace,
  nodePlace,
  setStateFrom,
} from './apply-entries.ts';
import {
  type Change,
  decodeEntry,
  type PreparedDeliveries,
  prepareChanges,
  prepareDeliveries,
  prepareRecovered,
  prepareRetry,
} from './entry.ts';
import type { EncodedContent, LogEntry } from './schema.ts';
import { clearStateTables, writePart } from './table-parts.ts';

let changesByName: ReturnType<typeof operationsByName<Database>>;

const tasks = {
  place: ({ connection }: Writer): NodePlace | null => connection.read(nodePlace),
  join({ connection }: Writer, place: NodePlace): void {
    connection.transact((database) => joinLog(database, place));
  },
  setStateFrom({ connection }: Writer, number: number): void {
    connection.transact((database) => setStateFrom(database, number));
  },
  /** Removes all rows of state tables, before the first part of a checkpoint is loaded. */
  clear({ connection }: Writer): void {
    connection.transact(clearStateTables);
  },
  loadPart({ connection, requireSpace }: Writer, part: EncodedContent): void {
    requireSpace();
    const content = decodeEntry(part);
    if (content.kind !== 'rows') throw new Error('A part of a checkpoint has no rows.');
    connection.transact((database) => writePart(database, content.part));
  },
  /** Removes rows that were pruned before the loaded checkpoint. Returns their number; 0 when none is left. */
  removePruned: ({ connection }: Writer): number => connection.transact(removePruned),
  prepareDeliveries: (_: Writer, packed: PackedDeliveries): PreparedDeliveries =>
    prepareDeliveries(unpackDeliveries(packed)),
  prepareRetry: ({ connection }: Writer, id: number): PreparedDeliveries | { faults: Fault[] } =>
    connection.read((database) => prepareRetry(database, id)),
  prepareRecovered: ({ connection }: Writer, options: RecoverOptions) =>
    connection.read((database) => prepareRecovered(database, options)),
  prepareChanges: (_: Writer, changes: Change[]) => prepareChanges(changes),
  /** Returns the last applied entry, and the number of deliveries in the applied ones. */
  apply({ connection, requireSpace }: Writer, entries: readonly LogEntry[]) {
    requireSpace();
    return connection.transact((database) => applyEntries(database, entries, changesByName));
  },
  result: ({ connection }: Writer, number: number): ChangeResult[] | null =>
    connection.read((database) => entryResult(database, number)),
  file: fileTasks,
};

export type NodeWrites = typeof tasks;

/** Returns all changes as tasks: those of this node only are called directly. */
function localChanges(): Operations<Writer> {
  const wrapped = [...changesByName].map(([name, change]) => [
    name,
    ({ connection }: Writer, ...args: never[]) =>
      connection.transact((database) => change(database, ...args)),
  ]);
  return Object.fromEntries(wrapped);
}

export default serveThread<Writer>(async (place) => {
  await loadTables(place.tables);
  changesByName = operationsByName(withTables('writes', changes));
  const writer = createWriter(place, 'node');
  const { connection } = writer;
  connection.read(nodePlace);
  return {
    operations: { ...tasks, ...localChanges() },
    context: () => writer,
    close: () => connection.close(),
  };
});
