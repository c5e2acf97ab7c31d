/** The benchmark of a long outage, from command line to exit code: what was missed is fetched, and measured. */
import { tmpdir } from 'node:os';
import type { Cleanup } from './cleanup.ts';
import { describeMachine } from './machine.ts';
import type { Progress } from './progress.ts';
import { startCatalogue } from './reconcile-catalogue.ts';
import {
  parseReconcileOptions,
  type ReconcileBenchOptions,
  reconcileHelpText,
} from './reconcile-options.ts';
import { judgeRuns, type ReconcileReport, renderReconcileReport } from './reconcile-report.ts';
import { type ReconcileFigures, runReconciliation } from './reconcile-run.ts';
import { type BenchIo, runMeasurement } from './run-measurement.ts';

/** Products are modified within a minute of publication (facts, catalogue 2): not all of them, it seems. */
const modifiedShare = 0.3;
const deletedShare = 0.02;

/** Runs the benchmark and returns the exit code: 0 done, 1 failed, 2 wrong usage. */
export function runReconcileBench(argv: string[], io: BenchIo): Promise<number> {
  const measurement = {
    parse: parseReconcileOptions,
    helpText: reconcileHelpText,
    measure: measureRuns,
    render: renderReconcileReport,
    hasFailed: (report: ReconcileReport, options: ReconcileBenchOptions) =>
      options.check && report.targets.some(({ met }) => met !== true),
  };
  return runMeasurement(measurement, argv, io);
}

async function measureRuns(
  { days, productsPerDay, requestsPerMinute, folder }: ReconcileBenchOptions,
  argv: string[],
  cleanup: Cleanup,
  progress: Progress,
): Promise<ReconcileReport> {
  const parentFolder = folder ?? tmpdir();
  progress.show(`publishing ${Math.round(days * productsPerDay)} products`);
  const past = { days, productsPerDay, modifiedShare, deletedShare };
  const catalogue = await startCatalogue(past, cleanup);
  const runs: ReconcileFigures[] = [];
  for (const rate of requestsPerMinute) {
    const setting = { catalogue, parentFolder, cleanup, progress };
    runs.push(await runReconciliation({ ...setting, requestsPerMinute: rate }));
  }
  catalogue.stop();
  const { generatedMs, holdings } = catalogue;
  return {
    machine: describeMachine(parentFolder),
    command: ['npm run bench:reconcile --', ...argv].join(' '),
    past: { ...past, ...holdings, generatedSeconds: generatedMs / 1_000 },
    runs,
    targets: judgeRuns(runs),
  };
}
