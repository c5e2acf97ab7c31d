/** The result of the benchmark of reconciling as one object and as text for people. */
import type { Machine } from './machine.ts';
import type { CataloguePast } from './reconcile-catalogue.ts';
import type { ReconcileFigures } from './reconcile-run.ts';
import { machineLines, renderTargets } from './report.ts';
import { alignTable, figure, megabytes } from './table.ts';
import { type TargetResult, target } from './targets.ts';

/** What `--json` prints. Times in seconds, sizes in bytes. */
export interface ReconcileReport {
  readonly machine: Machine;
  /** The command that repeats this run. */
  readonly command: string;
  readonly past: CataloguePast & {
    readonly products: number;
    readonly deletedProducts: number;
    readonly generatedSeconds: number;
  };
  readonly runs: readonly ReconcileFigures[];
  readonly targets: readonly TargetResult[];
}

/** Memory may not grow with the outage. */
const peakMegabytes = 300;

/** The report as text, ending with a line break. */
export function renderReconcileReport(report: ReconcileReport): string {
  const { machine, past, runs, targets, command } = report;
  const { days, productsPerDay, products, deletedProducts, generatedSeconds } = past;
  const about = `${days} days at ${productsPerDay} products a day: ${products} products and ${deletedProducts} deleted ones at the catalogue, published in ${figure(generatedSeconds)} s`;
  const parts = [
    [...machineLines(machine), about].join('\n'),
    renderRuns(runs),
    'Seconds: all of it, waiting for answers (the catalogue itself took so many of them), waiting for its turn, and the rest, which is own work; processor time on all threads.',
    renderTargets(targets),
    `Repeat: ${command}`,
  ];
  return `${parts.join('\n\n')}\n`;
}

function renderRuns(runs: readonly ReconcileFigures[]): string {
  const header = [
    ...['allowed a minute', 'events', 'recovered', 'requests', 'most a minute'],
    ...['s', 'answers s', '(catalogue s)', 'turn s', 'own s', 'CPU s'],
    ...['MB', 'peak MB', 'log MB', 'left'],
  ];
  const rows = runs.map((run) => [
    String(run.requestsPerMinute),
    String(run.events),
    String(run.recovered),
    String(run.requests),
    String(run.requestsInAMinuteMost),
    figure(run.wallSeconds, 1),
    figure(run.answersSeconds, 1),
    figure(run.catalogueSeconds, 1),
    figure(run.waitedSeconds, 1),
    figure(ownSeconds(run), 1),
    figure(run.cpuSeconds, 1),
    megabytes(run.residentBytesMedian),
    megabytes(run.peakResidentBytes),
    megabytes(run.logBytes),
    String(run.foundAgain),
  ]);
  return alignTable([header, ...rows]);
}

function ownSeconds({ wallSeconds, answersSeconds, waitedSeconds }: ReconcileFigures): number {
  return Math.max(0, wallSeconds - answersSeconds - waitedSeconds);
}

/** What is promised of every run, and of one that keeps to its rate. */
export function judgeRuns(runs: readonly ReconcileFigures[]): TargetResult[] {
  return runs.flatMap((run) => {
    const { requestsPerMinute, requestsInAMinuteMost, peakResidentBytes } = run;
    const peak = peakResidentBytes === null ? null : peakResidentBytes / 1e6;
    const name = (text: string) => `${text}, at ${requestsPerMinute} a minute`;
    return [
      target(name('peak memory, MB'), peak, { max: peakMegabytes }),
      target(name('requests within a minute'), requestsInAMinuteMost, { max: requestsPerMinute }),
      target(name('left to find afterwards'), run.missing + run.foundAgain, { max: 0 }),
      // One that never waits for its turn shows what own work takes; nothing is promised of it.
      ...(run.waitedSeconds === 0
        ? []
        : [target(name('share of own work'), ownSeconds(run) / run.wallSeconds, { max: 0.5 })]),
    ];
  });
}
