/** One attempt to tell a message, which ends in time whatever the channel does. */

import type { AlertChannel } from '../../domain/alerts.ts';
import { AppError, errorText } from '../../domain/app-error.ts';
import type { WatchWorld } from '../watch-world.ts';
import type { AlertMessage } from './alert-message.ts';
import { tellTimeoutMs } from './tell-through.ts';

/** A channel that does not even end after its own timeout is left behind. */
const graceMs = 5_000;

/** Null when it was taken, else why not, without secrets. Never rejects, nor waits much longer than the timeout. */
export async function tellOnce(
  { channel, message }: { channel: AlertChannel; message: AlertMessage },
  { tell, pause, log }: Pick<WatchWorld, 'tell' | 'pause' | 'log'>,
  signal: AbortSignal,
): Promise<string | null> {
  const enough = new AbortController();
  const either = AbortSignal.any([signal, enough.signal]);
  const telling = tell(channel, message, either).then(
    () => null,
    (error: unknown) => {
      if (error instanceof AppError && error.code !== 'internal') return errorText(error);
      if (!either.aborted) log.error({ err: error, channel }, 'an alert could not be told');
      return 'It failed in a way it should not; the log has more.';
    },
  );
  const late = pause(tellTimeoutMs + graceMs, either).then(() => 'It did not end in time.');
  const outcome = await Promise.race([telling, late]);
  enough.abort();
  return outcome;
}
