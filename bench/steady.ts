/** Benchmark of steady load with everything enabled: memory over time, processor time, latency, bounded queues. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sinkReader, sinkWaitingMax } from '../src/features/sinks/terms.ts';
import { waitingMax as summariesWaitingMax } from '../src/features/summary/jobs.ts';
import { summaryReader } from '../src/features/summary/terms.ts';
import {
  alignTable,
  figure,
  hasFaults,
  inMegabytes,
  megabytes,
  quantile,
  renderMachine,
  renderTargets,
  target,
} from './figures.ts';
import {
  type BenchIo,
  type Benchmark,
  dirOption,
  flag,
  integer,
  number,
  runBenchmark,
} from './harness.ts';
import {
  type BenchSetting,
  createSetting,
  faultsOf,
  measureServer,
  type RunFigures,
  readDatabase,
} from './measure.ts';
import { templateCounts } from './notifications.ts';
import { freePort, watchMemory } from './processes.ts';
import { databaseFile, startService } from './servers.ts';
import { type ClientFigures, type Clients, startCrowd, startQueryLoop } from './steady-clients.ts';

const options = {
  seconds: number('S', 'time with everything enabled', {
    ...{ default: 600, quick: 20, min: 5, max: 86_400 },
  }),
  rate: integer('N', 'notifications per second', { default: 200, min: 1, max: 100_000 }),
  crowd: flag('also measure a crowd that requests the largest answers of the private listener'),
  'crowd-size': integer('N', 'clients of the crowd', { default: 50, min: 1, max: 1_000 }),
  dir: dirOption,
  quick: flag('20 s with everything enabled'),
  check: flag('exit 1 if a target is missed'),
};

/** Runs the benchmark and returns the exit code. */
export function run(argv: readonly string[], io: BenchIo): Promise<number> {
  return runBenchmark(steady, argv, io);
}

const connections = 8;

/** Longest time of the other states, which show no change over time. */
const otherSecondsMax = 60;

/** The crowd needs products to request. */
const crowdWarmUpMs = 30_000;

const states = ['nothing else', 'everything', 'crowd'] as const;
type State = (typeof states)[number];

const steady: Benchmark<typeof options> = {
  command: 'npm run bench:steady --',
  about: `Measures earshot with a fixed rate of notifications over HTTPS, in these states:
  nothing else  no index, sink, summaries or queries: the baseline of the latency
  everything    index, a webhook that answers after a second, summaries of every product by a service that
                never answers, one program that queries the private listener four times a second, a live stream
  crowd         (--crowd) everything, and many clients that request the largest answers without a pause`,
  options,
  closing: `Exit code: 0 done, 1 an answered notification is missing, a request failed, or (--check) a target was
missed; 2 invalid usage.

Examples:
  npm run bench:steady                             a quarter of an hour
  npm run bench:steady -- --seconds 60 --crowd`,
  async measure(chosen, context) {
    const { seconds, rate } = chosen;
    const otherSeconds = Math.min(seconds, otherSecondsMax);
    const load = { rounds: 1, connections, 'warm-up-seconds': 2 };
    const setting = {
      ...(await createSetting({ ...load, seconds }, context)),
      ratePerSecond: rate,
      templateCount: templateCounts.distinct,
    };
    const other = { ...setting, measureMs: otherSeconds * 1_000 };
    const crowded = { ...other, warmUpMs: crowdWarmUpMs };
    const measured: Measured[] = [
      await measureState(other, 'nothing else', 0),
      await measureState(setting, 'everything', 0),
      ...(chosen.crowd ? [await measureState(crowded, 'crowd', chosen['crowd-size'])] : []),
    ];
    const targets = targetsOf(measured);
    const faults = measured.flatMap(({ run }) => faultsOf(run));
    const { machine } = context.about;
    return {
      report: {
        ...context.about,
        setting: { seconds, rate, connections },
        measured,
        targets,
        faults,
      },
      text: [
        renderMachine(machine, `${rate} notifications/s over ${connections} connections`),
        renderStates(measured),
        renderMemory(measured),
        ...measured.flatMap(({ state, queues }) => (queues ? [renderQueues(state, queues)] : [])),
        ...measured.flatMap(({ state, clients }) =>
          clients ? [renderClients(state, clients)] : [],
        ),
        renderTargets(targets),
        ...(faults.length > 0 ? [['FAILED', ...faults].join('\n  ')] : []),
        `Repeat: ${context.about.command}`,
      ],
      hasFailed: hasFaults({ faults, targets }, chosen),
    };
  },
};

/** Positions and lengths at the end of the load. */
interface Queues {
  readonly lastPosition: number;
  readonly sinkPosition: number;
  readonly sinkWaiting: number;
  readonly summaryPosition: number;
  readonly summariesWaiting: number;
}

interface Measured {
  readonly state: State;
  readonly run: RunFigures;
  /** Resident memory at the start and at the end of each minute, bytes. */
  readonly residentBytes: readonly number[];
  /** Null without sinks and summaries. */
  readonly queues: Queues | null;
  /** Null without queries. With a crowd, only those of the crowd. */
  readonly clients: ClientFigures | null;
}

async function measureState(
  setting: BenchSetting,
  state: State,
  crowdSize: number,
): Promise<Measured> {
  const { cleanup, progress, folder } = setting;
  const dataFolder = cleanup.temporaryFolder(folder);
  progress.show(`${state}: starting`);
  const consolePort = await freePort();
  const url = `http://127.0.0.1:${consolePort}`;
  const isFull = state !== 'nothing else';
  const environment = isFull
    ? await enableEverything(setting, dataFolder, consolePort)
    : { EARSHOT_INDEX: 'off', EARSHOT_CONSOLE_LISTEN: 'off' };
  const running: Clients[] = [];
  let crowdStart: NodeJS.Timeout | undefined;
  let watched: ReturnType<typeof watchMemory> | undefined;
  let queues: Queues | null = null;
  const run = await measureServer(setting, 'earshot', dataFolder, {
    environment,
    prepare: async ({ processId }) => {
      watched = watchMemory(processId, sampleMs, ({ residentBytes }) =>
        progress.show(`${state}: ${megabytes(residentBytes)} MB`),
      );
      if (isFull) running.push(startQueryLoop(url));
      if (crowdSize === 0) return;
      crowdStart = setTimeout(() => running.push(startCrowd(url, crowdSize)), setting.warmUpMs);
    },
    loaded: () => {
      clearTimeout(crowdStart);
      for (const one of running) one.stop();
      if (isFull) queues = readQueues(dataFolder);
    },
  });
  const memory = watched?.stop() ?? [];
  cleanup.removeFolder(dataFolder);
  const perMinute = 60_000 / sampleMs;
  const kept = memory.filter((_, i) => i % perMinute === 0 || i === memory.length - 1);
  const residentBytes = kept.map((one) => one.residentBytes);
  return { state, run, residentBytes, queues, clients: running.at(-1)?.figures ?? null };
}

const sampleMs = 1_000;

/** Starts the services, writes the configuration file, and returns the environment. */
async function enableEverything(
  { cleanup }: BenchSetting,
  dataFolder: string,
  consolePort: number,
): Promise<NodeJS.ProcessEnv> {
  const service = `http://127.0.0.1:${await startService('hook', cleanup)}`;
  const sinks = { slow: { webhook: `${service}/slow`, from: 'start' } };
  writeFileSync(
    join(dataFolder, 'earshot.config.ts'),
    `export default ${JSON.stringify({ sinks })};\n`,
  );
  return {
    EARSHOT_CONSOLE_LISTEN: `127.0.0.1:${consolePort}`,
    EARSHOT_SUMMARY: 'each',
    EARSHOT_INFERENCE_URL: `${service}/hang`,
    EARSHOT_INFERENCE_API_KEY: 'bench-key-of-no-service',
    EARSHOT_INFERENCE_MODEL: 'bench/model',
  };
}

function readQueues(dataFolder: string): Queues {
  return readDatabase(databaseFile(dataFolder), (db) => {
    const value = (sql: string, ...bound: string[]) =>
      Number(
        db
          .prepare(sql)
          .pluck()
          .get(...bound) ?? 0,
      );
    const cursor = 'SELECT position FROM reader_cursor WHERE reader = ?';
    return {
      lastPosition: value('SELECT max(position) FROM notification'),
      sinkPosition: value(cursor, sinkReader('slow')),
      sinkWaiting: value("SELECT count(*) FROM sink_item WHERE state = 'waiting'"),
      summaryPosition: value(cursor, summaryReader),
      summariesWaiting: value('SELECT count(*) FROM summary WHERE due_at_us IS NOT NULL'),
    };
  });
}

function targetsOf(measured: readonly Measured[]) {
  const of = (name: State) => measured.find(({ state }) => state === name);
  const [alone, all, crowd] = states.map(of);
  const ratio = all && alone && all.run.p99Ms / alone.run.p99Ms;
  const queues = all?.queues ?? null;
  return [
    ...(all === undefined ? [] : memoryTargets(all)),
    target('everything: cores', all?.run.serverCores ?? null, { max: 0.5 }),
    target('everything: p99 of a push, ms', all?.run.p99Ms ?? null, { max: 36 }),
    target('everything: p99 / nothing else', ratio ?? null, { max: 5 }),
    target('waiting items of the sink', queues?.sinkWaiting ?? null, { max: sinkWaitingMax }),
    target('waiting summaries', queues?.summariesWaiting ?? null, { max: summariesWaitingMax }),
    ...(crowd === undefined ? [] : memoryTargets(crowd)),
  ];
}

function memoryTargets({ state, run }: Measured) {
  const peak = inMegabytes(run.peakResidentBytes);
  return [target(`${state}: peak memory, MB`, peak, { max: 350 })];
}

function renderStates(measured: readonly Measured[]): string {
  const header = ['state', 'notifications/s', 'p50 ms', 'p99 ms', 'max ms', 'cores'];
  const rows = measured.map(({ state, run }) => [
    state,
    figure(run.requestsPerSecond, 1),
    ...[run.p50Ms, run.p99Ms, run.maxMs].map((ms) => figure(ms, 1)),
    figure(run.serverCores, 2),
    figure(run.otherCores, 2),
    figure(run.answered),
    figure(run.missing),
  ]);
  return alignTable([[...header, 'other cores', 'answered', 'missing'], ...rows]);
}

function renderMemory(measured: readonly Measured[]): string {
  const lines = measured.map(({ state, run, residentBytes }) => {
    const [start = 0, ...minutes] = residentBytes;
    const over = minutes.map(megabytes).join(', ');
    return `  ${state}: ${megabytes(start)} at the start; each minute and at the end ${over}; peak ${megabytes(run.peakResidentBytes)}`;
  });
  return ['Memory, MB', ...lines].join('\n');
}

function renderQueues(state: State, queues: Queues): string {
  const { lastPosition, sinkPosition, sinkWaiting, summaryPosition, summariesWaiting } = queues;
  return [
    `Readers of the log at the end, ${state}`,
    `  sink:      ${lastPosition - sinkPosition} notifications behind, ${sinkWaiting} waiting (maximum ${sinkWaitingMax})`,
    `  summaries: ${lastPosition - summaryPosition} notifications behind, ${summariesWaiting} waiting (maximum ${summariesWaitingMax})`,
  ].join('\n');
}

function renderClients(state: State, { statuses, latencyMs }: ClientFigures): string {
  const counts = Object.entries(statuses).map(([status, count]) => `${count} with ${status}`);
  const [middle, high] = [quantile(latencyMs, 0.5), quantile(latencyMs, 0.99)];
  return `Answers of the private listener, ${state}: ${counts.join(', ')}; p50 ${figure(middle)} ms, p99 ${figure(high)} ms`;
}
