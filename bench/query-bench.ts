/** The benchmark of queries from command line to exit code. */
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BenchIo } from './bench.ts';
import { type Cleanup, createCleanup } from './cleanup.ts';
import { createEndpoint } from './endpoint.ts';
import { describeMachine } from './machine.ts';
import { UsageError } from './option-values.ts';
import { createProgress, type Progress } from './progress.ts';
import { prepareQueryData } from './query-data.ts';
import { measureQueries } from './query-measure.ts';
import { parseQueryOptions, type QueryBenchOptions, queryHelpText } from './query-options.ts';
import { type QueryReport, renderQueryReport } from './query-report.ts';
import { openSubject } from './query-subject.ts';
import { judgeQueries } from './query-targets.ts';

/**
 * Runs the benchmark and returns the exit code: 0 done, 1 failed, 2 wrong usage.
 *
 * @param argv the arguments, without the program's name.
 */
export async function runQueryBench(argv: string[], io: BenchIo): Promise<number> {
  let options: QueryBenchOptions;
  try {
    options = parseQueryOptions(argv);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    io.stderr.write(`${error.message}\nTry --help.\n`);
    return 2;
  }
  if (options.help) {
    io.stdout.write(queryHelpText);
    return 0;
  }
  const cleanup = createCleanup();
  const progress = createProgress(io.stderr);
  try {
    const report = await measureBoth(options, argv, cleanup, progress);
    progress.clear();
    io.stdout.write(
      options.json ? `${JSON.stringify(report, null, 2)}\n` : renderQueryReport(report),
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
