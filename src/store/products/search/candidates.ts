/** Plans a search, and reads its candidates (the rows to check) lazily, in the requested order. */
import { isDeepStrictEqual } from 'node:util';
import type { Database } from 'better-sqlite3';
import type { Entity, FilterTree } from '../../../domain/filter-tree.ts';
import type { ProductKey, ProductQuery } from '../../../domain/products.ts';
import { compileFilter } from '../../../filter/evaluate.ts';
import type { ProductView } from '../../../filter/product-view.ts';
import { perConnection } from '../../engine/database.ts';
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
  type NameSample,
} from './drivers.ts';
import { type Order, type OrderPart, orderOf, partsAfter, splitPart } from './order.ts';

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
  names: NameSample,
): SearchPlan {
  const terms = filter === null ? [] : filter.node === 'and' ? filter.terms : [filter];
  const prefilters = terms.map((term) => ({ term, prefilter: prefilterOf(term) }));
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
 * statement), or ids in order.
 */
type Step =
  | { rows: SqlCondition }
  | { ids: readonly number[] | SqlCondition; window: IdWindow; row: SqlCondition }
  | { ids: Float64Array; row: SqlCondition };

/** Size of a scan's first window. Each following window is larger, so that rare matches are also found quickly. */
const firstWindow = 8_192;
const windowGrowth = 4;

/** Rows that a search for common matches scans in order before it sorts all of them, which may take seconds. */
const scannedFirst = 8_192;

/** Yields the rows after the query's key. The caller may stop early. */
export function* candidatesOf(
  database: Database,
  plan: SearchPlan,
  query: ProductQuery,
): Generator<Candidate> {
  const order = orderOf(query);
  const choice = chooseForPage(database, plan.drivers);
  for (const step of stepsOf(database, plan, order, query.after, choice)) {
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

/** Yields the statements of a search, for `explain`. */
export function* statementsOf(
  database: Database,
  plan: SearchPlan,
  query: ProductQuery,
  choice: Choice | null,
): Generator<SqlCondition> {
  for (const step of stepsOf(database, plan, orderOf(query), query.after, choice)) {
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
  { driver, window }: { driver: Driver | null; window?: IdWindow },
  what: 'rows' | 'count',
): SqlCondition {
  const columns = what === 'count' ? 'count(*)' : selected(plan);
  if (window === undefined) return select(plan, driver, { columns });
  const condition = { sql: 'p.id > ? AND p.id < ?', values: [window.after, window.before] };
  return select(plan, driver, { columns, path: 'NOT INDEXED', part: { condition, orderBy: null } });
}

function* stepsOf(
  database: Database,
  plan: SearchPlan,
  order: Order,
  after: ProductKey | undefined,
  choice: Choice | null,
): Generator<Step> {
  const isFew = choice !== null && choice.ids !== null;
  if (choice !== null && order.column === 'id') {
    const { driver, ids } = choice;
    const row = rowOf(plan, driver);
    if (ids !== null) return yield { ids, window: idsAfter(order, after), row };
    if (driver.windowed && order.direction === 'desc') {
      const top = after?.position ?? idRange(database).end;
      for (const [i, window] of [...windowsBelow(top)].entries()) {
        // The first window often fills the page. Later ones have few matches, which SQL finds faster than row by row.
        yield {
          ids: i === 0 ? driver.ids(window) : matchingIds(plan, driver, window),
          window,
          row,
        };
      }
      return;
    }
  }
  // With many candidates, a scan in order soon finds some; ids do not help it.
  const sorts = choice !== null && (isFew || choice.driver.windowed);
  const driver = sorts && order.index !== null ? choice.driver : null;
  // Sorts the rows of a driver, or scans the index of the order.
  const path = order.index === null ? 'NOT INDEXED' : `INDEXED BY ${order.index}`;
  const rowsIn = (part: OrderPart, by: Driver | null) => ({
    rows: select(plan, by, { columns: selected(plan), path, part }),
  });
  // The index of deletions has only deleted products.
  const mayScan = !isFew && driver?.scansFirst === true && order.column !== 'deletion_us';
  const scansFirst = mayScan && isCommon(database, driver);
  if (driver !== null && !scansFirst && after !== undefined) {
    const parts = partsAfter(order, undefined).map((part) =>
      select(plan, driver, { columns: 'p.id', path, part }),
    );
    const ids = sortedIdsAfter(database, parts, after);
    if (ids !== null) return yield { ids, row: rowOf(plan, driver) };
  }
  for (const part of partsAfter(order, after)) {
    if (!scansFirst) {
      yield rowsIn(part, driver);
      continue;
    }
    const { first, end } = splitPart(database, { order, path }, part, scannedFirst);
    yield rowsIn(first, null);
    if (end === undefined) continue;
    for (const rest of partsAfter(order, end)) yield rowsIn(rest, driver);
    return;
  }
}

/** The last list of sorted ids, with the state of the database and the statements that it is from. */
const sortedIds = perConnection(() => ({ source: {}, ids: new Float64Array() }));

/**
 * Returns all ids after a key in the order of the statements; null if the key is not among them. Keeps the list for
 * the next page of the same query, unless the index has changed: sorting again for each page would take quadratic time.
 */
function sortedIdsAfter(
  database: Database,
  parts: readonly SqlCondition[],
  after: ProductKey,
): Float64Array | null {
  const known = sortedIds(database);
  const source = { version: database.pragma('data_version', { simple: true }), parts };
  if (!isDeepStrictEqual(known.source, source)) {
    const lists = parts.map(({ sql, values }) =>
      database
        .prepare<unknown[], number>(sql)
        .pluck()
        .all(...values),
    );
    known.ids = Float64Array.from(lists.flat());
    known.source = source;
  }
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
function rowOf(plan: SearchPlan, driver: Driver): SqlCondition {
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
