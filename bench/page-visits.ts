/** First visits of the pages on a large index: transferred bytes, first paint, and the time of the server. */
import { Agent, get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { navigation } from '../test/helpers/pages.ts';
import { alignTable, figure, median, quantile, target } from './figures.ts';
import type { MeasuredPart } from './intake-parts.ts';
import type { LargeReceiver } from './page-data.ts';

const viewport = { width: 1280, height: 900 };

/** Time without requests after which a page is complete. */
const quietMs = 700;

/** A page without style and scripts: the least time on this machine. */
const emptyPath = '/healthz';

interface VisitFigures {
  readonly path: string;
  /** Received with an empty cache, including headers. */
  readonly bytes: number;
  /** Part of `bytes`: the footprints of the map. */
  readonly footprintBytes: number;
  readonly requests: number;
  /** First contentful paint in the rounds. */
  readonly paintMs: readonly number[];
  /** Time from a request to the end of the answer, on one connection. */
  readonly serverMs: readonly number[];
}

export interface VisitOptions {
  readonly browser: Browser;
  readonly receiver: LargeReceiver;
  readonly rounds: number;
  /** Requests per page for the time of the server. */
  readonly values: number;
  readonly show: (text: string) => void;
}

/** Visits every page with a cold cache. The server is warm: each page was rendered before. */
export async function measureVisits(options: VisitOptions): Promise<Omit<MeasuredPart, 'runs'>> {
  const { receiver, show } = options;
  const pages = navigation.map(({ path }) => path as string);
  const paths = [emptyPath, ...pages, await productPath(receiver.url)];
  const visits: VisitFigures[] = [];
  for (const path of paths) {
    show(`visits: ${path}`);
    visits.push(await measureVisit(options, path));
  }
  const of = (path: string) => visits.find((one) => one.path === path);
  const [overview, map] = [of('/'), of('/map')];
  const products = receiver.products;
  return {
    figures: { visits },
    faults: [],
    text: [renderVisits(visits, products)],
    targets: [
      target('transferred, overview, kB', kilobytes(overview?.bytes), { max: 40 }),
      target(
        'transferred, map without footprints, kB',
        kilobytes((map?.bytes ?? Number.NaN) - (map?.footprintBytes ?? 0)),
        { max: 110 },
      ),
      target('first paint, overview, ms', median(overview?.paintMs ?? []), { max: 200 }),
      target('first paint, empty page, ms (this machine)', median(of(emptyPath)?.paintMs ?? []), {
        max: 200,
      }),
      target(`overview at ${products} products, ms`, median(overview?.serverMs ?? []), {
        max: 100,
      }),
    ],
  };
}

function kilobytes(bytes: number | undefined): number | null {
  return bytes === undefined || Number.isNaN(bytes) ? null : bytes / 1_000;
}

/** Returns the path of the page about the newest product. */
async function productPath(url: string): Promise<string> {
  const answer = await fetch(`${url}/api/products?limit=1`);
  const { products } = (await answer.json()) as { products: { productId: string }[] };
  return `/products/${products[0]?.productId}`;
}

async function measureVisit(
  { browser, receiver, rounds, values }: VisitOptions,
  path: string,
): Promise<VisitFigures> {
  const url = `${receiver.url}${path}`;
  const serverMs = await timeRequests(url, values);
  const counted = await withPage(browser, (page, context) => countBytes(page, context, url));
  const paintMs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    paintMs.push(await withPage(browser, (page) => firstPaint(page, url)));
  }
  return { path, ...counted, paintMs, serverMs };
}

/** Runs `work` in a page of a new context, which has an empty cache. */
async function withPage<Result>(
  browser: Browser,
  work: (page: Page, context: BrowserContext) => Promise<Result>,
): Promise<Result> {
  const context = await browser.newContext({ viewport });
  try {
    return await work(await context.newPage(), context);
  } finally {
    await context.close();
  }
}

async function firstPaint(page: Page, url: string): Promise<number> {
  await page.goto(url);
  return page.evaluate(`(async () => {
    for (;;) {
      const [entry] = performance.getEntriesByName('first-contentful-paint');
      if (entry !== undefined) return entry.startTime;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })()`);
}

/** Counts the bytes of all answers until the page is quiet; the live stream stays open and counts so far. */
async function countBytes(page: Page, context: BrowserContext, url: string) {
  const client = await context.newCDPSession(page);
  const answers = new Map<string, { url: string; bytes: number; isOpen: boolean }>();
  let changedMs = performance.now();
  await client.send('Network.enable');
  client.on('Network.requestWillBeSent', ({ requestId, request }) => {
    const isStream = request.url.includes('/api/live');
    answers.set(requestId, { url: request.url, bytes: 0, isOpen: !isStream });
    changedMs = performance.now();
  });
  client.on('Network.dataReceived', ({ requestId, encodedDataLength }) => {
    const answer = answers.get(requestId);
    if (answer !== undefined) answer.bytes += encodedDataLength;
  });
  client.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
    const answer = answers.get(requestId);
    if (answer === undefined) return;
    // The total includes the headers.
    answers.set(requestId, { ...answer, bytes: encodedDataLength, isOpen: false });
    changedMs = performance.now();
  });
  await page.goto(url);
  const isBusy = () =>
    performance.now() - changedMs < quietMs || [...answers.values()].some(({ isOpen }) => isOpen);
  while (isBusy()) await delay(50);
  const all = [...answers.values()];
  const sum = (some: typeof all) => some.reduce((total, { bytes }) => total + bytes, 0);
  const footprints = all.filter((one) => one.url.includes('/api/footprints'));
  return { bytes: sum(all), footprintBytes: sum(footprints), requests: all.length };
}

const warmUpRequests = 3;

/** Times requests for a page on one connection, compressed as for browsers. */
async function timeRequests(url: string, values: number): Promise<number[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const tookMs: number[] = [];
  for (let i = -warmUpRequests; i < values; i += 1) {
    const startMs = performance.now();
    await request(url, agent);
    if (i >= 0) tookMs.push(performance.now() - startMs);
  }
  agent.destroy();
  return tookMs;
}

function request(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve, reject) => {
    const headers = { 'accept-encoding': 'gzip', accept: 'text/html' };
    const outgoing = get(url, { agent, headers }, (answer) => {
      if (answer.statusCode !== 200) reject(new Error(`${url} answered ${answer.statusCode}`));
      answer.resume();
      answer.on('end', () => resolve());
      answer.on('error', reject);
    });
    outgoing.on('error', reject);
  });
}

function renderVisits(visits: readonly VisitFigures[], products: number): string {
  const rows = visits.map(({ path, bytes, footprintBytes, requests, paintMs, serverMs }) => [
    path.replace(/(?<=products\/).+/, '<id>'),
    figure(kilobytes(bytes), 1),
    footprintBytes === 0 ? '' : figure(kilobytes(footprintBytes), 1),
    String(requests),
    figure(median(paintMs)),
    figure(quantile(paintMs, 1)),
    figure(median(serverMs), 1),
    figure(quantile(serverMs, 0.95), 1),
  ]);
  const header = ['kB', 'of it footprints', 'requests', 'first paint ms', 'max', 'server ms'];
  return alignTable([[`First visit, ${products} products`, ...header, 'p95'], ...rows]);
}
