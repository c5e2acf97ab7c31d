/** Benchmark of `earshot admin index rebuild` while notifications arrive. */
import { join } from 'node:path';
import {
  alignTable,
  figure,
  hasFaults,
  inMegabytes,
  megabytes,
  renderMachine,
  renderTargets,
  type TargetResult,
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
import { createSetting, faultsOf, measureServer, type RunFigures } from './measure.ts';
import { prepareQueryData, type QueryData } from './query-data.ts';
import { runCommand } from './rest-receiver.ts';

const options = {
  rows: integer('N', 'products in the log', {
    ...{ default: 1_000_000, quick: 100_000, min: 1, max: 100_000_000 },
  }),
  seconds: number('S', 'time of intake, longer than the rebuild', {
    ...{ default: 150, quick: 25, min: 5, max: 86_400 },
  }),
  rate: integer('N', 'notifications per second', { default: 200, min: 1, max: 100_000 }),
  dir: dirOption,
  quick: flag('100000 products and 25 s by default'),
  check: flag('exit 1 if a target is missed'),
};

/** Runs the benchmark and returns the exit code. */
export function run(argv: readonly string[], io: BenchIo): Promise<number> {
  return runBenchmark(rebuilding, argv, io);
}

const connections = 8;
const secondsMax = 120;

const rebuilding: Benchmark<typeof options> = {
  command: 'npm run bench:rebuild --',
  about: `Measures \`earshot admin index rebuild\` of a large log while a receiver stores a fixed rate of notifications
over HTTPS, and the latency of these notifications. The bound of the time is for a million products.`,
  options,
  closing: `Exit code: 0 done, 1 an answered notification is missing, the rebuild took longer than the intake, or (--check)
a target was missed; 2 invalid usage.

Examples:
  npm run bench:rebuild                            six minutes
  npm run bench:rebuild -- --quick`,
  async measure(chosen, context) {
    const { rows, seconds, rate } = chosen;
    const { cleanup, progress, folder, about } = context;
    const load = { rounds: 1, connections, seconds, 'warm-up-seconds': 2 };
    const setting = { ...(await createSetting(load, context)), ratePerSecond: rate };
    const dataFolder = join(cleanup.temporaryFolder(folder), 'data');
    const data = await prepareQueryData(dataFolder, rows, progress);
    let rebuild: Promise<number> | undefined;
    progress.show('rebuilding during intake');
    const receiver = await measureServer(setting, 'earshot', dataFolder, {
      prepare: async () => {
        rebuild = timeRebuild(dataFolder);
        // Reported after the load.
        rebuild.catch(() => undefined);
      },
    });
    const rebuildSeconds = (await rebuild) ?? Number.NaN;
    const faults = [
      ...faultsOf(receiver),
      ...(rebuildSeconds > seconds ? ['the rebuild took longer than the intake'] : []),
    ];
    const measured = { data, rebuildSeconds, receiver };
    const targets = targetsOf(measured);
    return {
      report: { ...about, setting: chosen, ...measured, targets, faults },
      text: [
        renderMachine(about.machine, `${rate} notifications/s over ${connections} connections`),
        ...render(measured),
        renderTargets(targets),
        ...(faults.length > 0 ? [['FAILED', ...faults].join('\n  ')] : []),
        `Repeat: ${about.command}`,
      ],
      hasFailed: hasFaults({ faults, targets }, chosen),
    };
  },
};

interface Measured {
  readonly data: QueryData;
  readonly rebuildSeconds: number;
  readonly receiver: RunFigures;
}

function targetsOf({ data, rebuildSeconds, receiver }: Measured): TargetResult[] {
  const ofMillion = (1e6 / data.products) * rebuildSeconds;
  const peak = inMegabytes(receiver.peakResidentBytes);
  return [
    target('rebuild of a million during intake, s', ofMillion, { max: secondsMax }),
    target('p99 of a push during and after the rebuild, ms', receiver.p99Ms, { max: 36 }),
    target('peak memory of the receiver, MB', peak, { max: 350 }),
  ];
}

function render({ data, rebuildSeconds, receiver }: Measured): string[] {
  const { requestsPerSecond, p50Ms, p99Ms, maxMs, serverCores, peakResidentBytes } = receiver;
  return [
    alignTable([
      ['products', 'notifications', 's', 'notifications/s', 's alone', 'index bytes/product'],
      [
        ...[String(data.products), String(data.notifications), figure(rebuildSeconds, 1)],
        figure(data.notifications / rebuildSeconds),
        ...[figure(data.indexSeconds, 1), figure(data.indexBytes / data.products)],
      ],
    ]),
    alignTable([
      ['receiver: stored/s', 'p50 ms', 'p99 ms', 'max ms', 'cores', 'peak MB'],
      [
        ...[requestsPerSecond, p50Ms, p99Ms, maxMs].map((value) => figure(value, 1)),
        ...[figure(serverCores, 2), megabytes(peakResidentBytes)],
      ],
    ]),
  ];
}

/** Returns the duration in seconds. */
async function timeRebuild(dataFolder: string): Promise<number> {
  const startMs = performance.now();
  const environment = { PATH: process.env.PATH, EARSHOT_DATA_DIR: dataFolder };
  await runCommand(['admin', 'index', 'rebuild'], { environment, dataFolder });
  return (performance.now() - startMs) / 1_000;
}
