/**
 * Three viewers, of the overview, the live list and the map. For intake at full load, they are programs that request what
 * the pages request, without the cost of a browser on the same machine; for the longest task, at a fixed rate, they are
 * pages in Chromium.
 */
import { Agent, get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { openBrowser } from '../test/core/page/browser.ts';
import { median, target } from './figures.ts';
import {
  type BenchSetting,
  faultsOf,
  measureInTurn,
  measureServer,
  type RunFigures,
  renderRounds,
  speedRatio,
} from './measure.ts';
import { freePort } from './processes.ts';
import { waitUntilAnswered } from './query-measure.ts';

const paths = ['/', '/live', '/map'] as const;

const perCore = (run: RunFigures) => run.requestsPerSecond / (run.serverCores ?? Number.NaN);

/** Measures intake without and with viewers, in turn, then the pages at a rate. */
export async function measureViewers(full: BenchSetting, ratePerSecond: number, steadyMs: number) {
  const states = ['no viewers', 'viewers'] as const;
  const fast = await measureInTurn(full, 'full load', states, (state, folder) =>
    measureWith(full, folder, (url) => (state === 'viewers' ? openPrograms(url) : () => {})),
  );
  const steady = { ...full, ratePerSecond, measureMs: steadyMs };
  const tasksMs: number[][] = [];
  const browser = await openBrowser();
  const slow = await measureInTurn(steady, `${ratePerSecond}/s`, ['Chromium'], (_, folder) =>
    measureWith(steady, folder, async (url) => {
      const pages = await Promise.all(paths.map((path) => openPage(browser, url + path)));
      return async () => void tasksMs.push(await Promise.all(pages.map(longestTask)));
    }),
  );
  await browser.close();
  const perCores = fast.map((round) => perCore(round.viewers) / perCore(round['no viewers']));
  const longest = (i: number) => median(tasksMs.map((round) => round[i] ?? 0));
  return {
    figures: { fast, slow, tasksMs },
    text: [
      renderRounds('Full load', states, fast),
      renderRounds(`${ratePerSecond}/s`, ['Chromium'], slow),
    ],
    targets: [
      target('intake, viewers / none', speedRatio(fast, 'viewers', 'no viewers'), { min: 0.95 }),
      target('the same per processor second', median(perCores), { min: 0.95 }),
      ...paths.map((path, i) => target(`longest task of ${path}, ms`, longest(i), { max: 50 })),
    ],
    faults: [...fast, ...slow].flatMap((round) => Object.values(round).flatMap(faultsOf)),
  };
}

/** Measures intake without and with readers of `/api/feed`, in turn. */
export async function measureReaders(full: BenchSetting, count: number) {
  const states = ['no readers', 'readers'] as const;
  const rounds = await measureInTurn(full, 'full load', states, (state, folder) =>
    measureWith(full, folder, (url) => openReaders(url, state === 'readers' ? count : 0)),
  );
  const perCores = rounds.map((round) => perCore(round.readers) / perCore(round['no readers']));
  return {
    figures: { rounds },
    text: [renderRounds(`${count} readers`, states, rounds)],
    targets: [
      target('intake, readers / none', speedRatio(rounds, 'readers', 'no readers'), { min: 0.9 }),
      target('the same per processor second', median(perCores), { min: 0.9 }),
    ],
    faults: rounds.flatMap((round) => Object.values(round).flatMap(faultsOf)),
  };
}

/** Opens readers, which discard what they get. The returned function ends them. */
function openReaders(url: string, count: number): Close {
  const requests = Array.from({ length: count }, () =>
    get(`${url}/api/feed`, (answer) => answer.resume().on('error', () => {})).on('error', () => {}),
  );
  return () => {
    for (const request of requests) request.destroy();
  };
}

type Close = () => void | Promise<void>;

async function measureWith(
  setting: BenchSetting,
  dataFolder: string,
  open: (url: string) => Close | Promise<Close>,
): Promise<RunFigures> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  let close: Close = () => {};
  return measureServer(setting, 'earshot', dataFolder, {
    environment: { EARSHOT_CONSOLE_LISTEN: `127.0.0.1:${port}` },
    prepare: async () => {
      await waitUntilAnswered(url);
      close = await open(url);
    },
    loaded: () => close(),
  });
}

/** Opens a page, and notes its longest task of more than 50 ms after that. */
async function openPage(browser: Browser, url: string): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(url);
  await delay(1_000);
  await page.evaluate(`{
    globalThis.longestMs = 0;
    new PerformanceObserver((list) => {
      longestMs = Math.max(longestMs, ...list.getEntries().map(({ duration }) => duration));
    }).observe({ type: 'longtask' });
  }`);
  return page;
}

async function longestTask(page: Page): Promise<number> {
  const ms = await page.evaluate<number>('longestMs');
  await page.close();
  return ms;
}

/** Starts the programs, with the times of `shell.ts`, `map.ts` and `items.ts`. The returned function ends them. */
function openPrograms(url: string): Close {
  const agent = new Agent({ keepAlive: true });
  const ended = new AbortController();
  let [last, indexed, shown, listed] = [0, 0, 0, 0];
  const options = { agent, headers: { 'accept-encoding': 'gzip' }, signal: ended.signal };
  /** Reads an answer without decompressing it. A failure counts like an answer. */
  const read = (path: string, onText: (text: string) => void = () => {}): Promise<void> =>
    new Promise((resolve) => {
      get(url + path, options, (answer) => {
        answer
          .setEncoding('latin1')
          .on('data', onText)
          .on('error', () => {})
          .on('close', resolve);
      }).on('error', () => resolve());
    });
  const repeat = async (work: () => Promise<void>, pauseMs: (tookMs: number) => number) => {
    while (!ended.signal.aborted) {
      const startMs = performance.now();
      await work();
      await delay(pauseMs(performance.now() - startMs));
    }
  };
  /** A page checks each 250 ms; while the index lags, it waits for 1.5 s. */
  const pause = (leastMs: number) => (tookMs: number) =>
    Math.max(125 + leastMs, 10 * tookMs, indexed < last ? 1_625 - tookMs : 0);
  const onPositions = (text: string) => {
    [last = last, indexed = indexed] = (text.match(/\d+/g) ?? []).map(Number);
  };
  for (const _ of paths) void read('/api/live', onPositions);
  void repeat(() => read('/'), pause(5_000));
  void repeat(() => read('/live'), pause(1_000));
  const footprints = async () => {
    if (shown === indexed) return;
    const after = shown;
    shown = indexed;
    await read(`/api/footprints?filter=&after=${after}&limit=10000`);
  };
  void repeat(footprints, () => 1_050);
  const list = async () => {
    if (listed === shown) return;
    listed = shown;
    await read('/map');
  };
  void repeat(list, () => 5_000);
  return () => ended.abort();
}
