/** Puts the channels together, and ends what takes too long. */
import type { AlertChannel } from '../../domain/alerts.ts';
import { AppError } from '../../domain/app-error.ts';
import type { Tell } from '../watch-world.ts';
import type { AlertMessage } from './alert-message.ts';

/** For one attempt. */
export const tellTimeoutMs = 30_000;

/** Tells one message. Rejects, with words that hold no secret, when it was not taken. */
export type Teller = (message: AlertMessage, signal: AbortSignal) => Promise<void>;

/** A channel that has no teller refuses. */
export function tellThrough(tellers: Readonly<Partial<Record<AlertChannel, Teller>>>): Tell {
  return async (channel, message, signal) => {
    const teller = tellers[channel];
    if (teller === undefined) {
      throw new AppError('configuration', `No ${channel} is set up for alerts any more.`);
    }
    await teller(message, signal);
  };
}
