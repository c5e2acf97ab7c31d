/** Plans a search, and reads the rows that it must check, in the requested order, as they are needed. */
import type { Database } from 'better-sqlite3';
import type { FilterTree } from '../../../domain/filter-tree.ts';
import type { ProductKey, ProductQuery } from '../../../domain/products.ts';
import { compileFilter } from '../../../filter/evaluate.ts';
import type { ProductView } from '../../../filter/product-view.ts';
import { rowColumns, type SelectedRow } from '../product-rows.ts';
import { boundOf, joined, type SqlCondition } from './conditions.ts';
import {
  allIds,
  type Choice,
  chooseForPage,
  type Driver,
  driversOf,
  type IdWindow,
  type NameSample,
} from './drivers.ts';
import { type Order, type OrderPart, orderOf, partsAfter } from './order.ts';

export interface SearchPlan {
  /** The condition that every match fulfils, without what the driver answers already. */
  conditionBeside(driver: Driver | null): SqlCondition;
  drivers: Driver[];
  /** The terms that the condition decides, and those that it does not. */
  byColumns: FilterTree[];
  byRecords: FilterTree[];
  /** What the others need: nothing, the footprint, which the index holds, or the whole record. */
  needs: 'nothing' | 'footprint' | 'record';
  matches(view: ProductView): boolean;
}

/** Splits a filter into what columns decide and what must be read from records. */
export function planSearch(
  { entity, filter, received = {} }: Pick<ProductQuery, 'entity' | 'filter' | 'received'>,
  names: NameSample,
): SearchPlan {
  const terms = filter === null ? [] : filter.node === 'and' ? filter.terms : [filter];
  const bounds = terms.map((term) => ({ term, bound: boundOf(term) }));
  const byColumns = bounds.filter(({ bound }) => bound?.exact === true).map(({ term }) => term);
  const byRecords = bounds.filter(({ bound }) => bound?.exact !== true).map(({ term }) => term);
  const tests = byRecords.map(compileFilter);
  const { fromUs, untilUs } = received;
  const always: SqlCondition[] = [
    // A literal, so that SQLite sees that the index of tombstones fits.
    { sql: `p.deleted = ${entity === 'Products' ? 0 : 1}`, values: [] },
    ...(fromUs === undefined ? [] : [{ sql: 'p.received_at_us >= ?', values: [fromUs] }]),
    ...(untilUs === undefined ? [] : [{ sql: 'p.received_at_us < ?', values: [untilUs] }]),
  ];
  return {
    conditionBeside: (driver) => {
      const left = bounds.filter(({ term }) => !driver?.covers.includes(term));
      return joined('AND', [...always, ...left.flatMap(({ bound }) => bound ?? [])]);
    },
    drivers: driversOf(filter, names),
    byColumns,
    byRecords,
    needs:
      byRecords.length === 0 ? 'nothing' : byRecords.every(isAboutPlace) ? 'footprint' : 'record',
    matches: (view) => tests.every((test) => test(view)),
  };
}

function isAboutPlace(tree: FilterTree): boolean {
  if (tree.node === 'and' || tree.node === 'or') return tree.terms.every(isAboutPlace);
  return tree.node === 'not' ? isAboutPlace(tree.term) : tree.node === 'intersects';
}

/** With the stored footprint, where the plan needs it. */
export type Candidate = SelectedRow & { footprint?: string | null };

/** Either a statement that gives rows in order, or a window of ids, whose rows are read one by one. */
type Step =
  | { rows: SqlCondition }
  | { driver: Driver; ids: readonly number[] | null; window: IdWindow; row: SqlCondition };

/** The first window of a walk; each next one is larger, so that rare matches are found soon too. */
const firstWindow = 8_192;
const windowGrowth = 4;

/** Yields the rows after the query's key. Stopping early costs nothing. */
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
    for (const id of idsOf(database, step, order)) {
      const candidate = row.get(id, ...step.row.values);
      if (candidate !== undefined) yield candidate;
    }
  }
}

/** All statements of a search, for `explain`. */
export function* statementsOf(
  database: Database,
  plan: SearchPlan,
  query: ProductQuery,
  choice: Choice | null,
): Generator<SqlCondition> {
  for (const step of stepsOf(database, plan, orderOf(query), query.after, choice)) {
    if ('rows' in step) yield step.rows;
    else {
      yield step.driver.ids(step.window);
      yield { sql: step.row.sql, values: [0, ...step.row.values] };
    }
  }
}

/** One statement for all candidates, in no order; or for their number. */
export function everyCandidate(
  plan: SearchPlan,
  driver: Driver | null,
  what: 'rows' | 'count',
): SqlCondition {
  return select(plan, driver, { columns: what === 'count' ? 'count(*)' : selected(plan) });
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
    if (isFew) return yield { driver, ids, window: idsAfter(order, after), row };
    if (driver.windowed && order.direction === 'desc') {
      const last = database.prepare('SELECT coalesce(max(id), 0) FROM product').pluck();
      const top = after?.position ?? Number(last.get()) + 1;
      for (const window of windowsBelow(top)) yield { driver, ids: null, window, row };
      return;
    }
  }
  // Of many candidates some will be met soon on a walk along the order; but there, ids help nothing.
  const sorts = choice !== null && (isFew || choice.driver.windowed);
  const driver = sorts && order.index !== null ? choice.driver : null;
  for (const part of partsAfter(order, after)) {
    // Sorted from a driver's rows, or met on a walk along the order itself.
    const path = order.index === null ? 'NOT INDEXED' : `INDEXED BY ${order.index}`;
    yield { rows: select(plan, driver, { columns: selected(plan), path, part }) };
  }
}

/** The ids of a window in order; a driver of boxes may give some beyond it. */
function idsOf(
  database: Database,
  { driver, ids: known, window }: Extract<Step, { ids: unknown }>,
  { direction }: Order,
): Float64Array {
  const { sql, values } = driver.ids(window);
  const ids =
    known ??
    database
      .prepare<unknown[], number>(sql)
      .pluck()
      .all(...values);
  const inWindow = ids.filter((id) => id > window.after && id < window.before);
  const ascending = Float64Array.from(inWindow).sort();
  return direction === 'desc' ? ascending.reverse() : ascending;
}

/** One row by its id, if it fulfils the rest of the plan. */
function rowOf(plan: SearchPlan, driver: Driver): SqlCondition {
  const { sql, values } = plan.conditionBeside(driver);
  return {
    sql: `SELECT ${selected(plan)} FROM product p ${footprintJoin(plan)} WHERE p.id = ? AND ${sql}`,
    values,
  };
}

/** The rows of a driver, or of the table on a path, that fulfil the rest of the plan. */
function select(
  plan: SearchPlan,
  driver: Driver | null,
  { columns, path = '', part }: { columns: string; path?: string; part?: OrderPart },
): SqlCondition {
  const ids = driver?.ids(allIds);
  const condition = plan.conditionBeside(driver);
  const source = ids ? `(${ids.sql}) d CROSS JOIN product p ON p.id = d.id` : `product p ${path}`;
  const inPart = part === undefined ? '' : `${part.condition.sql} AND `;
  const orderBy = part === undefined ? '' : ` ORDER BY ${part.orderBy}`;
  return {
    sql: `SELECT ${columns} FROM ${source} ${footprintJoin(plan)}
      WHERE ${inPart}${condition.sql}${orderBy}`,
    values: [...(ids?.values ?? []), ...(part?.condition.values ?? []), ...condition.values],
  };
}

function selected({ needs }: SearchPlan): string {
  return needs === 'footprint' ? `${rowColumns}, f.geometry AS footprint` : rowColumns;
}

function footprintJoin({ needs }: SearchPlan): string {
  return needs === 'footprint' ? 'LEFT JOIN product_footprint f ON f.id = p.id' : '';
}

function idsAfter({ direction }: Order, after: ProductKey | undefined): IdWindow {
  if (after === undefined) return allIds;
  return direction === 'desc'
    ? { ...allIds, before: after.position }
    : { ...allIds, after: after.position };
}

/** Windows from the newest id below a bound down to the first, each id in one of them. */
export function* windowsBelow(before: number, first = firstWindow): Generator<IdWindow> {
  for (let top = before, size = first; top > 1; size *= windowGrowth) {
    const after = Math.max(0, top - 1 - size);
    yield { after, before: top };
    top = after + 1;
  }
}
