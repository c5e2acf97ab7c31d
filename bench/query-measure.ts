/** Measures every kind of query on the small and the large data in turn. */
import { Agent, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import { openProducts } from '../src/features/products/index-file/products.ts';
import type { Products } from '../src/filter/products.ts';
import { quantile } from './figures.ts';
import type { Cleanup, Progress } from './harness.ts';
import { freePort, readMemory } from './processes.ts';
import { createQueryCases, type QueryCase } from './query-cases.ts';
import type { QueryData } from './query-data.ts';
import { type Endpoint, startServer } from './servers.ts';

/** Times of one query with several values. */
interface QueryTimes {
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
  /** First page, newest received first (tombstones: newest deleted first). */
  readonly page: Compared;
  readonly count: Compared;
  /** First page in other orders; empty for tombstones. */
  readonly orders: readonly (Compared & { readonly order: string })[];
  /** Median time of a STAC search to that of OData, first page on the large data in turn. Null for tombstones. */
  readonly stacRatio: number | null;
}

/** An open data folder: the index, and a separate server over HTTP. */
export interface QuerySubject {
  readonly data: QueryData;
  readonly products: Products;
  readonly lastPosition: number;
  /** Gets a path of the private listener, or posts JSON to it, over one connection. Resolves with the parsed answer. */
  ask(path: string, sent?: object): Promise<ReturnType<typeof JSON.parse>>;
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
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return {
    ...{ data, products, lastPosition: (await products.indexProgress()).lastPosition },
    ask: (path, sent) => ask(new URL(path, consoleUrl), agent, sent),
    serverPeakBytes: () => readMemory(server.processId)?.peakResidentBytes ?? null,
    async close() {
      agent.destroy();
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

function ask(url: URL, agent: Agent, sent?: object): ReturnType<QuerySubject['ask']> {
  return new Promise((resolve, reject) => {
    const method = sent === undefined ? 'GET' : 'POST';
    const outgoing = request(url, { agent, method, timeout: answerTimeoutMs }, (response) => {
      text(response).then((body) => {
        if (response.statusCode === 200) resolve(JSON.parse(body));
        else reject(new Error(`${url} answered ${response.statusCode}: ${body.slice(0, 500)}`));
      }, reject);
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error(`${url} was not answered in time`)));
    outgoing.on('error', reject);
    outgoing.end(sent === undefined ? undefined : JSON.stringify(sent));
  });
}

/** Runs a query and returns the number of products in the answer. */
type RunQuery = (filter: QueryCase['filters'][number]) => Promise<number>;

/** A kind of query on one of the two data folders. */
interface SubjectCase {
  readonly subject: QuerySubject;
  readonly one: QueryCase;
}

const odata = ({ subject, one }: SubjectCase, options: Record<string, string>, filter: object) =>
  subject.ask(
    `/odata/v1/${one.entity}?${new URLSearchParams({ $filter: String(filter), ...options })}`,
  );

const pageIn =
  (order?: string) =>
  (place: SubjectCase): RunQuery =>
  async (filter) => {
    const options = { $top: String(pageRows), ...(order === undefined ? {} : { $orderby: order }) };
    return (await odata(place, options, filter)).value.length;
  };

const countIn =
  (place: SubjectCase): RunQuery =>
  async (filter) =>
    (await odata(place, { $top: '0', $count: 'true' }, filter))['@odata.count'];

const stacPageIn =
  ({ subject, one }: SubjectCase): RunQuery =>
  async (filter) => {
    const sent = { filter: one.cql2?.get(filter), limit: pageRows };
    return (await subject.ask('/stac/search', sent)).features.length;
  };

const statedOrders = ['PublicationDate desc', 'ContentDate/Start desc', 'ContentDate/Start asc'];

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
  const casesOf = ({ products, lastPosition }: QuerySubject) =>
    createQueryCases(products, lastPosition, values + warmUpValues);
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

async function measureCase(small: SubjectCase, large: SubjectCase): Promise<CaseFigures> {
  const { name, entity, cql2 } = large.one;
  const inTurn = async (runOf: (place: SubjectCase) => RunQuery, valuesMax = Infinity) => {
    const [ofSmall, ofLarge] = await timeInTurn(
      [small, large].map((place) => {
        const filters = place.one.filters.slice(-warmUpValues - valuesMax);
        return { filters, runQuery: runOf(place) };
      }),
    );
    if (ofSmall === undefined || ofLarge === undefined) throw new Error('two folders expected');
    return { small: ofSmall, large: ofLarge };
  };
  const orders: CaseFigures['orders'][number][] = [];
  for (const order of entity === 'Products' ? statedOrders : []) {
    orders.push({ order, ...(await inTurn(pageIn(order), orderValuesMax)) });
  }
  const { filters } = large.one;
  const ways = [pageIn(), stacPageIn].map((way) => ({ filters, runQuery: way(large) }));
  const [byOdata, byStac] = cql2 === undefined ? [] : await timeInTurn(ways);
  return {
    ...{ name, orders, page: await inTurn(pageIn()), count: await inTurn(countIn) },
    stacRatio: byOdata && byStac ? byStac.medianMs / byOdata.medianMs : null,
  };
}

/** The values of a query, and the function that runs it. */
interface TimedQuery {
  readonly filters: QueryCase['filters'];
  readonly runQuery: RunQuery;
}

/**
 * Runs the last values first, as warm-up, and then the others, all queries in turn, so that other activity of the
 * machine affects them equally.
 */
async function timeInTurn(queries: readonly TimedQuery[]): Promise<QueryTimes[]> {
  const tallies = queries.map((one) => ({
    ...{ ...one, tookMs: [] as number[], found: [] as number[] },
  }));
  const values = Math.max(...queries.map(({ filters }) => filters.length));
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
  return tallies.map(({ tookMs, found }) => {
    const at = (values: readonly number[], share: number) => quantile(values, share) ?? Number.NaN;
    return {
      ...{ medianMs: at(tookMs, 0.5), p95Ms: at(tookMs, 0.95), maxMs: at(tookMs, 1) },
      medianFound: at(found, 0.5),
    };
  });
}
