/** Tables that a feature adds to the store: their operations run in the threads of the store, in short steps. */

import type { Feature } from '../core/feature.ts';
import type { Operations, Remote } from '../core/host/rpc.ts';
import type { Database } from './engine/database.ts';
import type { RecoverOptions } from './log/recovered-events.ts';
import type { DescribeReader, PruneBlocker, PrunedRows } from './pruning/terms.ts';

/** Module of the operations. The threads of the store import it. */
export interface TableOperations {
  /** Creates the tables and indexes that are missing. */
  schema: string;
  reads: Operations<Database>;
  /**
   * Each is one transaction. Its result depends only on the database and the arguments: the nodes of a shared log run
   * the same ones, and must get the same result.
   */
  writes: Operations<Database>;
  /** Changes that need free space: they add data. All others also run on a full disk. */
  needsSpace?: readonly string[];
  /** Returns data that still needs the log, in addition to the positions of readers. */
  blockers?(database: Database): PruneBlocker[];
  /** Returns blockers that other nodes of a shared log do not have. */
  localBlockers?(database: Database): PruneBlocker[];
  describeReader?: DescribeReader;
  /** Rows that pruning removes together with the notifications. */
  pruned?: PrunedRows;
}

/** Ports of the store, by the group of their operations. Features declare theirs in these interfaces. */
// biome-ignore lint/suspicious/noEmptyInterface: features add members.
export interface ReaderPorts {}
// biome-ignore lint/suspicious/noEmptyInterface: features add members.
export interface StorePorts {}

/** Operations of the store itself, for the ports of features. */
export interface BaseChanges {
  recover: (options: RecoverOptions) => Promise<(number | null)[]>;
}

type Module = Pick<TableOperations, 'reads' | 'writes'>;

export interface TablesSlot<
  Own extends Module = Module,
  Reader extends object = object,
  Port extends object = object,
> {
  /** Name of the port in the store, and of its operations. */
  group: string;
  /** File of `TableOperations`. */
  operations: URL;
  /** Returns the port of the queries. */
  reader(reads: Remote<Own['reads']>): Reader;
  /** Returns the port with the changes. */
  store(reader: Reader, writes: Remote<Own['writes']>, base: BaseChanges): Port;
  /** Reads that background jobs repeat. */
  repeated?: readonly (keyof Own['reads'] & string)[];
  /** Frequent changes on which no repeated read depends, and for which no job waits. */
  quiet?: readonly (keyof Own['writes'] & string)[];
  /** Lease of a shared log under which a job makes changes; changes by users and by every node need none. */
  lease?: string;
  withoutLease?: readonly (keyof Own['writes'] & string)[];
  /** True if the changes belong to one node of a shared log only. */
  isLocal?: true;
  /** True for small, frequent changes, which may share a commit with deliveries. */
  sharesCommits?: true;
}

/** Declares the tables of a feature. */
export const defineTables = <Own extends Module, Reader extends object, Port extends object>(
  slot: TablesSlot<Own, Reader, Port>,
): TablesSlot => slot as TablesSlot;

/** Returns the tables of all features, in the order in which they are created. */
export const tablesOf = (features: readonly Feature[]): TablesSlot[] =>
  features.flatMap(({ tables }) => tables ?? []);

/** Modules of tables, as a thread gets them. */
export type TableFiles = readonly { group: string; file: string }[];

export const tableFiles = (slots: readonly TablesSlot[]): TableFiles =>
  slots.map(({ group, operations }) => ({ group, file: operations.href }));

/** Operations of features in this thread. */
const loaded = new Map<string, TableOperations>();

/** Imports the operations. Called once, before the thread opens the database. */
export async function loadTables(files: TableFiles): Promise<void> {
  await Promise.all(
    files.map(async ({ group, file }) => {
      loaded.set(group, (await import(file)) as TableOperations);
    }),
  );
}

/** Returns the operations of all features by group. */
export const tables = (): ReadonlyMap<string, TableOperations> => loaded;

/** Returns one kind of operations by group, with those of the store itself. */
export function withTables(
  kind: 'reads' | 'writes',
  own: Operations<Database>,
): Operations<Database> {
  const added = [...loaded].map(([group, operations]) => [group, operations[kind]] as const);
  return { ...own, ...Object.fromEntries(added) } as Operations<Database>;
}

/** Maximum rows of one read: cheap compared with a commit. */
const pageRowsMax = 1000;

/** Maximum rows that one transaction changes, which takes about 20 ms. */
export const changedMax = 5_000;

/**
 * Reads page after page, each from the last row of the previous one, until a page is not full or the
 * limit is reached.
 */
export async function* pages<Row>(
  limit: number | undefined,
  read: (rowsMax: number, last: Row | undefined) => Promise<Row[]>,
): AsyncGenerator<Row> {
  let left = limit ?? Number.POSITIVE_INFINITY;
  let last: Row | undefined;
  while (left > 0) {
    const rowsMax = Math.min(left, pageRowsMax);
    const page = await read(rowsMax, last);
    yield* page;
    if (page.length < rowsMax) return;
    last = page.at(-1);
    left -= page.length;
  }
}

/** Repeats a change of at most `changedMax` rows until none is left. Resolves with the number of changed rows. */
export async function changeAll(changeSome: () => Promise<number>): Promise<number> {
  let changed = 0;
  for (;;) {
    const count = await changeSome();
    changed += count;
    if (count < changedMax) return changed;
  }
}
