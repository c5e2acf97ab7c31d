/** The benchmark of the intake: earshot against two baselines, as its log grows, and beside each of its own parts. */
import { figure, hasFaults, renderMachine, renderTargets } from './figures.ts';
import { measureGrowth } from './growth.ts';
import {
  type BenchIo,
  type Benchmark,
  dirOption,
  flag,
  number,
  optional,
  runBenchmark,
  whole,
  wholeList,
  word,
} from './harness.ts';
import {
  type MeasuredPart,
  measureComparison,
  measureHandingOver,
  measureIndexing,
  measureSummarising,
} from './intake-parts.ts';
import { createSetting, faultsOf, loadOptions } from './measure.ts';
import { ackIdForms, meanBodyBytes } from './notifications.ts';

/** Other programs may use this share of a core before the report warns of them. */
const otherCoresMax = 0.25;

const options = {
  ...loadOptions,
  'ack-ids': {
    ...word('FORM', 'observed (as recorded, rising with time) or guid (as specified)', ackIdForms),
    usual: 'observed',
  },
  growth: flag(
    'also: speed and memory on a small and on a large database, and the latency\nof the readiness probe while another process scans the large one',
  ),
  'growth-rows': wholeList('A,B', 'rows of the small and the large database', {
    ...{ usual: '10000,1000000', max: 100_000_000, count: 2 },
  }),
  'prefill-body-bytes': optional(
    whole('N', 'size of the bodies they are filled with (the real one, about 5 kB each)', {
      ...{ min: 1, max: 1_048_576 },
    }),
  ),
  'probe-seconds': number('S', 'time of the probe, idle and again during scans', {
    ...{ usual: 10, quick: 2, min: 0.1, max: 600 },
  }),
  index: flag(
    'also: intake with the product index on and off in turn, and how many\nnotifications are indexed a second while they come in at full speed',
  ),
  summaries: flag(
    'also: intake with every product asked of a model, which answers after a\nsecond, and with no summaries in turn',
  ),
  sinks: flag(
    'also: intake without a sink, beside a webhook that never answers, and beside\none that takes everything at once, in turn',
  ),
  'no-comparison': flag('leave the comparison out, with --growth, --index, --summaries or --sinks'),
  dir: dirOption,
  quick: flag('one round of 2 s after 1 s of warm-up, 2 s of probe'),
  check: flag('exit 1 when a target is missed'),
};

/** Runs the benchmark and returns the exit code. */
export function run(argv: readonly string[], io: BenchIo): Promise<number> {
  return runBenchmark(intake, argv, io);
}

const intake: Benchmark<typeof options> = {
  command: 'npm run bench --',
  about: `Measures earshot against two baselines in one run, over HTTPS on loopback, with the same certificate
and the same notifications of real size:
  bare         a Hono server that reads the body and stores nothing: the ceiling
  twenty-line  Hono, Basic Auth and one durable SQLite insert per request: what a user would write
Afterwards every notification that was answered with 200 is looked for in the database file.`,
  options,
  closing: `Exit code: 0 done, 1 an answered notification is missing, a request failed, or (--check) a target is
missed; 2 wrong usage.

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
      ? '--no-comparison leaves nothing to do'
      : null,
  async measure(chosen, context) {
    const ackIdForm = ackIdForms.find((form) => form === chosen['ack-ids']) ?? 'observed';
    const setting = await createSetting(chosen, context, ackIdForm);
    const [smallRows = 0, largeRows = 0] = chosen['growth-rows'];
    const bodyBytes = chosen['prefill-body-bytes'];
    const growth = { smallRows, largeRows, bodyBytes, probeMs: chosen['probe-seconds'] * 1_000 };
    // In the order of the report; null for what was not run.
    const parts: Record<string, MeasuredPart | null> = {
      comparison: chosen['no-comparison'] ? null : await measureComparison(setting),
      growth: chosen.growth ? await measureGrowth(setting, growth) : null,
      indexing: chosen.index ? await measureIndexing(setting) : null,
      summarising: chosen.summaries ? await measureSummarising(setting) : null,
      deliveryState: chosen.sinks ? await measureHandingOver(setting) : null,
    };
    const measured = Object.values(parts).filter((part) => part !== null);
    const runs = measured.flatMap((part) => part.runs);
    const targets = measured.flatMap((part) => part.targets);
    const faults = [...runs.flatMap(faultsOf), ...measured.flatMap((part) => part.faults)];
    const { rounds, connections, warmUpMs, measureMs } = setting;
    const meanBytes = meanBodyBytes(ackIdForm);
    const load = `${connections} keep-alive connections, bodies of ${figure(meanBytes)} bytes with AckIds as ${ackIdForm === 'guid' ? 'specified (GUID)' : 'observed'}, ${measureMs / 1_000} s after ${warmUpMs / 1_000} s of warm-up; median of ${rounds} round(s)`;
    // What other programs take lowers some figures more than others.
    const otherCores = Math.max(...runs.map((one) => one.otherCores ?? 0));
    const caution = `Caution: other programs used up to ${figure(otherCores, 2)} cores meanwhile. Repeat this when the machine is idle.`;
    const { machine, command } = context.about;
    return {
      report: {
        ...context.about,
        setting: {
          ...{ rounds, ackIdForm, connections, warmUpMs, measureMs },
          // Of the notifications that were sent.
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
          : 'Every notification that was answered with 200 is in its file exactly once.',
        `Repeat: ${command}`,
      ],
      hasFailed: hasFaults({ faults, targets }, chosen),
    };
  },
};
