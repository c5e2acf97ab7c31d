/**
 * Intake with three viewers: speed at full load, and latency at a fixed rate. Viewers are programs that request what the
 * open pages `/`, `/live` and `/map` request: they show the cost for the receiver without that of a browser on the same
 * machine.
 */
import { Agent, get, type IncomingMessage } from 'node:http';
import { inMegabytes, median, type TargetResult, target } from './figures.ts';
import {
  type BenchSetting,
  faultsOf,
  measureInTurn,
  measureServer,
  renderRounds,
  speedRatio,
} from './measure.ts';
import type { PagePart } from './page.ts';
import { freePort } from './processes.ts';
import { waitUntilAnswered } from './query-measure.ts';

const states = ['no viewers', 'viewers'] as const;

/** Measures both states in turn, at full load and at the fixed rate. */
export async function measureViewers(
  full: BenchSetting,
  steady: BenchSetting & { readonly ratePerSecond: number },
): Promise<PagePart> {
  const measure = (setting: BenchSetting, title: string) =>
    measureInTurn(setting, title, states, (state, folder) =>
      measureState(setting, state === 'viewers', folder),
    );
  const [fullTitle, steadyTitle] = ['Full load', `${steady.ratePerSecond} a second`];
  const fast = await measure(full, fullTitle);
  const slow = await measure(steady, steadyTitle);
  const p99 = median(slow.map((round) => round.viewers.p99Ms / round['no viewers'].p99Ms));
  // Independent of other programs, which take processor time from both states.
  const perCore = median(
    fast.map((round) => {
      const [alone, viewed] = states.map((state) => {
        const { requestsPerSecond, serverCores } = round[state];
        return requestsPerSecond / (serverCores ?? Number.NaN);
      });
      return (viewed ?? Number.NaN) / (alone ?? Number.NaN);
    }),
  );
  const peak = median(slow.map(({ viewers }) => viewers.peakResidentBytes));
  const targets: TargetResult[] = [
    target('intake at full load, to no viewers', speedRatio(fast, 'viewers', 'no viewers'), {
      min: 0.95,
    }),
    target('intake per processor second of the receiver, to no viewers', perCore, { min: 0.95 }),
    target(`intake at ${steadyTitle}, to no viewers`, speedRatio(slow, 'viewers', 'no viewers'), {
      min: 0.95,
    }),
    target(`p99 at ${steadyTitle}, to no viewers`, p99, { max: 1 }),
    target(`peak memory at ${steadyTitle}, MB`, inMegabytes(peak), { max: 350 }),
  ];
  return {
    figures: { full: fast, steady: slow },
    faults: [...fast, ...slow].flatMap((round) => Object.values(round).flatMap(faultsOf)),
    text: [renderRounds(fullTitle, states, fast), renderRounds(steadyTitle, states, slow)],
    targets,
  };
}

async function measureState(setting: BenchSetting, isViewed: boolean, dataFolder: string) {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  let close = () => {};
  return measureServer(setting, 'earshot', dataFolder, {
    environment: { EARSHOT_CONSOLE_LISTEN: `127.0.0.1:${port}` },
    prepare: async () => {
      await waitUntilAnswered(url);
      if (isViewed) close = openViewers(url);
    },
    loaded: () => close(),
  });
}

/** Times of `shell.ts` and `map.ts` in the browser. */
const checkMs = 250;
const leastMs = 1_000;

/** Starts the three programs. The returned function ends them. */
function openViewers(url: string): () => void {
  const agent = new Agent({ keepAlive: true });
  let indexed = 0;
  const streams = [
    follow(`${url}/api/live?rows=0`, agent),
    follow(`${url}/api/live`, agent),
    follow(`${url}/api/live?rows=0`, agent, (position) => {
      indexed = position;
    }),
  ];
  const overview = repeat(() => request(`${url}/`, agent), 10);
  let shown = 0;
  const map = repeat(async () => {
    const from = shown;
    shown = indexed;
    await request(`${url}/api/footprints?after=${from}&limit=1000`, agent);
  }, 0);
  return () => {
    for (const timer of [overview, map]) clearInterval(timer);
    for (const stream of streams) stream.destroy();
    agent.destroy();
  };
}

const nothing = () => undefined;

/** Reads a stream. Calls `onPosition` with the position of the index in each frame. */
function follow(url: string, agent: Agent, onPosition: (position: number) => void = nothing) {
  const outgoing = get(url, { agent }, (answer) => {
    answer.setEncoding('latin1').on('data', (text: string) => {
      const position = /"indexedPosition":(\d+)/.exec(text)?.[1];
      if (position !== undefined) onPosition(Number(position));
    });
    answer.on('error', nothing);
  });
  return outgoing.on('error', nothing);
}

/** Repeats a request with a pause that grows with its duration. */
function repeat(work: () => Promise<void>, pauseShare: number): NodeJS.Timeout {
  let earliestMs = 0;
  let isRunning = false;
  return setInterval(() => {
    const startMs = performance.now();
    if (isRunning || startMs < earliestMs) return;
    isRunning = true;
    void work().finally(() => {
      const endMs = performance.now();
      earliestMs = endMs + Math.max(leastMs, pauseShare * (endMs - startMs));
      isRunning = false;
    });
  }, checkMs);
}

/** Reads an answer without decompressing it. A failure counts like an answer: the next request shows whether it stays. */
function request(url: string, agent: Agent): Promise<void> {
  return new Promise((resolve) => {
    const done = () => resolve();
    const read = (answer: IncomingMessage) => answer.resume().on('end', done).on('error', done);
    get(url, { agent, headers: { 'accept-encoding': 'gzip' } }, read).on('error', done);
  });
}
