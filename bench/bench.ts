/** Intake benchmark: earshot against two baselines, with a growing log, and with each background job. */
import { figure, hasFaults, renderMachine, renderTargets } from './figures.ts';
import { measureGrowth } from './growth.ts';
import {
  type BenchIo,
  type Benchmark,
  dirOption,
  flag,
  integer,
  integerList,
  number,
  optional,
  runBenchmark,
  word,
} from './harness.ts';
import {
  type MeasuredPart,
  measureComparison,
  measureIndexing,
  measureSinks,
  measureSummaries,
} from './intake-parts.ts';
import { createSetting, faultsOf, loadOptions } from './measure.ts';
import { ackIdForms, meanBodyBytes } from './notifications.ts';

/** Maximum processor use of other programs, in cores, without a warning in the report. */
const otherCoresMax = 0.25;

const options = {
  ...loadOptions,
  'ack-ids': {
    ...word(
      'FORM',
      'observed (as recorded, increasing with time) or guid (as specified)',
      ackIdForms,
    ),
    default: 'observed',
  },
  growth: flag(
    'also measure speed and memory on a small and on a large database, and the\nlatency of the readiness probe while another process scans the large one',
  ),
  'growth-rows': integerList('A,B', 'rows of the small and the large database', {
    ...{ default: '10000,1000000', max: 100_000_000, count: 2 },
  }),
  'prefill-body-bytes': optional(
    integer('N', 'size of their bodies (default: real size, about 5 kB each)', {
      ...{ min: 1, max: 1_048_576 },
    }),
  ),
  'probe-seconds': number('S', 'duration of the probe, when idle and during scans', {
    ...{ default: 10, quick: 2, min: 0.1, max: 600 },
  }),
  index: flag(
    'also measure intake with the product index on and off in turn, and the\nindexing rate during intake at full speed',
  ),
  summaries: flag(
    'also measure intake without summaries and with a summary of every product\n(the model answers after a second) in turn',
  ),
  sinks: flag(
    'also measure intake without a sink, with a webhook that never answers, and\nwith one that accepts everything immediately, in turn',
  ),
  'no-comparison': flag('skip the comparison, with --growth, --index, --summaries or --sinks'),
  dir: dirOption,
  quick: flag('one round of 2 s after 1 s of warm-up, 2 s of probe'),
  check: flag('exit 1 if a target is missed'),
};

/** Runs the benchmark and returns the exit code. */
export function run(argv: readonly string[], io: BenchIo): Promise<number> {
  return runBenchmark(intake, argv, io);
}

const intake: Benchmark<typeof options> = {
  command: 'npm run bench --',
  about: `Measures earshot against two baselines in one run, over HTTPS on loopback, with the same certificate
and the same notifications of real size:
  bare         a Hono server that reads the body and stores nothing: the upper limit
  twenty-line  Hono, Basic Auth and one durable SQLite insert per request: a simple receiver
Then checks that the database file contains every notification that was answered with 200.`,
  options,
  closing: `Exit code: 0 done, 1 an answered notification is missing, a request failed, or (--check) a target was
missed; 2 invalid usage.

Examples:
  npm run bench -- --quick
  npm run bench -- --rounds 3 --seconds 5 --json > bench.json
  npm run bench -- --growth --no-comparison --dir /mnt/disk
  npm run bench -- --index --no-comparison
  npm run bench -- --summaries --no-comparison
  npm run bench -- --sinks --no-comparison
  npm run bench -- --growth --growth-rows 1000,50000 --quick`,
  refuse: ({ growth, index, summaries, sinks, 'no-comparison': isLeftOut }) =>
    isLeftOut && !growth && !index && !summaries && !sinks
      ? '--no-comparison requires --growth, --index, --summaries or --sinks'
      : null,
  async measure(chosen, context) {
    const ackIdForm = ackIdForms.find((form) => form === chosen['ack-ids']) ?? 'observed';
    const setting = await createSetting(chosen, context, ackIdForm);
    const [smallRows = 0, largeRows = 0] = chosen['growth-rows'];
    const bodyBytes = chosen['prefill-body-bytes'];
    const growth = { smallRows, largeRows, bodyBytes, probeMs: chosen['probe-seconds'] * 1_000 };
    // In the order of the report; null if not run.
    const parts: Record<string, MeasuredPart | null> = {
      comparison: chosen['no-comparison'] ? null : await measureComparison(setting),
      growth: chosen.growth ? await measureGrowth(setting, growth) : null,
      indexing: chosen.index ? await measureIndexing(setting) : null,
      summaries: chosen.summaries ? await measureSummaries(setting) : null,
      deliveryState: chosen.sinks ? await measureSinks(setting) : null,
    };
    const measured = Object.values(parts).filter((part) => part !== null);
    const runs = measured.flatMap((part) => part.runs);
    const targets = measured.flatMap((part) => part.targets);
    const faults = [...runs.flatMap(faultsOf), ...measured.flatMap((part) => part.faults)];
    const { rounds, connections, warmUpMs, measureMs } = setting;
    const meanBytes = meanBodyBytes(ackIdForm);
    const load = `${connections} keep-alive connections, bodies of ${figure(meanBytes)} bytes with AckIds as ${ackIdForm === 'guid' ? 'specified (GUID)' : 'observed'}, ${measureMs / 1_000} s after ${warmUpMs / 1_000} s of warm-up; median of ${rounds} round(s)`;
    // Other programs lower some figures more than others.
    const otherCores = Math.max(...runs.map((one) => one.otherCores ?? 0));
    const caution = `Caution: other programs used up to ${figure(otherCores, 2)} cores. Repeat on an idle machine.`;
    const { machine, command } = context.about;
    return {
      report: {
        ...context.about,
        setting: {
          ...{ rounds, ackIdForm, connections, warmUpMs, measureMs },
          // Mean size of the sent notifications.
          bodyBytes: meanBytes,
        },
        ...Object.fromEntries(
          Object.entries(parts).map(([name, part]) => [name, part?.figures ?? null]),
        ),
        ...{ targets, faults },
      },
      text: [
        renderMachine(machine, load),
        ...measured.flatMap((part) => part.text),
        ...(otherCores > otherCoresMax ? [caution] : []),
        renderTargets(targets),
        faults.length > 0
          ? ['FAILED', ...faults.map((fault) => `  ${fault}`)].join('\n')
          : 'Every notification that was answered with 200 is in the database exactly once.',
        `Repeat: ${command}`,
      ],
      hasFailed: hasFaults({ faults, targets }, chosen),
    };
  },
};
