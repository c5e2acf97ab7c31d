/** The benchmark of queries from command line to exit code. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Cleanup } from './cleanup.ts';
import { createEndpoint } from './endpoint.ts';
import { describeMachine } from './machine.ts';
import type { Progress } from './progress.ts';
import { prepareQueryData } from './query-data.ts';
import { measureQueries } from './query-measure.ts';
import { parseQueryOptions, type QueryBenchOptions, queryHelpText } from './query-options.ts';
import { type QueryReport, renderQueryReport } from './query-report.ts';
import { openSubject } from './query-subject.ts';
import { judgeQueries } from './query-targets.ts';
import { type BenchIo, runMeasurement } from './run-measurement.ts';

/** Runs the benchmark and returns the exit code: 0 done, 1 failed, 2 wrong usage. */
export function runQueryBench(argv: string[], io: BenchIo): Promise<number> {
  const measurement = {
    parse: parseQueryOptions,
    helpText: queryHelpText,
    measure: measureBoth,
    render: renderQueryReport,
    hasFailed: (report: QueryReport, options: QueryBenchOptions) =>
      options.check && report.targets.some(({ met }) => met !== true),
  };
  return runMeasurement(measurement, argv, io);
}

async function measureBoth(
  options: QueryBenchOptions,
  argv: string[],
  cleanup: Cleanup,
  progress: Progress,
): Promise<QueryReport> {
  const { smallRows, largeRows, values, keep } = options;
  const parentFolder = options.folder ?? tmpdir();
  const temporary = cleanup.temporaryFolder(parentFolder);
  const dataFolder = keep ? parentFolder : temporary;
  const setting = { endpoint: await createEndpoint(temporary), cleanup };
  const prepare = (rows: number) =>
    prepareQueryData(join(dataFolder, `products-${rows}`), rows, progress);
  const data = { small: await prepare(smallRows), large: await prepare(largeRows) };
  const small = await openSubject(setting, data.small);
  const large = await openSubject(setting, data.large);
  const figures = await measureQueries(small, large, values, progress);
  await large.close();
  await small.close();
  return {
    machine: describeMachine(parentFolder),
    command: ['npm run bench:query --', ...argv].join(' '),
    ...{ values, ...figures, targets: judgeQueries(figures) },
  };
}
