/** Measures every kind of query on the small and the large data in turn: how long it takes, and what it scans. */
import { Agent, get } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { FoundProduct, IndexState, ProductQuery, Products } from '../src/domain/products.ts';
import { openProducts } from '../src/store/products/products.ts';
import { quantile } from './figures.ts';
import type { Cleanup, Progress } from './harness.ts';
import { freePort, readMemory } from './processes.ts';
import { createQueryCases, type QueryCase, type StatedOrder, statedOrders } from './query-cases.ts';
import type { QueryData } from './query-data.ts';
import { type Endpoint, startServer } from './servers.ts';

/** Answers of one query with several values. */
export interface QueryTimes {
  readonly medianMs: number;
  /** 95th percentile. */
  readonly p95Ms: number;
  readonly maxMs: number;
  /** Products in a page, or counted: the median. */
  readonly medianFound: number;
}

/** Answers to the same question about the small and the large data. */
export interface Compared {
  readonly small: QueryTimes;
  readonly large: QueryTimes;
}

/** What one kind of query took. */
export interface CaseFigures {
  readonly name: string;
  /** Newest received first (tombstones: newest deleted first); on the index itself and over HTTP. */
  readonly page: Compared;
  readonly httpPage: Compared;
  readonly count: Compared;
  readonly httpCount: Compared;
  /** The first page in other orders, on the index itself; none for tombstones. */
  readonly orders: readonly (Compared & { readonly order: StatedOrder })[];
  /** Of the large data. */
  readonly plans: PlanFigures;
}

/** A data folder that can be asked, until it is closed: the index itself, and a server of its own over HTTP. */
export interface QuerySubject {
  readonly data: QueryData;
  readonly state: IndexState;
  readonly products: Products;
  readonly http: ReturnType<typeof createHttpAsk>;
  /** Most memory of the server, bytes; null where it cannot be read. */
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
  const http = createHttpAsk(consoleUrl);
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

/** The private listener opens a moment after the receiver. */
async function waitUntilAnswered(consoleUrl: string): Promise<void> {
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

/** Answers a question with the number of products in the answer. */
type Ask = (filter: QueryCase['filters'][number]) => Promise<number>;

/** Asks the private listener over one connection; `close` ends it. */
function createHttpAsk(consoleUrl: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ask = async (entity: string, options: Record<string, string>) => {
    const url = new URL(`/odata/v1/${entity}?${new URLSearchParams(options)}`, consoleUrl);
    const { status, body } = await getText(url, agent);
    if (status !== 200) {
      throw new Error(`${url.pathname} answered ${status}: ${body.slice(0, 500)}`);
    }
    // As the OData answers have it; what is measured would not go on without.
    return JSON.parse(body) as { value: unknown[]; '@odata.count'?: number };
  };
  return {
    page:
      ({ entity }: QueryCase): Ask =>
      async (filter) =>
        (await ask(entity, { $filter: String(filter), $top: String(pageRows) })).value.length,
    count:
      ({ entity }: QueryCase): Ask =>
      async (filter) => {
        const answer = await ask(entity, { $filter: String(filter), $top: '0', $count: 'true' });
        return answer['@odata.count'] ?? Number.NaN;
      },
    close: () => agent.destroy(),
  };
}

function getText(url: URL, agent: Agent): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = get(url, { agent, timeout: answerTimeoutMs }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error(`${url} was not answered in time`)));
    outgoing.on('error', reject);
  });
}

/** In other orders many queries are slow: fewer values tell as much. */
const orderValuesMax = 15;

/** Values that warm up and are not measured; they come last in a case. */
const warmUpValues = 10;

/** Asks `values` different values of each kind. */
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

/** A kind of query at one of the two places. */
interface Place {
  readonly subject: QuerySubject;
  readonly one: QueryCase;
}

async function measureCase(small: Place, large: Place): Promise<CaseFigures> {
  const compare = (askOf: (place: Place) => Ask, valuesMax = Number.POSITIVE_INFINITY) => {
    const asking = (place: Place) => ({
      filters: place.one.filters.slice(-warmUpValues - valuesMax),
      ask: askOf(place),
    });
    return timeInTurn(asking(small), asking(large));
  };
  const { name, entity } = large.one;
  const pageOf =
    (order?: StatedOrder) =>
    ({ subject: { products } }: Place): Ask =>
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
    orders,
    plans: await examinePlans(large.subject.products, large.one),
  };
}

/** The values of a query and the place that they are asked at. */
interface Asking {
  readonly filters: QueryCase['filters'];
  readonly ask: Ask;
}

/**
 * Asks the last values first, to warm up, and then the others, at both places in turn: so both have the same share of
 * whatever else the machine does meanwhile.
 */
async function timeInTurn(small: Asking, large: Asking): Promise<Compared> {
  const tallies = [small, large].map((asking) => ({
    ...asking,
    tookMs: [] as number[],
    found: [] as number[],
  }));
  const values = Math.max(small.filters.length, large.filters.length);
  for (let index = 1; index <= values; index += 1) {
    for (const { filters, ask, tookMs, found } of tallies) {
      const filter = filters[values - index];
      if (filter === undefined) continue;
      const startMs = performance.now();
      const count = await ask(filter);
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
  if (ofSmall === undefined || ofLarge === undefined) throw new Error('there are two places');
  return { small: ofSmall, large: ofLarge };
}

/** The first page of the index itself, in an order; newest received first unless told. */
async function firstPage(
  products: Products,
  query: Omit<ProductQuery, 'limit'>,
): Promise<FoundProduct[]> {
  const page: FoundProduct[] = [];
  for await (const found of products.find({ ...query, limit: pageRows })) page.push(found);
  return page;
}

/** How the values of one kind of query are answered. */
export interface PlanFigures {
  /** What narrows the search, with the number of queries that it narrows; `none` for no index. */
  readonly narrowedBy: Readonly<Record<string, number>>;
  /** First pages that are read along the order, past products that do not match. */
  readonly walks: number;
  /** The most products that one of those passed, of all products; 0 without one. */
  readonly longestWalkShare: number;
  /** First pages that scan the table, and counts that do. */
  readonly pageScans: number;
  readonly countScans: number;
}

/** A walk past more of the table than this is a scan, though it may end before the last row. */
const scanShare = 0.1;

/** The table's name in the queries is `p`; of the others, only virtual tables and parts are scanned. */
const tableStep = /^SCAN (p|product)( |$)/;

/**
 * Looks at each value of a case, newest received first. A first page may be a walk along its order: the plan shows a
 * step over the table without a condition for an index, and it ends with the fiftieth match, whose position tells how
 * far that was. A count has no such end: it scans when no index narrows.
 */
async function examinePlans(
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
