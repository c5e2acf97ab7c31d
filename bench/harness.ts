/** What all benchmarks share: options and help, progress, what must not outlive them, and the exit code. */
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { describeMachine, type Machine } from './figures.ts';

/** Where a benchmark writes: the report on `stdout`, everything else on `stderr`. */
export interface BenchIo {
  readonly stdout: NodeJS.WritableStream;
  readonly stderr: NodeJS.WritableStream;
}

/** A command line that makes no sense; its message is for the person who typed it. */
class UsageError extends Error {}

/** An option of a command line. */
export interface Option<Value> {
  /** What stands for its value in the help text; none for a flag. */
  readonly argument?: string;
  readonly text: string;
  /** As it would be typed: shown in the help text, and read when nothing is typed. */
  readonly usual?: string;
  /** In its place with --quick. */
  readonly quick?: string;
  /** Throws UsageError. */
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
  readonly usual?: number;
  readonly quick?: number;
  readonly min: number;
  readonly max: number;
}

export function number(argument: string, text: string, range: NumberRange): Option<number> {
  const read = (typed: string, name: string) => numberOf(typed, name, range);
  return { argument, text, ...usualOf(range), read };
}

export function whole(argument: string, text: string, range: NumberRange): Option<number> {
  const read = (typed: string, name: string) => wholeOf(typed, name, range);
  return { argument, text, ...usualOf(range), read };
}

/** Whole numbers with commas between them, as many as `count` says, or any number of them. */
export function wholeList(
  argument: string,
  text: string,
  range: { usual: string; quick?: string; max: number; count?: number },
): Option<number[]> {
  const read = (typed: string, name: string) => {
    const parts = typed.split(',');
    if (range.count === 2 && parts.length !== 2) {
      throw new UsageError(`--${name} wants two numbers with a comma between them, not ${typed}`);
    }
    return parts.map((part) => wholeOf(part, name, { min: 1, max: range.max }));
  };
  const { usual, quick } = range;
  return { argument, text, usual, ...(quick === undefined ? {} : { quick }), read };
}

/** Any text, or one of several words; undefined when it is not typed. */
export function word(
  argument: string,
  text: string,
  among?: readonly string[],
): Option<string | undefined> {
  const read = (typed: string, name: string) => {
    if (among === undefined || among.includes(typed)) return typed;
    throw new UsageError(`--${name} wants one of ${among.join(', ')}, not ${typed}`);
  };
  return { argument, text, read };
}

/** The same option, undefined when it is not typed. */
export function optional<Value>(option: Option<Value>): Option<Value | undefined> {
  return option;
}

function usualOf({ usual, quick }: NumberRange) {
  return {
    ...(usual === undefined ? {} : { usual: String(usual) }),
    ...(quick === undefined ? {} : { quick: String(quick) }),
  };
}

function numberOf(typed: string, name: string, { min, max }: NumberRange): number {
  const value = Number(typed);
  if (typed.trim() === '' || !(value >= min && value <= max)) {
    throw new UsageError(`--${name} wants a number from ${min} to ${max}, not ${typed}`);
  }
  return value;
}

function wholeOf(typed: string, name: string, range: NumberRange): number {
  const value = numberOf(typed, name, range);
  if (!Number.isInteger(value))
    throw new UsageError(`--${name} wants a whole number, not ${typed}`);
  return value;
}

const everyOption = { json: flag('one JSON object instead of tables'), help: flag('this text') };

/** Where data is written, for those that write any. */
export const dirOption = word(
  'FOLDER',
  "where the data is written (the system's temporary folder)",
);

/** A benchmark, or an attack, as it is started by a command. */
export interface Benchmark<Table extends OptionTable> {
  /** What is typed before the options, such as `npm run bench:query --`. */
  readonly command: string;
  /** What it does, for the help text. */
  readonly about: string;
  readonly options: Table;
  /** Exit codes and examples, for the help text. */
  readonly closing: string;
  /** What is wrong with options that do not go together; null when nothing is. */
  readonly refuse?: (options: Values<Table>) => string | null;
  readonly measure: (options: Values<Table>, context: BenchContext) => Promise<Outcome>;
}

/** What a benchmark has found. */
export interface Outcome {
  /** What `--json` prints. */
  readonly report: object;
  /** The same for people, in parts with an empty line between them. */
  readonly text: readonly string[];
  /** Whether it calls for exit code 1. */
  readonly hasFailed: boolean;
}

/** What a benchmark is given beside its options. */
export interface BenchContext {
  readonly cleanup: Cleanup;
  readonly progress: Progress;
  /** Where temporary folders are made. */
  readonly folder: string;
  /** What most reports begin with: the machine, and the command that repeats this run. */
  readonly about: { readonly machine: Machine; readonly command: string };
}

/** Runs a benchmark and returns the exit code: 0 done, 1 failed, 2 wrong usage. What it started is ended. */
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
  const values = Object.entries(table).map(([name, { argument, usual, quick, read }]) => {
    if (argument === undefined) return [name, typed[name] === true];
    const text = typed[name] ?? (typed.quick === true ? quick : undefined) ?? usual;
    return [name, text === undefined ? undefined : read(String(text), name)];
  });
  return Object.fromEntries(values);
}

function helpText(
  { command, about, closing }: Pick<Benchmark<OptionTable>, 'command' | 'about' | 'closing'>,
  table: OptionTable,
): string {
  const rows = Object.entries(table).map(([name, { argument, text, usual }]) => [
    `  --${[name, argument].filter(Boolean).join(' ')}`,
    usual === undefined ? text : `${text} (${usual})`,
  ]);
  const width = Math.max(...rows.map(([left = '']) => left.length)) + 2;
  const lines = rows.map(([left = '', text = '']) => {
    return left.padEnd(width) + text.replaceAll('\n', `\n${' '.repeat(width)}`);
  });
  return [`Usage: ${command} [options]`, about, lines.join('\n'), `${closing}\n`].join('\n\n');
}

/** One line that says what is going on, on a terminal only. */
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

/** What must not outlive a benchmark: its child processes and temporary folders. */
export interface Cleanup {
  /** Creates a folder below `parent` that is removed by `run` or `removeFolder`. */
  temporaryFolder(parent: string): string;
  removeFolder(folder: string): void;
  /** Makes `run` end this process if it still runs by then. */
  ownProcess(child: ChildProcess): void;
  /** Ends what runs and removes what is left, at once. May be repeated; never throws. */
  run(): void;
}

/** Creates a cleanup that also runs when this process exits or is told to end; SIGKILL alone leaves something behind. */
export function createCleanup(): Cleanup {
  const folders = new Set<string>();
  const children = new Set<ChildProcess>();
  const removeFolder = (folder: string) => {
    try {
      rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
      folders.delete(folder);
    } catch {
      // A killed process may hold files for a moment on some systems; `run` tries again.
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
    // With our handler gone, the signal has its usual effect and the shell sees why we ended.
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
