/** Waiting for the product index, which knows what was pushed, to be near the end of the log. */
import { AppError } from '../../domain/app-error.ts';
import type { NotificationLog } from '../../domain/ports.ts';
import type { Products } from '../../domain/products.ts';

const pauseMs = 200;
const waitMaxMs = 600_000;

export interface IndexWorld {
  products: Pick<Products, 'indexedPosition'>;
  log: Pick<NotificationLog, 'lastPosition'>;
  /** Resolves after a time, or at once when the signal is aborted. */
  pause(ms: number, signal: AbortSignal): Promise<void>;
}

/**
 * Resolves with the position that is indexed, once no more than `lagMax` positions are missing to what is
 * the log's end now. Rejects with `unavailable` when the index stands still for ten minutes.
 */
export async function reachedIndex(
  { products, log, pause }: IndexWorld,
  { lagMax, signal }: { lagMax: number; signal: AbortSignal },
): Promise<number> {
  const lastPosition = await log.lastPosition();
  let reached: number | null = null;
  for (let waitedMs = 0; ; waitedMs += pauseMs) {
    signal.throwIfAborted();
    const position = await products.indexedPosition();
    if (position >= lastPosition - lagMax) return position;
    if (position !== reached) waitedMs = 0;
    reached = position;
    if (waitedMs >= waitMaxMs) throw behind(lastPosition - position);
    await pause(pauseMs, signal);
  }
}

function behind(lag: number): AppError {
  return new AppError(
    'unavailable',
    `The product index is ${lag} notifications behind the log and has not moved for ten minutes, so that what was pushed cannot be looked up.`,
    {
      advice:
        'Look in the log of `earshot start` for what keeps it back, then try again: it goes on where it was.',
    },
  );
}
