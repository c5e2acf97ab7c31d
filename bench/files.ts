/** File benchmark: time, memory and size of the products of a small and of a large index, written to a file. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, rmSync, statSync } from 'node:fs';
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
  type Cleanup,
  dirOption,
  flag,
  integerList,
  runBenchmark,
} from './harness.ts';
import { readCpuMs, watchMemory } from './processes.ts';
import { prepareQueryData } from './query-data.ts';
import { earshotProgram } from './servers.ts';

const options = {
  rows: integerList('N,…', 'products of each index', {
    ...{ default: '10000,1000000', quick: '2000,20000', max: 100_000_000 },
  }),
  dir: dirOption,
  keep: flag('keep the data in products-N, and reuse existing data'),
  quick: flag('--rows 2000,20000 by default'),
  check: flag('exit 1 if a target is missed'),
};

/** Formats from the index alone; only `stac` also reads the records. */
const forms = ['geoparquet', 'stac', 'csv'] as const;

/** Runs the benchmark and returns the exit code. */
export function run(argv: readonly string[], io: BenchIo): Promise<number> {
  return runBenchmark(files, argv, io);
}

const files: Benchmark<typeof options> = {
  command: 'npm run bench:files --',
  about: `Generates products at the catalogue's rate of 32,000 a day, indexes them, and measures
\`earshot query products\` that writes all of them to a file: the whole process, with its start.`,
  options,
  closing: `Exit code: 0 done, 1 failed or (--check) a target was missed, 2 invalid usage.

Examples:
  npm run bench:files                              five minutes, 3 GB
  npm run bench:files -- --quick
  npm run bench:files -- --dir /mnt/disk --keep --json > files.json`,
  refuse: ({ keep, dir }) => (keep && dir === undefined ? '--keep requires --dir' : null),
  async measure({ rows, keep, check }, { cleanup, progress, folder, about }) {
    const parent = keep ? folder : cleanup.temporaryFolder(folder);
    const measured: FileFigures[] = [];
    for (const count of rows) {
      const data = await prepareQueryData(join(parent, `products-${count}`), count, progress);
      for (const form of forms) {
        progress.show(`${count} products: writing ${form}`);
        measured.push({ form, rows: count, ...(await measureFile(data.folder, form, cleanup)) });
      }
    }
    const targets = measured.flatMap(targetsOf);
    return {
      report: { ...about, measured, targets },
      text: [renderMachine(about.machine), render(measured), renderTargets(targets)],
      hasFailed: hasFaults({ targets }, { check }),
    };
  },
};

interface FileFigures {
  readonly form: (typeof forms)[number];
  /** Products in the log; some of them are deleted. */
  readonly rows: number;
  readonly seconds: number;
  /** Processor time of all threads; null without /proc, as is the memory. */
  readonly cpuSeconds: number | null;
  readonly peakResidentBytes: number | null;
  readonly fileBytes: number;
}

const sampleMs = 20;

async function measureFile(
  dataFolder: string,
  form: string,
  cleanup: Cleanup,
): Promise<Omit<FileFigures, 'form' | 'rows'>> {
  const file = join(dataFolder, `products.${form}`);
  const output = openSync(file, 'w');
  const beganMs = performance.now();
  const words = earshotProgram('query', 'products', '--output', form, '--data-dir', dataFolder);
  const child = spawn(process.execPath, words, {
    cwd: dataFolder,
    stdio: ['ignore', output, 'inherit'],
  });
  cleanup.ownProcess(child);
  let cpuMs: number | undefined;
  const watched = watchMemory(child.pid ?? 0, sampleMs, () => {
    cpuMs = readCpuMs(child.pid ?? 0) ?? cpuMs;
  });
  const [code] = await once(child, 'exit');
  const seconds = (performance.now() - beganMs) / 1_000;
  const memory = watched.stop();
  closeSync(output);
  const { size: fileBytes } = statSync(file);
  rmSync(file);
  if (code !== 0) throw new Error(`${words.join(' ')} exited with ${code}`);
  return {
    ...{ seconds, fileBytes, cpuSeconds: cpuMs === undefined ? null : cpuMs / 1_000 },
    peakResidentBytes: memory.at(-1)?.peakResidentBytes ?? null,
  };
}

const largeRows = 1_000_000;

/** The time of a file has a bound for a million products. */
function targetsOf({ form, rows, seconds, peakResidentBytes }: FileFigures): TargetResult[] {
  if (form === 'csv') return [];
  const name = `${form}, ${rows} products`;
  return [
    ...(rows === largeRows ? [target(`${name}, s`, seconds, { max: 60 })] : []),
    target(`${name}, peak memory, MB`, inMegabytes(peakResidentBytes), { max: 300 }),
  ];
}

function render(measured: readonly FileFigures[]): string {
  const header = ['file', 'products', 's', 'CPU s', 'products/s', 'peak MB', 'file MB', 'bytes'];
  const rows = measured.map((one) => [
    ...[one.form, String(one.rows), figure(one.seconds, 1), figure(one.cpuSeconds, 1)],
    ...[figure(one.rows / one.seconds), megabytes(one.peakResidentBytes)],
    ...[megabytes(one.fileBytes), figure(one.fileBytes / one.rows)],
  ]);
  return [alignTable([header, ...rows]), '', 'Bytes: of the file, for each product.'].join('\n');
}
