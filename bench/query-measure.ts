/** Measures every kind of query on the small and the large data in turn: its time and its scans. */
import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { openProducts } from '../src/features/products/index-file/products.ts';
import type { FoundProduct, IndexState, ProductQuery, Products } from '../src/filter/products.ts';
import { quantile } from './figures.ts';
import type { Cleanup, Progress } from './harness.ts';
import { freePort, readMemory } from './processes.ts';
import { createQueryCases, type QueryCase, type StatedOrder, statedOrders } from './query-cases.ts';
import type { QueryData } from './query-data.ts';
import { type Endpoint, startServer } from './servers.ts';

/** Times of one query with several values. */
export interface QueryTimes {
  readonly medianMs: number;
  /** 95th percentile. */
  readonly p95Ms: number;
  readonly maxMs: number;
  /** Median number of products in a page or count. */
  readonly medianFound: number;
}

/** Times of the same query on the small and the large data. */
export interface Compared {
  readonly small: QueryTimes;
  readonly large: QueryTimes;
}

/** Figures of one kind of query. */
export interface CaseFigures {
  readonly name: string;
  /** Newest received first (tombstones: newest deleted first); directly on the index and over HTTP. */
  readonly page: Compared;
  readonly httpPage: Compared;
  readonly count: Compared;
  readonly httpCount: Compared;
  /** The first page over HTTP on the large data, in turn: OData, and a STAC search. Null for tombstones. */
  readonly stac: { readonly odata: QueryTimes; readonly stac: QueryTimes } | null;
  /** First page in other orders, directly on the index; empty for tombstones. */
  readonly orders: readonly (Compared & { readonly order: StatedOrder })[];
  /** Plans on the large data. */
  readonly plans: PlanFigures;
}

/** An open data folder: the index, and a separate server over HTTP. */
export interface QuerySubject {
  readonly data: QueryData;
  readonly state: IndexState;
  readonly products: Products;
  readonly http: ReturnType<typeof createHttpClient>;
  /** Returns the maximum memory of the server, bytes; null if not available. */
  serverPeakBytes(): number | null;
  close(): Promise<void>;
}

const readyTimeoutMs = 30_000;
const pollMs = 50;

/** Opens the index, and starts a server on the folder. */
export async function openSubject(
  { endpoint, cleanup }: { endpoint: Endpoint; cleanup: Cleanup },
  data: QueryData,
): Promise<QuerySubject> {
  const consolePort = await freePort();
  const server = await startServer('earshot', {
    ...{ endpoint, cleanup, dataFolder: data.folder },
    environment: { EARSHOT_CONSOLE_LISTEN: `127.0.0.1:${consolePort}` },
  });
  const consoleUrl = `http://127.0.0.1:${consolePort}`;
  await waitUntilAnswered(consoleUrl);
  const products = openProducts(data.folder);
  const http = createHttpClient(consoleUrl);
  return {
    ...{ data, products, http, state: await products.indexState() },
    serverPeakBytes: () => readMemory(server.processId)?.peakResidentBytes ?? null,
    async close() {
      http.close();
      await products.close();
      await server.stop();
    },
  };
}

/** Waits for the private listener, which opens shortly after the receiver. */
export async function waitUntilAnswered(consoleUrl: string): Promise<void> {
  const giveUpMs = performance.now() + readyTimeoutMs;
  for (;;) {
    const answer = await fetch(`${consoleUrl}/odata/v1/Products?$top=1`).catch(() => undefined);
    await answer?.body?.cancel();
    if (answer?.status === 200) return;
    if (performance.now() > giveUpMs) throw new Error('the private listener did not become ready');
    await delay(pollMs);
  }
}

const pageRows = 50;
const answerTimeoutMs = 60_000;

/** Runs a query and returns the number of products in the answer. */
type RunQuery = (filter: QueryCase['filters'][number]) => Promise<number>;

/** Creates a client of the private listener with one connection. */
function createHttpClient(consoleUrl: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const runQuery = async (entity: string, options: Record<string, string>) => {
    const url = new URL(`/odata/v1/${entity}?${new URLSearchParams(options)}`, consoleUrl);
    const { status, body } = await getText(url, agent);
    if (status !== 200) {
      throw new Error(`${url.pathname} answered ${status}: ${body.slice(0, 500)}`);
    }
    // Format of the OData answers.
    return JSON.parse(body) as { value: unknown[]; '@odata.count'?: number };
  };
  return {
    page:
      ({ entity }: QueryCase): RunQuery =>
      async (filter) =>
        (await runQuery(entity, { $filter: String(filter), $top: String(pageRows) })).value.length,
    count:
      ({ entity }: QueryCase): RunQuery =>
      async (filter) => {
        const answer = await runQuery(entity, {
          $filter: String(filter),
          $top: '0',
          $count: 'true',
        });
        return answer['@odata.count'] ?? Number.NaN;
      },
    stacPage:
      ({ cql2 }: QueryCase): RunQuery =>
      async (filter) => {
        const url = new URL('/stac/search', consoleUrl);
        const sent = JSON.stringify({ filter: cql2?.get(filter), limit: pageRows });
        const { status, body } = await getText(url, agent, sent);
        if (status !== 200) throw new Error(`${url.pathname} answered ${status}: ${body}`);
        // Format of item collections (STAC API).
        return (JSON.parse(body) as { features: unknown[] }).features.length;
      },
    close: () => agent.destroy(),
  };
}

/** Gets a URL, or posts JSON to it. */
function getText(url: URL, agent: Agent, sent?: string): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const method = sent === undefined ? 'GET' : 'POST';
    const outgoing = request(url, { agent, method, timeout: answerTimeoutMs }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error(`${url} was not answered in time`)));
    outgoing.on('error', reject);
    outgoing.end(sent);
  });
}

/** Fewer values for other orders, because many of these queries are slow. */
const orderValuesMax = 15;

/** Number of warm-up values, at the end of a case; not measured. */
const warmUpValues = 10;

/** Measures each kind of query with `values` different values. */
export async function measureQueries(
  small: QuerySubject,
  large: QuerySubject,
  values: number,
  progress: Progress,
): Promise<CaseFigures[]> {
  const casesOf = ({ products, state }: QuerySubject) =>
    createQueryCases(products, state.lastPosition, values + warmUpValues);
  const ofSmall = await casesOf(small);
  const cases: CaseFigures[] = [];
  for (const [index, one] of (await casesOf(large)).entries()) {
    const same = ofSmall[index];
    if (same === undefined) throw new Error('both sizes have the same kinds of query');
    progress.show(`query: ${one.name}`);
    cases.push(await measureCase({ subject: small, one: same }, { subject: large, one }));
  }
  return cases;
}

/** A kind of query on one of the two data folders. */
interface SubjectCase {
  readonly subject: QuerySubject;
  readonly one: QueryCase;
}

async function measureCase(small: SubjectCase, large: SubjectCase): Promise<CaseFigures> {
  const compare = (
    runOf: (place: SubjectCase) => RunQuery,
    valuesMax = Number.POSITIVE_INFINITY,
  ) => {
    const timedQuery = (place: SubjectCase) => ({
      filters: place.one.filters.slice(-warmUpValues - valuesMax),
      runQuery: runOf(place),
    });
    return timeInTurn(timedQuery(small), timedQuery(large));
  };
  const { name, entity } = large.one;
  const pageOf =
    (order?: StatedOrder) =>
    ({ subject: { products } }: SubjectCase): RunQuery =>
    async ({ tree: filter }) =>
      (await firstPage(products, { entity, filter, order })).length;
  const orders: CaseFigures['orders'][number][] = [];
  for (const order of entity === 'Products' ? statedOrders : []) {
    orders.push({ order, ...(await compare(pageOf(order), orderValuesMax)) });
  }
  return {
    name,
    page: await compare(pageOf()),
    httpPage: await compare(({ subject, one }) => subject.http.page(one)),
    count: await compare(
      ({ subject }) =>
        ({ tree: filter }) =>
          subject.products.count({ entity, filter }),
    ),
    httpCount: await compare(({ subject, one }) => subject.http.count(one)),
    stac: large.one.cql2 === undefined ? null : await compareStac(large),
    orders,
    plans: await measurePlans(large.subject.products, large.one),
  };
}

async function compareStac({ subject: { http }, one }: SubjectCase) {
  const { filters } = one;
  const { small: odata, large: stac } = await timeInTurn(
    { filters, runQuery: http.page(one) },
    { filters, runQuery: http.stacPage(one) },
  );
  return { odata, stac };
}

/** The values of a query, and the function that runs it. */
interface TimedQuery {
  readonly filters: QueryCase['filters'];
  readonly runQuery: RunQuery;
}

/**
 * Runs the last values first, as warm-up, and then the others, on both data folders (or in both ways) in turn, so that other activity of
 * the machine affects both equally.
 */
async function timeInTurn(small: TimedQuery, large: TimedQuery): Promise<Compared> {
  const tallies = [small, large].map((timedQuery) => ({
    ...timedQuery,
    tookMs: [] as number[],
    found: [] as number[],
  }));
  const values = Math.max(small.filters.length, large.filters.length);
  for (let index = 1; index <= values; index += 1) {
    for (const { filters, runQuery, tookMs, found } of tallies) {
      const filter = filters[values - index];
      if (filter === undefined) continue;
      const startMs = performance.now();
      const count = await runQuery(filter);
      if (index <= warmUpValues) continue;
      tookMs.push(performance.now() - startMs);
      found.push(count);
    }
  }
  const [ofSmall, ofLarge] = tallies.map(({ tookMs, found }): QueryTimes => {
    const at = (values: readonly number[], share: number) => quantile(values, share) ?? Number.NaN;
    return {
      ...{ medianMs: at(tookMs, 0.5), p95Ms: at(tookMs, 0.95), maxMs: at(tookMs, 1) },
      medianFound: at(found, 0.5),
    };
  });
  if (ofSmall === undefined || ofLarge === undefined) throw new Error('two data folders expected');
  return { small: ofSmall, large: ofLarge };
}

/** Returns the first page of the index in an order (default: newest received first). */
async function firstPage(
  products: Products,
  query: Omit<ProductQuery, 'limit'>,
): Promise<FoundProduct[]> {
  const page: FoundProduct[] = [];
  for await (const found of products.find({ ...query, limit: pageRows })) page.push(found);
  return page;
}

/** Query plans of one kind of query. */
export interface PlanFigures {
  /** Number of queries by the index that narrows the search; `none` without an index. */
  readonly narrowedBy: Readonly<Record<string, number>>;
  /** Number of first pages read in order, skipping products that do not match. */
  readonly walks: number;
  /** Maximum share of all products read by a walk; 0 without walks. */
  readonly longestWalkShare: number;
  /** Numbers of first pages and of counts that scan the table. */
  readonly pageScans: number;
  readonly countScans: number;
}

/** A walk over a larger share of the table counts as a scan. */
const scanShare = 0.1;

/** A scan of the product table, named `p` in the queries; scans of other tables do not count. */
const tableStep = /^SCAN (p|product)( |$)/;

/**
 * Checks the plan of each value of a case, newest received first. A first page may be a walk in order: its plan has a
 * scan of the table that ends at the fiftieth match, whose position gives the length of the walk. A count without an
 * index scans the table.
 */
async function measurePlans(
  products: Products,
  { entity, filters }: QueryCase,
): Promise<PlanFigures> {
  const { lastPosition } = await products.indexState();
  const narrowedBy: Record<string, number> = {};
  const walkShares: number[] = [];
  let countScans = 0;
  for (const { tree } of filters.slice(0, -warmUpValues)) {
    const query = { entity, filter: tree };
    const { narrowedBy: index, plan } = await products.explain(query);
    const indexName = index?.split(' (')[0] ?? 'none';
    narrowedBy[indexName] = (narrowedBy[indexName] ?? 0) + 1;
    if (index === null) countScans += 1;
    if (!plan.some((step) => tableStep.test(step))) continue;
    const page = await firstPage(products, { ...query, records: false });
    const last = page.length < pageRows ? undefined : page.at(-1)?.row;
    walkShares.push(last === undefined ? 1 : 1 - (last.position - 1) / lastPosition);
  }
  return {
    narrowedBy,
    walks: walkShares.length,
    longestWalkShare: Math.max(0, ...walkShares),
    pageScans: walkShares.filter((share) => share > scanShare).length,
    countScans,
  };
}
