/** Keeps a notification back until later ones have gone out: the fault that changes their order. */
import type { SandboxClock } from '../sandbox-clock.ts';

export interface HoldBack {
  /** Waits until `behind` notifications published after this one have gone out, or for two seconds. */
  wait(sequence: number, behind: number, signal: AbortSignal): Promise<void>;
  /** Tells that a notification's first attempt has ended. */
  wentOut(sequence: number): void;
}

// At the end of a run there may be no later ones left to wait for.
const heldMaxMs = 2_000;

interface Held {
  readonly sequence: number;
  behind: number;
  readonly released: AbortController;
}

/** Creates the waiting room; time is the sandbox's. */
export function createHoldBack(clock: SandboxClock): HoldBack {
  const held = new Set<Held>();
  return {
    wait: async (sequence, behind, signal) => {
      const own: Held = { sequence, behind, released: new AbortController() };
      held.add(own);
      const either = AbortSignal.any([signal, own.released.signal]);
      await clock.waitUntil(clock.now() + heldMaxMs, either);
      held.delete(own);
    },
    wentOut: (sequence) => {
      for (const one of held) {
        if (one.sequence > sequence) continue;
        one.behind -= 1;
        if (one.behind <= 0) one.released.abort();
      }
    },
  };
}
