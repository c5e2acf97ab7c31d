/** Plans a search, and reads its candidates (the rows to check) lazily, in the requested order. */
import { isDeepStrictEqual } from 'node:util';
import { compileFilter } from '../../../../filter/evaluate.ts';
import type { Entity, FilterTree } from '../../../../filter/filter-tree.ts';
import type { ProductKey } from '../../../../filter/product-order.ts';
import type { ProductView } from '../../../../filter/product-view.ts';
import type { ProductQuery } from '../../../../filter/products.ts';
import { type Database, perConnection } from '../../../../store/engine/database.ts';
import { rowColumns, type SelectedRow } from '../product-rows.ts';
import type { StoredFootprint } from '../stored-footprint.ts';
import { joined, prefilterOf, type SqlCondition } from './conditions.ts';
import {
  allIds,
  type Choice,
  chooseForPage,
  type Driver,
  driversOf,
  type IdWindow,
  idRange,
  type KnownNames,
} from './drivers.ts';
import {
  isScanned,
  type Order,
  type OrderPart,
  orderOf,
  partsAfter,
  pathOf,
  rowsAfter,
  splitPart,
} from './order.ts';

export interface SearchPlan {
  /** Returns the condition that every match fulfils, without the terms that the driver already covers. */
  conditionWithout(driver: Driver | null): SqlCondition;
  drivers: Driver[];
  /** Terms decided by columns, and terms that need the record. */
  byColumns: FilterTree[];
  byRecords: FilterTree[];
  /** Data needed for `byRecords`: nothing, the footprint (stored in the index), or the whole record. */
  needs: 'nothing' | 'footprint' | 'record';
  /** True if candidates have their footprint: it is needed, or requested. */
  footprints: boolean;
  matches(view: ProductView): boolean;
}

/** Splits a filter into terms decided by columns and terms that need records. */
export function planSearch(
  {
    entity,
    filter,
    received = {},
    subscription,
    footprints = false,
  }: Pick<ProductQuery, 'filter' | 'received' | 'subscription' | 'footprints'> & {
    /** Null for existing and deleted products. */
    entity: Entity | null;
  },
  names: KnownNames,
): SearchPlan {
  const terms = filter === null ? [] : filter.node === 'and' ? filter.terms : [filter];
  const prefilters = terms.map((term) => ({ term, prefilter: prefilterOf(term, names) }));
  const byColumns = prefilters
    .filter(({ prefilter }) => prefilter?.exact === true)
    .map(({ term }) => term);
  const byRecords = prefilters
    .filter(({ prefilter }) => prefilter?.exact !== true)
    .map(({ term }) => term);
  const tests = byRecords.map(compileFilter);
  const { fromUs, untilUs } = received;
  const always: SqlCondition[] = [
    // A literal, so that SQLite can use the partial index of tombstones.
    { sql: entity === null ? 'TRUE' : `p.deleted = ${entity === 'Products' ? 0 : 1}`, values: [] },
    ...(fromUs === undefined ? [] : [{ sql: 'p.received_at_us >= ?', values: [fromUs] }]),
    ...(untilUs === undefined ? [] : [{ sql: 'p.received_at_us < ?', values: [untilUs] }]),
    ...(subscription === undefined ? [] : [{ sql: notifiedFor, values: [subscription] }]),
  ];
  const needs = neededBy(byRecords);
  return {
    conditionWithout: (driver) => {
      const left = prefilters.filter(({ term }) => !driver?.covers.includes(term));
      return joined('AND', [...always, ...left.flatMap(({ prefilter }) => prefilter ?? [])]);
    },
    drivers: driversOf(filter, names),
    byColumns,
    byRecords,
    needs,
    footprints: footprints !== false || needs === 'footprint',
    matches: (view) => tests.every((test) => test(view)),
  };
}

const notifiedFor =
  'EXISTS (SELECT 1 FROM product_event e WHERE e.product = p.id AND e.subscription = ?)';

function neededBy(byRecords: readonly FilterTree[]): SearchPlan['needs'] {
  if (byRecords.length === 0) return 'nothing';
  return byRecords.every(needsOnlyFootprint) ? 'footprint' : 'record';
}

function needsOnlyFootprint(tree: FilterTree): boolean {
  if (tree.node === 'and' || tree.node === 'or') return tree.terms.every(needsOnlyFootprint);
  return tree.node === 'not' ? needsOnlyFootprint(tree.term) : tree.node === 'intersects';
}

/** A row to check, with the stored footprint if the plan has footprints. */
export type Candidate = SelectedRow & { footprint?: StoredFootprint | null };

/**
 * A statement that returns rows in order, or ids whose rows are read one by one: a window of them (known, or read by a
 * statement), or ids in order. `after`: the search may stop here, and continue after this key.
 */
type Step =
  | { rows: SqlCondition }
  | { ids: readonly number[] | SqlCondition; window: IdWindow; row: SqlCondition }
  | { ids: Float64Array; row: SqlCondition }
  | { after: ProductKey };

/** Size of a scan's first window. Each following window is larger, so that rare matches are also found quickly. */
const firstWindow = 8_192;
const windowGrowth = 4;

/** Rows that a search for common matches scans in order before it sorts all of them, which may take seconds. */
const scannedFirst = 8_192;

/** Rows of an order's index that are scanned between two places to stop: first few, then at most about 100 ms. */
const scannedAtOnce = { first: 1_024, max: 16_384 };

/**
 * Yields the rows after the query's key, and from time to time a key after which a later search can continue, so that
 * no search reads for long. The caller may stop early.
 */
export function* candidatesOf(
  database: Database,
  plan: SearchPlan,
  query: ProductQuery,
): Generator<Candidate | { after: ProductKey }> {
  const order = orderOf(query);
  const choice = chooseForPage(database, plan.drivers);
  for (const step of stepsOf(database, plan, order, query.after, choice)) {
    if ('after' in step) {
      yield step;
      continue;
    }
    if ('rows' in step) {
      const { sql, values } = step.rows;
      yield* database.prepare<unknown[], Candidate>(sql).iterate(...values);
      continue;
    }
    const row = database.prepare<unknown[], Candidate>(step.row.sql);
    for (const id of 'window' in step ? idsOf(database, step, order) : step.ids) {
      const candidate = row.get(id, ...step.row.values);
      if (candidate !== undefined) yield candidate;
    }
  }
}

/** Yields the statements of a search until its first place to stop, for `explain`. */
export function* statementsOf(
  database: Database,
  plan: SearchPlan,
  query: ProductQuery,
  choice: Choice | null,
): Generator<SqlCondition> {
  for (const step of stepsOf(database, plan, orderOf(query), query.after, choice)) {
    if ('after' in step) return;
    if ('rows' in step) yield step.rows;
    else {
      if ('sql' in step.ids) yield step.ids;
      yield { sql: step.row.sql, values: [0, ...step.row.values] };
    }
  }
}

/** Returns a statement for all candidates of a driver or of a window of ids, without order, or for their number. */
export function allCandidates(
  plan: SearchPlan,
  { driver, window }: { driver: Driver | null; window: IdWindow | undefined },
  what: 'rows' | 'count',
): SqlCondition {
  const columns = what === 'count' ? 'count(*)' : selected(plan);
  if (window === undefined) return select(plan, driver, { columns });
  const condition = { sql: 'p.id > ? AND p.id < ?', values: [window.after, window.before] };
  return select(plan, driver, {
    ...{ columns, path: 'NOT INDEXED', window },
    part: { condition, orderBy: null },
  });
}

function* stepsOf(
  database: Database,
  plan: SearchPlan,
  order: Order,
  after: ProductKey | undefined,
  choice: Choice | null,
): Generator<Step> {
  const isFew = choice !== null && choice.ids !== null;
  const isReceived = order.terms.length === 0;
  if (choice !== null && isReceived) {
    const { driver, ids } = choice;
    if (ids !== null)
      return yield { ids, window: idsAfter(order, after), row: rowOf(plan, driver) };
    if (driver.windowed && order.direction === 'desc') {
      return yield* windowSteps(database, plan, driver, after);
    }
  }
  // With many candidates, a scan in order soon finds some; ids do not help it.
  const sorts = choice !== null && !isReceived && (isFew || choice.driver.windowed);
  const driver = sorts ? choice.driver : null;
  if (!isScanned(order)) return yield* sortedSteps(database, plan, driver, order, after);
  if (driver === null) return yield* scanSteps(database, plan, order, after);
  if (isFew || !driver.scansFirst || !isCommon(database, driver)) {
    return yield* sortedSteps(database, plan, driver, order, after);
  }
  for (const part of partsAfter(order, after)) {
    const { first, end } = splitPart(database, order, part, scannedFirst);
    yield { rows: rowsIn(plan, order, first, null) };
    if (end === undefined) continue;
    return yield { rows: rowsIn(plan, order, rowsAfter(order, end), driver) };
  }
}

/** Reads the ids of a driver in windows, from the newest to the oldest. */
function* windowSteps(
  database: Database,
  plan: SearchPlan,
  driver: Driver,
  after: ProductKey | undefined,
): Generator<Step> {
  const row = rowOf(plan, driver);
  const top = after?.position ?? idRange(database).end;
  for (const [i, window] of [...windowsBelow(top)].entries()) {
    // The first window often fills the page. Later ones have few matches, which SQL finds faster than row by row.
    const ids = i === 0 ? driver.ids(window) : matchingIds(plan, driver, window);
    yield { ids, window, row };
    yield { after: { values: [], position: window.after + 1 } };
  }
}

/** Scans the index of the order. */
function* scanSteps(
  database: Database,
  plan: SearchPlan,
  order: Order,
  after: ProductKey | undefined,
): Generator<Step> {
  let key = after;
  for (let rows = scannedAtOnce.first; ; rows = Math.min(4 * rows, scannedAtOnce.max)) {
    let end: ProductKey | undefined;
    for (const part of partsAfter(order, key)) {
      const split = splitPart(database, order, part, rows);
      yield { rows: rowsIn(plan, order, split.first, null) };
      end = split.end;
      if (end !== undefined) break;
    }
    if (end === undefined) return;
    yield { after: end };
    key = end;
  }
}

/** Sorts all rows of a driver, or of the table: first their ids, if there may be many. */
function* sortedSteps(
  database: Database,
  plan: SearchPlan,
  driver: Driver | null,
  order: Order,
  after: ProductKey | undefined,
): Generator<Step> {
  if (driver === null || after !== undefined) {
    const part = rowsAfter(order);
    const all = select(plan, driver, { columns: 'p.id', path: 'NOT INDEXED', part });
    const ids = sortedIdsAfter(database, all, after);
    if (ids !== null) return yield { ids, row: rowOf(plan, driver) };
  }
  yield { rows: rowsIn(plan, order, rowsAfter(order, after), driver) };
}

/** Selects the rows of a part: those of a driver, or by scanning the index of the order. */
function rowsIn(plan: SearchPlan, order: Order, part: OrderPart, driver: Driver | null) {
  return select(plan, driver, { columns: selected(plan), path: pathOf(order), part });
}

/** The last list of sorted ids, with the state of the database and the statement that it is from. */
const sortedIds = perConnection(() => ({ source: {}, ids: new Float64Array() }));

/**
 * Returns the ids after a key in the order of the statement; null if the key is not among them. Keeps the list for the
 * next page of the same query, unless the index has changed: sorting again for each page would take quadratic time.
 */
function sortedIdsAfter(
  database: Database,
  all: SqlCondition,
  after: ProductKey | undefined,
): Float64Array | null {
  const known = sortedIds(database);
  const source = { version: database.pragma('data_version', { simple: true }), all };
  if (!isDeepStrictEqual(known.source, source)) {
    const ids = database
      .prepare<unknown[], number>(all.sql)
      .pluck()
      .all(...all.values);
    known.ids = Float64Array.from(ids);
    known.source = source;
  }
  if (after === undefined) return known.ids;
  const at = known.ids.indexOf(after.position);
  return at === -1 ? null : known.ids.subarray(at + 1);
}

/** True if one of 160 rows is a candidate: the scan then finds about a page. */
function isCommon(database: Database, { ids }: Driver): boolean {
  const { first, end } = idRange(database);
  const all = ids(allIds);
  const further = database.prepare<unknown[]>(`SELECT 1 FROM (${all.sql}) LIMIT 1 OFFSET ?`);
  return further.get(...all.values, Math.ceil((end - first) / 160)) !== undefined;
}

/** Returns the ids of a window in order. The box driver may return ids outside the window. */
function idsOf(
  database: Database,
  { ids: found, window }: Extract<Step, { window: unknown }>,
  { direction }: Order,
): Float64Array {
  const read = ({ sql, values }: SqlCondition) =>
    database
      .prepare<unknown[], number>(sql)
      .pluck()
      .all(...values);
  const ids = 'sql' in found ? read(found) : found;
  const inWindow = ids.filter((id) => id > window.after && id < window.before);
  const ascending = Float64Array.from(inWindow).sort();
  return direction === 'desc' ? ascending.reverse() : ascending;
}

/** Selects the ids of a driver in a window whose rows fulfil the remaining conditions. */
function matchingIds(plan: SearchPlan, driver: Driver, window: IdWindow): SqlCondition {
  const condition = { sql: 'p.id > ? AND p.id < ?', values: [window.after, window.before] };
  return select(plan, driver, { columns: 'p.id', part: { condition, orderBy: null }, window });
}

/** Selects a row by its id, if it fulfils the remaining conditions. */
function rowOf(plan: SearchPlan, driver: Driver | null): SqlCondition {
  const { sql, values } = plan.conditionWithout(driver);
  return {
    sql: `SELECT ${selected(plan)} FROM product p ${footprintJoin(plan)} WHERE p.id = ? AND ${sql}`,
    values,
  };
}

type Part = Omit<OrderPart, 'orderBy'> & { orderBy: string | null };

/** Selects the rows of a driver, or of the table, that fulfil the remaining conditions. */
function select(
  plan: SearchPlan,
  driver: Driver | null,
  {
    columns,
    path = '',
    part,
    window = allIds,
  }: { columns: string; path?: string; part?: Part; window?: IdWindow },
): SqlCondition {
  const ids = driver?.ids(window);
  const condition = plan.conditionWithout(driver);
  const source = ids ? `(${ids.sql}) d CROSS JOIN product p ON p.id = d.id` : `product p ${path}`;
  const inPart = part === undefined ? '' : `${part.condition.sql} AND `;
  const orderBy = part?.orderBy ? ` ORDER BY ${part.orderBy}` : '';
  return {
    sql: `SELECT ${columns} FROM ${source} ${footprintJoin(plan)}
      WHERE ${inPart}${condition.sql}${orderBy}`,
    values: [...(ids?.values ?? []), ...(part?.condition.values ?? []), ...condition.values],
  };
}

export function selected({ footprints }: SearchPlan): string {
  return footprints ? `${rowColumns}, f.geometry AS footprint` : rowColumns;
}

export function footprintJoin({ footprints }: SearchPlan): string {
  return footprints ? 'LEFT JOIN product_footprint f ON f.id = p.id' : '';
}

function idsAfter({ direction }: Order, after: ProductKey | undefined): IdWindow {
  if (after === undefined) return allIds;
  return direction === 'desc'
    ? { ...allIds, before: after.position }
    : { ...allIds, after: after.position };
}

/** Yields adjacent windows from the newest id below a bound down to the first. */
export function* windowsBelow(before: number, first = firstWindow): Generator<IdWindow> {
  for (let top = before, size = first; top > 1; size *= windowGrowth) {
    const after = Math.max(0, top - 1 - size);
    yield { after, before: top };
    top = after + 1;
  }
}
