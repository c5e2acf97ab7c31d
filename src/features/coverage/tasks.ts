/** Types of a comparison: tasks, modes and results. */

import type { Registration } from '../../admin/account.ts';
import { hourOf, hourUs } from '../../core/terms/dates.ts';
import {
  type CatalogueEvent,
  type SubscriptionEvent,
  subscriptionEvents,
} from '../../core/terms/subscription.ts';
import type { Definition } from './completeness.ts';

/** Time from `fromUs` (inclusive) to `toUs` (exclusive). */
export interface TimeWindow {
  fromUs: number;
  toUs: number;
}

/** Events of one kind, expected by one subscription, with a date within [fromUs, toUs). */
export interface ReconcileTask extends TimeWindow {
  subscription: string;
  /** Id in the catalogue, for recorded entries; null if unknown. */
  subscriptionId: string | null;
  event: SubscriptionEvent;
  /** Filter of the subscription at that time. */
  filter: string;
  /** True before the subscription began: events are fetched, but not expected. */
  isEarlier: boolean;
  /** Hours that are compared completely, by this task alone or together with adjacent ones. */
  hours: TimeWindow;
}

/** `write` records missing events and coverage, `check` only coverage, `preview` nothing. */
export type ReconcileMode = 'write' | 'check' | 'preview';

/** State of a catalogue event in the log; the names are those of `HourCoverage`. */
export type EventOutcome = 'pushed' | 'late' | 'recovered' | 'missing';

export type OutcomeCounts = Record<'expected' | EventOutcome, number>;

/** Counts of a task; skipped hours count with their earlier results. */
export interface TaskReport extends OutcomeCounts {
  task: ReconcileTask;
  /** Records without a valid Id or date, which cannot be recorded. */
  unreadable: number;
  /** Events whose records lack a field that the filter needs. */
  undecided: number;
}

/** Progress of a comparison. */
export interface ReconcileProgress {
  tasksDone: number;
  tasks: number;
  task: ReconcileTask;
  /** Events with an earlier date are compared. */
  upToUs: number;
  /** Records of the current window seen so far, and their total number; null if unknown. */
  seen: number;
  total: number | null;
  /** Estimated time for the rest of the comparison; null at first. */
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

/** Period in which a subscription had one filter for one kind of event; the last one has no end. */
interface Segment extends TimeWindow {
  filter: string;
  /** True for the time before the subscription began: its events are fetched, but not expected. */
  isEarlier: boolean;
}

/** Segments of one subscription and kind of event, oldest first. */
export interface SegmentedEvent {
  subscription: string;
  event: SubscriptionEvent;
  segments: Segment[];
}

/**
 * Splits definitions, oldest first, into segments. With `reachBack`, the time before the earliest definition of a
 * subscription is a separate segment with the filter of that definition.
 */
export function segmentsOf(
  definitions: readonly Definition[],
  { reachBack = false }: { reachBack?: boolean | undefined } = {},
): SegmentedEvent[] {
  const found = new Map<string, SegmentedEvent>();
  const latest = new Map<string, Definition>();
  // Newest first: each definition ends where the next one begins.
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

/** Returns true if a segment overlaps the window. */
export function isInForce(segments: readonly Segment[], { fromUs, toUs }: TimeWindow): boolean {
  return segments.some((one) => one.fromUs < toUs && one.toUs > fromUs && fromUs < toUs);
}

type Known = Pick<Registration, 'name' | 'subscriptionId'>;

/**
 * Returns the tasks of a window, oldest first, so that an interrupted run leaves complete hours. `subscriptions`
 * limits them to these; `reachBack` adds `isEarlier` tasks that compare the time before the earliest definition
 * of a subscription with that definition.
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
  const isSelected = ({ subscription }: SegmentedEvent) =>
    subscriptions === undefined || subscriptions.includes(subscription);
  const window = { fromUs, toUs };
  const tasks = segmentsOf(definitions, { reachBack })
    .filter(isSelected)
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

/** Returns the tasks of one kind of event within a window; `hours` are compared completely. */
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

/** Sorts tasks by start, subscription and event. */
export function oldestFirst(tasks: readonly ReconcileTask[]): ReconcileTask[] {
  const rank = ({ event }: ReconcileTask) => subscriptionEvents.indexOf(event);
  return tasks.toSorted(
    (a, b) =>
      a.fromUs - b.fromUs || a.subscription.localeCompare(b.subscription) || rank(a) - rank(b),
  );
}

/**
 * Returns the hours that the tasks compare completely. An hour at an edge counts as complete if no segment is in
 * force in its part outside the window. The hour in which a subscription began counts from that moment on.
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

/** Sorts windows, oldest first, and joins adjacent and overlapping ones. */
export function mergeWindows(windows: readonly TimeWindow[]): TimeWindow[] {
  const merged: TimeWindow[] = [];
  for (const { fromUs, toUs } of windows.toSorted((a, b) => a.fromUs - b.fromUs)) {
    const last = merged.at(-1);
    if (last !== undefined && last.toUs >= fromUs) last.toUs = Math.max(last.toUs, toUs);
    else merged.push({ fromUs, toUs });
  }
  return merged;
}
