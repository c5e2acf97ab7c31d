/** A wait that others can end. */

export interface WakeUp {
  /** Resolves after a time, when it was woken, or soon after the signal is aborted. For one who waits. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
  /** Ends the wait, or the next one when nobody waits just now. */
  wake(): void;
}

export function createWakeUp(pause: (ms: number, signal: AbortSignal) => Promise<void>): WakeUp {
  let isWoken = false;
  let endWait = (): void => undefined;
  return {
    wait: async (ms, signal) => {
      if (!isWoken && !signal.aborted) {
        const ending = new AbortController();
        endWait = () => ending.abort();
        signal.addEventListener('abort', endWait);
        await pause(ms, ending.signal);
        signal.removeEventListener('abort', endWait);
      }
      isWoken = false;
    },
    wake: () => {
      isWoken = true;
      endWait();
    },
  };
}
