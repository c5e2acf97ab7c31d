/** The rows that a search must look at, in the order that was asked for, read as they are needed. */
import type { Database } from 'better-sqlite3';
import type { ProductKey } from '../../domain/products.ts';
import { allIds, type Choice, chooseForPage } from './choose-driver.ts';
import type { Driver, IdWindow } from './drivers.ts';
import { type Order, type OrderPart, partsAfter } from './product-order.ts';
import { rowColumns, type SelectedRow } from './product-rows.ts';
import type { SearchPlan } from './search-plan.ts';
import type { SqlCondition } from './sql-condition.ts';

/** With the stored footprint, where the plan needs it. */
export type Candidate = SelectedRow & { footprint?: string | null };

/** A whole statement with its parameters. */
export type Statement = SqlCondition;

/** Either a statement that gives rows in order, or a window of ids, whose rows are read one by one. */
type Step =
  | { rows: Statement }
  | { driver: Driver; ids: readonly number[] | null; window: IdWindow; row: Statement };

/** The first window of a walk; each next one is larger, so that rare matches are found soon too. */
const firstWindow = 8_192;
const windowGrowth = 4;

/** Yields the rows after a key. Stopping early costs nothing. */
export function* candidatesOf(
  database: Database,
  plan: SearchPlan,
  order: Order,
  after: ProductKey | undefined,
): Generator<Candidate> {
  const choice = chooseForPage(database, plan.drivers);
  for (const step of stepsOf(database, plan, order, after, choice)) {
    if ('rows' in step) {
      const { sql, values } = step.rows;
      yield* database.prepare<unknown[], Candidate>(sql).iterate(...values);
      continue;
    }
    const row = database.prepare<unknown[], Candidate>(step.row.sql);
    const ids = step.ids ?? idsOf(database, step.driver, step.window);
    for (const id of sorted(ids, step.window, order)) {
      const candidate = row.get(id, ...step.row.values);
      if (candidate !== undefined) yield candidate;
    }
  }
}

/** All statements of a search, for `explain`. */
export function* statementsOf(
  database: Database,
  plan: SearchPlan,
  order: Order,
  after: ProductKey | undefined,
  choice: Choice | null,
): Generator<Statement> {
  for (const step of stepsOf(database, plan, order, after, choice)) {
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
): Statement {
  const columns = what === 'count' ? 'count(*)' : selected(plan);
  const condition = plan.conditionBeside(driver);
  const ids = driver?.ids(allIds);
  const source = ids ? `(${ids.sql}) d CROSS JOIN product p ON p.id = d.id` : 'product p';
  return {
    sql: `SELECT ${columns} FROM ${source} ${footprintJoin(plan)} WHERE ${condition.sql}`,
    values: [...(ids?.values ?? []), ...condition.values],
  };
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
      const top = after?.position ?? lastId(database) + 1;
      for (const window of windowsBelow(top)) yield { driver, ids: null, window, row };
      return;
    }
  }
  // Of many candidates some will be met soon on a walk along the order; but there, ids help nothing.
  const sorts = choice !== null && (isFew || choice.driver.windowed);
  for (const part of partsAfter(order, after)) {
    const ordered = sorts && order.index !== null ? choice.driver : null;
    yield { rows: rowsOf(plan, part, order, ordered) };
  }
}

/** The ids that a driver gives for a window; boxes may give some beyond it. */
function idsOf(database: Database, driver: Driver, window: IdWindow): number[] {
  const { sql, values } = driver.ids(window);
  return database
    .prepare(sql)
    .pluck()
    .all(...values) as number[];
}

function sorted(ids: readonly number[], window: IdWindow, { direction }: Order): Float64Array {
  const inWindow = ids.filter((id) => id > window.after && id < window.before);
  const ascending = Float64Array.from(inWindow).sort();
  return direction === 'desc' ? ascending.reverse() : ascending;
}

/** One row by its id, if it fulfils the rest of the plan. */
function rowOf(plan: SearchPlan, driver: Driver): Statement {
  const { sql, values } = plan.conditionBeside(driver);
  return {
    sql: `SELECT ${selected(plan)} FROM product p ${footprintJoin(plan)} WHERE p.id = ? AND ${sql}`,
    values,
  };
}

/** Rows of a part of the order: sorted from a driver's, or met on a walk along the order itself. */
function rowsOf(
  plan: SearchPlan,
  { condition: part, orderBy }: OrderPart,
  { index }: Order,
  driver: Driver | null,
): Statement {
  const ids = driver?.ids(allIds);
  const condition = plan.conditionBeside(driver);
  const path = index === null ? 'NOT INDEXED' : `INDEXED BY ${index}`;
  const source = ids ? `(${ids.sql}) d CROSS JOIN product p ON p.id = d.id` : `product p ${path}`;
  return {
    sql: `SELECT ${selected(plan)} FROM ${source} ${footprintJoin(plan)}
      WHERE ${part.sql} AND ${condition.sql} ORDER BY ${orderBy}`,
    values: [...(ids?.values ?? []), ...part.values, ...condition.values],
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

function lastId(database: Database): number {
  return Number(database.prepare('SELECT coalesce(max(id), 0) FROM product').pluck().get());
}
