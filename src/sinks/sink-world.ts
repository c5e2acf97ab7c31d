/** What the hand-over to sinks needs of the rest of the program. */
import type { Cursors, Logger, NotificationLog } from '../domain/ports.ts';
import type { RunProgram } from '../domain/run-program.ts';
import type { Sinks } from '../domain/sinks.ts';
import type { ConnectNats } from './open-nats.ts';

export interface SinkWorld {
  sinks: Sinks;
  log: Pick<NotificationLog, 'find' | 'body' | 'lastPosition'> & Pick<Cursors, 'cursor'>;
  /** Microseconds since 1970, UTC. */
  nowUs: () => number;
  /** A number in [0, 1), for jitter. */
  random: () => number;
  /** Resolves after a time, or soon after the signal is aborted; never rejects. All waits are made with it. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
  logger: Logger;
  fetch: typeof fetch;
  run: RunProgram;
  /** The NATS client library unless told. */
  connectNats?: ConnectNats | undefined;
}
