/** The speeds, sizes and latencies that earshot promises, and whether a benchmark met them. */
import { type Comparison, runsByServer } from './comparison.ts';
import type { Growth } from './growth.ts';
import type { HandingOver } from './handing-over.ts';
import type { Indexing } from './indexing.ts';
import type { RunFigures } from './measure.ts';
import { median } from './median.ts';
import type { Summarising } from './summarising.ts';

/** One promise and what became of it. */
export interface TargetResult {
  readonly name: string;
  /** The bound in words. */
  readonly bound: string;
  readonly value: number | null;
  /** Null when the value could not be measured. */
  readonly met: boolean | null;
}

/** What a figure must reach or keep below. */
export interface Bound {
  readonly min?: number;
  readonly max?: number;
}

const peakMegabytes = 300;

/** What a benchmark measured; null for what was not run. */
export interface BenchParts {
  readonly comparison: Comparison | null;
  readonly growth: Growth | null;
  readonly indexing: Indexing | null;
  readonly summarising: Summarising | null;
  readonly handingOver: HandingOver | null;
}

/** Every run of a server that was measured. */
export function runsOf(parts: BenchParts): RunFigures[] {
  const { comparison, growth, indexing, summarising, handingOver } = parts;
  return [
    ...(comparison?.rounds ?? []).flatMap((round) => Object.values(round)),
    ...(growth?.rounds ?? []).flatMap((round) => [round.small, round.large]),
    ...(indexing?.rounds ?? []).flatMap((round) => [round.off, round.on]),
    ...(summarising?.rounds ?? []).flatMap((round) => [round.off, round.on]),
    ...(handingOver?.rounds ?? []).flatMap((round) => [round.none, round.hanging, round.taking]),
  ];
}

/** Judges what was measured; what was not run has no entry. */
export function judge(parts: BenchParts): TargetResult[] {
  const { comparison, growth, indexing, summarising, handingOver } = parts;
  return [
    ...(comparison === null ? [] : judgeComparison(comparison)),
    ...(growth === null ? [] : judgeGrowth(growth)),
    ...(indexing === null ? [] : judgeIndexing(indexing)),
    ...(summarising === null ? [] : judgeSummarising(summarising)),
    ...(handingOver === null ? [] : judgeHandingOver(handingOver)),
  ];
}

function judgeComparison(comparison: Comparison): TargetResult[] {
  const resident = median(runsByServer(comparison).earshot.map((run) => run.peakResidentBytes));
  return [
    target('requests/s, earshot / twenty-line', comparison.earshotToTwentyLine, { min: 3 }),
    target('requests/s, earshot / bare', comparison.earshotToBare, { min: 1 / 3 }),
    target('p99, earshot / twenty-line', comparison.p99ToTwentyLine, { max: 1 }),
    target('earshot peak memory, MB', inMegabytes(resident), { max: peakMegabytes }),
  ];
}

function judgeGrowth(growth: Growth): TargetResult[] {
  const sizes = `${growth.largeRows} / ${growth.smallRows} rows`;
  const resident = median(growth.rounds.map((round) => round.large.peakResidentBytes));
  return [
    target(`requests/s, ${sizes}`, growth.speedRatio, { min: 0.85 }),
    target(`earshot peak memory at ${growth.largeRows} rows, MB`, inMegabytes(resident), {
      max: peakMegabytes,
    }),
    target('probe p99, during scans / idle', growth.probeP99Ratio, { max: 3 }),
  ];
}

function judgeIndexing({ speedRatio, indexedPerSecond }: Indexing): TargetResult[] {
  return [
    target('requests/s, index on / off', speedRatio, { min: 0.8 }),
    target('notifications indexed/s while they come in', indexedPerSecond, { min: 2_000 }),
  ];
}

function judgeSummarising({ speedRatio }: Summarising): TargetResult[] {
  return [target('requests/s, summaries on / off', speedRatio, { min: 0.95 })];
}

/** One that takes everything has its share of the machine; one that hangs must have none. */
function judgeHandingOver({ hangingToNone }: HandingOver): TargetResult[] {
  const value = hangingToNone?.median ?? null;
  return [target('requests/s, a sink that hangs / none', value, { min: 0.95 })];
}

/** Judges one figure. */
export function target(name: string, value: number | null, { min, max }: Bound): TargetResult {
  const bound = min === undefined ? `at most ${short(max)}` : `at least ${short(min)}`;
  if (value === null) return { name, bound, value, met: null };
  return { name, bound, value, met: value >= (min ?? -Infinity) && value <= (max ?? Infinity) };
}

function inMegabytes(bytes: number | null): number | null {
  return bytes === null ? null : bytes / 1e6;
}

function short(value: number | undefined): string {
  return value === undefined ? '' : String(Number(value.toPrecision(3)));
}
