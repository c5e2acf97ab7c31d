/** Valid pushes at a steady rate beside an attack: each must be answered, and how long it took is kept. */
import { setTimeout as delay } from 'node:timers/promises';
import { caseContext, request } from './case.ts';
import { openWire, playPush, type Wire } from './play-case.ts';
import type { Target } from './target.ts';
import { judgePublicAnswer } from './verdicts.ts';

interface SteadyPushesOptions {
  readonly perSecond: number;
  /** On one connection that is kept, or each on a new one. */
  readonly kind: 'kept' | 'fresh';
}

export interface SteadyPushes {
  readonly acknowledged: readonly string[];
  /** Milliseconds from the start of each to its whole answer; connecting belongs to it. */
  readonly tookMs: readonly number[];
  /** What happened to those that were not answered as they must be. */
  readonly failures: readonly string[];
}

let runs = 0;

/** To the public listener. */
export function startSteadyPushes(
  { public: address, right }: Pick<Target, 'public' | 'right'>,
  { perSecond, kind }: SteadyPushesOptions,
): { stop(): Promise<SteadyPushes> } {
  const stopper = new AbortController();
  const acknowledged: string[] = [];
  const failures: string[] = [];
  const tookMs: number[] = [];
  let wire: Wire | null = null;
  // Ids of their own for each run.
  runs += 1;
  const firstNumber = runs * 10_000_000;

  async function push(number: number): Promise<void> {
    const startMs = performance.now();
    const body = caseContext(0, firstNumber + number, right).notification('valid');
    const pieces = [request({ headers: [`Authorization: ${right}`], body })];
    const ackId = String(JSON.parse(body).AckId);
    try {
      if (wire === null || wire.hasEnded) wire = await openWire(address);
      const { harm } = await playPush(wire, { name: kind, pieces, ackId }, judgePublicAnswer);
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
      // One that is late puts none off for ever.
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
