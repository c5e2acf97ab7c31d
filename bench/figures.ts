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
export function renderMachine(machine: Machine, measured: string): string {
  const { cores, cpuModel, memoryBytes, system, node, dataInMemory } = machine;
  const about = `${cores} cores, ${cpuModel}, ${figure(memoryBytes / 1e6)} MB; ${system}; Node ${node}`;
  const caution = 'Caution: the databases are in memory (tmpfs), where no commit waits for a disk.';
  return [about, measured, ...(dataInMemory ? [caution] : [])].join('\n');
}

/** Title, value of an item, and decimals of a number (default: 0). */
export type Column<Item> = readonly [
  title: string,
  value: (item: Item) => string | number | null,
  decimals?: number,
];

/** Formats a table with a row for each item: a text column, then right-aligned figures. */
export function renderTable<Item>(
  items: readonly Item[],
  columns: readonly Column<Item>[],
): string {
  const cells = columns.map(([title, value, decimals]) => [
    title,
    ...items.map((item) => {
      const one = value(item);
      return typeof one === 'string' ? one : figure(one, decimals);
    }),
  ]);
  const aligned = cells.map((column, index) => {
    const width = Math.max(...column.map((cell) => cell.length));
    return column.map((cell) => (index === 0 ? cell.padEnd(width) : cell.padStart(width)));
  });
  const row = (at: number) => aligned.map((column) => column[at]).join('  ');
  return [0, ...items.map((_, index) => index + 1)].map((at) => row(at).trimEnd()).join('\n');
}

/** Formats a number with fixed decimals, or a dash for null. */
export function figure(value: number | null, decimals = 0): string {
  return value === null ? '-' : value.toFixed(decimals);
}

/** Returns MB (a million bytes). */
export function inMegabytes(bytes: number | null): number | null {
  return bytes === null ? null : bytes / 1e6;
}

/**
 * Returns the median, interpolated. Null if any value is null or there are none, because a median of some values would
 * be misleading.
 */
export function median(values: readonly (number | null)[]): number | null {
  const sorted = values.filter((value) => value !== null).sort((a, b) => a - b);
  if (sorted.length === 0 || sorted.length < values.length) return null;
  const [low, high] = [Math.floor, Math.ceil].map(
    (round) => sorted[round((sorted.length - 1) / 2)],
  );
  return ((low ?? 0) + (high ?? 0)) / 2;
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
  return renderTable(targets, [
    ['target', ({ name }) => name],
    ['measured', ({ value }) => value, 2],
    ['bound', ({ bound }) => bound],
    ['status', ({ met }) => (met === null ? 'not measured' : met ? 'met' : 'missed')],
  ]);
}
