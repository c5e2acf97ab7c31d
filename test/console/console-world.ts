/** The private listener on a real socket, over products and notifications in memory. */
import { randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { onTestFinished } from 'vitest';
import { type ConsoleOptions, createConsoleApp } from '../../src/console/app.ts';
import { createMetrics } from '../../src/console/metrics/metrics.ts';
import type { NotificationLog, NotificationRow } from '../../src/domain/ports.ts';
import { startListener } from '../../src/http/listener.ts';
import { createProductGenerator } from '../../src/sandbox/products/product-generator.ts';
import { createMemoryCompleteness } from './memory-completeness.ts';
import { createMemoryProducts } from './memory-products.ts';
import { createMemorySummaries } from './memory-summaries.ts';
import { sampleStatus } from './status-sample.ts';

export interface Answer {
  status: number;
  headers: NodeJS.Dict<string | string[]>;
  text: string;
  /** Null for a body that is not JSON. */
  json: ReturnType<typeof JSON.parse>;
}

export interface Sent {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

const silent = () => undefined;
const log = { debug: silent, info: silent, warn: silent, error: silent };

/** Starts it; closed when the test is over. */
export async function openConsole(options: Partial<ConsoleOptions> & { host?: string } = {}) {
  const products = createMemoryProducts();
  const summaries = createMemorySummaries();
  const host = options.host ?? '127.0.0.1';
  const app = createConsoleApp({
    products,
    notifications: createMemoryLog([]),
    summaries,
    completeness: createMemoryCompleteness(),
    catalogueUrl: 'https://catalogue.test',
    status: async () => sampleStatus(),
    comparisonOff: () => null,
    metrics: createMetrics(log),
    readiness: async () => [],
    nowUs: () => Date.UTC(2026, 4, 2, 12) * 1000,
    log,
    letIn: null,
    listenHost: host,
    newRequestId: randomUUID,
    ...options,
  });
  const listener = await startListener({
    fetch: app.fetch,
    listen: { host, port: 0 },
    listenVariable: 'EARSHOT_CONSOLE_LISTEN',
  });
  const agent = new Agent({ keepAlive: true });
  onTestFinished(async () => {
    agent.destroy();
    await listener.close(0);
  });
  const { port } = listener.address;
  const origin = `http://127.0.0.1:${port}`;
  /** Asks for a path, or for a whole URL out of an answer. */
  const get = (target: string, sent: Sent = {}) => exchange(new URL(target, origin), agent, sent);
  return { products, summaries, origin, port, get, routes: app.routes };
}

export type Console = Awaited<ReturnType<typeof openConsole>>;

function exchange(
  url: URL,
  agent: Agent,
  { method = 'GET', headers = {}, body }: Sent,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const outgoing = request(url, { agent, method, headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => {
        const { statusCode: status = 0, headers } = response;
        resolve({ status, headers, text, json: jsonOf(text) });
      });
      response.on('error', reject);
    });
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

function jsonOf(text: string): ReturnType<typeof JSON.parse> {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** A log that keeps to positions, limits and order, and hands each query to `noted`. */
export function createMemoryLog(
  rows: readonly NotificationRow[],
  noted: Parameters<NotificationLog['find']>[0][] = [],
): NotificationLog {
  const unused = () => Promise.reject(new Error('nobody asks'));
  return {
    async *find(query) {
      noted.push(query);
      const { afterPosition = -1, beforePosition = Number.POSITIVE_INFINITY, limit } = query;
      const within = rows.filter(
        ({ position }) => position > afterPosition && position < beforePosition,
      );
      if (query.order !== 'oldest') within.reverse();
      yield* within.slice(0, limit);
    },
    body: unused,
    original: unused,
    lastPosition: unused,
    drift: unused,
    counts: unused,
  };
}

const publishedMs = Date.UTC(2026, 4, 1);

/** Products as the sandbox makes them, one published each second. */
export function generatedProducts(count: number) {
  const generator = createProductGenerator({ seed: 5 });
  const products = Array.from({ length: count }, (_, i) => generator.next(publishedMs + i * 1000));
  return { products, deleted: products.map((one) => generator.deleted(one, publishedMs * 1.01)) };
}

/** All pages of a list, by its links. */
export async function follow(
  { get }: Pick<Console, 'get'>,
  first: string,
  linkOf = (json: Answer['json']) => json['@odata.nextLink'] ?? null,
): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let next: string | null = first; next !== null; ) {
    const answer: Answer = await get(next);
    answers.push(answer);
    if (answer.status !== 200 || answers.length > 100) throw new Error(answer.text.slice(0, 500));
    next = linkOf(answer.json);
  }
  return answers;
}
