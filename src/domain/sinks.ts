/**
 * Sinks: where notifications are delivered to programs of the user's.
 *
 * Words: each sink is a reader of the log with its own cursor (`sink:<name>`). A notification that it wants
 * becomes an *item*, which waits until the sink has taken it; one that the sink refuses for good is a *dead
 * letter*. A *replay* delivers a part of the log once more. All times are microseconds since 1970, UTC.
 */

import { AppError } from './app-error.ts';
import { shortDateUs } from './dates.ts';
import type { SubscriptionEvent } from './subscription.ts';

/** The form of a sink's name; also part of its reader's name. */
export const sinkNamePattern = /^[a-z0-9][a-z0-9-]{0,62}$/;

/**
 * Items of one sink that may wait, in all, besides dead letters that are tried again; replays are read for half of
 * them at most. Beyond that the log itself is the queue.
 */
export const sinkWaitingMax = 1_000;

/** Longest delay before the retry of an item, before jitter of a quarter. */
export const sinkRetryDelayMaxMs = 3_600_000;

/** Longest `Retry-After` that is obeyed: a sink that asks for a longer delay is tried after this one. */
export const sinkRetryAfterMaxMs = 3_600_000;

/**
 * Longest delay that the two give. An item that is due later was dated by a clock that ran ahead, and is due now;
 * `nextAttemptAtUs` must stay below.
 */
export const sinkWaitMaxUs = (1.25 * sinkRetryDelayMaxMs + sinkRetryAfterMaxMs) * 1_000;

export const sinkReader = (sink: string) => `sink:${sink}`;

/** What a sink is given, and how, whatever its kind. */
export interface SinkRules {
  name: string;
  /** Subscriptions whose notifications it wants; all where there are none named. */
  subscriptions: readonly string[];
  /** Any of these; all where there are none named. */
  events: readonly SubscriptionEvent[];
  /** A `$filter` expression of `Products` that the record must match; blank for every product. */
  filter: string;
  /** Where a sink that is new begins: with what comes from now on, or with the whole log. */
  startAt: 'now' | 'start';
  /** How many deliveries may be open at a time. */
  concurrency: number;
  /** For one attempt. */
  timeoutMs: number;
  /** Refusals of one item until it is a dead letter. */
  attemptsMax: number;
}

/** A notification that waits for a sink, or was refused. */
export interface SinkItem {
  id: number;
  sink: string;
  /** Its notification in the log. */
  position: number;
  productId: string;
  /** The replay it belongs to; null for what is handed over as it comes. */
  replayId: number | null;
  state: 'waiting' | 'dead';
  /** Refusals so far. */
  attempts: number;
  dueAtUs: number;
  /** Why the last attempt failed; null before the first. */
  error: string | null;
  queuedAtUs: number;
}

/** A part of the log that is delivered again. */
export interface Replay {
  id: number;
  sink: string;
  /** A `$filter` expression; blank for all that the sink wants. */
  filter: string;
  /** Times of receipt: since (included), until (excluded); null for no bound. */
  sinceUs: number | null;
  untilUs: number | null;
  /** The last position that was looked at, and the one to end with. */
  position: number;
  lastPosition: number;
  requestedAtUs: number;
  /** Null until all of it has been queued. */
  endedAtUs: number | null;
}

/** `lastPosition`: of the last notification that is to be handed over again. */
export type ReplayRequest = Pick<
  Replay,
  'sink' | 'filter' | 'sinceUs' | 'untilUs' | 'lastPosition'
>;

export interface SinkCounts {
  sink: string;
  waiting: number;
  dead: number;
  /** When the oldest waiting item was queued; null when none waits. */
  oldestQueuedAtUs: number | null;
  /** The same without replays, which wait behind what is new. */
  oldestLiveQueuedAtUs: number | null;
  /** Why the item that was tried last failed; null when none has failed. */
  error: string | null;
}

/** What a sink has acknowledged, replays included. */
export interface SinkDeliveries {
  sink: string;
  delivered: number;
  lastAtUs: number;
}

/** The questions. All reject with `unavailable`. */
export interface SinkReader {
  /**
   * Waiting items that are due: replayed ones that a live one of their product waits for, then live ones, then
   * the other replayed ones, each as queued. Never one with an earlier waiting item of the same product, of
   * whatever stream (the live one, or a replay), so that order is kept.
   */
  due(options: { sink: string; nowUs: number; limit: number }): Promise<SinkItem[]>;
  /**
   * When the next waiting item becomes due, of those that `due` may give: one that must wait for another one of
   * its product does not count. Null when none waits. May lie in the past: what is on its way still waits.
   */
  nextDueAtUs(sink: string): Promise<number | null>;
  /** Newest first, page by page: in the order of queuing, which neither a clock nor a retry changes. */
  items(options: {
    sink?: string | undefined;
    state: SinkItem['state'];
    limit?: number | undefined;
  }): AsyncIterable<SinkItem>;
  /** By name; only sinks that have or had items, cursors or replays. */
  counts(): Promise<SinkCounts[]>;
  /** By name; only sinks that have acknowledged something. */
  deliveries(): Promise<SinkDeliveries[]>;
  /**
   * A replay that has the same filter, covers the window, reaches `lastPosition`, and is not all handed over; null
   * where there is none. `7d` asked for twice is the same, though its window begins a little later.
   */
  sameReplay(request: ReplayRequest): Promise<Replay | null>;
  /** Newest first; those not ended only, unless `all`. */
  replays(options: { sink?: string | undefined; all: boolean }): Promise<Replay[]>;
}

/** The changes: each is one transaction, on disk when it resolves. All reject with `unavailable`. */
export interface Sinks extends SinkReader {
  /**
   * Adds items and moves what they were read with: the sink's cursor, or the replay's position (which ends it
   * when it reaches its last). Nothing happens, and it resolves with false, when that stands elsewhere than
   * at `after`: another program has moved it, or the replay has ended. Rejects with `invalid` for items from
   * outside (after, upTo]. A sink without a cursor is new, and stands at 0: one that begins with what comes
   * from now on is told so by `after` 0, `upTo` the log's last position and no items, once, before all else;
   * from then on it has a cursor, even one that stands at 0. The bound on waiting items is the caller's.
   */
  enqueue(options: {
    sink: string;
    replayId: number | null;
    after: number;
    upTo: number;
    items: readonly Pick<SinkItem, 'position' | 'productId'>[];
    atUs: number;
  }): Promise<boolean>;
  /**
   * Writes the result of items. An acknowledged item is removed, and counts as delivered at `deliveredAtUs`; without that
   * time it is removed only, because the sink does not want it any more. `counts` adds to the attempts, as `dead` does. An item
   * that is gone, or a dead letter that would fail once more, is passed over.
   */
  settle(
    results: readonly (
      | { id: number; outcome: 'acknowledged'; deliveredAtUs?: number }
      | {
          id: number;
          outcome: 'postponed';
          error: string;
          nextAttemptAtUs: number;
          counts: boolean;
        }
      | { id: number; outcome: 'dead'; error: string }
    )[],
  ): Promise<void>;
  /**
   * Sets dead letters to wait again, without attempts: they count as queued now, but go before what was queued
   * after them. Resolves with how many. Where they are thousands, it takes several transactions.
   */
  retry(options: { sink: string; ids: readonly number[] | 'all'; nowUs: number }): Promise<number>;
  /**
   * Forgets dead letters or waiting items: those named, or all. With all that wait, replays that have not ended are
   * ended where they stand. Resolves with how many items. Where they are thousands, it takes several transactions.
   */
  drop(options: {
    sink: string;
    state: SinkItem['state'];
    ids: readonly number[] | 'all';
    nowUs: number;
  }): Promise<number>;
  /**
   * A replay of which nothing is to be looked at has ended already. Rejects with `conflict` where `sameReplay` finds
   * one: of two programs that ask at once, one adds it.
   */
  addReplay(
    replay: Omit<Replay, 'id' | 'position' | 'endedAtUs'> & { afterPosition: number },
  ): Promise<Replay>;
}

export function unfinishedReplay({ id, sink, requestedAtUs }: Replay): AppError {
  return new AppError(
    'conflict',
    `Replay ${id}, asked for at ${shortDateUs(requestedAtUs)} (UTC), hands the same over to ${sink}, and has not finished.`,
    { advice: 'It goes on by itself while the receiver runs: `earshot sinks list`.' },
  );
}
