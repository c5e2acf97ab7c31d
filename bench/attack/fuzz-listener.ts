/** Fuzzes one listener of a program of its own, and judges what became of both. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Cleanup } from '../cleanup.ts';
import { drawFrom, publicMakers } from './case-source.ts';
import { guardedPrivateMakers, openPrivateMakers } from './cases/private.ts';
import { type Evidence, takeEvidence } from './evidence.ts';
import { type FuzzRun, type Harm, runFuzz } from './fuzz-run.ts';
import { type MemoryUse, watchMemory } from './memory-watch.ts';
import { judgePrivateAnswer } from './private-verdict.ts';
import { judgePublicAnswer } from './public-verdict.ts';
import { startSteadyPushes } from './steady-pushes.ts';
import { startTarget, type Target } from './target.ts';

export const listenerNames = ['https', 'plain', 'private', 'private-password'] as const;
export type ListenerName = (typeof listenerNames)[number];

export interface FuzzedListener {
  readonly listener: ListenerName;
  readonly requests: number;
  readonly seconds: number;
  readonly answers: FuzzRun['answers'];
  readonly pushMs: readonly number[];
  readonly memory: MemoryUse;
  readonly evidence: Evidence;
  /** Cases that did harm, and what was found afterwards. */
  readonly harms: readonly (Harm | string)[];
}

export interface FuzzWorld {
  readonly cleanup: Cleanup;
  readonly folder: string;
  readonly seed: number;
  readonly connections: number;
  readonly onProgress: (played: number) => void;
}

/** Beyond it something is kept that should have gone: measured, it is at 400 MB however many requests come. */
const peakBytesMax = 700e6;
const consolePassword = 'a password of the fuzzer';
const steadyPerSecond = 20;
const indexTimeoutMs = 30_000;

export async function fuzzListener(
  listener: ListenerName,
  cases: { from: number; until: number },
  { cleanup, folder, seed, connections, onProgress }: FuzzWorld,
): Promise<FuzzedListener> {
  const target = await startTarget({
    ...{ cleanup, parentFolder: folder, isPlain: listener === 'plain' },
    environment:
      listener === 'private-password' ? { EARSHOT_CONSOLE_PASSWORD: consolePassword } : {},
  });
  const isPublic = listener === 'https' || listener === 'plain';
  if (!isPublic) await untilIndexed(target);
  const logFrom = target.log().length;
  const memory = watchMemory(target.processId);
  const startMs = performance.now();
  const run = { seed, connections, onProgress, ...cases };
  const fuzzed = isPublic
    ? await runFuzz({ ...run, ...publicSide(target), withPushes: true })
    : await fuzzPrivate(target, run, listener === 'private-password');
  const seconds = (performance.now() - startMs) / 1_000;
  const memoryUse = memory.stop();
  const evidence = await takeEvidence(target, fuzzed.acknowledged, { seconds, logFrom });
  const { answers, pushMs } = fuzzed;
  const { peakBytes } = memoryUse;
  const grown = `memory: ${Math.round(peakBytes / 1e6)} MB, more than ${peakBytesMax / 1e6}`;
  return {
    ...{ listener, requests: cases.until - cases.from, seconds, answers, pushMs },
    ...{ memory: memoryUse, evidence },
    harms: [...fuzzed.harms, ...evidence.harms, ...(peakBytes > peakBytesMax ? [grown] : [])],
  };
}

type Run = Pick<FuzzWorld, 'seed' | 'connections' | 'onProgress'> & { from: number; until: number };

/** Valid pushes go to the public listener meanwhile: nothing here may be in their way. */
async function fuzzPrivate(
  target: Target,
  run: Run,
  hasPassword: boolean,
): Promise<Omit<FuzzRun, 'harms'> & { harms: readonly (Harm | string)[] }> {
  const { address, right, judge } = publicSide(target);
  const steady = { address, right, judge, perSecond: steadyPerSecond, kind: 'kept' } as const;
  const pushes = startSteadyPushes(steady);
  const login = basic('earshot', consolePassword);
  const makers = hasPassword ? guardedPrivateMakers(login) : openPrivateMakers;
  const fuzzed = await runFuzz({
    ...run,
    ...{ address: target.private, right: login, judge: judgePrivateAnswer },
    ...{ draw: drawFrom(makers), withPushes: false },
  });
  const { acknowledged, failures, tookMs: pushMs } = await pushes.stop();
  const harms = [...fuzzed.harms, ...failures.map((failure) => `a push meanwhile: ${failure}`)];
  return { ...fuzzed, harms, acknowledged, pushMs };
}

/** Until there is an index, every query is answered with 503, and said to be an error. */
async function untilIndexed({ private: { port } }: Target): Promise<void> {
  const authorization = basic('earshot', consolePassword);
  const url = `http://127.0.0.1:${port}/odata/v1/Products?$top=1`;
  const giveUpMs = performance.now() + indexTimeoutMs;
  while (!(await fetch(url, { headers: { authorization } })).ok) {
    if (performance.now() > giveUpMs) throw new Error('there is no product index');
    await delay(200);
  }
}

function publicSide({ public: address, endpoint: { username, password } }: Target) {
  const right = basic(username, password);
  return { address, right, judge: judgePublicAnswer, draw: drawFrom(publicMakers) };
}

function basic(username: string, password: string): string {
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}
