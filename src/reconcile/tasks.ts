/** The words of a comparison: what is to be compared, how, and what came of it. */

import type { Registration } from '../domain/account.ts';
import { type CatalogueEvent, type Definition, hourUs } from '../domain/completeness.ts';
import { hourOf } from '../domain/coverage.ts';
import { type SubscriptionEvent, subscriptionEvents } from '../domain/subscription.ts';

/** A time from `fromUs` to before `toUs`. */
export interface TimeWindow {
  fromUs: number;
  toUs: number;
}

/** Events of one kind, owed to one subscription, with a date within [fromUs, toUs). */
export interface ReconcileTask extends TimeWindow {
  subscription: string;
  /** Its Id at the catalogue, for the entries that are written; null when there is none. */
  subscriptionId: string | null;
  event: SubscriptionEvent;
  /** What the subscription asked for at that time. */
  filter: string;
  /** True before the subscription began: events are fetched, and not expected. */
  isEarlier: boolean;
  /** Hours within are compared as a whole: by this task, or by it and its neighbours together. */
  hours: TimeWindow;
}

/**
 * `check` writes coverage with what is missing, but no entries; `preview` writes nothing at all.
 */
export type ReconcileMode = 'write' | 'check' | 'preview';

/** How the log stands to an event that the catalogue shows; the words are those of `HourCoverage`. */
export type EventOutcome = 'pushed' | 'late' | 'recovered' | 'missing';

export type OutcomeCounts = Record<'expected' | EventOutcome, number>;

/** What was found; hours that were skipped are counted with what was found before. */
export interface TaskReport extends OutcomeCounts {
  task: ReconcileTask;
  /** Records that cannot be told apart or written, as they have no proper Id or date. */
  unreadable: number;
  /** Events of which nobody can tell whether the filter wants them. */
  undecided: number;
}

/** How far a comparison has got. */
export interface ReconcileProgress {
  tasksDone: number;
  tasks: number;
  task: ReconcileTask;
  /** All events with an earlier date are done. */
  upToUs: number;
  /** Records seen of the list that is being walked, and how many it has; null when nobody said. */
  seen: number;
  total: number | null;
  /** Of all that is left to do; null before anything is known. */
  etaMs: number | null;
}

/** An event that was not in the log. */
export type FoundMissing = CatalogueEvent & {
  productName: string | null;
  recovered: boolean;
  /** True for an event from before the subscription began. */
  isEarlier: boolean;
};

export function noCounts(): OutcomeCounts {
  return { expected: 0, pushed: 0, late: 0, recovered: 0, missing: 0 };
}

/** Events of one kind with a date within [fromUs, toUs), of products that match. */
export interface ListingQuery {
  event: SubscriptionEvent;
  /** A `$filter` expression of a subscription; blank for every product. */
  filter: string;
  fromUs: number;
  toUs: number;
}

export interface ListedEvent {
  productId: string;
  productName: string | null;
  /** PublicationDate, ModificationDate or DeletionDate, as the event says. */
  eventUs: number;
  /** The record's PublicationDate; null where it has none. */
  publicationUs: number | null;
  /** As the catalogue gives it, expanded. */
  record: Readonly<Record<string, unknown>>;
}

export interface ListingPage {
  /** Each product once in a listing, unless it changed meanwhile. */
  events: readonly ListedEvent[];
  /** Every event of the window with a date before this one has been given; `toUs` with the last page. */
  completeUpToUs: number;
  /** How many events the window has, as the catalogue counted at its beginning; null when it did not say. */
  total: number | null;
}

export interface ProductListing {
  /**
   * Asks politely, one request at a time. Rejects with `unavailable` and `too_many` when the catalogue
   * does not answer as it should within the budget, `invalid` when it refuses the question, `unauthorized`
   * as `AccessTokens` does, and with the signal's reason. What was given before stays good.
   */
  list(query: ListingQuery, signal: AbortSignal): AsyncGenerator<ListingPage>;
  /**
   * Requests sent so far, repeated ones too, and the time spent waiting for their answers; records that
   * were passed over, as they lack an id or a date; and events that were, as their records do not tell
   * whether the filter wants them.
   */
  spent(): {
    requests: number;
    answersMs: number;
    waitedMs: number;
    unreadableRecords: number;
    undecided: number;
  };
}

/** A time in which one kind of events was asked for with one filter; the last one has no end. */
interface Segment extends TimeWindow {
  filter: string;
  /** True for the time before the subscription began: its events are wanted, but not expected. */
  isEarlier: boolean;
}

/** The segments of one subscription and kind of event, oldest first. */
export interface SegmentedEvent {
  subscription: string;
  event: SubscriptionEvent;
  segments: Segment[];
}

/**
 * Takes definitions oldest first. With `reachBack`, the time before the earliest definition of a subscription is a
 * segment of its own, with the filter of that definition.
 */
export function segmentsOf(
  definitions: readonly Definition[],
  { reachBack = false }: { reachBack?: boolean | undefined } = {},
): SegmentedEvent[] {
  const found = new Map<string, SegmentedEvent>();
  const latest = new Map<string, Definition>();
  // From the last to the first: each ends where the one that was looked at before begins.
  for (const [i, definition] of [...definitions.entries()].reverse()) {
    const { subscription, events, filter } = definition;
    const isEarliest = !definitions.slice(0, i).some((one) => one.subscription === subscription);
    const { fromUs } = definition;
    const toUs = latest.get(subscription)?.fromUs ?? Number.POSITIVE_INFINITY;
    latest.set(subscription, definition);
    for (const event of events) {
      const key = `${subscription} ${event}`;
      const same = found.get(key) ?? { subscription, event, segments: [] };
      if (fromUs < toUs) same.segments.unshift({ filter, fromUs, toUs, isEarlier: false });
      if (reachBack && isEarliest) {
        const before = { fromUs: Number.NEGATIVE_INFINITY, toUs: fromUs };
        same.segments.unshift({ filter, ...before, isEarlier: true });
      }
      if (same.segments.length > 0) found.set(key, same);
    }
  }
  return [...found.values()];
}

/** True when anything was asked for at some time of the window. */
export function isInForce(segments: readonly Segment[], { fromUs, toUs }: TimeWindow): boolean {
  return segments.some((one) => one.fromUs < toUs && one.toUs > fromUs && fromUs < toUs);
}

type Known = Pick<Registration, 'name' | 'subscriptionId'>;

/**
 * The tasks of a window, oldest first, so that a run that is cut leaves whole hours behind. With
 * `subscriptions`, only these; with `reachBack`, the time before the earliest definition of a subscription is
 * compared with that definition, in tasks that are `isEarlier`.
 */
export function tasksOf(options: {
  /** Oldest first. */
  definitions: readonly Definition[];
  registrations: readonly Known[];
  fromUs: number;
  toUs: number;
  subscriptions?: readonly string[] | undefined;
  reachBack?: boolean | undefined;
}): ReconcileTask[] {
  const { definitions, registrations, fromUs, toUs, subscriptions, reachBack } = options;
  const isWanted = ({ subscription }: SegmentedEvent) =>
    subscriptions === undefined || subscriptions.includes(subscription);
  const window = { fromUs, toUs };
  const tasks = segmentsOf(definitions, { reachBack })
    .filter(isWanted)
    .flatMap(({ segments, ...kind }) => {
      const [earlier, own] = [true, false].map((isEarlier) =>
        segments.filter((one) => one.isEarlier === isEarlier),
      );
      return [earlier ?? [], own ?? []].flatMap((some) =>
        cutTasks({ ...kind, segments: some }, window, wholeHours(some, window), registrations),
      );
    });
  return oldestFirst(tasks);
}

/** The tasks of one kind of event within a window, of which `hours` are compared as a whole. */
export function cutTasks(
  { subscription, event, segments }: SegmentedEvent,
  window: TimeWindow,
  hours: TimeWindow,
  registrations: readonly Known[],
): ReconcileTask[] {
  const known = registrations.find(({ name }) => name === subscription);
  const subscriptionId = known?.subscriptionId ?? null;
  return segments.flatMap(({ filter, isEarlier, ...segment }) => {
    const fromUs = Math.max(segment.fromUs, window.fromUs);
    const toUs = Math.min(segment.toUs, window.toUs);
    if (fromUs >= toUs) return [];
    return [{ subscription, subscriptionId, event, filter, isEarlier, fromUs, toUs, hours }];
  });
}

/** By their beginning; the kinds of events in their usual order. */
export function oldestFirst(tasks: readonly ReconcileTask[]): ReconcileTask[] {
  const rank = ({ event }: ReconcileTask) => subscriptionEvents.indexOf(event);
  return tasks.toSorted(
    (a, b) =>
      a.fromUs - b.fromUs || a.subscription.localeCompare(b.subscription) || rank(a) - rank(b),
  );
}

/**
 * An hour at an edge is whole when nothing was asked for in the part that the window leaves out. That in which a
 * subscription began is counted from there: its earlier part is of no whole hour.
 */
function wholeHours(segments: readonly Segment[], window: TimeWindow): TimeWindow {
  const { fromUs } = window;
  const beganUs = segments.find(({ isEarlier }) => isEarlier)?.toUs ?? Number.POSITIVE_INFINITY;
  const toUs = Math.min(window.toUs, hourOf(beganUs));
  const [first, last] = [hourOf(fromUs), hourOf(toUs)];
  const losesHead = isInForce(segments, { fromUs: first, toUs: fromUs });
  const losesTail = isInForce(segments, { fromUs: toUs, toUs: last + hourUs });
  return {
    fromUs: losesHead ? first + hourUs : first,
    toUs: losesTail || toUs === last ? last : last + hourUs,
  };
}

/** Oldest first; windows that meet or overlap become one. */
export function mergeWindows(windows: readonly TimeWindow[]): TimeWindow[] {
  const merged: TimeWindow[] = [];
  for (const { fromUs, toUs } of windows.toSorted((a, b) => a.fromUs - b.fromUs)) {
    const last = merged.at(-1);
    if (last !== undefined && last.toUs >= fromUs) last.toUs = Math.max(last.toUs, toUs);
    else merged.push({ fromUs, toUs });
  }
  return merged;
}
