/** A clock that the test advances, with the pauses that depend on it. */
import { setTimeout as delay } from 'node:timers/promises';

interface Waiting {
  atUs: number;
  end: () => void;
}

export interface VirtualTime {
  nowUs: () => number;
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Advances the clock at once, and ends the pauses that are due by then. */
  advance: (ms: number) => void;
  /** Advances the clock in small steps, with real work in between, until the condition holds. */
  runUntil: (
    isTrue: () => boolean | Promise<boolean>,
    options?: { stepMs?: number },
  ) => Promise<void>;
}

const realTimeoutMs = 15_000;

export function createVirtualTime(startUs = 1_795_000_000_000_000): VirtualTime {
  let us = startUs;
  const waiting = new Set<Waiting>();
  const advance = (ms: number) => {
    us += ms * 1000;
    for (const one of [...waiting].filter(({ atUs }) => atUs <= us)) one.end();
  };
  return {
    nowUs: () => us,
    pause: (ms, signal) =>
      new Promise((resolve) => {
        const one = { atUs: us + ms * 1000, end: () => done() };
        const done = () => {
          waiting.delete(one);
          signal.removeEventListener('abort', done);
          resolve();
        };
        waiting.add(one);
        signal.addEventListener('abort', done);
        if (signal.aborted) done();
      }),
    advance,
    runUntil: async (isTrue, { stepMs = 100 } = {}) => {
      const endMs = performance.now() + realTimeoutMs;
      while (!(await isTrue())) {
        if (performance.now() > endMs) throw new Error('The condition did not come true in time.');
        advance(stepMs);
        await delay(1);
      }
    },
  };
}
