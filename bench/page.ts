/** Benchmark of the web page on a large index: size in Chromium, and the time of the server. */
import { randomUUID } from 'node:crypto';
import { Agent, get } from 'node:http';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { app } from '../src/app.ts';
import { loadListenerSlots } from '../src/core/api/listener-slot.ts';
import { hourUs } from '../src/core/terms/dates.ts';
import { hasChromium, openBrowser } from '../test/core/page/browser.ts';
import { openStore } from '../test/helpers/store.ts';
import { median, quantile, renderTable, target } from './figures.ts';
import { type BenchContext, defineBenchmark, flag, integer, number } from './harness.ts';
import { createSetting, loadOptions } from './measure.ts';
import { measureReaders, measureViewers } from './page-viewers.ts';
import { freePort } from './processes.ts';
import { prepareQueryData, slotMs } from './query-data.ts';
import { waitUntilAnswered } from './query-measure.ts';
import { registration, saveRegistration } from './registration.ts';
import { createEndpoint, type Endpoint, startServer } from './servers.ts';

const viewport = { width: 1280, height: 900 };

interface VisitOptions {
  readonly browser: Browser;
  readonly receiver: LargeReceiver;
  /** Number of timed requests of a page. */
  readonly values: number;
  readonly show: (text: string) => void;
}

export const benchmark = defineBenchmark({
  command: 'npm run bench:page --',
  about: `Measures the web page against a receiver in a process of its own, in Chromium: bytes of each page, and the time
of the server at many products (9 GB per million); or with --viewers, intake and the longest task of a page with three
viewers; or with --readers, intake with readers of the feed.`,
  options: {
    ...loadOptions,
    products: integer('products received until now at 32,000 a day', 1_000_000, 12_000),
    viewers: flag('measures with three viewers only'),
    readers: integer('measures intake with readers of the feed only', 0),
    rate: integer('notifications per second while tasks are measured', 1_000),
    'steady-seconds': number('duration of that', 60, 10),
  },
  refuse: () => (hasChromium ? null : 'Chromium is not installed. Install the package chromium.'),
  async measure(chosen, context) {
    const { products, quick, rate } = chosen;
    const { cleanup, folder, progress } = context;
    if (chosen.readers > 0) {
      const setting = await createSetting(chosen, context);
      return { setting: setting.text, ...(await measureReaders(setting, chosen.readers)) };
    }
    if (chosen.viewers) {
      const setting = await createSetting(chosen, context);
      const measured = await measureViewers(setting, rate, 1_000 * chosen['steady-seconds']);
      return { setting: setting.text, ...measured };
    }
    const temporary = cleanup.temporaryFolder(folder);
    const endpoint = await createEndpoint(temporary);
    const large = { folder: join(temporary, 'page'), products, endpoint };
    const receiver = await openLarge(context, large);
    const browser = await openBrowser();
    try {
      const values = quick ? 5 : 25;
      const measured = await measureVisits({ browser, receiver, values, show: progress.show });
      return { setting: `${products} products`, ...measured };
    } finally {
      await browser.close();
      await receiver.stop();
    }
  },
});

interface LargeReceiver {
  readonly products: number;
  /** Address of the web page, without a slash at the end. */
  readonly url: string;
  stop(): Promise<void>;
}

/** Opens a receiver with products until now, at the rate of the catalogue. */
async function openLarge(
  { progress, cleanup }: BenchContext,
  { folder, products, endpoint }: { folder: string; products: number; endpoint: Endpoint },
): Promise<LargeReceiver> {
  await prepareQueryData(folder, products, progress, Date.now() - products * slotMs);
  await addCoverage(folder, products);
  const port = await freePort();
  const { stop } = await startServer('earshot', {
    ...{ endpoint, cleanup, dataFolder: folder },
    environment: { EARSHOT_CONSOLE_LISTEN: `127.0.0.1:${port}` },
  });
  const url = `http://127.0.0.1:${port}`;
  await waitUntilAnswered(url);
  return { products, url, stop };
}

/** The store saves a limited number of hours at once. */
const hoursTogether = 500;

/** Registers the subscription of the products, and saves the coverage of each hour. */
async function addCoverage(dataDir: string, products: number): Promise<void> {
  const [nowUs, name, events] = [Date.now() * 1_000, 'bench', ['created', 'deleted'] as const];
  const filter = "Collection/Name eq 'SENTINEL-2'";
  const more = { events, filter, subscriptionId: randomUUID() };
  await saveRegistration(dataDir, registration(name, nowUs, more));
  const hours = Math.ceil((products * slotMs * 1_000) / hourUs);
  const lastUs = Math.floor(nowUs / hourUs) * hourUs - 2 * hourUs;
  const coverage = Array.from({ length: 2 * hours }, (_, i) => ({
    ...{ subscription: name, event: events[i % 2 === 0 ? 0 : 1], comparedAtUs: nowUs },
    hourUs: lastUs - Math.floor(i / 2) * hourUs,
    ...{ expected: 40, pushed: 40, late: 0, recovered: 0, missing: 0 },
  }));
  const store = await openStore({ dataDir });
  for (let i = 0; i < coverage.length; i += hoursTogether) {
    await store.completeness.saveCoverage(coverage.slice(i, i + hoursTogether));
  }
  await store.close();
}

/** Time without requests after which a page is complete. */
const quietMs = 700;

interface VisitFigures {
  readonly path: string;
  /** Received with an empty cache, including headers; without the footprints of the map. */
  readonly kilobytes: number;
  readonly footprintKilobytes: number;
  /** Time from a request to the end of the answer, on one connection. */
  readonly serverMs: readonly number[];
}

/** Visits every page with a cold cache. The server is warm: each page was rendered before. */
async function measureVisits(options: VisitOptions) {
  const { receiver, show } = options;
  const visits: VisitFigures[] = [];
  const slots = await loadListenerSlots(app);
  const pages = slots.flatMap(({ pages: own = [] }) => own);
  for (const { path } of pages) {
    show(`visits: ${path}`);
    visits.push(await measureVisit(options, path));
  }
  const of = (name: string, pick: (one: VisitFigures) => number | null) => {
    const found = visits.find(({ path }) => path === name);
    return found === undefined ? null : pick(found);
  };
  const server = ({ serverMs }: VisitFigures) => median(serverMs);
  return {
    figures: { visits },
    text: [
      renderTable(visits, [
        [`First visit, ${receiver.products} products`, ({ path }) => path],
        ['kB', ({ kilobytes }) => kilobytes, 1],
        ['footprints, kB', ({ footprintKilobytes }) => footprintKilobytes],
        ['server ms', server, 1],
        ['p95', ({ serverMs }) => quantile(serverMs, 0.95), 1],
      ]),
    ],
    targets: [
      target(
        'transferred, overview, kB',
        of('/', ({ kilobytes }) => kilobytes),
        { max: 40 },
      ),
      target(
        'transferred, map without footprints, kB',
        of('/map', (one) => one.kilobytes),
        {
          max: 110,
        },
      ),
      target(`overview at ${receiver.products} products, ms`, of('/', server), { max: 100 }),
    ],
  };
}

async function measureVisit(
  { browser, receiver, values }: VisitOptions,
  path: string,
): Promise<VisitFigures> {
  const url = `${receiver.url}${path}`;
  const serverMs = await timeRequests(url, values);
  // A new context has an empty cache.
  const context = await browser.newContext({ viewport });
  const counted = await countBytes(await context.newPage(), context, url);
  await context.close();
  return { path, ...counted, serverMs };
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
  const isFootprints = (one: { url: string }) => one.url.includes('/api/footprints');
  const all = Object.groupBy(answers.values(), (one) => (isFootprints(one) ? 'map' : 'other'));
  const [footprintKilobytes = 0, kilobytes = 0] = [all.map, all.other].map(
    (some = []) => some.reduce((total, { bytes }) => total + bytes, 0) / 1_000,
  );
  return { kilobytes, footprintKilobytes };
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
