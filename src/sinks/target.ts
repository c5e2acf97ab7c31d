/** What a kind of sink does, and what it works with. */
import type { Finding } from '../domain/finding.ts';
import type { Cursors, Logger, NotificationLog } from '../domain/ports.ts';
import type { SinkDefinition, SinkKind, Sinks, SinkTargetOf } from '../domain/sinks.ts';
import type { RunProgram } from '../host/run-program.ts';
import type { SinkDocument } from './document.ts';

/** One kind: the file of the kind exports it, `registry.ts` names it. */
export interface KindOfSink<Kind extends SinkKind> {
  /** Connects to nothing yet. */
  open(target: SinkTargetOf<Kind>, context: OpenContext): Target;
  /** The doctor's check that the target is there. Delivers nothing; never rejects. */
  check(target: SinkTargetOf<Kind>, context: CheckContext): Promise<Omit<Finding, 'check'>>;
}

export type OpenContext = Pick<SinkDefinition, 'name' | 'timeoutMs'> &
  Pick<SinkContext, 'run' | 'fetch' | 'nowUs'> & { logger: Pick<Logger, 'info'> };

export interface CheckContext {
  definition: SinkDefinition;
  /** Null when the program can be started, else why not. */
  findProgram: (program: string) => string | null;
  /** Names of subscriptions that may stand in a subject; `default` when there are none. */
  subscriptions: readonly string[];
  signal: AbortSignal;
}

export type TargetAnswer =
  | { kind: 'taken' }
  /** It answers, and refuses this item: retried a few times, then a dead letter. */
  | { kind: 'refused'; reason: string }
  /** Not this item's fault. The delay is what it asked for; null when it did not. */
  | { kind: 'unavailable'; reason: string; retryAfterMs: number | null }
  /** Nothing can be delivered before somebody fixes something. */
  | { kind: 'misconfigured'; reason: string };

/** A failure that is not the item's fault, without a requested delay. */
export function unavailable(reason: string): TargetAnswer {
  return { kind: 'unavailable', reason, retryAfterMs: null };
}

export interface Target {
  /**
   * Delivers one item. Resolves soon after the signal is aborted, then with any answer. Rejects only when the item
   * itself cannot be sent, such as a record that cannot be written as JSON. Reasons complete "… does not take it: "
   * and contain no secret.
   */
  deliver(item: SinkDocument, signal: AbortSignal): Promise<TargetAnswer>;
  close(): Promise<void>;
}

export interface SinkContext {
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
}
