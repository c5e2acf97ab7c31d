/** The result of the benchmark of bodies as one object and as text for people. */
import type { BodySizes, LogBytes } from './body-sizes.ts';
import { type BodySpeed, bodyStates } from './body-speed.ts';
import type { Machine } from './machine.ts';
import type { RunFigures } from './measure.ts';
import { median } from './median.ts';
import { machineLines, renderTargets } from './report.ts';
import { alignTable, figure } from './table.ts';
import { type TargetResult, target } from './targets.ts';

/** What `--json` prints; `speed` is null when it was not measured. */
export interface BodyReport {
  readonly machine: Machine;
  /** The command that repeats this run. */
  readonly command: string;
  readonly speed: BodySpeed | null;
  readonly sizes: readonly BodySizes[];
  readonly targets: readonly TargetResult[];
  /** What makes the benchmark invalid: lost notifications, failed requests. */
  readonly faults: readonly string[];
}

/** Compression may cost a seventh of the speed, and has to leave a fifth of the bytes. */
const speedMin = 0.85;
const shareMax = 0.2;

export function judgeBodies(speed: BodySpeed | null, sizes: readonly BodySizes[]): TargetResult[] {
  return [
    target('intake, compressed to as they came', speed?.ratio?.median ?? null, { min: speedMin }),
    ...sizes.map(({ kind, arrival, rawBytes, compacted }) =>
      target(`log to raw bodies, ${kind}, ${arrival}, compacted`, compacted.file / rawBytes, {
        max: shareMax,
      }),
    ),
  ];
}

/** The report as text, ending with a line break. */
export function renderBodyReport(report: BodyReport): string {
  const { machine, speed, sizes, targets, faults, command } = report;
  const parts = [
    machineLines(machine).join('\n'),
    ...(speed === null ? [] : [renderSpeed(speed)]),
    renderSizes(sizes),
    renderTargets(targets),
    ...(faults.length === 0 ? [] : [['FAILED', ...faults].join('\n  ')]),
    `Repeat: ${command}`,
  ];
  return `${parts.join('\n\n')}\n`;
}

function renderSpeed({ rounds, ratio }: BodySpeed): string {
  const rows = bodyStates.map((state) => {
    const runs = rounds.map((round) => round[state]);
    return [
      state,
      figure(median(runs.map((run) => run.requestsPerSecond))),
      figure(median(runs.map((run) => run.p50Ms)), 1),
      figure(median(runs.map((run) => run.p99Ms)), 1),
      figure(median(runs.map(cpuUs))),
      figure(median(runs.map((run) => run.diskBytesPerRow))),
    ];
  });
  const title = ['bodies', 'requests/s', 'p50 ms', 'p99 ms', 'processor µs', 'bytes a row'];
  const each = rounds
    .map((round) =>
      figure(round.compressed.requestsPerSecond / round['as they came'].requestsPerSecond, 2),
    )
    .join(' ');
  const spread = `${figure(ratio?.median ?? null, 2)} (rounds: ${each})`;
  return `${alignTable([title, ...rows])}\nSpeed with compression to that without: ${spread}`;
}

/** Processor time of the receiver, all its threads, for a request: what counts on a machine that others use, too. */
function cpuUs({ serverCores, requestsPerSecond }: RunFigures): number | null {
  return serverCores === null ? null : (serverCores * 1e6) / requestsPerSecond;
}

function renderSizes(sizes: readonly BodySizes[]): string {
  const title = [
    ...['bytes for a notification', 'raw body', 'file', 'bodies', 'rows and indexes'],
    ...['file to raw', 'compacting µs'],
  ];
  const rows = sizes.flatMap((one) => {
    const { kind, arrival, rawBytes, stored, compacted, compactUs } = one;
    const row = (state: string, bytes: LogBytes, us: number | null) => [
      `${kind}, ${arrival}, ${state}`,
      ...[rawBytes, bytes.file, bytes.bodies, bytes.notifications].map((value) => figure(value)),
      ...[figure(bytes.file / rawBytes, 3), figure(us)],
    ];
    return [row('stored', stored, null), row('compacted', compacted, compactUs)];
  });
  return `${alignTable([title, ...rows])}\nThe product index is a file of its own, and not in these figures.`;
}
