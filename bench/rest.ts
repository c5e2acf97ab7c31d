/** Benchmark at rest: memory and processor time of an idle receiver, its start, and simple commands. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { inMegabytes, median, renderTable, type TargetResult, target } from './figures.ts';
import { type BenchContext, type Cleanup, defineBenchmark, integer, number } from './harness.ts';
import { readCpuMs, readThreads, watchMemory } from './processes.ts';
import { pushOf, writeShortLog } from './rest-data.ts';
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
  rows: integer('notifications in the large log', 1_000_000, 20_000),
  starts: integer('measured starts with each log', 5, 1),
  runs: integer('runs of each command', 9, 3),
  'settle-seconds': number('minimum time from the start until the receiver is measured', 70, 5),
  seconds: number('measured time at rest', 60, 5),
};

type Chosen = { readonly [Name in keyof typeof options]: number };

export const benchmark = defineBenchmark({
  command: 'npm run bench:rest --',
  about: `Measures what earshot costs while nothing happens: memory and processor time of a receiver with every
background job (index, a sink, summaries with an idle inference service, private listener, maintenance,
reconcile, watchdog, pruning), the time from the start of the process to the first stored push, and time and
memory of simple commands, compared with \`node -e 0\`. The outside services are the sandbox and a web service.
Every program runs once before it is measured, as after a restart: the first run after an installation, or
after a change of earshot.config.ts, also translates TypeScript.`,
  options,
  async measure(chosen, context) {
    const measured = await measureAll(chosen, context);
    const { rest, commands } = measured;
    const base = commands[0]?.wallMs ?? Number.NaN;
    const starts = [
      { name: '0 rows', startMs: measured.smallStartMs },
      { name: `${chosen.rows} rows`, startMs: measured.largeStartMs },
    ];
    return {
      setting: `median of ${chosen.starts} start(s) and ${chosen.runs} run(s); at rest for ${chosen.seconds} s`,
      figures: measured,
      text: [
        renderTable(
          [rest],
          [
            ['receiver at rest', () => 'every background job'],
            ['MB', ({ residentBytes }) => inMegabytes(residentBytes)],
            ['peak MB', ({ peakResidentBytes }) => inMegabytes(peakResidentBytes)],
            ['threads', ({ threads }) => threads],
            ['CPU ms/min', ({ cpuMsPerMinute }) => cpuMsPerMinute],
          ],
        ),
        renderTable(starts, [
          ['start to first stored push', ({ name }) => name],
          ['median ms', ({ startMs }) => median(startMs)],
          ['max ms', ({ startMs }) => Math.max(...startMs)],
        ]),
        renderTable(commands, [
          ['command', ({ name }) => name],
          ['ms', ({ wallMs }) => wallMs],
          ['times node -e 0', ({ wallMs }) => wallMs && wallMs / base, 1],
          ['peak MB', ({ peakResidentBytes }) => inMegabytes(peakResidentBytes)],
        ]),
      ],
      targets: [
        target('memory at rest, MB', inMegabytes(rest.residentBytes), { max: 120 }),
        target(
          'processor time at rest, % of a core',
          rest.cpuMsPerMinute && rest.cpuMsPerMinute / 600,
          { max: 0.5 },
        ),
        ...starts.map(({ name, startMs }) =>
          target(`start to first stored push, ${name}, ms`, median(startMs), { max: 1_500 }),
        ),
        ...commands.slice(1).flatMap(({ name, wallMs, peakResidentBytes }): TargetResult[] => [
          target(`${name}, ms`, wallMs, { max: name === 'status' ? 200 : 250 }),
          target(`${name}, peak memory, MB`, inMegabytes(peakResidentBytes), {
            max: name === 'status' ? 100 : 120,
          }),
        ]),
      ],
    };
  },
});

/** While the receiver settles, starts and commands are measured: they use other data folders. */
async function measureAll(chosen: Chosen, context: BenchContext) {
  const { cleanup, folder, progress } = context;
  const parent = cleanup.temporaryFolder(folder);
  const services = await startOutsideServices(parent, cleanup);
  const start = (name: string) =>
    startResting(services, { dataFolder: join(parent, name), cleanup, push: pushOf() });
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
  const commands = await measureCommands(chosen, large, cleanup);
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

const programs = [
  { name: 'node -e 0', words: ['-e', '0'] },
  ...[['--version'], ['--help'], ['query', '--limit', '1'], ['status']].map((words) => ({
    name: words.join(' '),
    words: earshotProgram(...words),
  })),
];

async function measureCommands({ runs }: Chosen, receiver: RestingReceiver, cleanup: Cleanup) {
  const measured = [];
  for (const { name, words } of programs) {
    await measureCommand(words, receiver, cleanup);
    const figures = [];
    for (let run = 1; run <= runs; run += 1) {
      figures.push(await measureCommand(words, receiver, cleanup));
    }
    measured.push({
      name,
      wallMs: median(figures.map(({ wallMs }) => wallMs)),
      peakResidentBytes: median(figures.map(({ peakResidentBytes }) => peakResidentBytes)),
    });
  }
  return measured;
}

const sampleMs = 4;

/** Runs Node with arguments. Memory is null without /proc. Rejects if the program fails. */
async function measureCommand(
  words: readonly string[],
  { environment: env, dataFolder: cwd }: RestingReceiver,
  cleanup: Cleanup,
): Promise<{ wallMs: number; peakResidentBytes: number | null }> {
  const beganMs = performance.now();
  const child = spawn(process.execPath, words, { cwd, env, stdio: 'ignore' });
  cleanup.ownProcess(child);
  const watched = watchMemory(child.pid ?? 0, sampleMs);
  const [code] = await once(child, 'exit');
  const wallMs = performance.now() - beganMs;
  // `status` exits with 3 if it found a problem, such as a subscription without pushes.
  if (code !== 0 && code !== 3) throw new Error(`${words.join(' ')} exited with ${code}`);
  return { wallMs, peakResidentBytes: watched.stop().at(-1)?.peakResidentBytes ?? null };
}

/** Measures a receiver at rest; figures are null without /proc. */
async function measureRest({ processId }: RestingReceiver, seconds: number) {
  const sample = () => ({ atMs: performance.now(), cpuMs: readCpuMs(processId) ?? Number.NaN });
  const from = sample();
  const watched = watchMemory(processId, 1_000);
  await delay(seconds * 1_000);
  const memory = watched.stop();
  const to = sample();
  const cpuMsPerMinute = ((to.cpuMs - from.cpuMs) * 60_000) / (to.atMs - from.atMs);
  return {
    // Median: threads that start for a moment add up to 25 MB.
    residentBytes: median(memory.map(({ residentBytes }) => residentBytes)),
    peakResidentBytes: memory.at(-1)?.peakResidentBytes ?? null,
    threads: readThreads(processId) ?? null,
    /** Processor time of all threads. */
    cpuMsPerMinute: Number.isNaN(cpuMsPerMinute) ? null : cpuMsPerMinute,
  };
}
