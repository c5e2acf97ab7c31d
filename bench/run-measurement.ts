/** What all benchmarks of a command line share: from arguments to report and exit code. */
import { type Cleanup, createCleanup } from './cleanup.ts';
import { UsageError } from './option-values.ts';
import { createProgress, type Progress } from './progress.ts';

/** Where the benchmark writes: the report on `stdout`, everything else on `stderr`. */
export interface BenchIo {
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

export interface Measurement<Options extends { help: boolean; json: boolean }, Report> {
  /** Throws UsageError for arguments that cannot be used. */
  parse(argv: string[]): Options;
  helpText: string;
  measure(options: Options, argv: string[], cleanup: Cleanup, progress: Progress): Promise<Report>;
  render(report: Report): string;
  /** Whether the report calls for exit code 1. */
  hasFailed(report: Report, options: Options): boolean;
}

/** Runs a benchmark and returns the exit code: 0 done, 1 failed, 2 wrong usage. What it started is ended. */
export async function runMeasurement<Options extends { help: boolean; json: boolean }, Report>(
  { parse, helpText, measure, render, hasFailed }: Measurement<Options, Report>,
  argv: string[],
  io: BenchIo,
): Promise<number> {
  let options: Options;
  try {
    options = parse(argv);
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
    const report = await measure(options, argv, cleanup, progress);
    progress.clear();
    io.stdout.write(options.json ? `${JSON.stringify(report, null, 2)}\n` : render(report));
    return hasFailed(report, options) ? 1 : 0;
  } catch (error) {
    progress.clear();
    io.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  } finally {
    cleanup.run();
  }
}
