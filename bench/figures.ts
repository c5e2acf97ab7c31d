/** Text output of figures: the machine, tables, medians and targets. */
import { statfsSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem, type } from 'node:os';

/** The machine of the measurement. */
export interface Machine {
  readonly cores: number;
  readonly cpuModel: string;
  readonly memoryBytes: number;
  readonly system: string;
  readonly node: string;
  /** True if the data folders are in memory, where commits do not wait for a disk. */
  readonly dataInMemory: boolean;
}

/** Linux type of a file system in memory (tmpfs). */
const tmpfsType = 0x01021994;

/** Describes this machine. `dataFolder` contains the databases. */
export function describeMachine(dataFolder: string): Machine {
  return {
    cores: availableParallelism(),
    cpuModel: cpus()[0]?.model.trim() ?? 'unknown',
    memoryBytes: totalmem(),
    system: `${type()} ${release()}`,
    node: process.version,
    dataInMemory: statfsSync(dataFolder).type === tmpfsType,
  };
}

/** Formats the machine, the measurement, and a caution about tmpfs. */
export function renderMachine(machine: Machine, ...measured: readonly string[]): string {
  const { cores, cpuModel, memoryBytes, system, node, dataInMemory } = machine;
  const about = `${cores} cores, ${cpuModel}, ${megabytes(memoryBytes)} MB; ${system}; Node ${node}`;
  const caution = 'Caution: the databases are in memory (tmpfs), where no commit waits for a disk.';
  return [about, ...measured, ...(dataInMemory ? [caution] : [])].join('\n');
}

/** Formats a table with a text column followed by right-aligned figures. */
export function alignTable(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) {
    for (const [column, cell] of row.entries()) {
      widths[column] = Math.max(widths[column] ?? 0, cell.length);
    }
  }
  const aligned = (cell: string, column: number) => {
    const width = widths[column] ?? 0;
    return column === 0 ? cell.padEnd(width) : cell.padStart(width);
  };
  return rows.map((row) => row.map(aligned).join('  ').trimEnd()).join('\n');
}

/** Formats a number with fixed decimals, or a dash for null. */
export function figure(value: number | null, decimals = 0): string {
  return value === null ? '-' : value.toFixed(decimals);
}

/** Formats bytes as MB (a million bytes), or a dash for null. */
export function megabytes(bytes: number | null): string {
  return figure(inMegabytes(bytes));
}

export function inMegabytes(bytes: number | null): number | null {
  return bytes === null ? null : bytes / 1e6;
}

/** Half of the measurements lie between the two quartiles. */
export interface Spread {
  readonly median: number;
  readonly lowerQuartile: number;
  readonly upperQuartile: number;
}

/**
 * Returns median and quartiles, interpolated. Null if any value is null or there are none, because a median of
 * some values would be misleading.
 */
export function spreadOf(values: readonly (number | null)[]): Spread | null {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  if (sorted.length === 0 || sorted.length < values.length) return null;
  const at = (share: number) => {
    const place = share * (sorted.length - 1);
    const below = sorted[Math.floor(place)] ?? 0;
    return below + ((sorted[Math.ceil(place)] ?? 0) - below) * (place - Math.floor(place));
  };
  return { median: at(0.5), lowerQuartile: at(0.25), upperQuartile: at(0.75) };
}

export function median(values: readonly (number | null)[]): number | null {
  return spreadOf(values)?.median ?? null;
}

/** Returns the quantile for a share from 0 to 1; null for an empty list. */
export function quantile(values: readonly number[], share: number): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? null;
}

/** A target and its result. */
export interface TargetResult {
  readonly name: string;
  /** The bound as text. */
  readonly bound: string;
  readonly value: number | null;
  /** Null if the value could not be measured. */
  readonly met: boolean | null;
}

/** Compares a figure with its minimum or maximum. */
export function target(
  name: string,
  value: number | null,
  { min, max }: { min?: number; max?: number },
): TargetResult {
  const short = Number((min ?? max ?? 0).toPrecision(3));
  const bound = `${min === undefined ? 'at most' : 'at least'} ${short}`;
  const met = value === null ? null : value >= (min ?? -Infinity) && value <= (max ?? Infinity);
  return { name, bound, value, met };
}

/** Formats targets and results as a table. */
export function renderTargets(targets: readonly TargetResult[]): string {
  const status = (met: boolean | null) => (met === null ? 'not measured' : met ? 'met' : 'missed');
  const rows = targets.map(({ name, bound, value, met }) => {
    return [name, figure(value, 2), bound, status(met)];
  });
  return alignTable([['target', 'measured', 'bound', 'status'], ...rows]);
}

/** Returns true for exit code 1: any fault or, with --check, a target that was not met. */
export function hasFaults(
  { faults = [], targets }: { faults?: readonly string[]; targets: readonly TargetResult[] },
  { check }: { check: boolean },
): boolean {
  return faults.length > 0 || (check && targets.some(({ met }) => met !== true));
}
