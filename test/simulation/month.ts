/** `npm run bench:month`: a month with all that goes wrong, and what is in the log afterwards. */
import { alignTable, figure, renderMachine } from '../../bench/figures.ts';
import {
  type BenchIo,
  type Benchmark,
  dirOption,
  flag,
  integer,
  runBenchmark,
} from '../../bench/harness.ts';
import { hourUs } from '../../src/domain/completeness.ts';
import { type MonthContext, openMonthContext } from './month-context.ts';
import { coverageFaults, type MonthCounts, readLog, resultOf, totalOf } from './month-truth.ts';
import { type WalkedMonth, walkMonth } from './month-walk.ts';

const options = {
  days: integer('N', 'days of the month, 8 at least', { default: 30, min: 8, max: 60 }),
  'per-day': integer('N', 'products published in each of them', {
    ...{ default: 4_000, min: 21, max: 100_000 },
  }),
  'round-hours': integer('N', 'simulated hours between two rounds of comparing', {
    ...{ default: 4, min: 1, max: 24 },
  }),
  seed: integer('N', 'of the products, the faults and the moments', {
    ...{ default: 1, min: 0, max: 2 ** 31 - 1 },
  }),
  dir: dirOption,
  check: flag('exit 1 when the log differs from the truth'),
};

/** Every event, and a filter that changes nothing of that but makes a replacement. */
const filters = { before: '', after: "contains(Name,'_')" };

/** Runs the benchmark and returns the exit code. */
export function run(argv: readonly string[], io: BenchIo): Promise<number> {
  return runBenchmark(month, argv, io);
}

const month: Benchmark<typeof options> = {
  command: 'npm run bench:month --',
  about: `Lets a month pass in which the receiver is down for minutes, hours and days, 5 % of the pushes are lost, a
subscription is paused by a person, another by the catalogue, and one is replaced; what earshot compares and
looks up meanwhile is then held against the truth, event by event.`,
  options,
  closing: `Exit code: 0 done, 1 failed or (--check) something differs, 2 wrong usage.

Examples:
  npm run bench:month                          ten minutes or so
  npm run bench:month -- --per-day 32000       the real rate: some hours, and many GB of memory`,
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
        ...{ modifiedShare: 0.3, secondModifiedShare: 0.3, deletedShare: 0.02 },
        // All of it must be remembered, as it is the truth.
        holdingsMax: Math.min(1_000_000, 2 * days * productsPerDay),
        eventsMax: Math.min(4_000_000, 4 * days * productsPerDay),
      },
    });
    try {
      const onHour = (done: number, hours: number) => {
        const { published, lost } = context.sandbox.totals();
        const told = `${published} notifications, ${lost} of them lost`;
        progress.show(`hour ${done} of ${hours}: ${told}, ${seconds()} s`);
      };
      const pace = { productsPerDay, roundHours };
      const walked = await walkMonth(context, { seed, days, filters, ...pace, onHour });
      progress.show('comparing with the truth');
      const { counts, faults } = await judged(context, walked);
      const wallSeconds = seconds();
      const took = `${days} days at ${productsPerDay} products a day, in ${wallSeconds} s`;
      return {
        report: { ...about, days, productsPerDay, counts, faults, wallSeconds },
        text: [
          renderMachine(about.machine, took),
          renderCounts(counts),
          'Owed by the catalogue; pushed in time; late; looked up; and lost for good, as they were superseded or their product was deleted before anybody could look.',
          faults.length === 0
            ? 'The log equals the truth, event by event, and so does the coverage of every hour.'
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

/** The log against the truth, in words what differs; then everything once more by command, which must find nothing. */
async function judged(context: MonthContext, walked: WalkedMonth) {
  const { fromMs, toMs } = walked;
  const { owed, logged, counts, faults } = resultOf(context, walked);
  const iso = (ms: number) => new Date(ms).toISOString();
  const again = await context.command(['reconcile', '--since', iso(fromMs), '--until', iso(toMs)]);
  if (again.code !== 0) throw new Error(again.err);
  const added = readLog(context.dataDir).length - logged.length;
  if (added > 0) faults.push(`${added} entries added by a second look`);
  const [fromUs, toUs] = [
    Math.ceil((fromMs * 1_000) / hourUs) * hourUs,
    Math.floor((toMs * 1_000) / hourUs) * hourUs,
  ];
  const completeness = context.receiver()?.store.completeness;
  const coverage = (await completeness?.coverage({ sinceUs: fromUs, untilUs: toUs })) ?? [];
  return {
    counts,
    faults: [...faults, ...coverageFaults(owed, logged, coverage, { fromUs, toUs })],
  };
}

function renderCounts(counts: Record<string, MonthCounts>): string {
  const names = ['owed', 'pushed', 'late', 'recovered', 'superseded', 'deleted'] as const;
  const row = (kind: string, own: MonthCounts) => [kind, ...names.map((name) => figure(own[name]))];
  const rows = Object.entries(counts).map(([kind, own]) => row(kind, own));
  return alignTable([['events', ...names], ...rows, row('all', totalOf(counts))]);
}
