/** Runs queries for products on the connections of one thread. */
import type { Call } from '../../../core/host/serve-thread.ts';
import { isAppError } from '../../../core/terms/app-error.ts';
import type { AnyGeometry, Entity } from '../../../filter/filter-tree.ts';
import { toDisplayGeometry } from '../../../filter/geometry/geojson.ts';
import { toShape } from '../../../filter/geometry/shape.ts';
import { type ProductView, productView } from '../../../filter/product-view.ts';
import type {
  EventPage,
  EventQuery,
  FoundProduct,
  IndexedEvent,
  ProductCount,
  ProductKey,
  ProductQuery,
  ProductSelection,
} from '../../../filter/products.ts';
import { type ProductRecord, recordIn } from '../../../filter/values.ts';
import { type BodyReader, bodyReader, createBodyReader } from '../../../store/bodies/bodies.ts';
import { bodyDocument } from '../../../store/bodies/body-document.ts';
import { type Database, prepared } from '../../../store/engine/database.ts';
import { storeError } from '../../../store/engine/sqlite-error.ts';
import { type OpenIndex, readLog } from './product-file.ts';
import {
  type Candidate,
  completeRecord,
  footprintGeometry,
  type SentRecord,
  sentRecord,
  toProductRow,
} from './product-schema.ts';
import { conditionIf, joined, keyOf } from './search/conditions.ts';
import { chooseDriver, type Driver, type IdWindow, idWindows } from './search/drivers.ts';
import {
  candidatesOf,
  conditionOf,
  footprintJoin,
  planSearch,
  type SearchPlan,
  select,
  selected,
} from './search/search.ts';

/** Candidates checked between two pauses, about 100 ms, so that other queries can run. */
const examinedMax = { nothing: Number.POSITIVE_INFINITY, footprint: 10_000, record: 1_000 };

/** Time after which a page ends at the next place to stop, so that other queries can run. */
const pageMs = 50;

/** Separate connections for the index and the log. */
interface ProductDatabases {
  index: Database;
  log: Database;
}

/** Databases, and the reader of bodies of a transaction, if any. */
type Reading = ProductDatabases & { bodies?: BodyReader };

/** A long query, which pauses so that others can run. Rejects with `cancelled` when the caller cancels it. */
export type LongQuery = ProductDatabases & { call: Call };

/** A product whose record is not parsed yet. */
export type SentProduct = Omit<FoundProduct, 'record'> & {
  /** Absent if the query does not ask for records. */
  record?: SentRecord;
};

interface ProductPage {
  found: SentProduct[];
  /** Number of skipped matches. */
  skipped: number;
  /** Key to resume after; null at the end. */
  next: ProductKey | null;
  /** Identifies the file that was read. */
  file: string;
}

/** Returns a page of at most `rowsMax` rows. A page before the end may be shorter, or empty. */
export function productPage(
  databases: ProductDatabases & OpenIndex,
  query: ProductQuery,
  rowsMax: number,
): ProductPage {
  const { log, index, inode } = databases;
  // In one transaction, each pack of bodies is read once.
  const page = log.transaction(() => {
    const reading = { ...databases, bodies: createBodyReader(log, 'transaction') };
    return pageWithin(reading, query, rowsMax);
  })();
  return { ...page, file: `${index.name} ${inode}` };
}

function pageWithin(
  databases: Reading,
  query: ProductQuery,
  rowsMax: number,
): Omit<ProductPage, 'file'> {
  const plan = planSearch(query, databases.index);
  const page: Omit<ProductPage, 'file'> = { found: [], skipped: 0, next: null };
  let examined = 0;
  const startMs = performance.now();
  for (const candidate of candidatesOf(databases.index, plan, query)) {
    if ('after' in candidate) {
      if (performance.now() - startMs < pageMs) continue;
      return { ...page, next: candidate.after };
    }
    const row = toProductRow(candidate);
    examined += 1;
    if (matches(databases, plan, candidate)) {
      if (page.skipped < (query.skip ?? 0)) page.skipped += 1;
      else {
        const record = query.records === false ? {} : { record: sentOf(databases, candidate) };
        const footprint = query.footprints ? { footprint: footprintOf(candidate, query) } : {};
        page.found.push({ row, ...record, ...footprint });
      }
    }
    if (page.found.length >= rowsMax || examined >= examinedMax[plan.needs]) {
      return { ...page, next: keyOf(row, query) };
    }
  }
  return page;
}

/** Ids that are counted between two pauses, about 100 ms. */
const countedAtOnce = 50_000;

/** Counts the matching products, in parts, between which others can run. Ends after `msMax` with the number so far. */
export async function countProducts(
  { call, ...databases }: LongQuery,
  selection: ProductSelection,
  msMax = Number.POSITIVE_INFINITY,
): Promise<ProductCount> {
  const { index } = databases;
  const { filter, received = {}, subscription, maxAgeUs } = selection;
  const conditions = [received.fromUs, received.untilUs, subscription, maxAgeUs];
  if (filter === null && conditions.every((one) => one === undefined)) {
    return { count: countAll(index, selection.entity), isMinimum: false };
  }
  const plan = planSearch(selection, index);
  const choice = chooseDriver(index, plan.drivers, countedAtOnce);
  const driver = choice?.driver ?? null;
  const endMs = performance.now() + msMax;
  let count = 0;
  for (const window of choice?.ids ? [undefined] : idWindows(index, countedAtOnce)) {
    for (const counted of countsIn(databases, plan, { driver, window })) {
      if (performance.now() > endMs) return { count, isMinimum: true };
      count += counted;
      await call.pause();
    }
  }
  return { count, isMinimum: false };
}

/** Yields the numbers of matches in parts of a window: as many as can be read without a pause. */
function* countsIn(
  databases: ProductDatabases,
  plan: SearchPlan,
  { driver, window }: { driver: Driver | null; window: IdWindow | undefined },
): Generator<number> {
  const isCounted = plan.needs === 'nothing';
  const columns = isCounted ? 'count(*)' : selected(plan);
  const { sql, values } = select(plan, driver, { columns, window });
  const statement = databases.index.prepare<unknown[], Candidate>(sql);
  if (isCounted) return yield Number(statement.pluck().get(...values));
  let [count, examined] = [0, 0];
  for (const candidate of statement.iterate(...values)) {
    if (matches(databases, plan, candidate)) count += 1;
    examined += 1;
    if (examined % examinedMax[plan.needs] !== 0) continue;
    yield count;
    count = 0;
  }
  yield count;
}

/** Counts with the smallest indexes: 30 ms for a million products. */
function countAll(index: Database, entity: Entity): number {
  const tombstones = '(SELECT count(*) FROM product WHERE deleted = 1)';
  const existing = `(SELECT count(*) FROM product) - ${tombstones}`;
  const sql = `SELECT ${entity === 'Products' ? existing : tombstones}`;
  return Number(index.prepare(sql).pluck().get());
}

/** Returns true if a candidate fulfils the terms that its columns do not decide. */
export function matches(
  databases: Pick<Reading, 'log' | 'bodies'>,
  plan: SearchPlan,
  candidate: Candidate,
): boolean {
  if (plan.needs === 'nothing') return true;
  if (plan.needs === 'footprint') return plan.matches(footprintView(geometryOf(candidate)));
  return plan.matches(productView(recordOf(databases, candidate)));
}

const emptyView = productView({});

/** Returns a product with only its stored footprint: enough for conditions on the footprint. */
function footprintView(geometry: AnyGeometry | null): ProductView {
  const shape = geometry === null ? null : toShape(geometry);
  return { ...emptyView, geometry: () => geometry, footprint: () => shape };
}

/** Returns the stored footprint of a candidate, as in its record; null without one. */
function geometryOf({ footprint = null }: Candidate): AnyGeometry | null {
  return footprint === null ? null : footprintGeometry(footprint);
}

/** An outline is bounded here, so that no footprint delays the main thread, or fills the memory of this one. */
function footprintOf(
  candidate: Candidate,
  { footprints }: Pick<ProductQuery, 'footprints'>,
): AnyGeometry | null {
  const geometry = geometryOf(candidate);
  return geometry === null || footprints === 'exact' ? geometry : toDisplayGeometry(geometry);
}

/** Reads the record of a row from the log. */
function recordOf(databases: Pick<Reading, 'log' | 'bodies'>, candidate: Candidate): ProductRecord {
  const record = inLog(databases, candidate, (body, index) => recordIn(bodyDocument(body), index));
  return completeRecord(record, candidate);
}

function sentOf(databases: Reading, candidate: Candidate): SentRecord {
  return inLog(databases, candidate, sentRecord);
}

/** Reads the body with the record of a row; null if there is none. */
function inLog<Result>(
  { log, bodies = bodyReader(log) }: Pick<Reading, 'log' | 'bodies'>,
  { recordPosition }: Candidate,
  read: (body: Uint8Array, index: number) => Result | null,
): Result | null {
  if (recordPosition === null) return null;
  const sql =
    'SELECT body_id AS bodyId, body_index AS bodyIndex FROM notification WHERE position = ?';
  const place = readLog(() =>
    prepared<[number], { bodyId: number; bodyIndex: number }>(log, sql).get(recordPosition),
  );
  if (place === undefined) return null;
  try {
    const body = bodies.body(place.bodyId);
    return body === undefined ? null : read(body, place.bodyIndex);
  } catch (error) {
    // A damaged body counts as missing; an unreadable log fails the query.
    if (isAppError(error)) return null;
    throw storeError(error);
  }
}

/** Maximum notifications examined for one page, so that a rare match does not block other queries for long. */
const eventsExaminedMax = 10_000;

/** The columns of a notification and of its product, by table. */
interface SelectedEvent {
  product_event: Pick<IndexedEvent, 'position'>;
  product: Candidate;
  product_footprint: Pick<Candidate, 'footprint'>;
}

/** Returns a page of notifications; it may have fewer than `limit` although more follow. */
export function eventPage(databases: ProductDatabases, query: EventQuery): EventPage {
  const { filter, events, limit } = query;
  const plan = planSearch({ entity: null, filter, footprints: true }, databases.index);
  const { sql, values } = joined('AND', [
    ...conditionIf('e.position > ?', query.afterPosition),
    ...conditionIf('e.position < ?', query.beforePosition),
    ...conditionIf('e.product = ?', query.product),
    ...conditionIf('e.subscription = ?', query.subscription),
    ...conditionIf('e.event IN (SELECT value FROM json_each(?))', events && JSON.stringify(events)),
    conditionOf(plan, null),
  ]);
  const rows = prepared<unknown[], SelectedEvent>(
    databases.index,
    `SELECT e.position, ${selected(plan)}
     FROM product_event e CROSS JOIN product p ON p.id = e.product ${footprintJoin(plan)}
     WHERE ${sql} ORDER BY e.position DESC LIMIT ${eventsExaminedMax}`,
  ).expand();
  const found: IndexedEvent[] = [];
  let examined = 0;
  let last = 0;
  for (const row of rows.iterate(...values)) {
    const candidate = { ...row.product, ...row.product_footprint };
    examined += 1;
    last = row.product_event.position;
    if (matches(databases, plan, candidate)) {
      const footprint = footprintOf(candidate, { footprints: true });
      found.push({ position: last, product: toProductRow(candidate), footprint });
    }
    if (found.length >= limit || examined >= examinedMax[plan.needs]) {
      return { events: found, next: last };
    }
  }
  return { events: found, next: examined < eventsExaminedMax ? null : last };
}
