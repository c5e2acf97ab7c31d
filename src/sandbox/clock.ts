/** The sandbox's time: the real one plus an offset that can be moved forward. */

export type SandboxClock = ReturnType<typeof createSandboxClock>;

// Node's timers overflow beyond 2^31 ms; a longer wait is cut into pieces.
const timerMaxMs = 3_600_000;

/** Creates a clock over the real one (`now`: ms since 1970). */
export function createSandboxClock({ now: realNow }: { now: () => number }) {
  const waiting = new Set<() => void>();
  let offsetMs = 0;
  let latestMs = Number.NEGATIVE_INFINITY;

  const now = () => {
    latestMs = Math.max(latestMs, realNow() + offsetMs);
    return latestMs;
  };

  return {
    /** Returns ms since 1970, never smaller than before. */
    now,
    /** Returns how far the sandbox is ahead of the real time, in ms. */
    offsetMs: () => offsetMs,
    /** Moves the time forward and ends the waits that are due. Throws RangeError for a negative or broken number. */
    advance: (ms: number) => {
      if (!Number.isFinite(ms) || ms < 0) {
        throw new RangeError(`The clock only moves forward, by 0 ms or more, not by ${ms}.`);
      }
      offsetMs += ms;
      for (const check of [...waiting]) check();
    },
    /** Waits for a moment; false when `signal` was aborted before it came. */
    waitUntil: (atMs: number, signal: AbortSignal): Promise<boolean> => {
      if (signal.aborted) return Promise.resolve(false);
      if (now() >= atMs) return Promise.resolve(true);
      return new Promise((resolve) => {
        let timer: NodeJS.Timeout | undefined;
        const finish = (reached: boolean) => {
          clearTimeout(timer);
          waiting.delete(check);
          signal.removeEventListener('abort', cancel);
          resolve(reached);
        };
        const check = () => {
          clearTimeout(timer);
          const remainingMs = atMs - now();
          if (remainingMs <= 0) finish(true);
          else timer = setTimeout(check, Math.min(Math.ceil(remainingMs), timerMaxMs));
        };
        const cancel = () => finish(false);
        waiting.add(check);
        signal.addEventListener('abort', cancel);
        check();
      });
    },
  };
}
