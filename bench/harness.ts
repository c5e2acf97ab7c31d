/** Shared parts of all benchmarks: options, help, progress, cleanup and the exit code. */
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { describeMachine, type Machine } from './figures.ts';

/** Output of a benchmark: the report on `stdout`, everything else on `stderr`. */
export interface BenchIo {
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

/** An invalid command line; the message is printed. */
class UsageError extends Error {}

/** An option of a command line. */
export interface Option<Value> {
  /** Placeholder of the value in the help text; undefined for a flag. */
  readonly argument?: string;
  readonly text: string;
  /** Default value, as typed. */
  readonly default?: string;
  /** Default value with --quick. */
  readonly quick?: string;
  /** Parses the value. Throws UsageError. */
  readonly read: (text: string, flag: string) => Value;
}

// biome-ignore lint/suspicious/noExplicitAny: each option has a type of its own.
type OptionTable = Readonly<Record<string, Option<any>>>;
type Values<Table extends OptionTable> = {
  readonly [Flag in keyof Table]: Table[Flag] extends Option<infer Value> ? Value : never;
};

export function flag(text: string): Option<boolean> {
  return { text, read: () => true };
}

interface NumberRange {
  readonly default?: number;
  readonly quick?: number;
  readonly min: number;
  readonly max: number;
}

export function number(argument: string, text: string, range: NumberRange): Option<number> {
  const read = (typed: string, name: string) => numberOf(typed, name, range);
  return { argument, text, ...defaultsOf(range), read };
}

export function integer(argument: string, text: string, range: NumberRange): Option<number> {
  const read = (typed: string, name: string) => integerOf(typed, name, range);
  return { argument, text, ...defaultsOf(range), read };
}

/** Option of comma-separated integers, `count` of them or any number. */
export function integerList(
  argument: string,
  text: string,
  range: { default: string; quick?: string; max: number; count?: number },
): Option<number[]> {
  const read = (typed: string, name: string) => {
    const parts = typed.split(',');
    if (range.count === 2 && parts.length !== 2) {
      throw new UsageError(`--${name} requires two comma-separated numbers, not ${typed}`);
    }
    return parts.map((part) => integerOf(part, name, { min: 1, max: range.max }));
  };
  const { default: value, quick } = range;
  return { argument, text, default: value, ...(quick === undefined ? {} : { quick }), read };
}

/** Option of any text, or one of several words; undefined if not given. */
export function word(
  argument: string,
  text: string,
  among?: readonly string[],
): Option<string | undefined> {
  const read = (typed: string, name: string) => {
    if (among === undefined || among.includes(typed)) return typed;
    throw new UsageError(`--${name} requires one of ${among.join(', ')}, not ${typed}`);
  };
  return { argument, text, read };
}

/** Makes an option undefined if not given. */
export function optional<Value>(option: Option<Value>): Option<Value | undefined> {
  return option;
}

function defaultsOf({ default: value, quick }: NumberRange) {
  return {
    ...(value === undefined ? {} : { default: String(value) }),
    ...(quick === undefined ? {} : { quick: String(quick) }),
  };
}

function numberOf(typed: string, name: string, { min, max }: NumberRange): number {
  const value = Number(typed);
  if (typed.trim() === '' || !(value >= min && value <= max)) {
    throw new UsageError(`--${name} requires a number from ${min} to ${max}, not ${typed}`);
  }
  return value;
}

function integerOf(typed: string, name: string, range: NumberRange): number {
  const value = numberOf(typed, name, range);
  if (!Number.isInteger(value)) throw new UsageError(`--${name} requires an integer, not ${typed}`);
  return value;
}

const everyOption = {
  json: flag('print one JSON object instead of tables'),
  help: flag('print this help'),
};

/** Option of the folder for data. */
export const dirOption = word(
  'FOLDER',
  "folder for the data (default: the system's temporary folder)",
);

/** A benchmark or attack with its command line. */
export interface Benchmark<Table extends OptionTable> {
  /** Command before the options, such as `npm run bench:query --`. */
  readonly command: string;
  /** Description for the help text. */
  readonly about: string;
  readonly options: Table;
  /** Exit codes and examples, for the help text. */
  readonly closing: string;
  /** Returns the problem with a combination of options, or null. */
  readonly refuse?: (options: Values<Table>) => string | null;
  readonly measure: (options: Values<Table>, context: BenchContext) => Promise<Outcome>;
}

/** Result of a benchmark. */
export interface Outcome {
  /** Output of `--json`. */
  readonly report: object;
  /** Text output, in parts separated by empty lines. */
  readonly text: readonly string[];
  /** True for exit code 1. */
  readonly hasFailed: boolean;
}

/** Context of a benchmark. */
export interface BenchContext {
  readonly cleanup: Cleanup;
  readonly progress: Progress;
  /** Parent of temporary folders. */
  readonly folder: string;
  /** Start of most reports: the machine, and the command that repeats this run. */
  readonly about: { readonly machine: Machine; readonly command: string };
}

/** Runs a benchmark and its cleanup. Returns the exit code: 0 done, 1 failed, 2 invalid usage. */
export async function runBenchmark<Table extends OptionTable>(
  benchmark: Benchmark<Table>,
  argv: readonly string[],
  io: BenchIo,
): Promise<number> {
  const table = { ...benchmark.options, ...everyOption };
  let options: Values<typeof table>;
  try {
    options = readOptions(table, argv);
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
    const folder = 'dir' in options && options.dir !== undefined ? String(options.dir) : tmpdir();
    const command = [benchmark.command, ...argv].join(' ');
    const about = { machine: describeMachine(folder), command };
    const { report, text, hasFailed } = await benchmark.measure(options, {
      ...{ cleanup, progress, folder, about },
    });
    progress.clear();
    io.stdout.write(`${options.json ? JSON.stringify(report, null, 2) : text.join('\n\n')}\n`);
    return hasFailed ? 1 : 0;
  } catch (error) {
    progress.clear();
    io.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    return 1;
  } finally {
    cleanup.run();
  }
}

function readOptions<Table extends OptionTable>(
  table: Table,
  argv: readonly string[],
): Values<Table> {
  const known = Object.entries(table).map(([name, { argument }]) => [
    name,
    {
      type: argument === undefined ? ('boolean' as const) : ('string' as const),
      ...(name === 'help' ? { short: 'h' } : {}),
    },
  ]);
  let typed: Record<string, unknown>;
  try {
    typed = parseArgs({ args: [...argv], options: Object.fromEntries(known) }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
  const values = Object.entries(table).map(([name, { argument, default: value, quick, read }]) => {
    if (argument === undefined) return [name, typed[name] === true];
    const text = typed[name] ?? (typed.quick === true ? quick : undefined) ?? value;
    return [name, text === undefined ? undefined : read(String(text), name)];
  });
  return Object.fromEntries(values);
}

function helpText(
  { command, about, closing }: Pick<Benchmark<OptionTable>, 'command' | 'about' | 'closing'>,
  table: OptionTable,
): string {
  const rows = Object.entries(table).map(([name, { argument, text, default: value }]) => [
    `  --${[name, argument].filter(Boolean).join(' ')}`,
    value === undefined ? text : `${text} (default: ${value})`,
  ]);
  const width = Math.max(...rows.map(([left = '']) => left.length)) + 2;
  const lines = rows.map(([left = '', text = '']) => {
    return left.padEnd(width) + text.replaceAll('\n', `\n${' '.repeat(width)}`);
  });
  return [`Usage: ${command} [options]`, about, lines.join('\n'), `${closing}\n`].join('\n\n');
}

/** A progress line, shown only on a terminal. */
export interface Progress {
  /** Replaces the line. */
  show(text: string): void;
  /** Removes the line, before anything else is printed. */
  clear(): void;
}

export function createProgress(stream: NodeJS.WritableStream): Progress {
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
export function createCleanup(): Cleanup {
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
