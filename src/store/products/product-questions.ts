/** Answers questions about products on the connections of one thread. */
import type { Database } from 'better-sqlite3';
import { isAppError } from '../../domain/app-error.ts';
import type { Geometry } from '../../domain/filter-tree.ts';
import type {
  FoundProduct,
  IndexState,
  ProductKey,
  ProductQuery,
  Products,
  PushedEvent,
  QueryExplanation,
} from '../../domain/products.ts';
import { toShape } from '../../filter/geometry/shape.ts';
import { printFilter } from '../../filter/print.ts';
import { type ProductRecord, recordIn } from '../../filter/product-record.ts';
import { type ProductView, productView } from '../../filter/product-view.ts';
import { bodyReader } from '../bodies/bodies.ts';
import { prepared } from '../engine/database.ts';
import type { Call } from '../engine/serve-thread.ts';
import { lastPosition } from '../log/queries.ts';
import { indexedPosition } from './product-file.ts';
import { bodyDocument, completeRecord } from './product-record.ts';
import { toProductRow } from './product-rows.ts';
import {
  type Candidate,
  candidatesOf,
  everyCandidate,
  planSearch,
  type SearchPlan,
  statementsOf,
} from './search/candidates.ts';
import {
  chooseForAll,
  chooseForPage,
  fewCandidatesMax,
  type NameSample,
} from './search/drivers.ts';
import { keyOf } from './search/order.ts';

/** Candidates that are checked at a time, some 100 ms, so that other questions get their turn. */
const examinedMax = { nothing: Number.POSITIVE_INFINITY, footprint: 10_000, record: 1_000 };

/** Two connections, since products and the log are two files. */
export interface ProductDatabases {
  index: Database;
  /** Of the index. */
  names: NameSample;
  log: Database;
}

/** A question that gives way to others now and then. Rejects with `cancelled` once it is given up. */
export type LongQuestion = ProductDatabases & { call: Call };

interface ProductPage {
  found: FoundProduct[];
  /** Matches that were skipped. */
  skipped: number;
  /** Where to resume; null at the end. */
  next: ProductKey | null;
}

/** A page of at most `rowsMax` rows; it may be shorter, even empty, before the end. */
export function productPage(
  databases: ProductDatabases,
  query: ProductQuery,
  rowsMax: number,
): ProductPage {
  const plan = planSearch(query, databases.names);
  const page: ProductPage = { found: [], skipped: 0, next: null };
  let examined = 0;
  for (const candidate of candidatesOf(databases.index, plan, query)) {
    const row = toProductRow(candidate);
    examined += 1;
    if (matches(databases, plan, candidate)) {
      if (page.skipped < (query.skip ?? 0)) page.skipped += 1;
      else {
        const record = query.records === false ? {} : recordOf(databases, candidate);
        page.found.push({ row, record });
      }
    }
    if (page.found.length >= rowsMax || examined >= examinedMax[plan.needs]) {
      return { ...page, next: keyOf(row, query) };
    }
  }
  return page;
}

export async function countProducts(
  { call, ...databases }: LongQuestion,
  query: Pick<ProductQuery, 'entity' | 'filter' | 'received'>,
): Promise<number> {
  const { index } = databases;
  const plan = planSearch(query, databases.names);
  const driver = chooseForAll(index, plan.drivers);
  const isCounted = plan.needs === 'nothing';
  const { sql, values } = everyCandidate(plan, driver, isCounted ? 'count' : 'rows');
  if (isCounted)
    return Number(
      index
        .prepare(sql)
        .pluck()
        .get(...values),
    );
  let count = 0;
  let examined = 0;
  for (const candidate of index.prepare<unknown[], Candidate>(sql).iterate(...values)) {
    if (matches(databases, plan, candidate)) count += 1;
    examined += 1;
    if (examined % examinedMax[plan.needs] === 0) await call.pause();
  }
  return count;
}

export function explainSearch(
  { index, names }: ProductDatabases,
  query: ProductQuery,
): QueryExplanation {
  const plan = planSearch(query, names);
  const choice = chooseForPage(index, plan.drivers);
  const statements = [...statementsOf(index, plan, query, choice)];
  const steps = statements.map(({ sql, values }) =>
    index.prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`).all(...values),
  );
  const terms = choice?.driver.terms.map(printFilter).join(' and ');
  const candidates = choice?.ids?.length ?? `more than ${fewCandidatesMax}`;
  return {
    narrowedBy: choice && `${choice.driver.name} (${terms}): ${candidates} candidates`,
    byColumns: plan.byColumns.map(printFilter),
    byRecords: plan.byRecords.map(printFilter),
    plan: [...new Set(steps.flat().map(({ detail }) => detail))],
  };
}

export function indexState({ index, log }: ProductDatabases): IndexState {
  const sql = `SELECT skipped,
      (SELECT count(*) FROM product) - (SELECT count(*) FROM product WHERE deleted = 1) AS products,
      (SELECT count(*) FROM product WHERE deleted = 1) AS tombstones FROM progress`;
  const counts = index.prepare<[], Omit<IndexState, 'indexedPosition' | 'lastPosition'>>(sql).get();
  if (counts === undefined) throw new Error('The index has no progress.');
  const position = indexedPosition({ index, log });
  return { ...counts, indexedPosition: position, lastPosition: lastPosition(log) };
}

/** By the ids as they were asked for, in any case, each with its events in the order of the log. */
export function pushedEvents(
  { index }: ProductDatabases,
  { subscription, productIds }: Parameters<Products['pushedEvents']>[0],
): PushedEvent[] {
  const events = prepared<[string, string], Omit<PushedEvent, 'productId'>>(
    index,
    `SELECT e.position, e.event, e.event_us AS eventUs, e.state_us AS stateUs,
       e.notification_us AS notificationUs, e.received_us AS receivedUs
     FROM product p CROSS JOIN product_event e ON e.product = p.id
     WHERE p.product_id = ? AND e.subscription = ? AND e.source = 'push' ORDER BY e.position`,
  );
  return [...new Set(productIds)].flatMap((productId) =>
    events.all(productId, subscription).map((event) => ({ productId, ...event })),
  );
}

function matches(databases: ProductDatabases, plan: SearchPlan, candidate: Candidate): boolean {
  if (plan.needs === 'nothing') return true;
  if (plan.needs === 'footprint') return plan.matches(footprintView(candidate.footprint ?? null));
  return plan.matches(productView(recordOf(databases, candidate)));
}

const emptyView = productView({});

/** A product of which only the footprint is known, as the index stores it: enough for a question about its place. */
function footprintView(stored: string | null): ProductView {
  const geometry = stored === null ? null : (JSON.parse(stored) as Geometry);
  const shape = geometry === null ? null : toShape(geometry);
  return { ...emptyView, geometry: () => geometry, footprint: () => shape };
}

/** The record of a row, read from the log. */
function recordOf({ log }: ProductDatabases, candidate: Candidate): ProductRecord {
  const { recordPosition, productId, productName: name, deletionUs, deletionCause } = candidate;
  const record = recordPosition === null ? null : loggedRecord(log, recordPosition);
  return completeRecord(record, { productId, name, deletionUs, deletionCause });
}

function loggedRecord(log: Database, position: number): ProductRecord | null {
  const place = prepared<[number], { bodyId: number; bodyIndex: number }>(
    log,
    'SELECT body_id AS bodyId, body_index AS bodyIndex FROM notification WHERE position = ?',
  ).get(position);
  if (place === undefined) return null;
  try {
    const body = bodyReader(log).content(place.bodyId);
    return body === undefined ? null : recordIn(bodyDocument(body), place.bodyIndex);
  } catch (error) {
    // A damaged body is read as absent; a log that cannot be read at all fails the question.
    if (isAppError(error)) return null;
    throw error;
  }
}
