/**
 * The ways in which indexes can narrow a search. Each gives the ids of all products that can match, and
 * of others; which one gives the fewest is found out by asking (choose-driver.ts).
 */
import type { FilterTree, IntersectsNode, TextNode } from '../../domain/filter-tree.ts';
import { boxesOf, toShape } from '../../filter/geometry/shape.ts';
import { cloudUnits, heardUnits, sensingDays } from './box-units.ts';
import { isWholeInSql } from './column-condition.ts';
import type { NameSample } from './name-sample.ts';
import { type ColumnRange, rangeCondition, rangesOf } from './ranges.ts';
import type { SqlCondition } from './sql-condition.ts';

/** Ids above `after` and below `before`. */
export interface IdWindow {
  after: number;
  before: number;
}

export interface Driver {
  /** The index, for people. */
  name: string;
  /** The parts of the filter that it answers. */
  terms: readonly FilterTree[];
  /** Those of them on which the columns have nothing to add. */
  covers: readonly FilterTree[];
  /** A query for the column `id`; each id comes once. */
  ids(window: IdWindow): SqlCondition;
  /** Tells that it can narrow a window of ids as well as all of them: then a walk is done window by window. */
  windowed: boolean;
}

/** Columns with an index of their own, and another one that narrows it further. */
const columnIndexes = [
  { index: 'product_by_id', column: 'product_id' },
  { index: 'product_by_name', column: 'name' },
  { index: 'product_by_tile', column: 'tile' },
  { index: 'product_by_orbit', column: 'orbit_number' },
  { index: 'product_by_deletion', column: 'deletion_us', where: 'deleted = 1' },
  { index: 'product_by_type', column: 'product_type', second: 'sensing_start_us' },
  { index: 'product_by_collection', column: 'collection', second: 'sensing_start_us' },
  { index: 'product_by_sensing', column: 'sensing_start_us' },
  { index: 'product_by_sensing_end', column: 'sensing_end_us' },
  { index: 'product_by_publication', column: 'publication_us' },
  { index: 'product_by_modification', column: 'modification_us' },
] as const;

/** All drivers for a filter, without order; none where no index can help. */
export function driversOf(filter: FilterTree | null, names: NameSample): Driver[] {
  if (filter === null) return [];
  const terms = filter.node === 'and' ? filter.terms : [filter];
  const ranges = rangesOf(terms);
  const byColumn = columnIndexes.flatMap((index) => {
    const range = ranges.get(index.column);
    return range === undefined ? [] : [columnDriver(index, range, ranges)];
  });
  const others = terms.flatMap((term) => {
    if (term.node === 'text') return nameDriver(term, names) ?? [];
    if (term.node === 'intersects') return boxDriver(term, ranges) ?? [];
    return term.node === 'or' ? (unionDriver(term.terms, names) ?? []) : [];
  });
  return [...byColumn, ...others];
}

function columnDriver(
  { index, column, ...more }: (typeof columnIndexes)[number],
  range: ColumnRange,
  ranges: ReadonlyMap<string, ColumnRange>,
): Driver {
  const second =
    'second' in more && range.values !== undefined ? ranges.get(more.second) : undefined;
  const conditions = [
    rangeCondition(column, range),
    ...(second === undefined || !('second' in more) ? [] : [rangeCondition(more.second, second)]),
    ...('where' in more ? [{ sql: more.where, values: [] }] : []),
  ];
  return {
    name: index,
    terms: [...range.terms, ...(second?.terms ?? [])],
    covers: [],
    windowed: false,
    ids: ({ after, before }) => ({
      sql: `SELECT id FROM product INDEXED BY ${index}
        WHERE ${conditions.map(({ sql }) => sql).join(' AND ')} AND id > ? AND id < ?`,
      values: [...conditions.flatMap(({ values }) => values), after, before],
    }),
  };
}

/** Names that hold the rarest runs of three characters of the text; names are compared afterwards. */
function nameDriver(term: TextNode, names: NameSample): Driver | null {
  if (term.field !== 'Name' || Array.from(term.text).length < 3) return null;
  if (!isWholeInSql(term.text)) return null;
  const runs = names.rareRunsOf(term.text);
  const match = runs.map((run) => `"${run.replaceAll('"', '""')}"`).join(' AND ');
  return {
    name: 'product_name',
    terms: [term],
    covers: [],
    windowed: true,
    ids: ({ after, before }) => ({
      sql: `SELECT rowid AS id FROM product_name
        WHERE product_name MATCH ? AND rowid > ? AND rowid < ?`,
      // FTS5 takes no notice of a bound that is a double, as plain numbers are.
      values: [match, BigInt(after), BigInt(before)],
    }),
  };
}

function boxDriver(term: IntersectsNode, ranges: ReadonlyMap<string, ColumnRange>): Driver | null {
  const boxes = boxesOf(toShape(term.geometry));
  if (boxes.length === 0) return null;
  const sensed = ranges.get('sensing_start_us');
  const cloud = ranges.get('cloud_cover');
  // A product with two boxes comes once.
  const one = `SELECT DISTINCT id >> 1 AS id FROM product_box
    WHERE west <= ? AND east >= ? AND south <= ? AND north >= ?
    AND sensed_from <= ? AND sensed_to >= ? AND cloud_from <= ? AND cloud_to >= ?
    AND heard_to >= ? AND heard_from <= ?`;
  const limits = [...boundsOf(sensed, sensingDays), ...boundsOf(cloud, cloudUnits)];
  return {
    name: 'product_box',
    terms: [term, ...(sensed?.terms ?? []), ...(cloud?.terms ?? [])],
    covers: [term],
    windowed: true,
    ids: ({ after, before }) => ({
      sql: boxes.map(() => one).join(' UNION '),
      values: boxes.flatMap(({ west, south, east, north }) => [
        ...[east, west, north, south, ...limits],
        ...[heardUnits(after + 1), heardUnits(before - 1)],
      ]),
    }),
  };
}

/** The highest and the lowest value of a range in the index's units; of 32 bits where it is open. */
function boundsOf(
  range: ColumnRange | undefined,
  toUnits: (value: number) => number,
): [to: number, from: number] {
  const values = range?.values?.map(Number);
  const from = values ? Math.min(...values) : range?.from;
  const to = values ? Math.max(...values) : range?.to;
  return [
    to === undefined ? 3e38 : toUnits(Number(to)),
    from === undefined ? -3e38 : toUnits(Number(from)),
  ];
}

/** An `or` is narrowed when each of its terms is. */
function unionDriver(terms: readonly FilterTree[], names: NameSample): Driver | null {
  const drivers = terms.map((term) => driversOf(term, names)[0]);
  const known = drivers.filter((driver) => driver !== undefined);
  // SQLite joins at most 500 queries.
  if (known.length < drivers.length || known.length > 100) return null;
  return {
    name: [...new Set(known.map(({ name }) => name))].join(' and '),
    terms: known.flatMap((driver) => driver.terms),
    covers: [],
    windowed: known.every(({ windowed }) => windowed),
    ids: (window) => {
      const queries = known.map((driver) => driver.ids(window));
      return {
        sql: queries.map(({ sql }) => `SELECT id FROM (${sql})`).join(' UNION '),
        values: queries.flatMap(({ values }) => values),
      };
    },
  };
}
