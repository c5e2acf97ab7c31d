/** One crowd of slow connections against a running program, with valid pushes before, beside and after. */
import { spawn } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { Cleanup } from '../cleanup.ts';
import { type MemoryUse, watchMemory } from './memory-watch.ts';
import { judgePublicAnswer } from './public-verdict.ts';
import { quantile } from './quantile.ts';
import type { CrowdState, SlowCrowd } from './slow-crowd.ts';
import { type SteadyPushes, startSteadyPushes } from './steady-pushes.ts';
import type { Target } from './target.ts';

/** How the pushes of one time did; times in ms. */
export interface PushFigures {
  readonly answered: number;
  readonly failures: readonly string[];
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly maxMs: number | null;
}

export interface SlowPhase {
  readonly name: string;
  readonly crowd: CrowdState;
  /** Connections that the program had open at most, and those left over afterwards. */
  readonly heldMax: number;
  readonly leftOver: number;
  readonly pushes: Readonly<Record<'before' | 'beside' | 'rare' | 'after', PushFigures>>;
  readonly memory: MemoryUse;
  readonly acknowledged: readonly string[];
}

export interface SlowPhaseOptions {
  readonly name: string;
  readonly from: SlowCrowd['from'];
  /** Whether the crowd has the right credentials, and sends pushes whose bodies drip. */
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
/** As the catalogue at a quiet hour: on one connection that rests in between. */
const rarePerSecond = 0.25;

export async function runSlowPhase(target: Target, options: SlowPhaseOptions): Promise<SlowPhase> {
  const { name, attackMs, calmMs, onProgress } = options;
  const socketsBefore = openSockets(target.processId);
  const memory = watchMemory(target.processId);
  const before = await pushFor(target, calmMs);
  const crowd = startCrowd(target, options);
  await crowd.complete();
  const pushing = startPushes(target);
  const rare = startSteadyPushes({ ...sideOf(target), kind: 'kept', perSecond: rarePerSecond });
  let heldMax = 0;
  const endMs = performance.now() + attackMs;
  while (performance.now() < endMs) {
    await delay(500);
    heldMax = Math.max(heldMax, openSockets(target.processId) - socketsBefore);
    const { open, cut } = crowd.state();
    onProgress(`${name}: ${open} open, ${cut} cut off, ${heldMax} held at most`);
  }
  const beside = [await rare.stop(), ...(await pushing())] as const;
  const state = crowd.state();
  crowd.end();
  const leftOver = await settled(target.processId, socketsBefore);
  const after = await pushFor(target, calmMs);
  const [rarePushes, ...besidePushes] = beside;
  const all = [...before, ...beside, ...after];
  return {
    ...{ name, crowd: state, heldMax, leftOver, memory: memory.stop() },
    pushes: {
      before: figuresOf(before),
      beside: figuresOf(besidePushes),
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
  const authorization = isAuthenticated ? sideOf(target).right : null;
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
        if (performance.now() > giveUpMs) throw new Error('the slow connections did not come up');
        await delay(100);
      }
    },
    end: () => void child.kill('SIGKILL'),
  };
}

function sideOf({ public: address, endpoint: { username, password } }: Target) {
  const right = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  return { address, right, judge: judgePublicAnswer };
}

/** Half of the pushes on a connection that is kept, half on new ones. */
function startPushes(target: Target): () => Promise<SteadyPushes[]> {
  const both = (['kept', 'fresh'] as const).map((kind) =>
    startSteadyPushes({ ...sideOf(target), kind, perSecond: perSecond / 2 }),
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

/** Waits until the program has let go of the crowd; how many more sockets it has open than before. */
async function settled(processId: number, socketsBefore: number): Promise<number> {
  const giveUpMs = performance.now() + settleTimeoutMs;
  for (;;) {
    const leftOver = Math.max(0, openSockets(processId) - socketsBefore);
    if (leftOver <= 5 || performance.now() > giveUpMs) return leftOver;
    await delay(500);
  }
}

/** 0 on systems without /proc. */
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
    // Closed since the folder was read.
    return false;
  }
}
