/** What the hand-over to sinks needs of the rest of the program. */
import type { Cursors, Logger, NotificationLog } from '../domain/ports.ts';
import type { Sinks } from '../domain/sinks.ts';
import type { ConnectNats } from './nats-target.ts';

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

/** How a program ended. */
export interface ProgramEnd {
  /** Null when a signal ended it. */
  exitCode: number | null;
  /** Such as `SIGKILL`; null when it ended by itself. */
  signal: string | null;
  /** Whether its time was up. */
  timedOut: boolean;
  /** The end of its standard error. */
  stderr: string;
}

/**
 * Runs a program, without a shell, and gives it a text on its standard input. When the time is up or the signal
 * is aborted, it and the programs that it started are ended; resolves after that. Rejects when it cannot be
 * started, with Node's error.
 */
export type RunProgram = (
  command: readonly string[],
  stdin: string,
  options: { timeoutMs: number; signal: AbortSignal },
) => Promise<ProgramEnd>;
