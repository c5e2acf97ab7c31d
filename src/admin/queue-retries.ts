/** Repeated requests to the queues of pull subscriptions. */
import { AppError, isAppError } from '../core/terms/app-error.ts';

/** Delay after a failure, doubled by each further one. A longer `Retry-After` wins, up to its own maximum. */
const retryMs = { min: 2_000, max: 60_000, requestedMax: 3_600_000 };

/** Failures that a command retries. `conflict`: another program reads a slow queue. */
const passingCodes = ['unavailable', 'too_many', 'conflict'] as const;

/** Repeats a request to a queue after passing failures; gives up after `failuresMax` in sequence. */
export async function retried<Result>(
  request: () => Promise<Result>,
  options: {
    failuresMax: number;
    signal: AbortSignal;
    pause(ms: number, signal: AbortSignal): Promise<void>;
    random(): number;
  },
): Promise<Result> {
  const { failuresMax, signal, pause, random } = options;
  for (let failures = 1; ; failures += 1) {
    try {
      return await request();
    } catch (error) {
      const isPassing = passingCodes.some((code) => isAppError(error, code));
      if (!isPassing || failures >= failuresMax) throw error;
      await pause(retryDelayMs(failures, error, random), signal);
    }
  }
}

/** Delay in milliseconds after this number of failures in sequence. */
export function retryDelayMs(failures: number, error: unknown, random: () => number): number {
  const asked = error instanceof AppError ? error.facts.retryAfterMs : null;
  const ownMs = Math.min(retryMs.max, retryMs.min * 2 ** (failures - 1)) * (0.5 + random() / 2);
  if (typeof asked !== 'number') return ownMs;
  // Jitter, because other clients retry at the same time.
  return Math.max(ownMs, Math.min(asked, retryMs.requestedMax) + retryMs.min * random());
}
