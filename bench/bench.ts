/** The benchmark from command line to exit code: what runs, in which order, and what it ends with. */
import { tmpdir } from 'node:os';
import { createBodyTemplates, meanBodyBytes } from './bodies.ts';
import type { Cleanup } from './cleanup.ts';
import { runComparison } from './comparison.ts';
import { createEndpoint } from './endpoint.ts';
import { type Growth, runGrowth } from './growth.ts';
import { handingOverFaults, runHandingOver } from './handing-over.ts';
import { runIndexing } from './indexing.ts';
import { describeMachine } from './machine.ts';
import { type BenchSetting, faultsOf } from './measure.ts';
import { type BenchOptions, helpText, parseOptions } from './options.ts';
import type { Progress } from './progress.ts';
import { type BenchReport, renderReport } from './report.ts';
import { type BenchIo, runMeasurement } from './run-measurement.ts';
import { runSummarising, summarisingFaults } from './summarising.ts';
import { judge, runsOf } from './targets.ts';

/** Runs the benchmark and returns the exit code: 0 done, 1 failed, 2 wrong usage. */
export function runBench(argv: string[], io: BenchIo): Promise<number> {
  const measurement = {
    parse: parseOptions,
    helpText,
    measure: measureAll,
    render: renderReport,
    hasFailed,
  };
  return runMeasurement(measurement, argv, io);
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
  const handingOver = options.sinks ? await runHandingOver(setting, rounds, progress) : null;
  const parts = { comparison, growth, indexing, summarising, handingOver };
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
      ...(handingOver === null ? [] : handingOverFaults(handingOver)),
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

function hasFailed(report: BenchReport, options: BenchOptions): boolean {
  if (report.faults.length > 0) return true;
  return options.check && report.targets.some(({ met }) => met !== true);
}
