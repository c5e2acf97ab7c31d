/**
 * Drivers: indexes that can narrow a search. A driver returns the ids of all products that can match, and of others.
 * The search reads the first ids of each driver to find the one with the fewest.
 */
import type { FilterTree, IntersectsNode, TextNode } from '../../../../filter/filter-tree.ts';
import { boxesOf, toShape } from '../../../../filter/geometry/shape.ts';
import { type Database, perConnection, prepared } from '../../../../store/engine/database.ts';
import { cloudInBox, productIndexes, receivedUnits, sensingUnits } from '../product-schema.ts';
import {
  isWholeInSql,
  joined,
  type Prefilter,
  prefilterOf,
  type SqlCondition,
} from './conditions.ts';

/** A term of a filter, with the condition of its columns. */
export interface Term {
  tree: FilterTree;
  prefilter: Prefilter | null;
}

export function termsOf(filter: FilterTree | null, index: Database): Term[] {
  const trees = filter?.node === 'and' ? filter.terms : [filter ?? []].flat();
  return trees.map((tree) => ({ tree, prefilter: prefilterOf(tree, index) }));
}

/** Ids above `after` and below `before`. */
export interface IdWindow {
  after: number;
  before: number;
}

export const allIds: IdWindow = { after: 0, before: Number.MAX_SAFE_INTEGER };

export interface Driver {
  /** Term for which columns add no condition. */
  covers?: FilterTree;
  /** Returns a query for the column `id`, without duplicates. A sample may have more ids, if it is read faster. */
  ids(window: IdWindow, isSample?: boolean): SqlCondition;
  /** True if reading a window of ids is as efficient as reading all of them: a search then proceeds by windows. */
  windowed: boolean;
  /** True if checking a row is cheap: if many match, a search in another order scans the index of the order. */
  scansCommon: boolean;
}

/** Returns the drivers for the terms of an `and`, in any order; none if no index can help. */
export function driversOf(terms: readonly Term[], index: Database): Driver[] {
  const byColumn = productIndexes.flatMap((one) => columnDriver(one, terms) ?? []);
  const others = terms.flatMap(({ tree }) => {
    if (tree.node === 'text') return nameDriver(tree, index) ?? [];
    if (tree.node === 'intersects') return boxDriver(tree, terms) ?? [];
    return tree.node === 'or' ? (unionDriver(tree.terms, index) ?? []) : [];
  });
  return [...byColumn, ...others];
}

/** A second column of the index narrows it further. */
function columnDriver(
  { name, columns, where }: (typeof productIndexes)[number],
  terms: readonly Term[],
): Driver | null {
  const known = terms.flatMap(({ prefilter }) => prefilter ?? []);
  const [own = [], further = []] = columns.map((column) =>
    known.filter(({ range }) => range?.column === column),
  );
  if (own.length === 0) return null;
  const { sql, values } = joined('AND', [...own, ...further]);
  return {
    ...{ windowed: false, scansCommon: false },
    ids: ({ after, before }) => ({
      sql: `SELECT id FROM product p INDEXED BY ${name}
        WHERE ${sql} AND ${where ?? 'TRUE'} AND id > ? AND id < ?`,
      values: [...values, after, before],
    }),
  };
}

/** Finds names with the rarest trigrams of the text; names are compared afterwards. */
function nameDriver(term: TextNode, index: Database): Driver | null {
  if (term.field !== 'Name' || term.function === 'like') return null;
  if (Array.from(term.text).length < 3 || !isWholeInSql(term.text)) return null;
  const trigrams = rareTrigramsOf(term.text, sampleOfNames(index));
  const match = trigrams.map((one) => `"${one.replaceAll('"', '""')}"`).join(' AND ');
  return {
    ...{ windowed: true, scansCommon: true },
    ids: ({ after, before }) => ({
      sql: `SELECT rowid AS id FROM product_name
        WHERE product_name MATCH ? AND rowid > ? AND rowid < ?`,
      // BigInt, because FTS5 ignores a bound that is a double.
      values: [match, BigInt(after), BigInt(before)],
    }),
  };
}

function boxDriver(term: IntersectsNode, terms: readonly Term[]): Driver | null {
  const boxes = boxesOf(toShape(term.geometry));
  if (boxes.length === 0) return null;
  const [from, to] = boundsOf('sensing_start_us', terms);
  const clouds = boundsOf('cloud_cover', terms);
  const fits = `AND id & 127 BETWEEN ${cloudInBox('?')} AND ${cloudInBox('?')}`;
  // DISTINCT, because a product may have two boxes.
  const query = `SELECT DISTINCT id >> 8 AS id FROM product_box
    WHERE west <= ? AND east >= ? AND south <= ? AND north >= ?
    AND sensed_from <= ? AND sensed_to >= ? AND received_to >= ? AND received_from <= ?`;
  return {
    ...{ covers: term, windowed: true, scansCommon: false },
    ids: ({ after, before }, isSample = false) => {
      const [condition, given] = clouds.some(Number.isFinite) && !isSample ? [fits, clouds] : [''];
      return {
        sql: boxes.map(() => `${query} ${condition}`).join(' UNION '),
        values: boxes.flatMap(({ west, south, east, north }) => [
          ...[east, west, north, south, sensingUnits(to), sensingUnits(from)],
          ...[receivedUnits(after + 1), receivedUnits(before - 1), ...(given ?? [])],
        ]),
      };
    },
  };
}

/** Returns the lowest and the highest value of a column that the terms allow; infinite without a bound. */
function boundsOf(column: string, terms: readonly Term[]): readonly [number, number] {
  const ranges = terms.flatMap(({ prefilter }) =>
    prefilter?.range?.column === column ? [prefilter.range] : [],
  );
  const lists = ranges.map(({ values, from = -Infinity, to = Infinity }) =>
    (values ?? [from, to]).map(Number),
  );
  return [
    Math.max(-Infinity, ...lists.map((list) => Math.min(...list))),
    Math.min(Infinity, ...lists.map((list) => Math.max(...list))),
  ];
}

/** An `or` has a driver if each of its terms has one. */
function unionDriver(trees: readonly FilterTree[], index: Database): Driver | null {
  const drivers = trees.map((tree) => driversOf(termsOf(tree, index), index)[0]);
  const known = drivers.filter((driver) => driver !== undefined);
  // SQLite allows at most 500 queries in a compound SELECT.
  if (known.length < drivers.length || known.length > 100) return null;
  return {
    windowed: known.every(({ windowed }) => windowed),
    // To find out if its matches are common, all of them would be read.
    scansCommon: false,
    ids: (window) => {
      const queries = known.map((driver) => driver.ids(window));
      return {
        sql: queries.map(({ sql }) => `SELECT id FROM (${sql})`).join(' UNION '),
        values: queries.flatMap(({ values }) => values),
      };
    },
  };
}

/** Maximum candidates that are read and sorted at once; with more, the search scans in order. */
const fewMax = {
  windowed: 2_000,
  /** An index that cannot narrow a scan: reading this many ids takes some milliseconds. */
  ofColumns: 20_000,
};

interface Choice {
  /** Has only these ids, if all were read: they are not read again. */
  driver: Driver;
  /** Ids of the driver, in any order; null if there are more than were read. */
  ids: readonly number[] | null;
}

/** Returns a query for given ids, in their order. */
export function listOf(ids: readonly number[]): SqlCondition {
  return { sql: 'SELECT value AS id FROM json_each(?)', values: [JSON.stringify(ids)] };
}

/**
 * Chooses the driver with the fewest ids, reading only some of each: a wrong choice would cost many times as much.
 * Without few candidates, chooses one that can narrow a scan. Returns null if there is none.
 */
export function chooseDriver(
  index: Database,
  drivers: readonly Driver[],
  idsMax?: number,
): Choice | null {
  let best: Choice | null = null;
  const windowed = drivers.filter((driver) => driver.windowed);
  const [narrowing] = windowed;
  // Windows read the boxes of few candidates as fast as all at once.
  if (narrowing?.covers && drivers.length === 1 && !idsMax) return { driver: narrowing, ids: null };
  for (const driver of [...windowed, ...drivers.filter((one) => !one.windowed)]) {
    const usualMax = driver.windowed ? fewMax.windowed : fewMax.ofColumns;
    const limit: number = best?.ids?.length ?? idsMax ?? usualMax;
    const { sql, values } = driver.ids(allIds, idsMax === undefined);
    const ids = index
      .prepare<unknown[], number>(`SELECT id FROM (${sql}) LIMIT ?`)
      .pluck()
      .all(...values, limit + 1);
    if (ids.length <= limit) best = { driver: { ...driver, ids: () => listOf(ids) }, ids };
    if (ids.length === 0) break;
  }
  return best ?? (narrowing === undefined ? null : { driver: narrowing, ids: null });
}

/** Most parts of names are common (`S2A_MSIL`, `_202`); a few hundred names show which parts are rare. */
const sampleSize = 500;
/** Each further trigram costs a look-up, and narrows less than the one before. */
const trigramsMax = 3;

/** Names of products, drawn evenly from the index at the first use. */
const sampleOfNames = perConnection((index) => {
  const { first, end } = idRange(index);
  const from = index
    .prepare<[number], string | null>('SELECT name FROM product WHERE id >= ? LIMIT 1')
    .pluck();
  const step = (end - first) / sampleSize;
  return Array.from({ length: sampleSize }, (_, i) => from.get(Math.floor(first + i * step)));
});

/** Returns the rarest trigrams of a text of at least three characters. */
function rareTrigramsOf(text: string, sample: readonly (string | null | undefined)[]): string[] {
  const characters = Array.from(text);
  const all = characters.slice(2).map((_, i) => characters.slice(i, i + 3).join(''));
  const counted = [...new Set(all)].map((trigram) => ({
    trigram,
    count: sample.filter((name) => name?.includes(trigram)).length,
  }));
  counted.sort((a, b) => a.count - b.count);
  return counted.slice(0, trigramsMax).map(({ trigram }) => trigram);
}

/** Returns the lowest id, and the one after the highest. */
export function idRange(index: Database): { first: number; end: number } {
  // Two queries: SQLite would scan the table for both in one.
  const read = (sql: string) => Number(prepared(index, sql).pluck().get());
  return {
    first: read('SELECT coalesce(min(id), 1) FROM product'),
    end: read('SELECT coalesce(max(id), 0) + 1 FROM product'),
  };
}

/** Yields adjacent windows of all ids. */
export function* idWindows(index: Database, size: number): Generator<IdWindow> {
  const { first, end } = idRange(index);
  for (let after = first - 1; after < end; after += size) yield { after, before: after + size + 1 };
}
