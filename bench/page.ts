/** Benchmark of the web page in Chromium: size, first paint, map, and intake with viewers. */
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { hasChromium, openBrowser } from '../test/core/page/browser.ts';
import { figure, hasFaults, renderMachine, renderTargets } from './figures.ts';
import {
  type BenchContext,
  type BenchIo,
  type Benchmark,
  flag,
  integer,
  number,
  runBenchmark,
  word,
} from './harness.ts';
import type { MeasuredPart } from './intake-parts.ts';
import { createSetting, faultsOf, loadOptions } from './measure.ts';
import { openLarge } from './page-data.ts';
import { measureMap } from './page-map.ts';
import { measureViewers } from './page-viewers.ts';
import { measureVisits } from './page-visits.ts';
import { createEndpoint } from './servers.ts';

const parts = ['visits', 'map', 'viewers'] as const;

const options = {
  ...loadOptions,
  products: integer('N', 'products of the large index, received until now at 32,000 a day', {
    ...{ default: 1_000_000, quick: 12_000, min: 10_000, max: 100_000_000 },
  }),
  rate: integer('N', 'notifications per second of the steady load', {
    ...{ default: 1_000, min: 1, max: 100_000 },
  }),
  'steady-seconds': number('S', 'duration of the steady load', {
    ...{ default: 60, quick: 3, min: 1, max: 3_600 },
  }),
  // 10,000 footprints fill the map in ten seconds.
  'steady-warm-up-seconds': number('S', 'steady load before the measurement', {
    ...{ default: 15, quick: 1, min: 0.1, max: 600 },
  }),
  only: word('PART', 'visits, map or viewers', parts),
  dir: word(
    'FOLDER',
    "folder for the data, 9 GB per million products (default: the system's temporary folder)",
  ),
  keep: flag('keep the data in page-N, and reuse existing data'),
  quick: flag('short run with few products'),
  check: flag('exit 1 if a target is missed'),
};

/** Runs the benchmark and returns the exit code. */
export function run(argv: readonly string[], io: BenchIo): Promise<number> {
  return runBenchmark(page, argv, io);
}

const page: Benchmark<typeof options> = {
  command: 'npm run bench:page --',
  about: `Measures the web page in Chromium against a receiver in a process of its own: bytes and first paint of
each page, the time of the server at many products, the map with 10,000 footprints, and intake with three viewers
(overview, live list, map), in Chromium and as programs that request the same.`,
  options,
  closing: `Exit code: 0 done, 1 failed or (--check) a target was missed, 2 invalid usage.

Examples:
  npm run bench:page -- --quick
  npm run bench:page -- --only map
  npm run bench:page -- --dir /mnt/disk --keep --json > page.json`,
  refuse: ({ keep, dir }) =>
    keep && dir === undefined
      ? '--keep requires --dir'
      : hasChromium
        ? null
        : 'Chromium is not installed. Install the package chromium.',
  async measure(chosen, context) {
    const loadBefore = loadavg()[0] ?? 0;
    const measured = await measureParts(chosen, context);
    const targets = measured.flatMap((part) => part.targets);
    const faults = measured.flatMap((part) => [...part.runs.flatMap(faultsOf), ...part.faults]);
    const { machine, command } = context.about;
    const { rounds, connections, rate, seconds } = chosen;
    const intro = `${rounds} round(s), medians; ${connections} connections; full load for ${seconds} s; steady load of ${rate} a second for ${chosen['steady-seconds']} s; load average ${figure(loadBefore, 1)} before, ${figure(loadavg()[0] ?? 0, 1)} after`;
    return {
      report: {
        ...context.about,
        setting: { ...chosen, loadBefore },
        parts: measured.map(({ figures }) => figures),
        ...{ targets, faults },
      },
      text: [
        renderMachine(machine, intro),
        ...measured.flatMap((part) => part.text),
        renderTargets(targets),
        ...(faults.length > 0
          ? [['FAILED', ...faults.map((fault) => `  ${fault}`)].join('\n')]
          : []),
        `Repeat: ${command}`,
      ],
      hasFailed: hasFaults({ faults, targets }, chosen),
    };
  },
};

type Chosen = Parameters<(typeof page)['measure']>[0];

async function measureParts(chosen: Chosen, context: BenchContext): Promise<MeasuredPart[]> {
  const { cleanup, folder, progress } = context;
  const browser = await openBrowser();
  const show = progress.show;
  const runs = (part: (typeof parts)[number]) => (chosen.only ?? part) === part;
  const measured: MeasuredPart[] = [];
  try {
    if (runs('visits') || runs('map')) {
      const temporary = cleanup.temporaryFolder(folder);
      const receiver = await openLarge(context, {
        folder: join(chosen.keep ? folder : temporary, `page-${chosen.products}`),
        products: chosen.products,
        endpoint: await createEndpoint(temporary),
      });
      const setting = { browser, receiver, rounds: chosen.rounds, show };
      const isQuick = chosen.quick;
      if (runs('visits')) {
        const visits = await measureVisits({ ...setting, values: isQuick ? 5 : 25 });
        measured.push({ ...visits, runs: [] });
      }
      if (runs('map')) {
        const map = await measureMap({ ...setting, motionMs: isQuick ? 1_000 : 4_000 });
        measured.push({ ...map, runs: [] });
      }
      await receiver.stop();
      cleanup.removeFolder(temporary);
    }
    if (runs('viewers')) measured.push(await measureLoaded(chosen, context, browser));
  } finally {
    await browser.close();
  }
  return measured;
}

async function measureLoaded(
  chosen: Chosen,
  context: BenchContext,
  browser: Awaited<ReturnType<typeof openBrowser>>,
): Promise<MeasuredPart> {
  const full = await createSetting(chosen, context);
  const steady = {
    ...full,
    rounds: 1,
    ratePerSecond: chosen.rate,
    warmUpMs: chosen['steady-warm-up-seconds'] * 1_000,
    measureMs: chosen['steady-seconds'] * 1_000,
  };
  return measureViewers({ browser, full, steady, idleMs: chosen.quick ? 1_000 : 10_000 });
}
