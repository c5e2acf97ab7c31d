/** Reads the benchmarks' flags and their values. */
import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';

/** A command line that makes no sense; its message is for the person who typed it. */
export class UsageError extends Error {}

export interface Range {
  readonly min: number;
  readonly max: number;
}

/** What every benchmark can be told. */
const everyFlag = {
  help: { type: 'boolean', short: 'h', default: false },
  json: { type: 'boolean', default: false },
  check: { type: 'boolean', default: false },
} as const;

/** The flags of a command line: those that every benchmark has, and its own. Throws UsageError, as do the others. */
export function readFlags<const Own extends ParseArgsOptionsConfig>(
  argv: readonly string[],
  own: Own,
) {
  try {
    return parseArgs({ args: [...argv], options: { ...everyFlag, ...own } }).values;
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

const rowsRange: Range = { min: 1, max: 100_000_000 };

/** Two sizes of a database. */
export function rowsOf(flag: string, text: string): [small: number, large: number] {
  const [small, large, ...rest] = text.split(',');
  if (large === undefined || rest.length > 0) {
    throw new UsageError(`--${flag} wants two numbers with a comma between them, not ${text}`);
  }
  return [integerOf(flag, small, 0, rowsRange), integerOf(flag, large, 0, rowsRange)];
}

export function integerOf(flag: string, text: string | undefined, byDefault: number, range: Range) {
  const value = numberOf(flag, text, byDefault, range);
  if (!Number.isInteger(value)) throw new UsageError(`--${flag} wants a whole number, not ${text}`);
  return value;
}

export function numberOf(flag: string, text: string | undefined, byDefault: number, range: Range) {
  if (text === undefined) return byDefault;
  const value = Number(text);
  if (text.trim() === '' || !(value >= range.min && value <= range.max)) {
    throw new UsageError(`--${flag} wants a number from ${range.min} to ${range.max}, not ${text}`);
  }
  return value;
}
