/** Valid pushes at a steady rate during an attack: each must be answered, and its duration is recorded. */
import { setTimeout as delay } from 'node:timers/promises';
import { quantile } from '../../bench/figures.ts';
import { checkPublicAnswer } from './answer-checks.ts';
import { caseContext, request } from './case.ts';
import { openWire, playPush, type Wire } from './play-case.ts';
import type { Target } from './target.ts';

interface SteadyPushesOptions {
  readonly perSecond: number;
  /** Same connection for all pushes, or a new one for each. */
  readonly kind: 'kept' | 'fresh';
}

export interface SteadyPushes {
  readonly acknowledged: readonly string[];
  /** Milliseconds from the start of each push to its complete answer, including the connection. */
  readonly tookMs: readonly number[];
  /** Problems of the other pushes. */
  readonly failures: readonly string[];
}

/** Ten times the usual limit of 250 ms, for busy machines. */
const p99MaxMs = 2_500;

/** Ends the pushes; returns quantiles of their durations, and as harms those that failed or were late. */
export async function measured(pushing: ReturnType<typeof startSteadyPushes>) {
  const { acknowledged, tookMs, failures } = await pushing.stop();
  const at = (share: number) => quantile(tookMs, share);
  const pushes = { answered: acknowledged.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) };
  const harms = failures.map((failure) => `a push: ${failure}`);
  if ((pushes.p99Ms ?? 0) > p99MaxMs) harms.push(`p99 of pushes: ${pushes.p99Ms} ms`);
  return { pushes, acknowledged, harms };
}

let runs = 0;

/** Starts pushes to the public listener. */
export function startSteadyPushes(
  { public: address, authorization }: Pick<Target, 'public' | 'authorization'>,
  { perSecond, kind }: SteadyPushesOptions,
): { stop(): Promise<SteadyPushes> } {
  const stopper = new AbortController();
  const acknowledged: string[] = [];
  const failures: string[] = [];
  const tookMs: number[] = [];
  let wire: Wire | null = null;
  // Each run has its own ids.
  runs += 1;
  const firstNumber = runs * 10_000_000;

  async function push(number: number): Promise<void> {
    const startMs = performance.now();
    const body = caseContext(0, firstNumber + number, authorization).notification('valid');
    const pieces = [request({ headers: [`Authorization: ${authorization}`], body })];
    const ackId = String(JSON.parse(body).AckId);
    try {
      if (wire === null || wire.hasEnded) wire = await openWire(address);
      const { harm } = await playPush(wire, { name: kind, pieces, ackId }, checkPublicAnswer);
      if (harm === null) acknowledged.push(ackId);
      else failures.push(harm);
      if (harm !== null || kind === 'fresh') drop();
    } catch (error) {
      failures.push(error instanceof Error ? error.message : String(error));
      drop();
    }
    tookMs.push(performance.now() - startMs);
  }

  function drop(): void {
    wire?.close();
    wire = null;
  }

  async function run(): Promise<void> {
    const startMs = performance.now();
    for (let number = 0; !stopper.signal.aborted; number += 1) {
      await push(number);
      // A delayed push does not delay the following ones permanently.
      const dueMs = startMs + ((number + 1) * 1_000) / perSecond;
      const waitMs = Math.max(0, dueMs - performance.now());
      await delay(waitMs, undefined, { signal: stopper.signal }).catch(() => undefined);
    }
    drop();
  }

  const running = run();
  return {
    stop: async () => {
      stopper.abort();
      await running;
      return { acknowledged, tookMs, failures };
    },
  };
}
