/** Asks a query with many values, one after the other, and tells how long the answers took. */
import { Agent, get } from 'node:http';
import { text } from 'node:stream/consumers';
import type { FoundProduct, ProductQuery, Products } from '../src/domain/products.ts';
import type { QueryCase } from './query-cases.ts';

/** Answers of one query with several values. */
export interface QueryTimes {
  readonly medianMs: number;
  /** 95th percentile. */
  readonly p95Ms: number;
  readonly maxMs: number;
  /** Products in a page, or counted: the median. */
  readonly medianFound: number;
}

/** Answers a question with the number of products in the answer. */
export type Ask = (filter: QueryCase['filters'][number]) => Promise<number>;

export const pageRows = 50;

/** Values that warm up and are not measured; they come last in a case. */
export const warmUpValues = 10;

/** The values of a query and the place that they are asked at. */
export interface Asking {
  readonly filters: QueryCase['filters'];
  readonly ask: Ask;
}

/**
 * Asks the last values first, to warm up, and then the others, at both places in turn: so both have the
 * same share of whatever else the machine does meanwhile.
 */
export async function timeInTurn(small: Asking, large: Asking): Promise<[QueryTimes, QueryTimes]> {
  const tallies = [createTally(small), createTally(large)] as const;
  const values = Math.max(small.filters.length, large.filters.length);
  for (let index = 1; index <= values; index += 1) {
    for (const tally of tallies) await tally.ask(values - index, index <= warmUpValues);
  }
  return [tallies[0].times(), tallies[1].times()];
}

function createTally({ filters, ask }: Asking) {
  const times: number[] = [];
  const found: number[] = [];
  return {
    async ask(index: number, isWarmUp: boolean) {
      const filter = filters[index];
      if (filter === undefined) return;
      const startMs = performance.now();
      const count = await ask(filter);
      if (isWarmUp) return;
      times.push(performance.now() - startMs);
      found.push(count);
    },
    times: (): QueryTimes => ({
      medianMs: percentile(times, 50),
      p95Ms: percentile(times, 95),
      maxMs: percentile(times, 100),
      medianFound: percentile(found, 50),
    }),
  };
}

/** The first page of the index itself, in an order; newest received first unless told. */
export async function firstPage(
  products: Products,
  query: Omit<ProductQuery, 'limit'>,
): Promise<FoundProduct[]> {
  const page: FoundProduct[] = [];
  for await (const found of products.find({ ...query, limit: pageRows })) page.push(found);
  return page;
}

/** Asks the private listener over one connection; `close` ends it. */
export function createHttpAsk(consoleUrl: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const ask = async (entity: string, options: Record<string, string>) => {
    const url = new URL(`/odata/v1/${entity}?${new URLSearchParams(options)}`, consoleUrl);
    const { status, body } = await getText(url, agent);
    if (status !== 200)
      throw new Error(`${url.pathname} answered ${status}: ${body.slice(0, 500)}`);
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

async function getText(url: URL, agent: Agent): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = get(url, { agent, timeout: answerTimeoutMs }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
    });
    outgoing.on('timeout', () => outgoing.destroy(new Error(`${url} was not answered in time`)));
    outgoing.on('error', reject);
  });
}

const answerTimeoutMs = 60_000;

/** The smallest value that so many percent of the values do not exceed. */
function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)] ?? Number.NaN;
}
