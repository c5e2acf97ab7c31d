/** The benchmark from command line to exit code: what runs, in which order, and what it ends with. */
import { tmpdir } from 'node:os';
import { createBodyTemplates, meanBodyBytes } from './bodies.ts';
import { type Cleanup, createCleanup } from './cleanup.ts';
import { runComparison } from './comparison.ts';
import { createEndpoint } from './endpoint.ts';
import { type Growth, runGrowth } from './growth.ts';
import { runIndexing } from './indexing.ts';
import { describeMachine } from './machine.ts';
import { type BenchSetting, faultsOf } from './measure.ts';
import { UsageError } from './option-values.ts';
import { type BenchOptions, helpText, parseOptions } from './options.ts';
import { createProgress, type Progress } from './progress.ts';
import { type BenchReport, renderReport } from './report.ts';
import { runSummarising, summarisingFaults } from './summarising.ts';
import { judge, runsOf } from './targets.ts';

/** Where the benchmark writes: the report on `stdout`, everything else on `stderr`. */
export interface BenchIo {
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

/**
 * Runs the benchmark and returns the exit code: 0 done, 1 failed, 2 wrong usage.
 *
 * @param argv the arguments, without the program's name.
 */
export async function runBench(argv: string[], io: BenchIo): Promise<number> {
  let options: BenchOptions;
  try {
    options = parseOptions(argv);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    io.stderr.write(`${error.message}\nTry --help.\n`);
    return 2;
  }
  if (options.help) {
    io.stdout.write(helpText);
    return 0;
  }
  const cleanup = createCleanup();
  const progress = createProgress(io.stderr);
  try {
    const report = await measureAll(options, argv, cleanup, progress);
    progress.clear();
    io.stdout.write(options.json ? `${JSON.stringify(report, null, 2)}\n` : renderReport(report));
    return exitCodeOf(report, options);
  } catch (error) {
    progress.clear();
    io.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  } finally {
    cleanup.run();
  }
}

async function measureAll(
  options: BenchOptions,
  argv: string[],
  cleanup: Cleanup,
  progress: Progress,
): Promise<BenchReport> {
  const parentFolder = options.folder ?? tmpdir();
  const { rounds, ackIdForm, connections, warmUpMs, measureMs } = options;
  let runs = 0;
  const setting: BenchSetting = {
    endpoint: await createEndpoint(cleanup.temporaryFolder(parentFolder)),
    nextRun() {
      runs += 1;
      return runs;
    },
    ...{ cleanup, parentFolder, ackIdForm, connections, warmUpMs, measureMs },
  };
  const bodyBytes = meanBodyBytes(createBodyTemplates(ackIdForm));
  const comparison = options.comparison ? await runComparison(setting, rounds, progress) : null;
  const growth = options.growth
    ? await runGrowth(setting, { ...options, bodyBytes: options.prefillBodyBytes }, progress)
    : null;
  const indexing = options.index ? await runIndexing(setting, rounds, progress) : null;
  const summarising = options.summaries ? await runSummarising(setting, rounds, progress) : null;
  const parts = { comparison, growth, indexing, summarising };
  return {
    machine: describeMachine(parentFolder),
    command: ['npm run bench --', ...argv].join(' '),
    setting: { ...{ rounds, ackIdForm, connections, warmUpMs, measureMs }, bodyBytes },
    ...parts,
    targets: judge(parts),
    faults: [
      ...runsOf(parts).flatMap(faultsOf),
      ...probeFaults(growth),
      ...(summarising === null ? [] : summarisingFaults(summarising)),
    ],
  };
}

function probeFaults(growth: Growth | null): string[] {
  const failures = (growth?.probes ?? []).reduce(
    (sum, { idle, scanning }) => sum + idle.failures + scanning.failures,
    0,
  );
  return failures === 0 ? [] : [`${failures} probes were not answered with 200`];
}

function exitCodeOf(report: BenchReport, options: BenchOptions): number {
  if (report.faults.length > 0) return 1;
  return options.check && report.targets.some(({ met }) => met !== true) ? 1 : 0;
}
