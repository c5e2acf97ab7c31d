/** Where items are handed over to, and what may come of it. */

import type { Cursors, Logger, NotificationLog } from '../domain/ports.ts';
import type { Sinks } from '../domain/sinks.ts';
import type { RunProgram } from '../host/run-program.ts';
import type { HandOver } from './document.ts';
import type { ConnectNats } from './open-nats.ts';

export type TargetAnswer =
  | { kind: 'taken' }
  /** It answers, and does not want this one: asked again a few times, then a dead letter. */
  | { kind: 'refused'; reason: string }
  /** Not this one's fault. The wait is what it asked for; null when it did not. */
  | { kind: 'unavailable'; reason: string; retryAfterMs: number | null }
  /** Nothing can be handed over before somebody puts something right. */
  | { kind: 'misconfigured'; reason: string };

export interface Target {
  /**
   * Delivers one item. Resolves soon after the signal is aborted, then with any answer. Rejects only when the item
   * itself cannot be sent, such as a record that cannot be written as JSON. Reasons complete "… does not take it: "
   * and contain no secret.
   */
  handOver(item: HandOver, signal: AbortSignal): Promise<TargetAnswer>;
  close(): Promise<void>;
}

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
