/** `npm run attack -- slow`: crowds of slow connections of unknown clients, and one with valid credentials. */
import { spawn } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { alignTable, figure, megabytes, quantile } from '../../bench/figures.ts';
import { type Benchmark, type Cleanup, dirOption, integer } from '../../bench/harness.ts';
import type { CrowdState, SlowCrowd } from './slow-crowd.ts';
import { type SteadyPushes, startSteadyPushes } from './steady-pushes.ts';
import { type MemoryUse, startTarget, type Target, takeEvidence, watchUse } from './target.ts';

const options = {
  connections: integer('N', 'parallel connections of unknown clients', {
    default: 5_000,
    min: 1,
    max: 60_000,
  }),
  seconds: integer('N', 'duration of each crowd after its start', {
    default: 60,
    min: 1,
    max: 3_600,
  }),
  dir: dirOption,
};

/** 127.0.0.1 is the source of the pushes: behind a proxy, attackers and the catalogue share an address. */
const crowds: readonly Pick<SlowPhaseOptions, 'name' | 'from' | 'isAuthenticated'>[] = [
  { name: 'one address', from: '127.0.0.2', isAuthenticated: false },
  { name: 'many addresses', from: 'many', isAuthenticated: false },
  { name: 'the address of the pushes', from: '127.0.0.1', isAuthenticated: false },
  { name: 'the same, with credentials', from: '127.0.0.1', isAuthenticated: true },
];

/** Maximum connections of the receiver, so that a push has to displace one of them. */
const authenticatedCount = 1_000;
const p99MaxMs = 5_000;

const peakBytesMax = 700e6;

export const slow: Benchmark<typeof options> = {
  command: 'npm run attack -- slow',
  about: `Keeps thousands of slow connections to its own \`earshot start\` on loopback: silent ones, handshakes and
heads that never end, slow bodies, idle connections, and clients that read nothing. Then 1,000
connections with valid credentials and slow bodies. Closed connections are opened again after a few seconds.
Each valid push sent in the meantime must be answered.`,
  options,
  closing: `Exit code: 0 no harm, 1 harm, 2 wrong usage. Linux only: requires all of 127.0.0.0/8.

Examples:
  npm run attack -- slow                              about seven minutes
  npm run attack -- slow --connections 500 --seconds 10`,
  async measure({ connections, seconds }, { cleanup, progress, folder }) {
    const startMs = performance.now();
    const target = await startTarget({ cleanup, parentFolder: folder });
    const attackMs = seconds * 1_000;
    const times = { attackMs, calmMs: Math.min(10_000, attackMs) };
    const phases: SlowPhase[] = [];
    for (const crowd of crowds) {
      const count = crowd.isAuthenticated ? authenticatedCount : connections;
      const phase = { ...crowd, connections: count, ...times, cleanup, onProgress: progress.show };
      phases.push(await runSlowPhase(target, phase));
    }
    const answered = phases.flatMap(({ acknowledged }) => acknowledged);
    const tookSeconds = (performance.now() - startMs) / 1_000;
    const evidence = await takeEvidence(target, answered, { seconds: tookSeconds });
    const command = `npm run attack -- slow --connections ${connections} --seconds ${seconds}`;
    const harms = [...phases.flatMap(harmsOf), ...evidence.harms];
    return {
      report: { command, phases, evidence, harms },
      text: [
        ...renderPhases(phases),
        `${evidence.stored} of ${evidence.answered} answered pushes are in the log once.`,
        harms.length === 0
          ? 'No harm.'
          : `${harms.length} harms:\n${harms.slice(0, 30).join('\n')}`,
        `Repeat: ${command}`,
      ],
      hasFailed: harms.length > 0,
    };
  },
};

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

function renderPhases(phases: readonly SlowPhase[]): string[] {
  const head = ['crowd from', 'opened', 'closed', 'max open', 'max MB', 'left over'];
  const rows = phases.map(({ name, crowd, openMax, memory, leftOver }) => [
    ...[name, figure(crowd.opened), figure(crowd.cut), figure(openMax)],
    ...[megabytes(memory.peakBytes), figure(leftOver)],
  ]);
  const pushRows = phases.flatMap(({ name, pushes }) =>
    Object.entries(pushes).map(([time, { answered, failures, p50Ms, p99Ms, maxMs }]) => [
      ...[`${name}, ${time}`, figure(answered), figure(failures.length)],
      ...[p50Ms, p99Ms, maxMs].map((ms) => figure(ms, 1)),
    ]),
  );
  return [
    alignTable([head, ...rows]),
    alignTable([['pushes', 'answered', 'failed', 'p50 ms', 'p99 ms', 'max ms'], ...pushRows]),
  ];
}

/** Figures of the pushes of one period; times in ms. */
interface PushFigures {
  readonly answered: number;
  readonly failures: readonly string[];
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly maxMs: number | null;
}

interface SlowPhase {
  readonly name: string;
  readonly crowd: CrowdState;
  /** Maximum number of open connections of the receiver, and the number left afterwards. */
  readonly openMax: number;
  readonly leftOver: number;
  readonly pushes: Readonly<Record<'before' | 'during' | 'rare' | 'after', PushFigures>>;
  readonly memory: MemoryUse;
  readonly acknowledged: readonly string[];
}

interface SlowPhaseOptions {
  readonly name: string;
  readonly from: SlowCrowd['from'];
  /** True for a crowd with valid credentials that sends pushes with slow bodies. */
  readonly isAuthenticated: boolean;
  readonly connections: number;
  readonly attackMs: number;
  readonly calmMs: number;
  readonly cleanup: Cleanup;
  readonly onProgress: (text: string) => void;
}

const gatherTimeoutMs = 120_000;
const settleTimeoutMs = 90_000;

const perSecond = 20;

/** Rate of the catalogue in a quiet hour, on one connection that is idle in between. */
const rarePerSecond = 0.25;

async function runSlowPhase(target: Target, options: SlowPhaseOptions): Promise<SlowPhase> {
  const { name, attackMs, calmMs, onProgress } = options;
  const socketsBefore = openSockets(target.processId);
  const memory = watchUse(target.processId);
  const before = await pushFor(target, calmMs);
  const crowd = startCrowd(target, options);
  await crowd.complete();
  const pushing = startPushes(target);
  const rare = startSteadyPushes(target, { kind: 'kept', perSecond: rarePerSecond });
  let openMax = 0;
  const endMs = performance.now() + attackMs;
  while (performance.now() < endMs) {
    await delay(500);
    openMax = Math.max(openMax, openSockets(target.processId) - socketsBefore);
    const { open, cut } = crowd.state();
    onProgress(`${name}: ${open} open, ${cut} closed, at most ${openMax} open`);
  }
  const during = [await rare.stop(), ...(await pushing())] as const;
  const state = crowd.state();
  crowd.end();
  const leftOver = await settled(target.processId, socketsBefore);
  const after = await pushFor(target, calmMs);
  const [rarePushes, ...steadyPushes] = during;
  const all = [...before, ...during, ...after];
  return {
    ...{ name, crowd: state, openMax, leftOver, memory: memory.stop() },
    pushes: {
      before: figuresOf(before),
      during: figuresOf(steadyPushes),
      rare: figuresOf([rarePushes]),
      after: figuresOf(after),
    },
    acknowledged: all.flatMap(({ acknowledged }) => acknowledged),
  };
}

function startCrowd(
  target: Target,
  { connections: count, from, isAuthenticated, cleanup }: SlowPhaseOptions,
): { state(): CrowdState; complete(): Promise<void>; end(): void } {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'slow-crowd.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  cleanup.ownProcess(child);
  const { port } = target.public;
  const authorization = isAuthenticated ? target.authorization : null;
  const job: SlowCrowd = { port, count, from, authorization, perSecond: 500, pauseMs: 5_000 };
  child.stdin.end(JSON.stringify(job));
  let state: CrowdState = { open: 0, opened: 0, cut: 0, isComplete: false };
  createInterface(child.stdout).on('line', (line) => {
    state = JSON.parse(line);
  });
  return {
    state: () => state,
    complete: async () => {
      const giveUpMs = performance.now() + gatherTimeoutMs;
      while (!state.isComplete) {
        if (performance.now() > giveUpMs)
          throw new Error('the slow connections were not established');
        await delay(100);
      }
    },
    end: () => void child.kill('SIGKILL'),
  };
}

/** Starts pushes, half of them on one connection, half on new ones. */
function startPushes(target: Target): () => Promise<SteadyPushes[]> {
  const both = (['kept', 'fresh'] as const).map((kind) =>
    startSteadyPushes(target, { kind, perSecond: perSecond / 2 }),
  );
  return () => Promise.all(both.map((one) => one.stop()));
}

async function pushFor(target: Target, timeMs: number): Promise<SteadyPushes[]> {
  const stop = startPushes(target);
  await delay(timeMs);
  return stop();
}

function figuresOf(pushes: readonly SteadyPushes[]): PushFigures {
  const tookMs = pushes.flatMap((one) => one.tookMs);
  return {
    answered: pushes.reduce((sum, { acknowledged }) => sum + acknowledged.length, 0),
    failures: pushes.flatMap(({ failures }) => failures),
    ...{ p50Ms: quantile(tookMs, 0.5), p99Ms: quantile(tookMs, 0.99), maxMs: quantile(tookMs, 1) },
  };
}

/** Waits until the receiver has closed the crowd's connections; returns the number of sockets left open. */
async function settled(processId: number, socketsBefore: number): Promise<number> {
  const giveUpMs = performance.now() + settleTimeoutMs;
  for (;;) {
    const leftOver = Math.max(0, openSockets(processId) - socketsBefore);
    if (leftOver <= 5 || performance.now() > giveUpMs) return leftOver;
    await delay(500);
  }
}

/** Returns the number of open sockets; 0 on systems without /proc. */
function openSockets(processId: number): number {
  const folder = `/proc/${processId}/fd`;
  try {
    return readdirSync(folder).filter((file) => isSocket(join(folder, file))).length;
  } catch {
    return 0;
  }
}

function isSocket(file: string): boolean {
  try {
    return readlinkSync(file).startsWith('socket:');
  } catch {
    // Closed after the directory was read.
    return false;
  }
}
