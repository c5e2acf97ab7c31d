/** Benchmark at rest: memory and processor time of an idle receiver, its start, and simple commands. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  alignTable,
  figure,
  hasFaults,
  inMegabytes,
  median,
  megabytes,
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
  number,
  runBenchmark,
} from './harness.ts';
import { readCpuMs, readThreads, watchMemory } from './processes.ts';
import { measureCommand, pushOf, writeShortLog } from './rest-data.ts';
import {
  type OutsideServices,
  type RestingReceiver,
  runCommand,
  startOutsideServices,
  startResting,
  untilAtRest,
} from './rest-receiver.ts';
import { earshotProgram } from './servers.ts';

const options = {
  rows: integer('N', 'notifications in the large log', {
    ...{ default: 1_000_000, quick: 20_000, min: 1, max: 100_000_000 },
  }),
  starts: integer('N', 'measured starts with each log', {
    ...{ default: 5, quick: 1, min: 1, max: 100 },
  }),
  runs: integer('N', 'runs of each command', { default: 9, quick: 3, min: 1, max: 1_000 }),
  'settle-seconds': number('S', 'minimum time from the start until the receiver is measured', {
    ...{ default: 70, quick: 5, min: 0, max: 3_600 },
  }),
  seconds: number('S', 'measured time at rest', { default: 60, quick: 5, min: 1, max: 3_600 }),
  dir: dirOption,
  quick: flag('one start, three runs, 5 s at rest after 5 s, 20000 rows by default'),
  check: flag('exit 1 if a target is missed'),
};

/** Runs the benchmark and returns the exit code. */
export function run(argv: readonly string[], io: BenchIo): Promise<number> {
  return runBenchmark(resting, argv, io);
}

type Chosen = Parameters<(typeof resting)['measure']>[0];

const resting: Benchmark<typeof options> = {
  command: 'npm run bench:rest --',
  about: `Measures what earshot costs while nothing happens: memory and processor time of a receiver with every
background job (index, a sink, summaries with an idle inference service, private listener, maintenance,
reconcile, watchdog, pruning), the time from the start of the process to the first stored push, and time and
memory of simple commands, compared with \`node -e 0\`. The outside services are the sandbox and a web service.
Every program runs once before it is measured, as after a restart: the first run after an installation, or
after a change of earshot.config.ts, also translates TypeScript.`,
  options,
  closing: `Exit code: 0 done, 1 failed or (--check) a target was missed, 2 invalid usage.

Examples:
  npm run bench:rest                               two to three minutes
  npm run bench:rest -- --quick
  npm run bench:rest -- --rows 10000000 --dir /mnt/disk`,
  async measure(chosen, context) {
    const { about } = context;
    const measured = await measureAll(chosen, context);
    const targets = targetsOf(measured, chosen.rows);
    const intro = `median of ${chosen.starts} start(s) and ${chosen.runs} run(s); at rest for ${chosen.seconds} s`;
    return {
      report: { ...about, setting: chosen, ...measured, targets },
      text: [
        renderMachine(about.machine, intro),
        ...render(measured, chosen.rows),
        renderTargets(targets),
        `Repeat: ${about.command}`,
      ],
      hasFailed: hasFaults({ targets }, chosen),
    };
  },
};

/** Receiver at rest; null without /proc. */
interface RestFigures {
  /** Median: threads that start for a moment add up to 25 MB. */
  readonly residentBytes: number | null;
  readonly peakResidentBytes: number | null;
  readonly threads: number | null;
  /** Processor time of all threads. */
  readonly cpuMsPerMinute: number | null;
}

interface CommandFigures {
  readonly name: string;
  readonly wallMs: number | null;
  readonly peakResidentBytes: number | null;
}

interface Measured {
  readonly rest: RestFigures;
  readonly smallStartMs: readonly number[];
  readonly largeStartMs: readonly number[];
  readonly commands: readonly CommandFigures[];
}

/** While the receiver settles, starts and commands are measured: they use other data folders. */
async function measureAll(chosen: Chosen, context: BenchContext): Promise<Measured> {
  const { cleanup, folder, progress } = context;
  const parent = cleanup.temporaryFolder(folder);
  const services = await startOutsideServices(parent, cleanup);
  const start = (name: string) => {
    const settings = { dataFolder: join(parent, name), cleanup, push: pushOf() };
    return startResting(services, settings);
  };
  progress.show('starting a receiver with every background job');
  const first = await start('resting');
  await runCommand(['register', '--yes'], first);
  await first.stop();
  const receiver = await start('resting');
  const settledMs = performance.now() + chosen['settle-seconds'] * 1_000;
  progress.show('starts without a log');
  const { startMs: smallStartMs, last: small } = await measureStarts(chosen, () => start('small'));
  await small.stop();
  await prepareLarge(services, chosen, { ...context, dataFolder: join(parent, 'large') });
  progress.show('starts with a large log');
  const { startMs: largeStartMs, last: large } = await measureStarts(chosen, () => start('large'));
  progress.show('waiting for the receiver to be idle');
  await untilAtRest(large);
  progress.show('commands');
  const commands = await measureCommands(chosen, large, context);
  await large.stop();
  progress.show('receiver at rest');
  await delay(Math.max(0, settledMs - performance.now()));
  const rest = await measureRest(receiver, chosen.seconds);
  await receiver.stop();
  await services.close();
  return { rest, smallStartMs, largeStartMs, commands };
}

async function measureStarts({ starts }: Chosen, start: () => Promise<RestingReceiver>) {
  let last = await start();
  const startMs: number[] = [];
  for (let run = 1; run <= starts; run += 1) {
    await last.stop();
    last = await start();
    startMs.push(last.firstPushMs);
  }
  return { startMs, last };
}

async function prepareLarge(
  services: OutsideServices,
  { rows }: Chosen,
  { cleanup, progress, dataFolder }: BenchContext & { dataFolder: string },
): Promise<void> {
  const empty = await startResting(services, { dataFolder, cleanup, push: null });
  await empty.stop();
  await writeShortLog(dataFolder, rows, (written) =>
    progress.show(`writing the log: ${written} of ${rows} rows`),
  );
}

const simpleCommands = [['--version'], ['--help'], ['query', '--limit', '1'], ['status']];

async function measureCommands(
  { runs }: Chosen,
  { environment: env, dataFolder: cwd }: RestingReceiver,
  { cleanup }: BenchContext,
): Promise<CommandFigures[]> {
  const programs = [
    { name: 'node -e 0', words: ['-e', '0'] },
    ...simpleCommands.map((words) => ({ name: words.join(' '), words: earshotProgram(...words) })),
  ];
  const measured: CommandFigures[] = [];
  for (const { name, words } of programs) {
    const how = { words, env, cwd, cleanup };
    await measureCommand(how);
    const figures = [];
    for (let run = 1; run <= runs; run += 1) figures.push(await measureCommand(how));
    measured.push({
      name,
      wallMs: median(figures.map(({ wallMs }) => wallMs)),
      peakResidentBytes: median(figures.map(({ peakResidentBytes }) => peakResidentBytes)),
    });
  }
  return measured;
}

async function measureRest({ processId }: RestingReceiver, seconds: number): Promise<RestFigures> {
  const sample = () => ({ atMs: performance.now(), cpuMs: readCpuMs(processId) });
  const from = sample();
  const watched = watchMemory(processId, 1_000);
  await delay(seconds * 1_000);
  const memory = watched.stop();
  const to = sample();
  const cpuMs = from.cpuMs === undefined || to.cpuMs === undefined ? null : to.cpuMs - from.cpuMs;
  return {
    residentBytes:
      memory.length === 0 ? null : median(memory.map(({ residentBytes }) => residentBytes)),
    peakResidentBytes: memory.at(-1)?.peakResidentBytes ?? null,
    threads: readThreads(processId) ?? null,
    cpuMsPerMinute: cpuMs === null ? null : (cpuMs * 60_000) / (to.atMs - from.atMs),
  };
}

const minuteMs = 60_000;

function targetsOf({ rest, smallStartMs, largeStartMs, commands }: Measured, rows: number) {
  const core = rest.cpuMsPerMinute === null ? null : (100 * rest.cpuMsPerMinute) / minuteMs;
  const seconds = (ms: number | null) => (ms === null ? null : ms / 1_000);
  return [
    target('memory at rest, MB', inMegabytes(rest.residentBytes), { max: 120 }),
    target('processor time at rest, % of a core', core, { max: 1 }),
    target('start to first stored push, 0 rows, s', seconds(median(smallStartMs)), { max: 1.5 }),
    target(`start to first stored push, ${rows} rows, s`, seconds(median(largeStartMs)), {
      max: 1.5,
    }),
    ...commands
      .slice(1)
      .flatMap(({ name, wallMs, peakResidentBytes }): TargetResult[] => [
        target(`${name}, s`, seconds(wallMs), { max: 0.25 }),
        target(`${name}, peak memory, MB`, inMegabytes(peakResidentBytes), { max: 120 }),
      ]),
  ];
}

function render({ rest, smallStartMs, largeStartMs, commands }: Measured, rows: number): string[] {
  const [base] = commands;
  const toBase = (ms: number | null) =>
    ms === null || !base?.wallMs ? '-' : figure(ms / base.wallMs, 1);
  return [
    alignTable([
      ['receiver at rest', 'MB', 'peak MB', 'threads', 'CPU ms/min'],
      [
        'every background job',
        megabytes(rest.residentBytes),
        megabytes(rest.peakResidentBytes),
        figure(rest.threads),
        figure(rest.cpuMsPerMinute),
      ],
    ]),
    alignTable([
      ['start to first stored push', 'median ms', 'max ms'],
      ...[
        { name: '0 rows', startMs: smallStartMs },
        { name: `${rows} rows`, startMs: largeStartMs },
      ].map(({ name, startMs }) => [name, figure(median(startMs)), figure(Math.max(...startMs))]),
    ]),
    alignTable([
      ['command', 'ms', 'times node -e 0', 'peak MB'],
      ...commands.map(({ name, wallMs, peakResidentBytes }) => [
        ...[name, figure(wallMs), toBase(wallMs), megabytes(peakResidentBytes)],
      ]),
    ]),
  ];
}
