/** The benchmark's result as one object and as text for people. */
import { type Comparison, runsByServer } from './comparison.ts';
import type { Growth, ProbeRound } from './growth.ts';
import { type HandingOver, sinkStates } from './handing-over.ts';
import type { InTurn } from './in-turn.ts';
import type { Indexing } from './indexing.ts';
import type { Machine } from './machine.ts';
import type { RunFigures } from './measure.ts';
import { median, type Spread } from './median.ts';
import type { ProbeFigures } from './probe.ts';
import type { AckIdForm } from './request-ids.ts';
import { serverNames } from './servers.ts';
import type { Summarising } from './summarising.ts';
import { alignTable, figure, megabytes } from './table.ts';
import { type BenchParts, runsOf, type TargetResult } from './targets.ts';

/** What `--json` prints. Times in ms, sizes in bytes; parts that were not run are null. */
export interface BenchReport extends BenchParts {
  readonly machine: Machine;
  /** The command that repeats this run. */
  readonly command: string;
  readonly setting: {
    readonly rounds: number;
    readonly ackIdForm: AckIdForm;
    readonly connections: number;
    readonly warmUpMs: number;
    readonly measureMs: number;
    /** Mean size of the notifications that were sent. */
    readonly bodyBytes: number;
  };
  readonly targets: readonly TargetResult[];
  /** What makes the benchmark invalid: lost notifications, failed requests. */
  readonly faults: readonly string[];
}

/** The report as text, ending with a line break. */
export function renderReport(report: BenchReport): string {
  const parts = [renderMachine(report)];
  if (report.comparison !== null) parts.push(renderComparison(report.comparison));
  if (report.growth !== null) parts.push(renderGrowth(report.growth), renderProbes(report.growth));
  if (report.indexing !== null) parts.push(renderIndexing(report.indexing));
  if (report.summarising !== null) parts.push(renderSummarising(report.summarising));
  if (report.handingOver !== null) parts.push(renderHandingOver(report.handingOver));
  parts.push(...cautions(report));
  parts.push(renderTargets(report.targets), renderFaults(report), `Repeat: ${report.command}`);
  return `${parts.join('\n\n')}\n`;
}

function renderMachine({ machine, setting }: BenchReport): string {
  const { rounds, ackIdForm, connections, warmUpMs, measureMs, bodyBytes } = setting;
  const [about = '', ...others] = machineLines(machine);
  const load = `${connections} keep-alive connections, bodies of ${figure(bodyBytes)} bytes with AckIds as ${ackIdForm === 'guid' ? 'specified (GUID)' : 'observed'}, ${measureMs / 1_000} s after ${warmUpMs / 1_000} s of warm-up; median of ${rounds} round(s)`;
  return [about, load, ...others].join('\n');
}

/** The machine in a line, and what must be known of it in others. */
export function machineLines(machine: Machine): string[] {
  const { cores, cpuModel, memoryBytes, system, node } = machine;
  const about = `${cores} cores, ${cpuModel}, ${megabytes(memoryBytes)} MB; ${system}; Node ${node}`;
  return machine.dataInMemory
    ? [about, 'Caution: the databases are in memory (tmpfs), where no commit waits for a disk.']
    : [about];
}

/** Above this share of a core, a generator is too near its own limit to judge a server. */
const generatorCoresMax = 0.85;

/** Other programs may use this share of a core before the report warns of them. */
const otherCoresMax = 0.25;

const runHeader = [
  'requests/s',
  'p50 ms',
  'p99 ms',
  'max ms',
  'server cores',
  'load cores',
  'other cores',
  'MB',
  'peak MB',
  'disk B/row',
  'answered',
  'missing',
];

function runRow(name: string, runs: readonly RunFigures[]): string[] {
  const cell = (pick: (run: RunFigures) => number | null, decimals = 0) =>
    figure(median(runs.map(pick)), decimals);
  const sum = (pick: (run: RunFigures) => number) =>
    runs.reduce((total, run) => total + pick(run), 0);
  const checked = runs.every((run) => run.missing !== null);
  return [
    name,
    cell((run) => run.requestsPerSecond),
    cell((run) => run.p50Ms, 2),
    cell((run) => run.p99Ms, 2),
    cell((run) => run.maxMs, 1),
    cell((run) => run.serverCores, 2),
    cell((run) => run.generatorCores, 2),
    cell((run) => run.otherCores, 2),
    megabytes(median(runs.map((run) => run.residentBytes))),
    megabytes(median(runs.map((run) => run.peakResidentBytes))),
    cell((run) => run.diskBytesPerRow),
    String(sum((run) => run.answered)),
    checked ? String(sum((run) => run.missing ?? 0)) : '-',
  ];
}

function renderComparison(comparison: Comparison): string {
  const runs = runsByServer(comparison);
  const rows = serverNames.map((name) => runRow(name, runs[name]));
  return [
    alignTable([['server', ...runHeader], ...rows]),
    '',
    `requests/s, earshot / twenty-line: ${figure(comparison.earshotToTwentyLine, 2)}`,
    `requests/s, earshot / bare:        ${figure(comparison.earshotToBare, 2)}`,
    loadStatement(comparison),
  ].join('\n');
}

/** Says whether the load generator may have been the bottleneck. */
function loadStatement(comparison: Comparison): string {
  const shares = comparison.rounds.flatMap((round) =>
    serverNames.map((name) => round[name].generatorCores),
  );
  const most = Math.max(...shares);
  return most < generatorCoresMax
    ? `The load generator, a process of its own, never used more than ${figure(most, 2)} of a core: it did not limit the rate.`
    : `Caution: the load generator used ${figure(most, 2)} of a core and may have limited the rate.`;
}

/** Warns when other programs took processor time away, which lowers some figures more than others. */
function cautions(parts: BenchParts): string[] {
  const most = Math.max(...runsOf(parts).map((run) => run.otherCores ?? 0));
  return most > otherCoresMax
    ? [
        `Caution: other programs used up to ${figure(most, 2)} cores meanwhile. Repeat this when the machine is idle.`,
      ]
    : [];
}

function renderGrowth(growth: Growth): string {
  const rows = [
    runRow(
      `${growth.smallRows} rows`,
      growth.rounds.map((round) => round.small),
    ),
    runRow(
      `${growth.largeRows} rows`,
      growth.rounds.map((round) => round.large),
    ),
  ];
  return [
    `earshot on databases prefilled with bodies of ${figure(growth.bodyBytes)} bytes`,
    alignTable([['database', ...runHeader], ...rows]),
    '',
    `requests/s, large / small: ${figure(growth.speedRatio, 2)}`,
  ].join('\n');
}

function renderProbes(growth: Growth): string {
  const row = (name: string, pick: (round: ProbeRound) => ProbeFigures) => {
    const cell = (of: (probe: ProbeFigures) => number, decimals = 0) =>
      figure(median(growth.probes.map((round) => of(pick(round)))), decimals);
    return [
      name,
      cell((probe) => probe.requests),
      cell((probe) => probe.p50Ms, 2),
      cell((probe) => probe.p99Ms, 2),
      cell((probe) => probe.maxMs, 1),
    ];
  };
  const scans = growth.probes.reduce((sum, round) => sum + round.scans, 0);
  return [
    `GET /notifications every 5 ms on the database that had ${growth.largeRows} rows`,
    alignTable([
      ['state', 'requests', 'p50 ms', 'p99 ms', 'max ms'],
      row('idle', (round) => round.idle),
      row('during scans', (round) => round.scanning),
    ]),
    '',
    `p99, during scans / idle: ${figure(growth.probeP99Ratio, 2)} (${scans} scans of the whole log ran to their end)`,
  ].join('\n');
}

function renderIndexing({ rounds, speedRatio, indexedPerSecond }: Indexing): string {
  const behind = median(rounds.map((round) => round.behind));
  return [
    'Intake with the product index off and on in turn, each notification of a product of its own',
    offAndOn('index', rounds),
    '',
    `requests/s, on / off: ${figure(speedRatio, 2)}`,
    `indexed/s meanwhile:  ${figure(indexedPerSecond)} (${figure(behind)} behind when the load ended)`,
  ].join('\n');
}

function renderSummarising({ rounds, speedRatio }: Summarising): string {
  const wanted = median(rounds.map((round) => round.wanted));
  const written = median(rounds.map((round) => round.written));
  return [
    'Intake without summaries and with a text wanted of every product in turn, each with the index on',
    offAndOn('summaries', rounds),
    '',
    `requests/s, on / off: ${figure(speedRatio, 2)}`,
    `meanwhile:            ${figure(wanted)} texts were wanted, ${figure(written)} written`,
  ].join('\n');
}

function renderHandingOver({
  rounds,
  hangingToNone,
  takingToNone,
  takenPerSecond,
}: HandingOver): string {
  const waiting = median(rounds.map((round) => round.waiting));
  return [
    'Intake without a sink, beside a webhook that never answers, and beside one that takes all at once, in turn',
    inTurn('sink', sinkStates, rounds),
    '',
    `requests/s, hanging / none: ${spread(hangingToNone, 2)} (${figure(waiting)} waited for it when the load ended)`,
    `requests/s, taking / none:  ${spread(takingToNone, 2)}`,
    `taken/s meanwhile:          ${spread(takenPerSecond)}`,
  ].join('\n');
}

function offAndOn(what: string, rounds: readonly InTurn<RunFigures>[]): string {
  return inTurn(what, ['off', 'on'], rounds);
}

/** A line for each state. */
function inTurn<State extends string>(
  what: string,
  states: readonly State[],
  rounds: readonly Readonly<Record<State, RunFigures>>[],
): string {
  const row = (state: State) =>
    runRow(
      state,
      rounds.map((round) => round[state]),
    );
  return alignTable([[what, ...runHeader], ...states.map(row)]);
}

function spread(values: Spread | null, decimals = 0): string {
  if (values === null) return figure(null);
  const { median: middle, lowerQuartile, upperQuartile } = values;
  const [lower, upper] = [figure(lowerQuartile, decimals), figure(upperQuartile, decimals)];
  return `${figure(middle, decimals)}, quartiles ${lower} and ${upper}`;
}

/** The promises and what became of them. */
export function renderTargets(targets: readonly TargetResult[]): string {
  const verdict = (met: boolean | null) => (met === null ? 'not measured' : met ? 'met' : 'missed');
  const rows = targets.map(({ name, bound, value, met }) => [
    name,
    figure(value, 2),
    bound,
    verdict(met),
  ]);
  return alignTable([['target', 'measured', 'bound', 'verdict'], ...rows]);
}

function renderFaults({ faults }: BenchReport): string {
  if (faults.length > 0) return ['FAILED', ...faults.map((fault) => `  ${fault}`)].join('\n');
  return 'Every notification that was answered with 200 is in its file exactly once.';
}
