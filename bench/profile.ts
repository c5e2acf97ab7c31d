/** Profiles each thread of the receiver under load. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { alignTable, figure, renderMachine } from './figures.ts';
import {
  type BenchIo,
  type Benchmark,
  dirOption,
  flag,
  integer,
  number,
  runBenchmark,
} from './harness.ts';
import { createSetting, loadOptions, measureServer } from './measure.ts';
import { templateCounts } from './notifications.ts';

const options = {
  seconds: number('S', 'measured time', { default: 8, min: 0.5, max: 600 }),
  connections: loadOptions.connections,
  top: integer('N', 'functions shown per thread', { default: 12, min: 1, max: 1_000 }),
  'no-index': flag('without the product index'),
  dir: dirOption,
};

/** Runs the profile and returns the exit code. */
export function run(argv: readonly string[], io: BenchIo): Promise<number> {
  return runBenchmark(profile, argv, io);
}

const profile: Benchmark<typeof options> = {
  command: 'npm run bench:profile --',
  about: `Loads the receiver like \`npm run bench\`, with V8's profiler in each thread, and prints the time of a
notification in each thread: microseconds by kind of work, and the most expensive functions.
The profiler adds overhead; compare the parts, not the totals.`,
  options,
  closing: `Exit code: 0 done, 1 failed, 2 invalid usage.

Example:
  npm run bench:profile -- --seconds 5 --top 20`,
  async measure({ seconds, connections, top, 'no-index': withoutIndex }, context) {
    const { cleanup, progress, folder, about } = context;
    const [dataFolder, profiles] = [
      cleanup.temporaryFolder(folder),
      cleanup.temporaryFolder(folder),
    ];
    const load = { rounds: 1, seconds, connections, 'warm-up-seconds': 1 };
    const setting = await createSetting(load, context);
    progress.show('profiling the receiver under load');
    const distinct = { ...setting, templateCount: templateCounts.distinct };
    const { requestsPerSecond, answered } = await measureServer(distinct, 'earshot', dataFolder, {
      environment: {
        NODE_OPTIONS: `--cpu-prof --cpu-prof-interval 500 --cpu-prof-dir=${profiles}`,
        EARSHOT_INDEX: withoutIndex ? 'off' : 'on',
      },
    });
    // Times in microseconds per answered notification, including the warm-up.
    const threads = readdirSync(profiles)
      .map((name) => readProfile(join(profiles, name), Math.max(1, answered)))
      .map((functions) => threadOf(functions, top))
      .filter(({ kinds }) => totalUs(kinds) >= 1);
    const rate = `${figure(requestsPerSecond)} requests/s with the profiler; µs per notification`;
    return {
      report: { ...about, requestsPerSecond, answered, threads },
      text: [
        renderMachine(about.machine),
        rate,
        ...threads.map(renderThread),
        `Repeat: ${about.command}`,
      ],
      hasFailed: false,
    };
  },
};

/** Time spent in a function, excluding its callees; `place` is its file, empty for native code. */
interface FunctionTime {
  readonly name: string;
  readonly place: string;
  readonly us: number;
}

interface CpuProfile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string };
    readonly children?: readonly number[];
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** Reads the functions of a `.cpuprofile` file, with times per notification, the most expensive first. */
function readProfile(file: string, notifications: number): FunctionTime[] {
  // Format of V8's inspector protocol.
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, 'utf8')) as CpuProfile;
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const callers = new Map(nodes.flatMap(({ id, children = [] }) => children.map((c) => [c, id])));
  const times = new Map<string, FunctionTime>();
  for (const [i, id] of samples.entries()) {
    const { functionName = '', url = '' } = frames.get(id) ?? {};
    if (functionName === '(idle)') continue;
    // Native code has no file, so the caller's file is used.
    const isNative = url === '' && functionName !== '' && !functionName.startsWith('(');
    const name = isNative ? `${functionName} (native)` : functionName || '(anonymous)';
    const caller = frames.get(callers.get(id) ?? -1);
    // Shortened to the path from `src/` or the package name.
    const place = (isNative ? (caller?.url ?? '') : url)
      .replace(/^.*\/node_modules\//, '')
      .replace(/^.*\/src\//, 'src/');
    const key = `${name} ${place}`;
    const us = (times.get(key)?.us ?? 0) + (timeDeltas[i] ?? 0) / notifications;
    times.set(key, { name, place, us });
  }
  return [...times.values()].toSorted((a, b) => b.us - a.us);
}

interface ThreadProfile {
  /** Name of the thread: the most expensive thread module of earshot. */
  readonly thread: string;
  readonly kinds: readonly { readonly kind: string; readonly us: number }[];
  readonly functions: readonly FunctionTime[];
}

function threadOf(functions: readonly FunctionTime[], top: number): ThreadProfile {
  const ours = functions.find(({ place }) => /^src\/.*(?<!store)-thread\.ts$/.test(place));
  const kinds = [...Map.groupBy(functions, kindOf)]
    .map(([kind, own]) => ({ kind, us: totalUs(own) }))
    .toSorted((a, b) => b.us - a.us);
  return { thread: ours?.place ?? 'main', kinds, functions: functions.slice(0, top) };
}

function totalUs(parts: readonly { readonly us: number }[]): number {
  return parts.reduce((sum, { us }) => sum + us, 0);
}

/** In order of precedence: the first match applies. */
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

function renderThread({ thread, kinds, functions }: ThreadProfile): string {
  const rows = kinds.map(({ kind, us }) => [kind, figure(us, 1)]);
  const most = functions.map(({ name, place, us }) => [`${name}  ${place}`, figure(us, 1)]);
  return [
    alignTable([[thread, 'µs'], ...rows, ['total', figure(totalUs(kinds), 1)]]),
    alignTable([['most expensive functions', 'µs'], ...most]),
  ].join('\n\n');
}
