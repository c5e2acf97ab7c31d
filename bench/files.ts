/** File benchmark: time, memory and size of the products of a small and of a large index, written to a file. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { inMegabytes, renderTable, type TargetResult, target } from './figures.ts';
import { type Cleanup, defineBenchmark, flag, integers } from './harness.ts';
import { readCpuMs, watchMemory } from './processes.ts';
import { prepareQueryData } from './query-data.ts';
import { earshotProgram } from './servers.ts';

/** Formats from the index alone; only `stac` also reads the records. */
const forms = ['geoparquet', 'stac', 'csv'] as const;

export const benchmark = defineBenchmark({
  command: 'npm run bench:files --',
  about: `Generates products at the catalogue's rate of 32,000 a day, indexes them (3 GB per million), and measures
\`earshot query products\` that writes all of them to a file: the whole process, with its start.`,
  options: {
    rows: integers('products of the indexes', [10_000, 1_000_000], [2_000, 20_000]),
    keep: flag('keep the data in products-N, and reuse existing data'),
  },
  refuse: ({ keep, dir }) => (keep && dir === undefined ? '--keep requires --dir' : null),
  async measure({ rows, keep }, { cleanup, progress, folder }) {
    const parent = keep ? folder : cleanup.temporaryFolder(folder);
    const measured: FileFigures[] = [];
    for (const count of rows) {
      const data = await prepareQueryData(join(parent, `products-${count}`), count, progress);
      for (const form of forms) {
        progress.show(`${count} products: writing ${form}`);
        measured.push({ form, rows: count, ...(await measureFile(data.folder, form, cleanup)) });
      }
    }
    const secondsOfCsv = (count: number) =>
      measured.find(({ form, rows }) => form === 'csv' && rows === count)?.seconds ?? Number.NaN;
    return {
      setting: `files of ${rows.join(' and ')} products`,
      figures: { measured },
      text: [
        renderTable(measured, [
          ['file', ({ form }) => form],
          ['products', ({ rows }) => rows],
          ['s', ({ seconds }) => seconds, 1],
          ['times csv', ({ rows, seconds }) => seconds / secondsOfCsv(rows), 1],
          ['CPU s', ({ cpuSeconds }) => cpuSeconds, 1],
          ['peak MB', ({ peakResidentBytes }) => inMegabytes(peakResidentBytes)],
          ['file MB', ({ fileBytes }) => inMegabytes(fileBytes)],
          ['bytes/product', ({ rows, fileBytes }) => fileBytes / rows],
        ]),
      ],
      targets: measured.flatMap(targetsOf),
    };
  },
});

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
