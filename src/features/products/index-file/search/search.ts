/** Plans a search, and reads its candidates (the rows to check) lazily, in the requested order. */
import { isDeepStrictEqual } from 'node:util';
import { compileFilter } from '../../../../filter/evaluate.ts';
import type { Entity, FilterTree } from '../../../../filter/filter-tree.ts';
import type { ProductView } from '../../../../filter/product-view.ts';
import type { ProductKey, ProductQuery } from '../../../../filter/products.ts';
import { type Database, perConnection, prepared } from '../../../../store/engine/database.ts';
import { type Candidate, rowColumns } from '../product-schema.ts';
import {
  conditionIf,
  joined,
  type Order,
  orderBy,
  orderOf,
  rowsAfter,
  type SqlCondition,
  scansAfter,
} from './conditions.ts';
import {
  allIds,
  chooseDriver,
  type Driver,
  driversOf,
  type IdWindow,
  idRange,
  listOf,
  type Term,
  termsOf,
} from './drivers.ts';

export interface SearchPlan {
  terms: readonly Term[];
  /** Conditions in addition to the filter. */
  always: readonly SqlCondition[];
  drivers: Driver[];
  /** Data needed in addition to columns: nothing, the footprint (stored in the index), or the whole record. */
  needs: 'nothing' | 'footprint' | 'record';
  /** True if candidates have their footprint: it is needed, or requested. */
  footprints: boolean;
  /** Evaluates the terms that columns do not decide. */
  matches(view: ProductView): boolean;
}

/** Splits a filter into terms decided by columns and terms that need records. */
export function planSearch(
  query: Omit<ProductQuery, 'entity'> & {
    /** Null for existing and deleted products. */
    entity: Entity | null;
  },
  index: Database,
): SearchPlan {
  const { entity, filter, received = {}, subscription, maxAgeUs, footprints = false } = query;
  const terms = termsOf(filter, index);
  // The terms that columns do not decide.
  const byRecords = terms
    .filter(({ prefilter }) => prefilter?.exact !== true)
    .map(({ tree }) => tree);
  const tests = byRecords.map(compileFilter);
  const { fromUs, untilUs } = received;
  const needsFootprint = byRecords.every(isAboutFootprint) ? 'footprint' : 'record';
  const needs = byRecords.length === 0 ? 'nothing' : needsFootprint;
  return {
    terms,
    always: [
      // A literal, so that SQLite can use the partial index of tombstones.
      {
        sql: entity === null ? 'TRUE' : `p.deleted = ${entity === 'Products' ? 0 : 1}`,
        values: [],
      },
      ...conditionIf('p.received_at_us >= ?', fromUs),
      ...conditionIf('p.received_at_us < ?', untilUs),
      ...conditionIf(notifiedFor, subscription),
      ...conditionIf(isYoung, maxAgeUs),
    ],
    drivers: driversOf(terms, index),
    needs,
    footprints: footprints !== false || needs === 'footprint',
    matches: (view) => tests.every((test) => test(view)),
  };
}

const notifiedFor =
  'EXISTS (SELECT 1 FROM product_event e WHERE e.product = p.id AND e.subscription = ?)';

const isYoung =
  '(p.publication_us - coalesce(p.sensing_end_us, p.sensing_start_us) > ?) IS NOT TRUE';

function isAboutFootprint(tree: FilterTree): boolean {
  if (tree.node === 'and' || tree.node === 'or') return tree.terms.every(isAboutFootprint);
  return tree.node === 'not' ? isAboutFootprint(tree.term) : tree.node === 'intersects';
}

/** Returns the condition that every match fulfils, without the term that the driver already covers. */
export function conditionOf(
  { terms, always }: SearchPlan,
  driver: Pick<Driver, 'covers'> | null,
): SqlCondition {
  const left = terms.filter(({ tree }) => tree !== driver?.covers);
  return joined('AND', [...always, ...left.flatMap(({ prefilter }) => prefilter ?? [])]);
}

/** A statement that returns candidates in order, or a key: the search may stop here, and continue after it. */
type Step = SqlCondition | { after: ProductKey };

/** Ids of the first step, and of the largest one, about 100 ms. Rare matches are found quickly, too, by growing steps. */
const stepSize = { window: 1_024, list: 256, growth: 4, max: 16_384 };

/**
 * Yields the rows after the query's key, and from time to time a key after which a later search can continue, so that
 * no search reads for long. The caller may stop early.
 */
export function* candidatesOf(
  index: Database,
  plan: SearchPlan,
  query: ProductQuery,
): Generator<Candidate | { after: ProductKey }> {
  for (const step of stepsOf(index, plan, query)) {
    if ('after' in step) yield step;
    else yield* index.prepare<unknown[], Candidate>(step.sql).iterate(...step.values);
  }
}

/** A search with the driver that it uses, if any. */
interface Searching {
  index: Database;
  plan: SearchPlan;
  driver: Driver | null;
  order: Order;
  after: ProductKey | undefined;
}

/** Few candidates are sorted. Many are scanned in order, or sorted if there is no index of the order. */
function stepsOf(index: Database, plan: SearchPlan, query: ProductQuery): Iterable<Step> {
  const { driver = null, ids = null } = chooseDriver(index, plan.drivers) ?? {};
  const { after } = query;
  const order = orderOf(query);
  const search: Searching = { index, plan, driver, order, after };
  if (order.terms.length === 0) {
    if (ids === null) return windowSteps(search);
    const { after: low, before: high } = windowAfter(allIds, order, after);
    const ascending = Float64Array.from(ids.filter((id) => id > low && id < high)).sort();
    return listSteps(search, order.direction === 'desc' ? ascending.reverse() : ascending);
  }
  const hasIndex = scansAfter(order, after) !== null;
  if (ids === null && hasIndex && (driver === null || isCommon(index, driver))) {
    return scanSteps({ ...search, driver: null });
  }
  const found = select(plan, driver, { columns: 'p.id', orderBy: orderBy(order) });
  return listSteps(search, sortedIdsAfter(search, found));
}

/** Reads rows in windows of ids: those of the driver, or all. */
function* windowSteps({ index, plan, driver, order, after }: Searching): Generator<Step> {
  const { first, end } = idRange(index);
  let { after: low, before: high } = windowAfter({ after: first - 1, before: end }, order, after);
  const isDown = order.direction === 'desc';
  // A driver has few rows in a window.
  const sizeMax = driver === null ? 4 * stepSize.max : Number.POSITIVE_INFINITY;
  for (
    let size = stepSize.window;
    high - low > 1;
    size = Math.min(stepSize.growth * size, sizeMax)
  ) {
    const window = isDown
      ? { after: Math.max(low, high - 1 - size), before: high }
      : { after: low, before: Math.min(high, low + 1 + size) };
    yield select(plan, driver, { columns: selected(plan), window, orderBy: orderBy(order) });
    if (isDown) high = window.after + 1;
    else low = window.before - 1;
    yield { after: { values: [], position: isDown ? high : low } };
  }
}

/** Scans the index of the order. */
function* scanSteps({ index, plan, order, after }: Searching): Generator<Step> {
  let key = after;
  for (let size = stepSize.list; ; size = Math.min(stepSize.growth * size, stepSize.max)) {
    const list: number[] = [];
    for (const { sql, values } of scansAfter(order, key) ?? []) {
      if (list.length >= size) break;
      list.push(...idsIn(index, { sql, values: [...values, size - list.length] }));
    }
    yield rowsOf(plan, null, list);
    key = lastKey(index, order, list);
    if (list.length < size || key === undefined) return;
    yield { after: key };
  }
}

/** Reads the rows of sorted ids. */
function* listSteps(
  { index, plan, driver, order }: Searching,
  list: Float64Array,
): Generator<Step> {
  let size = stepSize.list;
  for (let start = 0; start < list.length; start += size, size = stepSize.max) {
    const part = [...list.subarray(start, start + size)];
    yield rowsOf(plan, driver, part);
    const after = lastKey(index, order, part);
    if (after !== undefined) yield { after };
  }
}

/** Returns the part of a window after a key in the order of the ids. */
function windowAfter(
  window: IdWindow,
  { direction }: Order,
  key: ProductKey | undefined,
): IdWindow {
  if (key === undefined) return window;
  const { position } = key;
  return direction === 'desc' ? { ...window, before: position } : { ...window, after: position };
}

/** Returns the key of the last row that was not pruned meanwhile; undefined without one. */
function lastKey(
  index: Database,
  { terms }: Order,
  ids: readonly number[],
): ProductKey | undefined {
  const columns = ['p.id', ...terms.map(({ sql }) => sql)].join(', ');
  const sql = `SELECT ${columns} FROM product p WHERE p.id = ?`;
  const row = prepared<[number], [number, ...ProductKey['values']]>(index, sql).raw();
  for (const id of ids.toReversed()) {
    const [position, ...values] = row.get(id) ?? [];
    if (position !== undefined) return { values, position };
  }
  return undefined;
}

/** The last list of sorted ids, with the state of the database and the statement that it is from. */
const sortedIds = perConnection(() => ({ source: {}, ids: new Float64Array() }));

/**
 * Returns the ids after the key. Keeps the whole list for the next page of the same query, unless the index has
 * changed: sorting again for each page would take quadratic time.
 */
function sortedIdsAfter({ index, plan, driver, order, after }: Searching, all: SqlCondition) {
  const known = sortedIds(index);
  const source = { version: index.pragma('data_version', { simple: true }), all };
  if (!isDeepStrictEqual(known.source, source)) {
    known.ids = Float64Array.from(idsIn(index, all));
    known.source = source;
  }
  if (after === undefined) return known.ids;
  const at = known.ids.indexOf(after.position);
  // The row of the key may have another place by now.
  const isThere = at !== -1 && isDeepStrictEqual(lastKey(index, order, [after.position]), after);
  if (isThere) return known.ids.subarray(at + 1);
  const where = rowsAfter(order, after);
  const later = select(plan, driver, { columns: 'p.id', where, orderBy: orderBy(order) });
  return Float64Array.from(idsIn(index, later));
}

function idsIn(index: Database, { sql, values }: SqlCondition): number[] {
  return index
    .prepare<unknown[], number>(sql)
    .pluck()
    .all(...values);
}

/** True if one of 160 rows is a candidate, and checking rows is cheap: a scan then finds a page soon. */
function isCommon(index: Database, { scansCommon, ids }: Driver): boolean {
  if (!scansCommon) return false;
  const { first, end } = idRange(index);
  const all = ids(allIds);
  const further = index.prepare<unknown[]>(`SELECT 1 FROM (${all.sql}) LIMIT 1 OFFSET ?`);
  return further.get(...all.values, Math.ceil((end - first) / 160)) !== undefined;
}

/** Selects the rows of ids that fulfil the conditions, in the order of the ids. */
function rowsOf(plan: SearchPlan, driver: Driver | null, ids: readonly number[]): SqlCondition {
  return select(plan, { ...driver, ids: () => listOf(ids) }, { columns: selected(plan) });
}

/** Selects the rows of a driver, or of the table, that fulfil the conditions. */
export function select(
  plan: SearchPlan,
  driver: Pick<Driver, 'ids' | 'covers'> | null,
  query: { columns: string; window?: IdWindow | undefined; where?: SqlCondition; orderBy?: string },
): SqlCondition {
  const { columns, window, where, orderBy } = query;
  const ids = driver?.ids(window ?? allIds);
  const { sql, values } = joined('AND', [
    ...(window ? [{ sql: 'p.id > ? AND p.id < ?', values: [window.after, window.before] }] : []),
    ...(where ? [where] : []),
    conditionOf(plan, driver),
  ]);
  const source = ids
    ? `(${ids.sql}) d CROSS JOIN product p ON p.id = d.id`
    : 'product p NOT INDEXED';
  return {
    sql: `SELECT ${columns} FROM ${source} ${footprintJoin(plan)} WHERE ${sql}
      ${orderBy === undefined ? '' : `ORDER BY ${orderBy}`}`,
    values: [...(ids?.values ?? []), ...values],
  };
}

export function selected({ footprints }: SearchPlan): string {
  return footprints ? `${rowColumns}, f.geometry AS footprint` : rowColumns;
}

export function footprintJoin({ footprints }: SearchPlan): string {
  return footprints ? 'LEFT JOIN product_footprint f ON f.id = p.id' : '';
}
