/** Intake with three viewers: speed at full load, and latency, memory and long tasks at a fixed rate. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { alignTable, figure, inMegabytes, median, target } from './figures.ts';
import type { MeasuredPart } from './intake-parts.ts';
import {
  type BenchSetting,
  measureInTurn,
  measureServer,
  type Round,
  type RunFigures,
  renderRounds,
  runsOf,
  speedRatio,
} from './measure.ts';
import { openClients } from './page-clients.ts';
import { type LongTask, longTasks, watch } from './page-watch.ts';
import { freePort, watchMemory } from './processes.ts';
import { waitUntilAnswered } from './query-measure.ts';

/** `programs` request the same as the pages, without the cost of a browser. */
const states = ['no viewers', 'programs', 'Chromium'] as const;
type State = (typeof states)[number];

const viewedPaths = ['/', '/live', '/map'] as const;

/** Memory in the first and in the last third of the measured time, bytes. */
interface Growth {
  readonly firstBytes: number | null;
  readonly lastBytes: number | null;
}

interface PageFigures {
  readonly path: string;
  /** Long tasks without load, and with load, ms. */
  readonly idleTasksMs: readonly number[];
  readonly tasksMs: readonly number[];
  readonly heap: Growth;
}

interface ViewedRun extends RunFigures {
  readonly serverMemory: Growth;
  /** Empty without Chromium. */
  readonly pages: readonly PageFigures[];
}

export interface ViewerOptions {
  readonly browser: Browser;
  /** Full load. */
  readonly full: BenchSetting;
  /** The fixed rate. */
  readonly steady: BenchSetting & { readonly ratePerSecond: number };
  /** Time in which the pages are watched before the load. */
  readonly idleMs: number;
}

/** Measures the states in turn, at full load and at the fixed rate. */
export async function measureViewers({
  browser,
  full,
  steady,
  idleMs,
}: ViewerOptions): Promise<MeasuredPart> {
  const rate = steady.ratePerSecond;
  const fast = await measureInTurn(full, 'full load', states, (state, folder) =>
    measureState({ setting: full, browser, idleMs: 0 }, state, folder),
  );
  const slow = await measureInTurn(steady, `${rate} a second`, states, (state, folder) =>
    measureState({ setting: steady, browser, idleMs }, state, folder),
  );
  return {
    figures: { full: fast, steady: slow },
    runs: [...runsOf(fast, states), ...runsOf(slow, states)],
    faults: [],
    text: [
      renderRounds('Full load', states, fast),
      renderRounds(`${rate} a second`, states, slow),
      renderPages(slow),
    ],
    targets: targetsOf(fast, slow, rate),
  };
}

type Rounds = readonly Round<State, ViewedRun>[];

function targetsOf(fast: Rounds, slow: Rounds, rate: number) {
  const speed = (state: State) => speedRatio(fast, state, 'no viewers');
  const p99 = (state: State) =>
    median(slow.map((round) => round[state].p99Ms / round['no viewers'].p99Ms));
  const pages = slow.flatMap(({ Chromium }) => Chromium.pages);
  const ratio = ({ firstBytes, lastBytes }: Growth) =>
    firstBytes === null || lastBytes === null ? null : lastBytes / firstBytes;
  const longest = Math.max(0, ...pages.flatMap(({ tasksMs }) => tasksMs));
  const reached = median(slow.map(({ Chromium }) => Chromium.requestsPerSecond));
  return [
    target('intake at full load, programs / no viewers', speed('programs'), { min: 0.95 }),
    target('intake at full load, Chromium / no viewers', speed('Chromium'), { min: 0.95 }),
    target(`rate reached with Chromium, of ${rate}`, reached, { min: rate * 0.99 }),
    target('p99, programs / no viewers', p99('programs'), { max: 1 }),
    target('p99, Chromium / no viewers', p99('Chromium'), { max: 1 }),
    target('longest task in a page, ms', longest, { max: 50 }),
    ...viewedPaths.map((path) => {
      const own = pages.filter((one) => one.path === path);
      const growth = median(own.map(({ heap }) => ratio(heap)));
      return target(`memory of ${path}, last / first third`, growth, { max: 1.1 });
    }),
    target(
      'memory of the receiver, last / first third',
      median(slow.map(({ Chromium }) => ratio(Chromium.serverMemory))),
      { max: 1.1 },
    ),
  ];
}

function renderPages(slow: Rounds): string {
  const rows = viewedPaths.map((path) => {
    const own = slow.flatMap(({ Chromium }) => Chromium.pages.filter((one) => one.path === path));
    const tasks = own.flatMap(({ tasksMs }) => tasksMs);
    const idle = own.flatMap(({ idleTasksMs }) => idleTasksMs);
    const megabytes = (pick: (heap: Growth) => number | null) =>
      figure(inMegabytes(median(own.map(({ heap }) => pick(heap)))), 1);
    return [
      path,
      ...[idle, tasks].flatMap((all) => [String(all.length), figure(Math.max(0, ...all))]),
      megabytes(({ firstBytes }) => firstBytes),
      megabytes(({ lastBytes }) => lastBytes),
    ];
  });
  const server = slow.map(({ Chromium }) => Chromium.serverMemory);
  const megabytes = (pick: (memory: Growth) => number | null) =>
    figure(inMegabytes(median(server.map(pick))), 1);
  const receiver = [
    ...['receiver', '', '', '', ''],
    megabytes(({ firstBytes }) => firstBytes),
    megabytes(({ lastBytes }) => lastBytes),
  ];
  const header = ['tasks > 50 ms, idle', 'max ms', 'with load', 'max ms', 'MB first third', 'last'];
  return alignTable([['Pages in Chromium', ...header], ...rows, receiver]);
}

interface Subject {
  readonly setting: BenchSetting;
  readonly browser: Browser;
  readonly idleMs: number;
}

async function measureState(
  subject: Subject,
  state: State,
  dataFolder: string,
): Promise<ViewedRun> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  let endClients = () => {};
  let watched: ReturnType<typeof watchViewers> | undefined;
  const figures = await measureServer(subject.setting, 'earshot', dataFolder, {
    environment: { EARSHOT_CONSOLE_LISTEN: `127.0.0.1:${port}` },
    prepare: async ({ processId }) => {
      await waitUntilAnswered(url);
      if (state === 'programs') endClients = openClients(url);
      const pages = state === 'Chromium' ? await openPages(subject.browser, url) : [];
      const idleFromMs = Date.now();
      if (pages.length > 0) await delay(subject.idleMs);
      watched = watchViewers(subject.setting, { pages, idleFromMs, processId });
    },
    loaded: () => endClients(),
  });
  if (watched === undefined) throw new Error('the viewers were not opened');
  return { ...figures, ...(await watched) };
}

async function openPages(browser: Browser, url: string): Promise<Page[]> {
  const pages: Page[] = [];
  for (const path of viewedPaths) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    const page = await context.newPage();
    await watch(page);
    await page.goto(`${url}${path}`);
    pages.push(page);
  }
  return pages;
}

/** Shares of the measured time at which memory is read. */
const samplesAt = [0.05, 0.17, 0.28, 0.72, 0.83, 0.95];

/** Watches the pages and the receiver from the start of the load to the end of the measured time. */
async function watchViewers(
  { warmUpMs, measureMs }: BenchSetting,
  {
    pages,
    idleFromMs,
    processId,
  }: { pages: readonly Page[]; idleFromMs: number; processId: number },
): Promise<Pick<ViewedRun, 'serverMemory' | 'pages'>> {
  const loadFromMs = Date.now();
  const fromMs = loadFromMs + warmUpMs;
  const memory: { atMs: number; bytes: number }[] = [];
  const server = watchMemory(processId, 500, ({ residentBytes }) => {
    memory.push({ atMs: Date.now(), bytes: residentBytes });
  });
  const sessions = await Promise.all(pages.map((page) => page.context().newCDPSession(page)));
  const heaps: { atMs: number; bytes: number[]; endMs: number }[] = [];
  for (const share of samplesAt) {
    await delay(fromMs + share * measureMs - Date.now());
    const atMs = Date.now();
    const bytes = await Promise.all(sessions.map(heapBytes));
    heaps.push({ atMs, bytes, endMs: Date.now() });
  }
  await delay(fromMs + measureMs - Date.now());
  server.stop();
  const growth = (samples: readonly { atMs: number; bytes: number }[]): Growth => {
    const between = (from: number, to: number) =>
      samples.filter(({ atMs }) => {
        const share = (atMs - fromMs) / measureMs;
        return share >= from && share <= to;
      });
    const middle = (some: typeof samples) => median(some.map(({ bytes }) => bytes));
    return { firstBytes: middle(between(0, 1 / 3)), lastBytes: middle(between(2 / 3, 1)) };
  };
  const figures = await Promise.all(
    pages.map(async (page, i): Promise<PageFigures> => {
      const tasks = await longTasks(page);
      const during = (from: number, to: number) =>
        tasks
          .filter(({ atMs }) => atMs >= from && atMs < to)
          .filter((task) => !heaps.some((sample) => overlaps(task, sample)))
          .map(({ tookMs }) => tookMs);
      await page.context().close();
      return {
        path: viewedPaths[i] ?? '',
        idleTasksMs: during(idleFromMs, loadFromMs),
        tasksMs: during(fromMs, fromMs + measureMs),
        heap: growth(heaps.map(({ atMs, bytes }) => ({ atMs, bytes: bytes[i] ?? 0 }))),
      };
    }),
  );
  return { serverMemory: growth(memory), pages: figures };
}

/** The collection of garbage for a sample is a task of its own. */
function overlaps({ atMs, tookMs }: LongTask, sample: { atMs: number; endMs: number }): boolean {
  return atMs < sample.endMs && atMs + tookMs > sample.atMs;
}

/** Returns the memory of the scripts of a page after a collection of garbage. */
async function heapBytes(session: CDPSession): Promise<number> {
  await session.send('HeapProfiler.collectGarbage');
  const usage = (await session.send('Runtime.getHeapUsage')) as {
    usedSize: number;
    backingStorageSize?: number;
  };
  return usage.usedSize + (usage.backingStorageSize ?? 0);
}
