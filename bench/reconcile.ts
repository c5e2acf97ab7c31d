/** Benchmark of recovery after a long outage: measures time and memory of `earshot reconcile`. */
import { spawn } from 'node:child_process';
import { subscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { z } from 'zod';
import { startSandbox } from '../src/sandbox/sandbox.ts';
import { openStore } from '../test/helpers/store.ts';
import {
  alignTable,
  figure,
  hasFaults,
  inMegabytes,
  megabytes,
  quantile,
  renderMachine,
  renderTargets,
  type TargetResult,
  target,
} from './figures.ts';
import {
  type BenchContext,
  type BenchIo,
  type Benchmark,
  dirOption,
  flag,
  integer,
  integerList,
  number,
  type Outcome,
  runBenchmark,
} from './harness.ts';
import { readCpuMs, watchMemory } from './processes.ts';
import { measureStart, renderStart, startTargets } from './reconcile-start.ts';
import { databaseFile, earshotProgram, projectFolder } from './servers.ts';

/** Assumed share: products are modified within a minute of publication (facts, catalogue 2), but not all. */
const modifiedShare = 0.3;
const deletedShare = 0.02;

const options = {
  days: number('N', 'days of the past', { default: 10, quick: 1, min: 0.1, max: 300 }),
  'per-day': integer('N', 'products published per day', {
    ...{ default: 32_000, quick: 4_000, min: 1, max: 1_000_000 },
  }),
  'requests-per-minute': integerList('A,B', 'one run at each rate', {
    ...{ default: '60,6000', max: 1_000_000 },
  }),
  start: flag('instead, measure `earshot start` while it compares a day of 12000 products'),
  dir: dirOption,
  quick: flag('1 day of 4000 products by default'),
  check: flag('exit 1 if a target is missed'),
};

/** Runs the benchmark and returns the exit code. */
export function run(argv: readonly string[], io: BenchIo): Promise<number> {
  return runBenchmark(reconciling, argv, io);
}

const reconciling: Benchmark<typeof options> = {
  command: 'npm run bench:reconcile --',
  about: `Starts the sandbox with past products that were not notified, registers a subscription to them, and runs
\`earshot reconcile\`, each run with a new data directory: at earshot's default request rate, and at a rate
that never delays requests, to measure the processing time.`,
  options,
  closing: `Exit code: 0 done, 1 failed or (--check) a target was missed, 2 invalid usage.

Examples:
  npm run bench:reconcile                          a quarter of an hour
  npm run bench:reconcile -- --days 1 --requests-per-minute 6000
  npm run bench:reconcile -- --start               two minutes`,
  async measure({ days, 'per-day': productsPerDay, check, ...chosen }, context) {
    if (chosen.start) return measureInStart(context, { check });
    const { progress, about } = context;
    progress.show(`publishing ${Math.round(days * productsPerDay)} products`);
    const past = { days, productsPerDay, modifiedShare, deletedShare };
    const startMs = performance.now();
    const catalogue = await startCatalogue(past);
    const generatedSeconds = (performance.now() - startMs) / 1_000;
    const runs: Figures[] = [];
    for (const requestsPerMinute of chosen['requests-per-minute']) {
      runs.push(await reconcile({ ...context, catalogue, requestsPerMinute }));
    }
    await catalogue.close();
    const { products, deletedProducts } = catalogue.holdings;
    const targets = runs.flatMap(targetsOf);
    const published = `${days} days at ${productsPerDay} products a day: ${products} products and ${deletedProducts} deleted products in the catalogue, published in ${figure(generatedSeconds)} s`;
    return {
      report: {
        ...about,
        past: { ...past, ...catalogue.holdings, generatedSeconds },
        runs,
        targets,
      },
      text: [
        renderMachine(about.machine, published),
        renderRuns(runs),
        'Seconds: total, waiting for answers (of which processing by the catalogue), waiting for the rate limit, and own processing; processor time of all threads.',
        renderTargets(targets),
        `Repeat: ${about.command}`,
      ],
      hasFailed: hasFaults({ targets }, { check }),
    };
  },
};

/** A day without notifications, as after an outage. */
const startPast = { days: 1, productsPerDay: 12_000, modifiedShare, deletedShare };

/** The last hours are not settled yet, so `earshot start` does not compare them. */
const settledShare = 0.9;

async function measureInStart(
  context: BenchContext,
  { check }: { check: boolean },
): Promise<Outcome> {
  const { progress, about, cleanup } = context;
  progress.show('publishing a day');
  const { url, sinceMs, holdings, close } = await startCatalogue(startPast);
  const dataFolder = cleanup.temporaryFolder(context.folder);
  await register(dataFolder, sinceMs - publishedBeforeMs);
  const atLeast = holdings.products * settledShare;
  const run = await measureStart(context, { catalogueUrl: url, dataFolder, atLeast });
  await close();
  const targets = startTargets(run);
  return {
    report: { ...about, past: { ...startPast, ...holdings }, run, targets },
    text: [
      renderMachine(about.machine, `a day of ${holdings.products} products`),
      renderStart(run),
      renderTargets(targets),
      `Repeat: ${about.command}`,
    ],
    hasFailed: hasFaults({ targets }, { check }),
  };
}

/** A catalogue query; times in ms of one clock. */
interface ListRequest {
  readonly startMs: number;
  /** Null without an answer. */
  endMs: number | null;
}

type Catalogue = Awaited<ReturnType<typeof startCatalogue>>;

/** Starts the sandbox with a past and records catalogue queries. Resolves when the past is published. */
async function startCatalogue(past: {
  days: number;
  productsPerDay: number;
  modifiedShare: number;
  deletedShare: number;
}) {
  const { days, productsPerDay, ...shares } = past;
  const durationMs = days * 86_400_000;
  const sinceMs = Date.now() - durationMs;
  const sandbox = await startSandbox({
    ...{ now: Date.now, count: 0, ...shares, past: { durationMs, productsPerDay } },
  });
  const asked: ListRequest[] = [];
  const open = new WeakMap<object, ListRequest>();
  // Node publishes the requests of every server in this process, so the sandbox needs no changes.
  subscribe('http.server.request.start', (message) => {
    const { request, response } = message as { request: IncomingMessage; response: ServerResponse };
    if (!/^\/odata\/v1\/(Deleted)?Products\?/.test(request.url ?? '')) return;
    const entry = { startMs: performance.now(), endMs: null };
    asked.push(entry);
    open.set(response, entry);
  });
  subscribe('http.server.response.finish', (message) => {
    const entry = open.get((message as { response: ServerResponse }).response);
    if (entry !== undefined) entry.endMs = performance.now();
  });
  return {
    url: sandbox.catalogueUrl,
    /** Start of the past, ms since 1970. */
    sinceMs,
    holdings: sandbox.holdings(),
    /** Returns the queries since the last call. */
    drainRequests: () => asked.splice(0),
    close: sandbox.close,
  };
}

/** Figures of one run. Times in seconds, sizes in bytes; null without /proc. */
interface Figures {
  readonly requestsPerMinute: number;
  readonly events: number;
  readonly recovered: number;
  readonly missing: number;
  readonly requests: number;
  /** Maximum within any 60 seconds, measured at the catalogue. */
  readonly requestsInAMinuteMost: number;
  readonly wallSeconds: number;
  /** Waiting times reported by the command: for answers, and for the rate limit. */
  readonly answersSeconds: number;
  readonly waitedSeconds: number;
  /** Processing time of the catalogue. */
  readonly catalogueSeconds: number;
  readonly cpuSeconds: number | null;
  readonly peakResidentBytes: number | null;
  readonly residentBytesMedian: number | null;
  readonly logBytes: number;
  /** Missing notifications in a second comparison; expected 0. */
  readonly foundAgain: number;
}

const sampleMs = 250;

/** Maximum time from publication in the sandbox to notification. */
const publishedBeforeMs = 600_000;

/** Setting of one run. */
interface RunSetting extends BenchContext {
  readonly catalogue: Catalogue;
  readonly requestsPerMinute: number;
}

/** Runs one comparison with a new data directory. Rejects if the command fails. */
async function reconcile(setting: RunSetting): Promise<Figures> {
  const { catalogue, requestsPerMinute, cleanup } = setting;
  const dataFolder = cleanup.temporaryFolder(setting.folder);
  const fromMs = catalogue.sinceMs - publishedBeforeMs;
  const toMs = Date.now();
  await register(dataFolder, fromMs);
  catalogue.drainRequests();
  const window = [
    ...['--since', new Date(fromMs).toISOString()],
    ...['--until', new Date(toMs).toISOString()],
  ];
  const { document, cpuMs, memory } = await runCommand(window, dataFolder, setting);
  const asked = catalogue.drainRequests();
  assertComplete(document.counts, catalogue.holdings);
  const again = await runCommand([...window, '--check'], dataFolder, {
    ...setting,
    requestsPerMinute: 6_000,
  });
  const sum = (key: 'expected' | 'recovered' | 'missing', { counts }: Document = document) =>
    counts.reduce((total, row) => total + row[key], 0);
  const logBytes = statSync(databaseFile(dataFolder)).size;
  cleanup.removeFolder(dataFolder);
  const residents = memory.map(({ residentBytes }) => residentBytes);
  const servedMs = asked.reduce(
    (total, { startMs, endMs }) => total + (endMs ?? startMs) - startMs,
    0,
  );
  return {
    requestsPerMinute,
    events: sum('expected'),
    recovered: sum('recovered'),
    missing: sum('missing'),
    requests: document.requests,
    requestsInAMinuteMost: maxWithin(asked, 60_000),
    wallSeconds: document.seconds,
    answersSeconds: document.answersSeconds,
    waitedSeconds: document.waitedSeconds,
    catalogueSeconds: servedMs / 1_000,
    cpuSeconds: cpuMs === undefined ? null : cpuMs / 1_000,
    peakResidentBytes: memory.at(-1)?.peakResidentBytes ?? null,
    residentBytesMedian: quantile(residents, 0.5),
    logBytes,
    foundAgain: sum('missing', again.document),
  };
}

/** Throws unless the comparison covered every product and deleted product of the catalogue. */
function assertComplete(
  counts: Document['counts'],
  { products, deletedProducts }: Catalogue['holdings'],
): void {
  const expected = (event: string) => counts.find((row) => row.event === event)?.expected ?? 0;
  if (expected('created') === products && expected('deleted') === deletedProducts) return;
  throw new Error(
    `The catalogue has ${products} products and ${deletedProducts} deleted products; the comparison covered ${expected('created')} and ${expected('deleted')}.`,
  );
}

/** Creates a data directory with a registration since a time, without notifications. */
async function register(dataFolder: string, sinceMs: number): Promise<void> {
  const sinceUs = sinceMs * 1_000;
  const store = await openStore({ dataDir: dataFolder, nowUs: () => Date.now() * 1_000 });
  const events = ['created', 'modified', 'deleted'] as const;
  await store.administration.commit({
    save: {
      ...{
        name: 'bench',
        type: 'push',
        events,
        filter: '',
        status: 'running',
        unfinished: false,
        earlierIds: [],
        origin: 'flags' as const,
      },
      ...{ subscriptionId: '00000000-0000-4000-8000-000000000000', credentialsDigest: null },
      ...{ activityAtUs: sinceUs, notifiedAtUs: sinceUs, runningSeenAtUs: sinceUs },
      ...{ pausedSeenAtUs: null, changedByPerson: false, reported: [] },
    },
  });
  await store.close();
}

const documentSchema = z.object({
  requests: z.number(),
  seconds: z.number(),
  answersSeconds: z.number(),
  waitedSeconds: z.number(),
  counts: z.array(
    z.object({
      event: z.string(),
      expected: z.number(),
      recovered: z.number(),
      missing: z.number(),
    }),
  ),
});
type Document = z.infer<typeof documentSchema>;

/** Runs `earshot reconcile` and samples its memory and processor time. */
async function runCommand(
  words: readonly string[],
  dataFolder: string,
  { catalogue, requestsPerMinute, cleanup, progress }: RunSetting,
) {
  const child = spawn(process.execPath, earshotProgram('reconcile', '--json', ...words), {
    cwd: projectFolder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: process.env.PATH,
      EARSHOT_DATA_DIR: dataFolder,
      EARSHOT_CATALOGUE_URL: catalogue.url,
      EARSHOT_RECONCILE_REQUESTS_PER_MINUTE: String(requestsPerMinute),
    },
  });
  cleanup.ownProcess(child);
  const processId = child.pid ?? 0;
  const startMs = performance.now();
  let cpuMs: number | undefined;
  const watched = watchMemory(processId, sampleMs, ({ residentBytes }) => {
    cpuMs = readCpuMs(processId) ?? cpuMs;
    const seconds = Math.round((performance.now() - startMs) / 1_000);
    const now = `${seconds} s, ${Math.round(residentBytes / 1e6)} MB`;
    progress.show(`${requestsPerMinute} requests a minute: ${now}`);
  });
  const ended = once(child, 'exit');
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  await ended;
  const memory = watched.stop();
  // With --check, 3 means that notifications are missing; the document contains the counts.
  if (child.exitCode !== 0 && child.exitCode !== 3) {
    throw new Error(`earshot reconcile exited with ${child.exitCode}: ${err}`);
  }
  return { document: documentSchema.parse(JSON.parse(out)), cpuMs, memory };
}

/** Returns the maximum number of requests within a time window. */
function maxWithin(asked: readonly ListRequest[], windowMs: number): number {
  let most = 0;
  let first = 0;
  for (const [i, { startMs }] of asked.entries()) {
    while ((asked[first]?.startMs ?? startMs) <= startMs - windowMs) first += 1;
    most = Math.max(most, i - first + 1);
  }
  return most;
}

function ownSeconds({ wallSeconds, answersSeconds, waitedSeconds }: Figures): number {
  return Math.max(0, wallSeconds - answersSeconds - waitedSeconds);
}

/** Returns the targets of a run. Memory must not grow with the outage. */
function targetsOf(one: Figures): TargetResult[] {
  const { requestsPerMinute, requestsInAMinuteMost, peakResidentBytes } = one;
  const named = (name: string) => `${name}, at ${requestsPerMinute} a minute`;
  return [
    target(named('peak memory, MB'), inMegabytes(peakResidentBytes), { max: 300 }),
    target(named('requests within a minute'), requestsInAMinuteMost, { max: requestsPerMinute }),
    target(named('missing afterwards'), one.missing + one.foundAgain, { max: 0 }),
    // Without rate limiting there is no target for own processing.
    ...(one.waitedSeconds === 0
      ? []
      : [
          target(named('share of own processing'), ownSeconds(one) / one.wallSeconds, { max: 0.5 }),
        ]),
  ];
}

function renderRuns(runs: readonly Figures[]): string {
  const header = [
    ...['allowed a minute', 'events', 'recovered', 'requests', 'max a minute'],
    ...['s', 'answers s', '(catalogue s)', 'turn s', 'own s', 'CPU s'],
    ...['MB', 'peak MB', 'log MB', 'left'],
  ];
  const rows = runs.map((one) => [
    ...[one.requestsPerMinute, one.events, one.recovered, one.requests].map(String),
    String(one.requestsInAMinuteMost),
    ...[one.wallSeconds, one.answersSeconds, one.catalogueSeconds, one.waitedSeconds].map(
      (seconds) => figure(seconds, 1),
    ),
    ...[figure(ownSeconds(one), 1), figure(one.cpuSeconds, 1)],
    ...[one.residentBytesMedian, one.peakResidentBytes, one.logBytes].map(megabytes),
    String(one.foundAgain),
  ]);
  return alignTable([header, ...rows]);
}
