/**
 * Drivers: indexes that can narrow a search. A driver returns the ids of all products that can match, and of others.
 * The search reads the first ids of each driver to find the one with the fewest.
 */
import type {
  FilterTree,
  GroupNode,
  IntersectsNode,
  TextNode,
} from '../../../../filter/filter-tree.ts';
import { boxesOf, toShape } from '../../../../filter/geometry/shape.ts';
import { groupedTypes } from '../../../../filter/product-types.ts';
import { type Database, prepared } from '../../../../store/engine/database.ts';
import { receivedUnits, sensingUnits } from '../product-schema.ts';
import {
  columnOfCondition,
  isExact,
  isOrdered,
  isWholeInSql,
  oneOf,
  type SqlCondition,
  sqlValue,
  sqlValues,
} from './conditions.ts';

/** Ids above `after` and below `before`. */
export interface IdWindow {
  after: number;
  before: number;
}

export const allIds: IdWindow = { after: 0, before: Number.MAX_SAFE_INTEGER };

export interface Driver {
  /** Name of the index, for display. */
  name: string;
  /** Terms of the filter that the driver uses. */
  terms: readonly FilterTree[];
  /** Terms among them for which columns add no condition. */
  covers: readonly FilterTree[];
  /** Returns a query for the column `id`, without duplicates. */
  ids(window: IdWindow): SqlCondition;
  /** True if reading a window of ids is as efficient as reading all of them: a scan then proceeds by windows. */
  windowed: boolean;
  /** True if checking a row is cheap: a search in another order then scans some rows before it sorts all candidates. */
  scansFirst: boolean;
}

/** Indexed columns, with a second column of the index that narrows it further. */
const columnIndexes: readonly { index: string; column: string; where?: string; second?: string }[] =
  [
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
  ];

/** Returns the drivers for a filter, in any order; none if no index can help. */
export function driversOf(filter: FilterTree | null, names: KnownNames): Driver[] {
  if (filter === null) return [];
  const terms = filter.node === 'and' ? filter.terms : [filter];
  const ranges = rangesOf(terms);
  const byColumn = columnIndexes.flatMap((index) => columnDriver(index, ranges) ?? []);
  const others = terms.flatMap((term) => {
    if (term.node === 'text') return nameDriver(term, names) ?? [];
    if (term.node === 'intersects') return boxDriver(term, ranges) ?? [];
    return term.node === 'or' ? (unionDriver(term.terms, names) ?? []) : [];
  });
  return [...byColumn, ...others];
}

function columnDriver(
  { index, column, where, second }: (typeof columnIndexes)[number],
  ranges: ReadonlyMap<string, ColumnRange>,
): Driver | null {
  const range = ranges.get(column);
  if (range === undefined) return null;
  const further = range.values && second !== undefined ? ranges.get(second) : undefined;
  const conditions = [
    rangeCondition(column, range),
    ...(further && second !== undefined ? [rangeCondition(second, further)] : []),
    ...(where === undefined ? [] : [{ sql: where, values: [] }]),
  ];
  return {
    name: index,
    terms: [...range.terms, ...(further?.terms ?? [])],
    covers: [],
    windowed: false,
    scansFirst: false,
    ids: ({ after, before }) => ({
      sql: `SELECT id FROM product INDEXED BY ${index}
        WHERE ${conditions.map(({ sql }) => sql).join(' AND ')} AND id > ? AND id < ?`,
      values: [...conditions.flatMap(({ values }) => values), after, before],
    }),
  };
}

/** Finds names with the rarest trigrams of the text; names are compared afterwards. */
function nameDriver(term: TextNode, names: KnownNames): Driver | null {
  if (term.field !== 'Name' || term.function === 'like') return null;
  if (Array.from(term.text).length < 3 || !isWholeInSql(term.text)) return null;
  const trigrams = names.rareTrigramsOf(term.text);
  const match = trigrams.map((one) => `"${one.replaceAll('"', '""')}"`).join(' AND ');
  return {
    name: 'product_name',
    terms: [term],
    covers: [],
    windowed: true,
    scansFirst: true,
    ids: ({ after, before }) => ({
      sql: `SELECT rowid AS id FROM product_name
        WHERE product_name MATCH ? AND rowid > ? AND rowid < ?`,
      // BigInt, because FTS5 ignores a bound that is a double.
      values: [match, BigInt(after), BigInt(before)],
    }),
  };
}

function boxDriver(term: IntersectsNode, ranges: ReadonlyMap<string, ColumnRange>): Driver | null {
  const boxes = boxesOf(toShape(term.geometry));
  if (boxes.length === 0) return null;
  const sensed = ranges.get('sensing_start_us');
  // DISTINCT, because a product may have two boxes.
  const query = `SELECT DISTINCT id >> 1 AS id FROM product_box
    WHERE west <= ? AND east >= ? AND south <= ? AND north >= ?
    AND sensed_from <= ? AND sensed_to >= ? AND received_to >= ? AND received_from <= ?`;
  const sensedUnits = boundsOf(sensed, sensingUnits);
  return {
    name: 'product_box',
    terms: [term, ...(sensed?.terms ?? [])],
    covers: [term],
    windowed: true,
    scansFirst: false,
    ids: ({ after, before }) => ({
      sql: boxes.map(() => query).join(' UNION '),
      values: boxes.flatMap(({ west, south, east, north }) => [
        ...[east, west, north, south, ...sensedUnits],
        ...[receivedUnits(after + 1), receivedUnits(before - 1)],
      ]),
    }),
  };
}

/** Returns the highest and the lowest value of a range in units of the index; for an open end, a limit of 32 bits. */
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

/** An `or` has a driver if each of its terms has one. */
function unionDriver(terms: readonly FilterTree[], names: KnownNames): Driver | null {
  const drivers = terms.map((term) => driversOf(term, names)[0]);
  const known = drivers.filter((driver) => driver !== undefined);
  // SQLite allows at most 500 queries in a compound SELECT.
  if (known.length < drivers.length || known.length > 100) return null;
  return {
    name: [...new Set(known.map(({ name }) => name))].join(' and '),
    terms: known.flatMap((driver) => driver.terms),
    covers: [],
    windowed: known.every(({ windowed }) => windowed),
    // To find out if its matches are common, all of them would be read.
    scansFirst: false,
    ids: (window) => {
      const queries = known.map((driver) => driver.ids(window));
      return {
        sql: queries.map(({ sql }) => `SELECT id FROM (${sql})`).join(' UNION '),
        values: queries.flatMap(({ values }) => values),
      };
    },
  };
}

/** Values of a column that the terms of an `and` allow: a list, or a range. */
interface ColumnRange {
  values?: readonly (string | number)[];
  /** Inclusive bounds, also for `lt` and `gt`: the rows are checked afterwards. */
  from?: string | number;
  to?: string | number;
  /** Terms that define the range. */
  terms: FilterTree[];
}

/** Returns ranges by column name; ignores other conditions. */
function rangesOf(terms: readonly FilterTree[]): Map<string, ColumnRange> {
  const ranges = new Map<string, ColumnRange>();
  for (const term of terms) {
    const found = rangeOf(term);
    if (found === null) continue;
    const range = { ...found, terms: [term] };
    const known = ranges.get(found.column);
    ranges.set(found.column, known === undefined ? range : narrowed(known, range));
  }
  return ranges;
}

function rangeCondition(column: string, { values, from, to }: ColumnRange): SqlCondition {
  if (values !== undefined) return oneOf(column, values);
  const sql = [
    from === undefined ? [] : `${column} >= ?`,
    to === undefined ? [] : `${column} <= ?`,
  ];
  return { sql: sql.flat().join(' AND '), values: [from ?? [], to ?? []].flat() };
}

type TermRange = Omit<ColumnRange, 'terms'> & { column: string };

function rangeOf(term: FilterTree): TermRange | null {
  if (term.node === 'or') return rangeOfAny(term);
  const found = columnOfCondition(term);
  if (found === undefined) return null;
  const column = found.name;
  if (term.node === 'in') {
    return { column, values: sqlValues(found, term.literals) };
  }
  if (term.node !== 'comparison' && term.node !== 'attribute') return null;
  const value = sqlValue(found, term.literal);
  if (value === undefined || term.operator === 'ne') return null;
  if (term.operator === 'eq') {
    const grouped = term.node === 'attribute' ? groupedTypes(term) : [];
    return { column, values: [value, ...grouped] };
  }
  if (!isOrdered(found) || !isExact(term.literal)) return null;
  return term.operator === 'gt' || term.operator === 'ge'
    ? { column, from: value }
    : { column, to: value };
}

/** Returns the range of an `or` on one column, such as `a eq 1 or a eq 2`. */
function rangeOfAny({ terms }: GroupNode): TermRange | null {
  const ranges = terms.map(rangeOf);
  const column = ranges[0]?.column;
  const values = ranges.flatMap((one) =>
    one?.column === column && one?.values ? [one.values] : [],
  );
  if (column === undefined || values.length < ranges.length) return null;
  return { column, values: [...new Set(values.flat())] };
}

function narrowed(one: ColumnRange, other: ColumnRange): ColumnRange {
  // A list narrows more than a range; the rows are checked for both afterwards.
  if (one.values !== undefined) return one;
  if (other.values !== undefined) return other;
  const from = [one.from ?? [], other.from ?? []].flat();
  const to = [one.to ?? [], other.to ?? []].flat();
  return {
    ...(from.length === 0 ? {} : { from: from.reduce((a, b) => (a > b ? a : b)) }),
    ...(to.length === 0 ? {} : { to: to.reduce((a, b) => (a < b ? a : b)) }),
    terms: [...one.terms, ...other.terms],
  };
}

/** Maximum candidates that are read and sorted at once; with more, the search scans in order. */
export const fewCandidatesMax = 2_000;
/** The same for an index that cannot narrow a scan: reading this many ids takes some milliseconds. */
const fewForColumnsMax = 20_000;

export interface Choice {
  driver: Driver;
  /** Ids of the driver, in any order; null if there are more than were read. */
  ids: readonly number[] | null;
}

/** Chooses the driver for a search of the first few matches. Returns null if there is none. */
export function chooseForPage(database: Database, drivers: readonly Driver[]): Choice | null {
  const choice = chooseDriver(database, drivers, fewCandidatesMax);
  if (choice === null || choice.ids !== null) return choice;
  const ofColumns = drivers.filter(({ windowed }) => !windowed);
  const further = chooseDriver(database, ofColumns, fewForColumnsMax);
  if (further !== null && further.ids !== null) return further;
  const windowed = drivers.find((driver) => driver.windowed);
  return windowed === undefined ? choice : { driver: windowed, ids: null };
}

/**
 * Chooses the driver for work on all candidates: increases the limit until one driver is read completely. Returns null
 * if there is none, or none with at most `idsMax` ids.
 */
export function chooseForAll(
  database: Database,
  drivers: readonly Driver[],
  idsMax = Number.POSITIVE_INFINITY,
): Driver | null {
  for (let limit = fewCandidatesMax; ; limit *= 10) {
    const choice = chooseDriver(database, drivers, Math.min(limit, idsMax));
    if (choice === null || choice.ids !== null) return choice?.driver ?? null;
    if (limit >= idsMax) return null;
  }
}

/**
 * Chooses the driver with the fewest ids, reading at most `idsMax` of each. A wrong choice would cost many times as
 * much as this.
 */
function chooseDriver(
  database: Database,
  drivers: readonly Driver[],
  idsMax: number,
): Choice | null {
  let best: Choice | null = null;
  for (const driver of drivers) {
    const limit: number = best?.ids?.length ?? idsMax;
    const { sql, values } = driver.ids(allIds);
    const ids = database
      .prepare<unknown[], number>(`SELECT id FROM (${sql}) LIMIT ?`)
      .pluck()
      .all(...values, limit + 1);
    if (ids.length <= limit) best = { driver, ids };
    else best ??= { driver, ids: null };
    if (best.ids?.length === 0) return best;
  }
  return best;
}

/** Most parts of names are common (`S2A_MSIL`, `_202`); a few hundred names show which parts are rare. */
const sampleSize = 500;
/** Each further trigram costs a look-up, and narrows less than the one before. */
const trigramsMax = 3;

/** Names in the index: a sample of those of products, and those of attributes. */
export interface KnownNames {
  /** Returns the rarest trigrams of a text of at least three characters. */
  rareTrigramsOf(text: string): string[];
  /** Returns false if no record has an attribute of this name. */
  mayHaveAttribute(name: string): boolean;
}

/** Samples names of products evenly from the index, once, at the first use. */
export function createKnownNames(database: Database): KnownNames {
  let names: readonly string[] | undefined;
  return {
    rareTrigramsOf: (text) => {
      names ??= sampleOf(database);
      const sample = names;
      const characters = Array.from(text);
      const all = characters.slice(2).map((_, i) => characters.slice(i, i + 3).join(''));
      const counted = [...new Set(all)].map((trigram) => ({
        trigram,
        count: sample.filter((name) => name.includes(trigram)).length,
      }));
      counted.sort((a, b) => a.count - b.count);
      return counted.slice(0, trigramsMax).map(({ trigram }) => trigram);
    },
    mayHaveAttribute: (name) => {
      const sql = 'SELECT 1 FROM product_attribute WHERE name = ?';
      return prepared(database, sql).get(name) !== undefined;
    },
  };
}

/** Returns the lowest id, and the one after the highest. */
export function idRange(index: Database): { first: number; end: number } {
  // Two queries: SQLite would scan the table for both in one.
  const sql = `SELECT coalesce((SELECT min(id) FROM product), 1) AS first,
    coalesce((SELECT max(id) FROM product), 0) + 1 AS end`;
  const range = index.prepare<[], { first: number; end: number }>(sql).get();
  return range ?? { first: 1, end: 1 };
}

/** Yields adjacent windows of all ids. */
export function* idWindows(index: Database, size: number): Generator<IdWindow> {
  const { first, end } = idRange(index);
  for (let after = first - 1; after < end; after += size) yield { after, before: after + size + 1 };
}

function sampleOf(database: Database): string[] {
  const { first, end } = idRange(database);
  const from = database
    .prepare<[number], string | null>('SELECT name FROM product WHERE id >= ? LIMIT 1')
    .pluck();
  const step = (end - first) / sampleSize;
  const names = Array.from({ length: sampleSize }, (_, i) =>
    from.get(Math.floor(first + i * step)),
  );
  return names.filter((name) => typeof name === 'string');
}
