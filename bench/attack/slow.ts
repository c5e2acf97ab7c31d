/** The slow connections from command line to result: crowds of strangers, and one with the right credentials. */
import { tmpdir } from 'node:os';
import type { Cleanup } from '../cleanup.ts';
import { integerOf, readFlags } from '../option-values.ts';
import type { Progress } from '../progress.ts';
import type { Measurement } from '../run-measurement.ts';
import { alignTable, figure, megabytes } from '../table.ts';
import { type Evidence, takeEvidence } from './evidence.ts';
import {
  type PushFigures,
  runSlowPhase,
  type SlowPhase,
  type SlowPhaseOptions,
} from './slow-phase.ts';
import { startTarget } from './target.ts';

interface SlowOptions {
  readonly help: boolean;
  readonly json: boolean;
  readonly connections: number;
  readonly seconds: number;
  readonly folder: string;
}

interface SlowReport {
  readonly command: string;
  readonly phases: readonly SlowPhase[];
  readonly evidence: Evidence;
  readonly harms: readonly string[];
}

const helpText = `Usage: npm run attack -- slow [options]

Keeps thousands of slow connections to an \`earshot start\` of its own on loopback: silent ones, handshakes and
heads that never end, bodies that drip, connections that rest, and readers that read nothing. Then 1,000
connections with the right credentials, whose bodies drip. Those that are cut off come back after some seconds.
Valid pushes come meanwhile, and each must be answered.

  --connections N  of strangers at a time (5000)
  --seconds N      of each crowd, when it has gathered (60)
  --dir FOLDER     where the data is written (the system's temporary folder)
  --json           one JSON object instead of a table
  --help           this text

Exit code: 0 nothing was harmed, 1 something was, 2 wrong usage. Linux only: it needs all of 127.0.0.0/8.

Examples:
  npm run attack -- slow                              some seven minutes
  npm run attack -- slow --connections 500 --seconds 10
`;

export const slowMeasurement: Measurement<SlowOptions, SlowReport> = {
  parse: (argv) => {
    const own = {
      connections: { type: 'string' },
      seconds: { type: 'string' },
      dir: { type: 'string' },
    } as const;
    const { help, json, connections, seconds, dir: folder = tmpdir() } = readFlags(argv, own);
    return {
      ...{ help, json, folder },
      connections: integerOf('connections', connections, 5_000, { min: 1, max: 60_000 }),
      seconds: integerOf('seconds', seconds, 60, { min: 1, max: 3_600 }),
    };
  },
  helpText,
  measure: attackSlowly,
  render,
  hasFailed: ({ harms }) => harms.length > 0,
};

/** 127.0.0.1 is where the pushes come from: behind a proxy, friend and foe have one address. */
const crowds: readonly Pick<SlowPhaseOptions, 'name' | 'from' | 'isAuthenticated'>[] = [
  { name: 'one address', from: '127.0.0.2', isAuthenticated: false },
  { name: 'many addresses', from: 'many', isAuthenticated: false },
  { name: 'the address of the pushes', from: '127.0.0.1', isAuthenticated: false },
  { name: 'the same, with credentials', from: '127.0.0.1', isAuthenticated: true },
];

/** As many as the program takes at all, so that a push needs the place of one of them. */
const authenticatedCount = 1_000;

const p99MaxMs = 5_000;
const peakBytesMax = 700e6;

async function attackSlowly(
  { connections, seconds, folder }: SlowOptions,
  _argv: string[],
  cleanup: Cleanup,
  progress: Progress,
): Promise<SlowReport> {
  const startMs = performance.now();
  const target = await startTarget({ cleanup, parentFolder: folder });
  const phases: SlowPhase[] = [];
  for (const crowd of crowds) {
    const attackMs = seconds * 1_000;
    const times = { attackMs, calmMs: Math.min(10_000, attackMs) };
    const onProgress = (text: string) => progress.show(text);
    const count = crowd.isAuthenticated ? authenticatedCount : connections;
    const phase = { ...crowd, connections: count, ...times, cleanup, onProgress };
    phases.push(await runSlowPhase(target, phase));
  }
  const answered = phases.flatMap(({ acknowledged }) => acknowledged);
  const tookSeconds = (performance.now() - startMs) / 1_000;
  const evidence = await takeEvidence(target, answered, { seconds: tookSeconds });
  const command = `npm run attack -- slow --connections ${connections} --seconds ${seconds}`;
  return { command, phases, evidence, harms: [...phases.flatMap(harmsOf), ...evidence.harms] };
}

function harmsOf({ name, pushes, memory, leftOver }: SlowPhase): string[] {
  const failures = Object.entries(pushes).flatMap(([time, own]) => [
    ...own.failures.map((failure) => `${name}: a push ${time}: ${failure}`),
    ...((own.p99Ms ?? 0) > p99MaxMs ? [`${name}: pushes ${time} took ${own.p99Ms} ms`] : []),
  ]);
  const megabytesMost = Math.round(memory.peakBytes / 1e6);
  return [
    ...failures,
    ...(memory.peakBytes > peakBytesMax ? [`${name}: ${megabytesMost} MB of memory`] : []),
    ...(leftOver > 5 ? [`${name}: ${leftOver} connections are left over`] : []),
  ];
}

/** As text, ending with a line break. */
function render({ command, phases, evidence, harms }: SlowReport): string {
  const head = ['crowd from', 'opened', 'cut off', 'held at most', 'MB at most', 'left over'];
  const rows = phases.map(({ name, crowd, heldMax, memory, leftOver }) => [
    ...[name, figure(crowd.opened), figure(crowd.cut), figure(heldMax)],
    ...[megabytes(memory.peakBytes), figure(leftOver)],
  ]);
  const pushRow = (label: string, { answered, failures, p50Ms, p99Ms, maxMs }: PushFigures) => [
    ...[label, figure(answered), figure(failures.length), figure(p50Ms, 1), figure(p99Ms, 1)],
    figure(maxMs, 1),
  ];
  const pushRows = phases.flatMap(({ name, pushes }) =>
    Object.entries(pushes).map(([time, own]) => pushRow(`${name}, ${time}`, own)),
  );
  const parts = [
    alignTable([head, ...rows]),
    alignTable([['pushes', 'answered', 'failed', 'p50 ms', 'p99 ms', 'max ms'], ...pushRows]),
    `${evidence.stored} of ${evidence.answered} answered pushes are in the log once.`,
    harms.length === 0
      ? 'Nothing was harmed.'
      : `${harms.length} harms:\n${harms.slice(0, 30).join('\n')}`,
    `Repeat: ${command}`,
  ];
  return `${parts.join('\n\n')}\n`;
}
