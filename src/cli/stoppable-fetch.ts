/** A `fetch` that ends with the program: nobody who presses Ctrl-C waits for a service. */
import { AppError } from '../domain/app-error.ts';
import type { Io } from './io.ts';

/** Rejects with `cancelled` once the signal is aborted, for requests in hand and for new ones. */
export function createStoppableFetch(io: Pick<Io, 'fetch' | 'signal'>): typeof fetch {
  const { fetch: send, signal } = io;
  return async (input, init) => {
    if (signal.aborted) throw stopped();
    const own = typeof input === 'object' && 'signal' in input ? input.signal : init?.signal;
    const signals = own ? [signal, own] : [signal];
    try {
      return await send(input, { ...init, signal: AbortSignal.any(signals) });
    } catch (error) {
      throw signal.aborted ? stopped() : error;
    }
  };
}

function stopped(): AppError {
  return new AppError(
    'cancelled',
    'Stopped. What was done is kept; the same command goes on from there.',
  );
}
