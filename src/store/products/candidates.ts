/** The rows that a search must look at, in the order that was asked for, read as they are needed. */
import type { Database } from 'better-sqlite3';
import type { ProductKey } from '../../domain/products.ts';
import { allIds, type Choice, chooseDriver, fewCandidatesMax } from './choose-driver.ts';
import type { IdWindow } from './drivers.ts';
import { type Order, type OrderPart, partsAfter } from './product-order.ts';
import { rowColumns, type SelectedRow } from './product-rows.ts';
import type { SearchPlan } from './search-plan.ts';

/** With the stored footprint, where the plan needs it. */
export type Candidate = SelectedRow & { footprint?: string | null };

/** The first window of a walk; each next one is larger, so that rare matches are found soon too. */
const firstWindow = 8_192;
const windowGrowth = 4;

/** A statement with its parameters. */
export interface Statement {
  sql: string;
  values: readonly (string | number)[];
}

type Part = Omit<OrderPart, 'orderBy'> & { orderBy: string | null };

/** Yields the rows after a key. Stopping early costs nothing. */
export function* candidatesOf(
  database: Database,
  plan: SearchPlan,
  order: Order,
  after: ProductKey | undefined,
): Generator<Candidate> {
  const choice = chooseDriver(database, plan.drivers, fewCandidatesMax);
  for (const { sql, values } of statementsOf(database, plan, order, after, choice)) {
    yield* database.prepare<unknown[], Candidate>(sql).iterate(...values);
  }
}

/** The statements that give the candidates, one after the other. */
export function* statementsOf(
  database: Database,
  plan: SearchPlan,
  order: Order,
  after: ProductKey | undefined,
  choice: Choice | null,
): Generator<Statement> {
  const parts = partsAfter(order, after);
  const isFew = choice !== null && choice.candidates !== null;
  for (const part of parts) {
    if (choice !== null && !isFew && order.column === 'id' && order.direction === 'desc') {
      if (choice.driver.windowed) {
        const last = after?.position ?? lastId(database) + 1;
        for (const window of windowsBelow(last)) yield narrowed(plan, part, choice, window);
        continue;
      }
    }
    // Many candidates: some of them will be met soon on a walk along the order.
    const sorts = isFew || (choice?.driver.windowed && order.index !== null);
    yield choice !== null && sorts ? narrowed(plan, part, choice, allIds) : walk(plan, part, order);
  }
}

/** One statement for all candidates, in no order; or for their number. */
export function everyCandidate(
  plan: SearchPlan,
  choice: Choice | null,
  what: 'rows' | 'count',
): Statement {
  const part = { condition: { sql: 'TRUE', values: [] }, orderBy: null };
  const columns = what === 'count' ? 'count(*)' : selected(plan);
  if (choice !== null) return narrowed(plan, part, choice, allIds, columns);
  return walk(plan, part, { index: null }, columns);
}

function narrowed(
  plan: SearchPlan,
  part: Part,
  { driver }: Choice,
  window: IdWindow,
  columns = selected(plan),
): Statement {
  const ids = driver.ids(window);
  const condition = plan.conditionBeside(driver);
  const inWindow =
    window === allIds
      ? { sql: 'TRUE', values: [] }
      : { sql: 'p.id > ? AND p.id < ?', values: [window.after, window.before] };
  return {
    sql: `SELECT ${columns} FROM (${ids.sql}) d CROSS JOIN product p ON p.id = d.id
      ${footprintJoin(plan)} WHERE ${inWindow.sql} AND ${part.condition.sql}
      AND ${condition.sql} ${inOrder(part)}`,
    values: [...ids.values, ...inWindow.values, ...part.condition.values, ...condition.values],
  };
}

function walk(
  plan: SearchPlan,
  part: Part,
  { index }: Pick<Order, 'index'>,
  columns = selected(plan),
): Statement {
  const condition = plan.conditionBeside(null);
  return {
    sql: `SELECT ${columns}
      FROM product p ${index === null ? 'NOT INDEXED' : `INDEXED BY ${index}`}
      ${footprintJoin(plan)} WHERE ${part.condition.sql} AND ${condition.sql}
      ${inOrder(part)}`,
    values: [...part.condition.values, ...condition.values],
  };
}

function inOrder({ orderBy }: Part): string {
  return orderBy === null ? '' : `ORDER BY ${orderBy}`;
}

function selected({ needs }: SearchPlan): string {
  return needs === 'footprint' ? `${rowColumns}, f.geometry AS footprint` : rowColumns;
}

function footprintJoin({ needs }: SearchPlan): string {
  return needs === 'footprint' ? 'LEFT JOIN product_footprint f ON f.id = p.id' : '';
}

function* windowsBelow(before: number): Generator<IdWindow> {
  for (let top = before, size = firstWindow; top > 1; size *= windowGrowth) {
    const after = Math.max(0, top - 1 - size);
    yield { after, before: top };
    top = after + 1;
  }
}

function lastId(database: Database): number {
  return Number(database.prepare('SELECT coalesce(max(id), 0) FROM product').pluck().get());
}
