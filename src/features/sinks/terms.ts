/**
 * Sinks: programs of the user to which notifications are delivered.
 *
 * Terms: each sink is a reader of the log with its own cursor (`sink:<name>`). A notification that matches the rules
 * of the sink becomes an *item*, which waits until the sink acknowledges it. An item that is refused permanently is a
 * *dead letter*. A *replay* delivers a part of the log again. All times are microseconds since 1970, UTC.
 */

import type { MessageRules } from '../messages/document.ts';
import type { MessageSettings } from '../messages/formats.ts';

/** Form of a sink name, which is also part of its reader name. */
export const sinkNamePattern = /^[a-z0-9][a-z0-9-]{0,62}$/;

/**
 * Maximum number of waiting items of one sink, retried dead letters included. Beyond this limit the log itself is the
 * queue.
 */
export const sinkWaitingMax = 1_000;

/** Maximum delay before the retry of an item, before jitter of a quarter. */
export const sinkRetryDelayMaxMs = 3_600_000;

/** Maximum `Retry-After` that is honoured; a longer delay is reduced to it. */
export const sinkRetryAfterMaxMs = 3_600_000;

/**
 * Maximum delay resulting from both; `nextAttemptAtUs` must stay below it. An item due later was dated by a clock
 * that ran ahead, and is due now.
 */
export const sinkWaitMaxUs = (1.25 * sinkRetryDelayMaxMs + sinkRetryAfterMaxMs) * 1_000;

export const sinkReader = (sink: string) => `sink:${sink}`;

/** Rules of a sink of any kind. */
export interface SinkRules extends MessageRules {
  name: string;
  message: MessageSettings;
  /** Several items are delivered together: at most `items`, of which the oldest has waited for `waitMs`, or fewer. */
  batch: { items: number; waitMs: number } | null;
  /** Start of a new sink: with future notifications, or with the whole log. */
  startAt: 'now' | 'start';
  /** Maximum number of concurrent deliveries. */
  concurrency: number;
  /** Timeout of one attempt. */
  timeoutMs: number;
  /** Number of refusals after which an item becomes a dead letter. */
  attemptsMax: number;
}

/** A notification that waits for a sink, or that the sink refused. */
export interface SinkItem {
  id: number;
  sink: string;
  /** Position of the notification in the log. */
  position: number;
  productId: string;
  /** Replay that it belongs to; null for live delivery. */
  replayId: number | null;
  state: 'waiting' | 'dead';
  /** Refusals so far. */
  attempts: number;
  dueAtUs: number;
  /** Error of the last attempt; null before the first. */
  error: string | null;
  queuedAtUs: number;
}

/** A part of the log that is delivered again. */
export interface Replay {
  id: number;
  sink: string;
  /** A `$filter` expression; blank for everything the sink receives. */
  filter: string;
  /** Times of receipt: since (inclusive), until (exclusive); null for no bound. */
  sinceUs: number | null;
  untilUs: number | null;
  /** Last position processed, and the last one to process. */
  position: number;
  lastPosition: number;
  requestedAtUs: number;
}

/** State of a sink in the store. */
export interface SinkCounts {
  sink: string;
  /** Position of its cursor; null before its start. */
  position: number | null;
  waiting: number;
  /** Waiting items with a failed attempt. */
  failed: number;
  dead: number;
  /** True while a replay is not completely queued. */
  isReplaying: boolean;
  /** Acknowledged deliveries, including replays. */
  delivered: number;
  /** Notifications that were left out because of their age. */
  tooOld: number;
  /** Time of the last acknowledged delivery; null when none was acknowledged. */
  lastDeliveredAtUs: number | null;
  /** Time at which the oldest waiting item was queued; null when none waits. */
  oldestWaitingAtUs: number | null;
  /** Time of the first failure since the last success; null if no waiting item has failed. */
  failingSinceUs: number | null;
  /** Error of the last attempt, if it failed; null when none has failed. */
  lastError: string | null;
  /** Error of the newest dead letter. */
  deadError: string | null;
}

/** State of the delivery to sinks in this process. */
export interface DeliveryState {
  /** Names of the configured sinks; null when not known. */
  names: readonly string[] | null;
  /** Kinds of the targets (`webhook`), by name; a faulty sink has none. */
  kinds?: ReadonlyMap<string, string>;
  /** Reasons why nothing can be delivered to single sinks, by name, without secrets. */
  faults?: ReadonlyMap<string, string>;
  /** Reason why nothing can be delivered to any sink, without secrets; null when deliveries are possible. */
  fault: string | null;
}

/** Read access. All calls reject with `unavailable`. */
export interface SinkReader {
  /**
   * Returns waiting items that are due, in the order of queuing. Skips an item while an earlier one of the same product
   * waits, to keep the order per product.
   */
  due(options: { sink: string; nowUs: number; limit: number }): Promise<SinkItem[]>;
  /**
   * Returns the time at which the next waiting item becomes due, ignoring items that wait for another one of their
   * product; null when none waits. May be in the past, because items in delivery still count as waiting.
   */
  nextDueAtUs(sink: string): Promise<number | null>;
  /**
   * Streams items, newest first by the time of queuing, page by page. Neither clock changes nor retries affect the
   * order.
   */
  items(options: {
    sink?: string | undefined;
    state: SinkItem['state'];
    /** True: only items with a failed attempt. */
    failed?: boolean | undefined;
    limit?: number | undefined;
  }): AsyncIterable<SinkItem>;
  /** Returns counts by sink name, for sinks that have or had items, cursors or replays. */
  counts(): Promise<SinkCounts[]>;
  /** Returns the replay of a sink; null if there is none, or all of it is queued. */
  replay(sink: string): Promise<Replay | null>;
}

/** Write access. Each call is one transaction, on disk when it resolves. All reject with `unavailable`. */
export interface Sinks extends SinkReader {
  /**
   * Adds items and advances the position they were read from: the sink's cursor, or the position of
   * a replay, which ends at its last one. Resolves with false, changing nothing, when that position
   * is not `after`: another process has advanced it, or the replay has ended. Rejects with
   * `invalid` for items outside (after, upTo]. A sink without a cursor is new, and its position is
   * 0. To start it with future notifications, call this once first, with `after` 0, `upTo` the last
   * position of the log, and no items; then it has a cursor, even at position 0. The caller limits
   * the number of waiting items.
   */
  enqueue(options: {
    sink: string;
    replayId: number | null;
    after: number;
    upTo: number;
    items: readonly Pick<SinkItem, 'position' | 'productId'>[];
    /** Notifications that were left out because of their age. */
    tooOld?: number;
    atUs: number;
  }): Promise<boolean>;
  /**
   * Records results of delivery attempts. Removes an acknowledged item and counts it as delivered; removes a `dropped`
   * one, which no longer matches the rules of the sink, and counts one that is `tooOld`. `counts` and `dead` increase the attempts. Ignores items that are
   * gone, and dead letters that would fail again.
   */
  settle(
    results: readonly (
      | { id: number; outcome: 'acknowledged' | 'dropped' | 'tooOld' }
      | {
          id: number;
          outcome: 'postponed';
          error: string;
          nextAttemptAtUs: number;
          counts: boolean;
        }
      | { id: number; outcome: 'dead'; error: string }
    )[],
    atUs: number,
  ): Promise<void>;
  /**
   * Requeues all dead letters with no attempts. They count as queued now, but are delivered before items queued after
   * them. Resolves with their number. Thousands of them take several transactions.
   */
  retry(options: { sink: string; nowUs: number }): Promise<number>;
  /**
   * Drops dead letters or waiting items: the given ones, or all. Dropping all waiting items also ends the replay.
   * Resolves with the number of items. Thousands of them take several transactions.
   */
  drop(options: {
    sink: string;
    state: SinkItem['state'];
    ids?: readonly number[] | undefined;
  }): Promise<number>;
  /**
   * Adds a replay of the notifications after a position. Rejects with `conflict` while another one of the sink is not
   * completely queued.
   */
  addReplay(replay: Omit<Replay, 'id' | 'position'> & { afterPosition: number }): Promise<Replay>;
}
