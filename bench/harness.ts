/** Shared parts of all benchmarks and attacks: options, help, progress, report, cleanup and the exit code. */
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { describeMachine, renderMachine, renderTargets, type TargetResult } from './figures.ts';

/** Output of a benchmark: the report on `stdout`, everything else on `stderr`. */
export interface BenchIo {
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

/** An invalid command line; the message is printed. */
class UsageError extends Error {}

/** An option of a command line. */
export interface Option<Value> {
  readonly text: string;
  /** Placeholder of the value in the help text; undefined for a flag. */
  readonly argument?: string;
  /** Default values, without and with --quick. */
  readonly usual?: Value | undefined;
  readonly quick?: Value | undefined;
  /** Parses the value. Returns undefined for an invalid one. */
  readonly read: (typed: string) => Value | undefined;
}

// biome-ignore lint/suspicious/noExplicitAny: each option has a type of its own.
type OptionTable = Readonly<Record<string, Option<any>>>;
export type Values<Table extends OptionTable> = {
  readonly [Flag in keyof Table]: Table[Flag] extends Option<infer Value> ? Value : never;
};

export function flag(text: string): Option<boolean> {
  return { text, read: () => true };
}

/** Option of a number that is not negative, with its default, also the one with --quick. */
export function number(text: string, usual: number, quick = usual): Option<number> {
  return { ...{ text, argument: 'N', usual, quick }, read: readNumber };
}

export function integer(text: string, usual: number, quick = usual): Option<number> {
  return { ...number(text, usual, quick), read: readInteger };
}

/** Option of an integer without a default. */
export function optionalInteger(text: string): Option<number | undefined> {
  return { text, argument: 'N', read: readInteger };
}

/** Option of comma-separated integers, as many as in the default. */
export function integers(text: string, usual: number[], quick: number[]): Option<number[]> {
  const read = (typed: string) => {
    const all = typed.split(',').map(readInteger);
    const valid = all.filter((one) => one !== undefined);
    return valid.length === all.length && all.length === usual.length ? valid : undefined;
  };
  return { ...{ text, argument: usual.map(() => 'N').join(','), usual, quick }, read };
}

/** Option of any text, without a default. */
function word(text: string): Option<string | undefined> {
  return { text, argument: 'TEXT', read: (typed) => typed };
}

function readNumber(typed: string): number | undefined {
  return typed.trim() !== '' && Number(typed) >= 0 ? Number(typed) : undefined;
}

function readInteger(typed: string): number | undefined {
  return Number.isSafeInteger(readNumber(typed)) ? Number(typed) : undefined;
}

const everyOption = {
  dir: word("folder for the data (default: the system's temporary folder)"),
  quick: flag('a short run with little data'),
  check: flag('exit 1 if a target is missed'),
  json: flag('print one JSON object instead of tables'),
  help: flag('print this help'),
};

type Chosen<Table extends OptionTable> = Values<Table> & Values<typeof everyOption>;

/** A benchmark or attack with its command line. */
interface Benchmark<Table extends OptionTable = OptionTable> {
  /** Command before the options, such as `npm run bench:query --`. */
  readonly command: string;
  /** Description for the help text. */
  readonly about: string;
  readonly options: Table;
  /** Returns the problem with a combination of options, or null. */
  refuse?(options: Chosen<Table>): string | null;
  measure(options: Chosen<Table>, context: BenchContext): Promise<Outcome>;
}

/** Infers the types of the options. */
export function defineBenchmark<Table extends OptionTable>(benchmark: Benchmark<Table>): Benchmark {
  return benchmark;
}

/** Result of a benchmark. */
export interface Outcome {
  /** Description of the measurement. */
  readonly setting: string;
  /** Output of `--json`, in addition to the machine, targets and faults. */
  readonly figures: object;
  /** Text output, in parts separated by empty lines. */
  readonly text: readonly string[];
  readonly targets?: readonly TargetResult[];
  /** Any fault causes exit code 1. */
  readonly faults?: readonly string[];
}

/** Context of a benchmark. */
export interface BenchContext {
  readonly cleanup: Cleanup;
  readonly progress: Progress;
  /** Parent of temporary folders. */
  readonly folder: string;
}

/** Runs a benchmark and its cleanup. Returns the exit code: 0 done, 1 failed, 2 invalid usage. */
export async function runBenchmark(
  benchmark: Benchmark,
  argv: readonly string[],
  io: BenchIo,
): Promise<number> {
  const table = { ...benchmark.options, ...everyOption };
  let options: Chosen<OptionTable>;
  try {
    options = readOptions(table, argv) as Chosen<OptionTable>;
    const refusal = benchmark.refuse?.(options) ?? null;
    if (refusal !== null) throw new UsageError(refusal);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    io.stderr.write(`${error.message}\nTry --help.\n`);
    return 2;
  }
  if (options.help) {
    io.stdout.write(helpText(benchmark, table));
    return 0;
  }
  const cleanup = createCleanup();
  const progress = createProgress(io.stderr);
  try {
    const folder = options.dir ?? tmpdir();
    const outcome = await benchmark.measure(options, { cleanup, progress, folder });
    const { setting, figures, text, targets = [], faults = [] } = outcome;
    const machine = describeMachine(folder);
    const command = [benchmark.command, ...argv].join(' ').replace(/ --$/, '');
    const tables = [
      renderMachine(machine, setting),
      ...text,
      ...(targets.length > 0 ? [renderTargets(targets)] : []),
      faults.length > 0 ? ['FAILED', ...faults].join('\n  ') : 'No faults.',
      `Repeat: ${command}`,
    ];
    const report = { machine, command, setting, ...figures, targets, faults };
    progress.clear();
    io.stdout.write(`${options.json ? JSON.stringify(report, null, 2) : tables.join('\n\n')}\n`);
    const isMissed = targets.some(({ met }) => met !== true);
    return faults.length > 0 || (options.check && isMissed) ? 1 : 0;
  } catch (error) {
    progress.clear();
    io.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  } finally {
    cleanup.run();
  }
}

function readOptions(table: OptionTable, argv: readonly string[]): Record<string, unknown> {
  const known = Object.entries(table).map(([name, { argument }]) => {
    return [name, { type: argument === undefined ? ('boolean' as const) : ('string' as const) }];
  });
  let typed: Record<string, unknown>;
  try {
    typed = parseArgs({ args: [...argv], options: Object.fromEntries(known) }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
  const values = Object.entries(table).map(([name, { argument, usual, quick, read }]) => {
    const given = typed[name];
    if (argument === undefined) return [name, given === true];
    if (given === undefined) return [name, typed.quick === true ? quick : usual];
    const value = read(String(given));
    if (value === undefined) throw new UsageError(`--${name}: invalid value ${given}`);
    return [name, value];
  });
  return Object.fromEntries(values);
}

function helpText({ command, about }: { command: string; about: string }, table: OptionTable) {
  const lines = Object.entries(table).map(([name, { argument = '', text, usual, quick }]) => {
    const short = String(quick) === String(usual) ? '' : `; with --quick: ${quick}`;
    const values = usual === undefined ? '' : ` (default: ${usual}${short})`;
    return `  ${`--${name} ${argument}`.padEnd(28)}${text}${values}`;
  });
  const exit = 'Exit code: 0 done, 1 a fault or (--check) a missed target, 2 invalid usage.';
  return `${[`Usage: ${command} [options]`, about, lines.join('\n'), exit].join('\n\n')}\n`;
}

/** A progress line, shown only on a terminal. */
export interface Progress {
  /** Replaces the line. */
  show(text: string): void;
  /** Removes the line, before anything else is printed. */
  clear(): void;
}

function createProgress(stream: NodeJS.WritableStream): Progress {
  const isTerminal = 'isTTY' in stream && stream.isTTY === true;
  const show = (text: string) => {
    if (isTerminal) stream.write(`\r\u001b[2K${text}`);
  };
  return { show, clear: () => show('') };
}

/** Cleanup of a benchmark's child processes and temporary folders. */
export interface Cleanup {
  /** Creates a folder below `parent` that is removed by `run` or `removeFolder`. */
  temporaryFolder(parent: string): string;
  removeFolder(folder: string): void;
  /** Makes `run` kill this process if it is still running. */
  ownProcess(child: ChildProcess): void;
  /** Kills processes and removes folders immediately. Idempotent; never throws. */
  run(): void;
}

/** Creates a cleanup that also runs on exit, SIGINT and SIGTERM, but not on SIGKILL. */
function createCleanup(): Cleanup {
  const folders = new Set<string>();
  const children = new Set<ChildProcess>();
  const removeFolder = (folder: string) => {
    try {
      rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
      folders.delete(folder);
    } catch {
      // On some systems a killed process locks files for a moment; `run` retries.
    }
  };
  const run = () => {
    process.off('exit', run).off('SIGINT', onSignal).off('SIGTERM', onSignal);
    for (const child of children) child.kill('SIGKILL');
    for (const folder of folders) removeFolder(folder);
    children.clear();
  };
  const onSignal = (signal: NodeJS.Signals) => {
    run();
    // Without our handler, the signal has its default effect, which the shell reports.
    process.kill(process.pid, signal);
  };
  process.on('exit', run).on('SIGINT', onSignal).on('SIGTERM', onSignal);
  return {
    temporaryFolder(parent) {
      const folder = mkdtempSync(join(parent, 'earshot-bench-'));
      folders.add(folder);
      return folder;
    },
    removeFolder,
    ownProcess(child) {
      children.add(child);
      child.once('exit', () => children.delete(child));
    },
    run,
  };
}
