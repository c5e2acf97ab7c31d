/** How it stands with one sink, as `earshot sinks list` shows it. */
import type { SinkDefinition } from '../../domain/sinks.ts';

export interface SinkRow {
  sink: string;
  /**
   * Null for one that earshot.config.ts no longer has; `faulty` for one that cannot be started; `unknown` while the file
   * cannot be read.
   */
  target: SinkDefinition['target']['kind'] | 'faulty' | 'unknown' | null;
  /** Notifications of the log that it has not looked at; null before its first start. */
  behind: number | null;
  waiting: number;
  dead: number;
  oldestWaiting: string | null;
  error: string | null;
  /** Acknowledged deliveries, replays included, and the time of the last. */
  delivered: number;
  lastDelivery: string | null;
  /** Age of the oldest notification that was not delivered, in seconds; 0 where there is none, null before the first start. */
  lag: number | null;
  /** Replays that are not all queued. */
  replays: number;
  /** What is wrong with a faulty one; no secret is in it. */
  problems: readonly string[];
}
