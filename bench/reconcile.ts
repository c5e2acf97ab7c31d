/** The benchmark of a long outage, from command line to exit code: what was missed is fetched, and measured. */
import { tmpdir } from 'node:os';
import type { BenchIo } from './bench.ts';
import { type Cleanup, createCleanup } from './cleanup.ts';
import { describeMachine } from './machine.ts';
import { UsageError } from './option-values.ts';
import { createProgress, type Progress } from './progress.ts';
import { startCatalogue } from './reconcile-catalogue.ts';
import {
  parseReconcileOptions,
  type ReconcileBenchOptions,
  reconcileHelpText,
} from './reconcile-options.ts';
import { judgeRuns, type ReconcileReport, renderReconcileReport } from './reconcile-report.ts';
import { type ReconcileFigures, runReconciliation } from './reconcile-run.ts';

/** Products are modified within a minute of publication (facts, catalogue 2): not all of them, it seems. */
const modifiedShare = 0.3;
const deletedShare = 0.02;

/**
 * Runs the benchmark and returns the exit code: 0 done, 1 failed, 2 wrong usage.
 *
 * @param argv the arguments, without the program's name.
 */
export async function runReconcileBench(argv: string[], io: BenchIo): Promise<number> {
  let options: ReconcileBenchOptions;
  try {
    options = parseReconcileOptions(argv);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    io.stderr.write(`${error.message}\nTry --help.\n`);
    return 2;
  }
  if (options.help) {
    io.stdout.write(reconcileHelpText);
    return 0;
  }
  const cleanup = createCleanup();
  const progress = createProgress(io.stderr);
  try {
    const report = await measureRuns(options, argv, cleanup, progress);
    progress.clear();
    io.stdout.write(
      options.json ? `${JSON.stringify(report, null, 2)}\n` : renderReconcileReport(report),
    );
    return options.check && report.targets.some(({ met }) => met !== true) ? 1 : 0;
  } catch (error) {
    progress.clear();
    io.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  } finally {
    cleanup.run();
  }
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
