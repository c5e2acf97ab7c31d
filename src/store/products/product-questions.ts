/** Answers questions about products on the connections of one thread. */

import type { Database } from 'better-sqlite3';
import { isAppError } from '../../domain/app-error.ts';
import type {
  FoundProduct,
  IndexState,
  ProductKey,
  ProductQuery,
  QueryExplanation,
} from '../../domain/products.ts';
import { printFilter } from '../../filter/print.ts';
import { productView } from '../../filter/product-view.ts';
import { type ProductRecord, recordIn } from '../../filter/record-parts.ts';
import { bodyReader } from '../bodies/body-reader.ts';
import { lastPosition } from '../log-queries.ts';
import { type Candidate, candidatesOf, everyCandidate, statementsOf } from './candidates.ts';
import { type Choice, chooseForAll, chooseForPage, fewCandidatesMax } from './choose-driver.ts';
import type { Driver } from './drivers.ts';
import { footprintView } from './footprint-view.ts';
import { indexedPosition } from './index-progress.ts';
import type { NameSample } from './name-sample.ts';
import { keyOf, orderOf } from './product-order.ts';
import { bodyDocument, completeRecord } from './product-record.ts';
import { toProductRow } from './product-rows.ts';
import { planSearch, type SearchPlan } from './search-plan.ts';

/** So many candidates are looked at in one go, some 100 ms, so that other questions get their turn. */
const examinedMax = { footprint: 10_000, record: 1_000 };

/** Two connections, since products and the log are two files. */
export interface ProductDatabases {
  index: Database;
  /** Of the index. */
  names: NameSample;
  log: Database;
}

export interface ProductPage {
  found: FoundProduct[];
  /** How many matches were passed over, of those that were to be. */
  skipped: number;
  /** Where to go on; null at the end. */
  next: ProductKey | null;
}

/** A page of at most so many rows; it may be shorter, even empty, before the end. */
export function productPage(
  databases: ProductDatabases,
  query: ProductQuery,
  rowsMax: number,
): ProductPage {
  const plan = planSearch(query, databases.names);
  const page: ProductPage = { found: [], skipped: 0, next: null };
  let examined = 0;
  for (const candidate of candidatesOf(databases.index, plan, orderOf(query), query.after)) {
    const row = toProductRow(candidate);
    examined += 1;
    if (matches(databases, plan, candidate)) {
      if (page.skipped < (query.skip ?? 0)) page.skipped += 1;
      else
        page.found.push({
          row,
          record: query.records === false ? {} : recordOf(databases, candidate),
        });
    }
    if (page.found.length >= rowsMax || examined >= examinedAtOnce(plan)) {
      return { ...page, next: keyOf(row, query) };
    }
  }
  return page;
}

/** Counts, and gives way to other questions now and then. */
export async function countProducts(
  databases: ProductDatabases,
  query: Pick<ProductQuery, 'entity' | 'filter' | 'received'>,
  giveWay: () => Promise<void>,
): Promise<number> {
  const plan = planSearch(query, databases.names);
  const driver = chooseForAll(databases.index, plan.drivers);
  if (plan.needs === 'nothing') return countRows(databases.index, plan, driver);
  const { sql, values } = everyCandidate(plan, driver, 'rows');
  let count = 0;
  let examined = 0;
  for (const candidate of databases.index.prepare<unknown[], Candidate>(sql).iterate(...values)) {
    if (matches(databases, plan, candidate)) count += 1;
    examined += 1;
    if (examined % examinedAtOnce(plan) === 0) await giveWay();
  }
  return count;
}

export function explainSearch(
  { index, names }: ProductDatabases,
  query: ProductQuery,
): QueryExplanation {
  const plan = planSearch(query, names);
  const order = orderOf(query);
  const choice = chooseForPage(index, plan.drivers);
  const statements = [...statementsOf(index, plan, order, query.after, choice)];
  const steps = statements.map(({ sql, values }) =>
    index.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...values),
  );
  return {
    narrowedBy: choice === null ? null : describeChoice(choice),
    byColumns: plan.byColumns.map(printFilter),
    byRecords: plan.byRecords.map(printFilter),
    plan: [...new Set(steps.flat().map(({ detail }) => detail))],
  };
}

export function indexState({ index, log }: ProductDatabases): IndexState {
  const state = index
    .prepare<[], Omit<IndexState, 'indexedPosition' | 'lastPosition'>>(
      `SELECT skipped,
         (SELECT count(*) FROM product) - (SELECT count(*) FROM product WHERE deleted = 1) AS products,
         (SELECT count(*) FROM product WHERE deleted = 1) AS tombstones FROM progress`,
    )
    .get();
  if (state === undefined) throw new Error('The index has no progress.');
  return {
    ...state,
    indexedPosition: indexedPosition({ index, log }),
    lastPosition: lastPosition(log),
  };
}

function countRows(index: Database, plan: SearchPlan, driver: Driver | null): number {
  const { sql, values } = everyCandidate(plan, driver, 'count');
  return Number(
    index
      .prepare(sql)
      .pluck()
      .get(...values),
  );
}

function examinedAtOnce({ needs }: SearchPlan): number {
  return needs === 'nothing' ? Number.POSITIVE_INFINITY : examinedMax[needs];
}

function matches(databases: ProductDatabases, plan: SearchPlan, candidate: Candidate): boolean {
  if (plan.needs === 'nothing') return true;
  if (plan.needs === 'footprint') return plan.matches(footprintView(candidate.footprint ?? null));
  return plan.matches(productView(recordOf(databases, candidate)));
}

/** The record of a row, read from the log. */
function recordOf({ log }: ProductDatabases, candidate: Candidate): ProductRecord {
  const { recordPosition, productId, productName: name, deletionUs, deletionCause } = candidate;
  const record = recordPosition === null ? null : loggedRecord(log, recordPosition);
  return completeRecord(record, { productId, name, deletionUs, deletionCause });
}

function loggedRecord(log: Database, position: number): ProductRecord | null {
  const place = log
    .prepare<[number], { bodyId: number; bodyIndex: number }>(
      'SELECT body_id AS bodyId, body_index AS bodyIndex FROM notification WHERE position = ?',
    )
    .get(position);
  if (place === undefined) return null;
  const body = readableBody(log, place.bodyId);
  return body === undefined ? null : recordIn(bodyDocument(body), place.bodyIndex);
}

/** Undefined for a damaged one too; a log that cannot be read at all is another matter. */
function readableBody(log: Database, bodyId: number): Uint8Array | undefined {
  try {
    return bodyReader(log).content(bodyId);
  } catch (error) {
    if (isAppError(error)) return undefined;
    throw error;
  }
}

function describeChoice({ driver, ids }: Choice): string {
  const terms = driver.terms.map(printFilter).join(' and ');
  const count = ids === null ? `more than ${fewCandidatesMax}` : String(ids.length);
  return `${driver.name} (${terms}): ${count} candidates`;
}
