/** The sandbox's time: the real one plus an offset that can be moved forward. */

export interface SandboxClock {
  /** Milliseconds since 1970; never smaller than what it said before. */
  now(): number;
  /** How far the sandbox is ahead of the real time, in ms. */
  offsetMs(): number;
  /** Moves the time forward; whatever waits for a moment that has now come goes on. Throws RangeError for a negative or broken number. */
  advance(ms: number): void;
  /** Waits for a moment; false when `signal` was aborted before it came. */
  waitUntil(atMs: number, signal: AbortSignal): Promise<boolean>;
}

// Node's timers overflow beyond 2^31 ms; a longer wait is cut into pieces.
const timerMaxMs = 3_600_000;

/** Creates a clock over the real one (`now`: ms since 1970). */
export function createSandboxClock({ now: realNow }: { now: () => number }): SandboxClock {
  const waiting = new Set<() => void>();
  let offsetMs = 0;
  let latestMs = Number.NEGATIVE_INFINITY;

  const now = () => {
    latestMs = Math.max(latestMs, realNow() + offsetMs);
    return latestMs;
  };

  const waitUntil = (atMs: number, signal: AbortSignal) => {
    if (signal.aborted) return Promise.resolve(false);
    if (now() >= atMs) return Promise.resolve(true);
    return new Promise<boolean>((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      const finish = (reached: boolean) => {
        clearTimeout(timer);
        waiting.delete(look);
        signal.removeEventListener('abort', cancel);
        resolve(reached);
      };
      const look = () => {
        clearTimeout(timer);
        const remainingMs = atMs - now();
        if (remainingMs <= 0) finish(true);
        else timer = setTimeout(look, Math.min(Math.ceil(remainingMs), timerMaxMs));
      };
      const cancel = () => finish(false);
      waiting.add(look);
      signal.addEventListener('abort', cancel);
      look();
    });
  };

  return {
    now,
    offsetMs: () => offsetMs,
    advance: (ms) => {
      if (!Number.isFinite(ms) || ms < 0) {
        throw new RangeError(`The clock only moves forward, by 0 ms or more; it was told ${ms}.`);
      }
      offsetMs += ms;
      for (const look of [...waiting]) look();
    },
    waitUntil,
  };
}
