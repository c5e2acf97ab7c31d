/** The simulated month from command line to exit code: all that goes wrong, and what is in the log afterwards. */
import { tmpdir } from 'node:os';
import type { Cleanup } from './cleanup.ts';
import { describeMachine, type Machine } from './machine.ts';
import { coverageFaults } from './month-coverage.ts';
import { readLog } from './month-log.ts';
import { type MonthBenchOptions, monthHelpText, parseMonthOptions } from './month-options.ts';
import { owedEvents } from './month-truth.ts';
import { judgeMonth, type MonthCounts, totalOf } from './month-verdict.ts';
import { type WalkedMonth, walkMonth } from './month-walk.ts';
import { type MonthWorld, openMonthWorld } from './month-world.ts';
import type { Progress } from './progress.ts';
import { machineLines } from './report.ts';
import { type BenchIo, runMeasurement } from './run-measurement.ts';
import { alignTable, figure } from './table.ts';

/** Every event, and a filter that changes nothing of that but makes a replacement. */
const filters = { before: '', after: "contains(Name,'_')" };

/** What `--json` prints. */
export interface MonthReport {
  readonly machine: Machine;
  /** The command that repeats this run. */
  readonly command: string;
  readonly days: number;
  readonly productsPerDay: number;
  readonly counts: Record<string, MonthCounts>;
  /** What differs from the truth, in words. */
  readonly faults: readonly string[];
  readonly wallSeconds: number;
}

/** Runs the benchmark and returns the exit code: 0 done, 1 failed, 2 wrong usage. */
export function runMonthBench(argv: string[], io: BenchIo): Promise<number> {
  const measurement = {
    parse: parseMonthOptions,
    helpText: monthHelpText,
    measure: measureMonth,
    render,
    hasFailed: (report: MonthReport, options: MonthBenchOptions) =>
      options.check && report.faults.length > 0,
  };
  return runMeasurement(measurement, argv, io);
}

async function measureMonth(
  { days, productsPerDay, roundHours, seed, folder = tmpdir() }: MonthBenchOptions,
  argv: string[],
  cleanup: Cleanup,
  progress: Progress,
): Promise<MonthReport> {
  const startedMs = performance.now();
  const seconds = () => Math.round((performance.now() - startedMs) / 1_000);
  const world = await openMonthWorld({
    folder: cleanup.temporaryFolder(folder),
    ...{ seed, startMs: Date.UTC(2026, 4, 1) },
    sandbox: {
      retryDelaysMs: [0, 60_000, 2_400_000],
      faults: { lost: 0.05, duplicate: 0.02, outOfOrder: 0.02, answerLost: 0.01, ackIdAbsent: 0.1 },
      ...{ lateShare: 0.2, lateMaxMs: 12 * 3_600_000 },
      ...{ modifiedShare: 0.3, secondModifiedShare: 0.3, deletedShare: 0.02 },
      // All of it must be remembered, as it is the truth.
      heldMax: Math.min(1_000_000, 2 * days * productsPerDay),
      eventsMax: Math.min(4_000_000, 4 * days * productsPerDay),
    },
  });
  try {
    const onHour = (done: number, hours: number) => {
      const { published, lost } = world.sandbox.totals();
      const told = `${published} notifications, ${lost} of them lost`;
      progress.show(`hour ${done} of ${hours}: ${told}, ${seconds()} s`);
    };
    const pace = { productsPerDay, roundHours };
    const month = await walkMonth(world, { seed, days, filters, ...pace, onHour });
    progress.show('comparing with the truth');
    const result = await judged(world, month);
    const command = ['npm run bench:month --', ...argv].join(' ');
    const about = { machine: describeMachine(folder), command, days, productsPerDay };
    return { ...about, ...result, wallSeconds: seconds() };
  } finally {
    await world.close();
  }
}

/** The log against the truth; then everything once more by command, which must find nothing. */
async function judged(world: MonthWorld, { asked, idsOf, fromMs, toMs }: WalkedMonth) {
  const owed = owedEvents(world.sandbox, asked, idsOf);
  const logged = readLog(world.dataDir);
  const { counts, faults } = judgeMonth(owed, logged, world.rounds);
  const iso = (ms: number) => new Date(ms).toISOString();
  const again = await world.command(['reconcile', '--from', iso(fromMs), '--to', iso(toMs)]);
  if (again.code !== 0) throw new Error(again.err);
  const added = readLog(world.dataDir).length - logged.length;
  if (added > 0) faults.push(`${added} entries added by a second look`);
  const hourMs = 3_600_000;
  const window = {
    fromUs: Math.ceil(fromMs / hourMs) * hourMs * 1_000,
    toUs: Math.floor(toMs / hourMs) * hourMs * 1_000,
  };
  const completeness = world.receiver()?.store.completeness;
  const { fromUs: sinceUs, toUs: untilUs } = window;
  const coverage = (await completeness?.coverage({ sinceUs, untilUs })) ?? [];
  return { counts, faults: [...faults, ...coverageFaults(owed, logged, coverage, window)] };
}

/** As text, ending with a line break. */
function render({ machine, counts, faults, ...report }: MonthReport): string {
  const { days, productsPerDay, wallSeconds, command } = report;
  const names = ['owed', 'pushed', 'late', 'recovered', 'superseded', 'deleted'] as const;
  const row = (kind: string, own: MonthCounts) => [kind, ...names.map((name) => figure(own[name]))];
  const rows = Object.entries(counts).map(([kind, own]) => row(kind, own));
  const faultsShown = faults.slice(0, 20).map((fault) => `  ${fault}`);
  const parts = [
    [
      ...machineLines(machine),
      `${days} days at ${productsPerDay} products a day, in ${wallSeconds} s`,
    ].join('\n'),
    alignTable([['events', ...names], ...rows, row('all', totalOf(counts))]),
    'Owed by the catalogue; pushed in time; late; looked up; and lost for good, as they were superseded or their product was deleted before anybody could look.',
    faults.length === 0
      ? 'The log equals the truth, event by event, and so does the coverage of every hour.'
      : [`${faults.length} differences:`, ...faultsShown].join('\n'),
    `Repeat: ${command}`,
  ];
  return `${parts.join('\n\n')}\n`;
}
