/**
 * The indexes that can narrow a search. Each driver gives the ids of all products that can match, and of others; which
 * one gives the fewest is found by reading the first ids of each.
 */
import type { Database } from 'better-sqlite3';
import type {
  FilterTree,
  GroupNode,
  IntersectsNode,
  TextNode,
} from '../../../domain/filter-tree.ts';
import { boxesOf, toShape } from '../../../filter/geometry/shape.ts';
import { cloudUnits, receivedUnits, sensingDays } from '../product-schema.ts';
import {
  columnOfCondition,
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
  /** The index, for people. */
  name: string;
  /** The parts of the filter that it answers. */
  terms: readonly FilterTree[];
  /** Those of them on which the columns have nothing to add. */
  covers: readonly FilterTree[];
  /** A query for the column `id`; each id comes once. */
  ids(window: IdWindow): SqlCondition;
  /** True when it can narrow a window of ids as well as all of them: then a walk is done window by window. */
  windowed: boolean;
}

/** Columns with an index of their own, and another one that narrows it further. */
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

/** All drivers for a filter, without order; none where no index can help. */
export function driversOf(filter: FilterTree | null, names: NameSample): Driver[] {
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
        ...[receivedUnits(after + 1), receivedUnits(before - 1)],
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

/** The values that the terms of an `and` allow in a column: a list, or a range. */
interface ColumnRange {
  values?: readonly (string | number)[];
  /** Bounds, each included: for an index a bound too wide is as good. */
  from?: string | number;
  to?: string | number;
  /** The terms it follows from. */
  terms: FilterTree[];
}

/** The ranges by the columns' names; conditions of any other kind are ignored. */
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
    const values = sqlValues(found, term.literals);
    return values === null ? null : { column, values };
  }
  if (term.node !== 'comparison' && term.node !== 'attribute') return null;
  const value = sqlValue(found, term.literal);
  if (value === undefined || term.operator === 'ne') return null;
  if (term.operator === 'eq') return { column, values: [value] };
  if (!isOrdered(found)) return null;
  return term.operator === 'gt' || term.operator === 'ge'
    ? { column, from: value }
    : { column, to: value };
}

/** `a eq 1 or a eq 2`. */
function rangeOfAny({ terms }: GroupNode): TermRange | null {
  const ranges = terms.map(rangeOf);
  const column = ranges[0]?.column;
  const values = ranges.flatMap((one) =>
    one?.column === column && one?.values ? [one.values] : [],
  );
  if (column === undefined || values.length < ranges.length) return null;
  return { column, values: values.flat() };
}

function narrowed(one: ColumnRange, other: ColumnRange): ColumnRange {
  // Values narrow more than bounds do; that both must hold is checked on each row.
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

/** Up to so many candidates are read and sorted at once; with more, the search walks along its order. */
export const fewCandidatesMax = 2_000;
/** For an index that cannot narrow a walk: reading so many ids takes some milliseconds. */
const fewForColumnsMax = 20_000;

export interface Choice {
  driver: Driver;
  /** All ids that it gives, in no order; null for more than were read. */
  ids: readonly number[] | null;
}

/** The driver for a search of the first few matches. Null when there is none. */
export function chooseForPage(database: Database, drivers: readonly Driver[]): Choice | null {
  const choice = chooseDriver(database, drivers, fewCandidatesMax);
  if (choice === null || choice.ids !== null) return choice;
  const ofColumns = drivers.filter(({ windowed }) => !windowed);
  const further = chooseDriver(database, ofColumns, fewForColumnsMax);
  if (further !== null && further.ids !== null) return further;
  const windowed = drivers.find((driver) => driver.windowed);
  return windowed === undefined ? choice : { driver: windowed, ids: null };
}

/** The driver for work on all candidates: reads until one of them has come to its end. */
export function chooseForAll(database: Database, drivers: readonly Driver[]): Driver | null {
  for (let idsMax = fewCandidatesMax; ; idsMax *= 10) {
    const choice = chooseDriver(database, drivers, idsMax);
    if (choice === null || choice.ids !== null) return choice?.driver ?? null;
  }
}

/**
 * The driver with the fewest ids, reading no more than `idsMax` of each. A wrong choice would cost many
 * times what that takes.
 */
function chooseDriver(
  database: Database,
  drivers: readonly Driver[],
  idsMax: number,
): Choice | null {
  let best: Choice | null = null;
  for (const driver of drivers) {
    const enough: number = best?.ids?.length ?? idsMax;
    const { sql, values } = driver.ids(allIds);
    const ids = database
      .prepare<unknown[], number>(`SELECT id FROM (${sql}) LIMIT ?`)
      .pluck()
      .all(...values, enough + 1);
    if (ids.length <= enough) best = { driver, ids };
    else best ??= { driver, ids: null };
    if (best.ids?.length === 0) return best;
  }
  return best;
}

/** Names are alike in most parts (`S2A_MSIL`, `_202`), so a few hundred show which parts distinguish them. */
const sampleSize = 500;
/** Each further run costs a look-up, and narrows less than the one before. */
const runsMax = 3;

export interface NameSample {
  /** The rarest runs of three characters of a text, which has at least three. */
  rareRunsOf(text: string): string[];
}

/** Reads names from all over the index, once, when it is first asked. */
export function createNameSample(database: Database): NameSample {
  let names: readonly string[] | undefined;
  return {
    rareRunsOf: (text) => {
      names ??= sampleOf(database);
      const sample = names;
      const characters = Array.from(text);
      const runs = new Set(characters.slice(2).map((_, i) => characters.slice(i, i + 3).join('')));
      const counted = [...runs].map((run) => ({
        run,
        count: sample.filter((name) => name.includes(run)).length,
      }));
      counted.sort((a, b) => a.count - b.count);
      return counted.slice(0, runsMax).map(({ run }) => run);
    },
  };
}

function sampleOf(database: Database): string[] {
  const bounds = database
    .prepare<[], { first: number | null; last: number | null }>(
      'SELECT (SELECT min(id) FROM product) AS first, (SELECT max(id) FROM product) AS last',
    )
    .get();
  const { first, last } = bounds ?? { first: null, last: null };
  if (first === null || last === null) return [];
  const from = database
    .prepare<[number], string | null>('SELECT name FROM product WHERE id >= ? LIMIT 1')
    .pluck();
  const step = (last - first) / sampleSize;
  const names = Array.from({ length: sampleSize }, (_, i) =>
    from.get(Math.floor(first + i * step)),
  );
  return names.filter((name) => typeof name === 'string');
}
