/** Watches the memory of the program that is attacked. */
import { readMemory } from '../process-status.ts';

export interface MemoryUse {
  /** Resident, bytes: before the attack, the most that was seen, and at the end. */
  readonly startBytes: number;
  readonly peakBytes: number;
  readonly endBytes: number;
}

const intervalMs = 200;

/** On systems without /proc every figure is 0. */
export function watchMemory(processId: number): { stop(): MemoryUse } {
  const now = () => readMemory(processId)?.residentBytes ?? 0;
  const startBytes = now();
  let peakBytes = startBytes;
  const timer = setInterval(() => {
    peakBytes = Math.max(peakBytes, now());
  }, intervalMs);
  return {
    stop: () => {
      clearInterval(timer);
      const endBytes = now();
      return { startBytes, peakBytes: Math.max(peakBytes, endBytes), endBytes };
    },
  };
}
