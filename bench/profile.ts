/** Where the time of a notification goes: the receiver under load, with a profiler in each thread. */
import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Cleanup } from './cleanup.ts';
import { type FunctionTime, readCpuProfile } from './cpu-profile.ts';
import { createEndpoint } from './endpoint.ts';
import { describeMachine, type Machine } from './machine.ts';
import { measureServer } from './measure.ts';
import { type ProfileOptions, parseProfileOptions, profileHelpText } from './profile-options.ts';
import type { Progress } from './progress.ts';
import { machineLines } from './report.ts';
import { type BenchIo, runMeasurement } from './run-measurement.ts';
import { alignTable, figure } from './table.ts';

interface ThreadProfile {
  /** What the thread is known by: the file of ours that it spends most time in. */
  readonly thread: string;
  readonly kinds: readonly { readonly kind: string; readonly us: number }[];
  readonly functions: readonly FunctionTime[];
}

/** All times in microseconds for each notification that was answered, warm-up included. */
interface ProfileReport {
  readonly machine: Machine;
  readonly command: string;
  readonly requestsPerSecond: number;
  readonly answered: number;
  readonly threads: readonly ThreadProfile[];
}

/** Runs the profile and returns the exit code: 0 done, 1 failed, 2 wrong usage. */
export function runProfileBench(argv: string[], io: BenchIo): Promise<number> {
  const measurement = {
    parse: parseProfileOptions,
    helpText: profileHelpText,
    measure,
    render,
    hasFailed: () => false,
  };
  return runMeasurement(measurement, argv, io);
}

async function measure(
  options: ProfileOptions,
  argv: string[],
  cleanup: Cleanup,
  progress: Progress,
): Promise<ProfileReport> {
  const parentFolder = options.folder ?? tmpdir();
  const [dataFolder, profiles] = [1, 2].map(() => cleanup.temporaryFolder(parentFolder));
  if (dataFolder === undefined || profiles === undefined) throw new Error('no folder');
  const { connections, warmUpMs, measureMs, top } = options;
  const setting = {
    endpoint: await createEndpoint(cleanup.temporaryFolder(parentFolder)),
    nextRun: () => 1,
    ...{ cleanup, parentFolder, ackIdForm: 'observed' as const, templateCount: 4_096 },
    ...{ connections, warmUpMs, measureMs },
  };
  progress.show('the receiver under load, with a profiler');
  const { requestsPerSecond, answered } = await measureServer(setting, 'earshot', dataFolder, {
    environment: {
      NODE_OPTIONS: `--cpu-prof --cpu-prof-interval 500 --cpu-prof-dir=${profiles}`,
      EARSHOT_INDEX: options.index ? 'on' : 'off',
    },
  });
  const threads = readdirSync(profiles)
    .map((name) => perNotification(readCpuProfile(join(profiles, name)), answered))
    .map((functions) => summed(functions, top))
    .filter(({ kinds }) => kinds.reduce((sum, { us }) => sum + us, 0) >= 1);
  return {
    machine: describeMachine(parentFolder),
    command: ['npm run bench:profile --', ...argv].join(' '),
    ...{ requestsPerSecond, answered, threads },
  };
}

function perNotification(functions: readonly FunctionTime[], answered: number): FunctionTime[] {
  return functions
    .filter(({ name }) => name !== '(idle)')
    .map(({ name, place, us }) => ({ name, place, us: us / Math.max(1, answered) }));
}

function summed(functions: readonly FunctionTime[], top: number): ThreadProfile {
  const ours = functions.find(({ place }) => /^src\/.*(?<!store)-thread\.ts$/.test(place));
  const kinds = new Map<string, number>();
  for (const one of functions) {
    const kind = kindOf(one);
    kinds.set(kind, (kinds.get(kind) ?? 0) + one.us);
  }
  return {
    thread: ours?.place ?? 'main',
    kinds: [...kinds].map(([kind, us]) => ({ kind, us })).toSorted((a, b) => b.us - a.us),
    functions: functions.slice(0, top),
  };
}

/** In the order of asking: the first that fits counts. */
const kindPatterns: readonly (readonly [kind: string, fits: RegExp])[] = [
  ['garbage collection', /^\(garbage collector\)/],
  ['JSON', /^(parse|stringify) \(native\)/],
  ['SQLite', /better-sqlite3|^(run|get|all|exec|pragma|transaction) \(native\)/],
  ['compression', /zlib|zstd/i],
  ['zod', / zod\//],
  ['Hono', / (hono|@hono)\//],
  ['digests', /hash|crypto/i],
  ['network and streams of Node', / node:/],
  ['earshot', / src\//],
];

function kindOf({ name, place }: FunctionTime): string {
  const text = `${name} ${place}`;
  return kindPatterns.find(([, fits]) => fits.test(text))?.[0] ?? 'V8 and native code';
}

function render({ machine, command, requestsPerSecond, threads }: ProfileReport): string {
  const tables = threads.map(({ thread, kinds, functions }) => {
    const total = kinds.reduce((sum, { us }) => sum + us, 0);
    const rows = kinds.map(({ kind, us }) => [kind, figure(us, 1)]);
    const most = functions.map(({ name, place, us }) => [`${name}  ${place}`, figure(us, 1)]);
    return [
      alignTable([[thread, 'µs'], ...rows, ['all of it', figure(total, 1)]]),
      alignTable([['its most expensive functions', 'µs'], ...most]),
    ].join('\n\n');
  });
  const rate = `${figure(requestsPerSecond)} requests/s with the profiler; µs for each notification`;
  return `${[...machineLines(machine), rate, ...tables, `Repeat: ${command}`].join('\n\n')}\n`;
}
