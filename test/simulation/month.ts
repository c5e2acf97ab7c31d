/** `npm run bench:month`: a month with many faults, and a check of the log afterwards. */
import { alignTable, figure, renderMachine } from '../../bench/figures.ts';
import {
  type BenchIo,
  type Benchmark,
  dirOption,
  flag,
  integer,
  runBenchmark,
} from '../../bench/harness.ts';
import { hourUs } from '../../src/core/terms/time-units.ts';
import { type MonthContext, openMonthContext } from './month-context.ts';
import { coverageFaults, type MonthCounts, readLog, resultOf, totalOf } from './month-results.ts';
import { type SimulatedMonth, simulateMonth } from './month-run.ts';

const options = {
  days: integer('N', 'days of the month, at least 8', { default: 30, min: 8, max: 60 }),
  'per-day': integer('N', 'products published per day', {
    ...{ default: 4_000, min: 21, max: 100_000 },
  }),
  'round-hours': integer('N', 'simulated hours between two comparisons', {
    ...{ default: 4, min: 1, max: 24 },
  }),
  seed: integer('N', 'seed of products, faults and times', {
    ...{ default: 1, min: 0, max: 2 ** 31 - 1 },
  }),
  dir: dirOption,
  check: flag('exit code 1 when the log differs from the published events'),
};

/** Filters that both select every event; the change replaces the subscription. */
const filters = { before: '', after: "contains(Name,'_')" };

/** Runs the benchmark and returns the exit code. */
export function run(argv: readonly string[], io: BenchIo): Promise<number> {
  return runBenchmark(month, argv, io);
}

const month: Benchmark<typeof options> = {
  command: 'npm run bench:month --',
  about: `Simulates a month in which the receiver is down for minutes, hours and days, 5 % of the pushes are lost, a
subscription is paused by a person, another by the catalogue, and one is replaced. The resulting log is then
compared with the published events, one by one.`,
  options,
  closing: `Exit code: 0 done, 1 failed or (--check) differences, 2 wrong usage.

Examples:
  npm run bench:month                          about ten minutes
  npm run bench:month -- --per-day 32000       the real rate: hours, and many GB of memory`,
  async measure(chosen, { cleanup, progress, folder, about }) {
    const { days, 'per-day': productsPerDay, 'round-hours': roundHours, seed, check } = chosen;
    const startedMs = performance.now();
    const seconds = () => Math.round((performance.now() - startedMs) / 1_000);
    const context = await openMonthContext({
      folder: cleanup.temporaryFolder(folder),
      ...{ seed, startMs: Date.UTC(2026, 4, 1) },
      sandbox: {
        retryDelaysMs: [0, 60_000, 2_400_000],
        faults: {
          lost: 0.05,
          duplicate: 0.02,
          outOfOrder: 0.02,
          answerLost: 0.01,
          ackIdAbsent: 0.1,
        },
        ...{ lateShare: 0.2, lateMaxMs: 12 * 3_600_000 },
        ...{ modifiedShare: 0.3, deletedShare: 0.02 },
        // The check needs all events.
        eventsMax: Math.min(4_000_000, 4 * days * productsPerDay),
      },
    });
    try {
      const onHour = (done: number, hours: number) => {
        const { published, lost } = context.sandbox.totals();
        const totals = `${published} notifications, ${lost} of them lost`;
        progress.show(`hour ${done} of ${hours}: ${totals}, ${seconds()} s`);
      };
      const pace = { productsPerDay, roundHours };
      const simulated = await simulateMonth(context, { seed, days, filters, ...pace, onHour });
      progress.show('comparing the log with the published events');
      const { counts, faults } = await checkMonth(context, simulated);
      const wallSeconds = seconds();
      const took = `${days} days at ${productsPerDay} products a day, in ${wallSeconds} s`;
      return {
        report: { ...about, days, productsPerDay, counts, faults, wallSeconds },
        text: [
          renderMachine(about.machine, took),
          renderCounts(counts),
          'Expected: events of the catalogue. Pushed: in time. Late: more than 30 minutes later. Recovered: fetched by a comparison. Superseded and deleted: lost, since the catalogue no longer showed them.',
          faults.length === 0
            ? 'The log has exactly the expected events, and the coverage of every hour is correct.'
            : [`${faults.length} differences:`, ...faults.slice(0, 20)].join('\n  '),
          `Repeat: ${about.command}`,
        ],
        hasFailed: check && faults.length > 0,
      };
    } finally {
      await context.close();
    }
  },
};

/** Compares the log with the expected events, and checks that a further `earshot reconcile` finds nothing. */
async function checkMonth(context: MonthContext, simulated: SimulatedMonth) {
  const { fromMs, toMs } = simulated;
  const { expected, logged, counts, faults } = resultOf(context, simulated);
  const iso = (ms: number) => new Date(ms).toISOString();
  const second = await context.command(['reconcile', '--since', iso(fromMs), '--until', iso(toMs)]);
  if (second.code !== 0) throw new Error(second.err);
  const added = readLog(context.dataDir).length - logged.length;
  if (added > 0) faults.push(`${added} entries added by a second comparison`);
  const [fromUs, toUs] = [
    Math.ceil((fromMs * 1_000) / hourUs) * hourUs,
    Math.floor((toMs * 1_000) / hourUs) * hourUs,
  ];
  const completeness = context.receiver()?.store.completeness;
  const coverage = (await completeness?.coverage({ sinceUs: fromUs, untilUs: toUs })) ?? [];
  return {
    counts,
    faults: [...faults, ...coverageFaults(expected, logged, coverage, { fromUs, toUs })],
  };
}

function renderCounts(counts: Record<string, MonthCounts>): string {
  const names = ['expected', 'pushed', 'late', 'recovered', 'superseded', 'deleted'] as const;
  const row = (kind: string, own: MonthCounts) => [kind, ...names.map((name) => figure(own[name]))];
  const rows = Object.entries(counts).map(([kind, own]) => row(kind, own));
  return alignTable([['events', ...names], ...rows, row('all', totalOf(counts))]);
}
