/** Tasks of a comparison: for a requested window, and for the hours that are due automatically. */
import type { Gap, Registration } from '../../admin/account.ts';
import { hourOf, hourUs, minuteUs } from '../../core/terms/dates.ts';
import {
  type CatalogueEvent,
  type SubscriptionEvent,
  subscriptionEvents,
} from '../../core/terms/subscription.ts';
import {
  comparisonHorizonUs,
  type Definition,
  type HourCoverage,
  recheckAfterUs,
  settlingUs,
} from './completeness.ts';

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
}

/** `write` records missing events and coverage, `check` only coverage, `preview` nothing. */
export type ReconcileMode = 'write' | 'check' | 'preview';

/** State of a catalogue event in the log; the names are those of `HourCoverage`. */
export type EventOutcome = 'pushed' | 'late' | 'recovered' | 'missing';

export type OutcomeCounts = Record<'expected' | EventOutcome, number>;

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
  /** Records of the current task seen so far, and their total number; null if unknown. */
  seen: number;
  total: number | null;
}

/** An event that was not in the log. */
export type FoundMissing = CatalogueEvent & {
  productName: string | null;
  recovered: boolean;
};

export function noCounts(): OutcomeCounts {
  return { expected: 0, pushed: 0, late: 0, recovered: 0, missing: 0 };
}

/** Period in which a subscription had one filter for one kind of event; the last one has no end. */
type Segment = TimeWindow & Pick<ReconcileTask, 'filter' | 'isEarlier'>;

/** Segments of one subscription and kind of event, oldest first. */
interface SegmentedEvent {
  subscription: string;
  event: SubscriptionEvent;
  segments: Segment[];
}

/**
 * Splits definitions, oldest first, into segments. The time before the earliest definition of a subscription is a
 * separate segment with its filter.
 */
function segmentsOf(definitions: readonly Definition[]): SegmentedEvent[] {
  const bySubscription = Map.groupBy(definitions, ({ subscription }) => subscription);
  return [...bySubscription].flatMap(([subscription, own]) =>
    subscriptionEvents.flatMap((event) => {
      const segments = own.flatMap(({ events, filter, fromUs }, i): Segment[] => {
        if (!events.includes(event)) return [];
        const before = { filter, fromUs: -Infinity, toUs: fromUs, isEarlier: true };
        const toUs = own[i + 1]?.fromUs ?? Infinity;
        const segment = { filter, fromUs, toUs, isEarlier: false };
        return [...(i === 0 ? [before] : []), ...(fromUs < toUs ? [segment] : [])];
      });
      return segments.length === 0 ? [] : [{ subscription, event, segments }];
    }),
  );
}

type Known = Pick<Registration, 'name' | 'subscriptionId'>;

/**
 * Returns the tasks of some subscriptions in a window of whole hours, oldest first, so that an interrupted run leaves
 * complete hours.
 */
export function tasksOf(options: {
  /** Oldest first. */
  definitions: readonly Definition[];
  registrations: readonly Known[];
  window: TimeWindow;
  subscriptions: readonly string[];
}): ReconcileTask[] {
  const { definitions, registrations, window, subscriptions } = options;
  const rank = ({ event }: ReconcileTask) => subscriptionEvents.indexOf(event);
  const place = ({ subscription }: ReconcileTask) => subscriptions.indexOf(subscription);
  return segmentsOf(definitions)
    .filter(({ subscription }) => subscriptions.includes(subscription))
    .flatMap((kind) => cutTasks(kind, window, registrations))
    .toSorted((a, b) => a.fromUs - b.fromUs || place(a) - place(b) || rank(a) - rank(b));
}

/** Returns the tasks of one kind of event within a window. */
function cutTasks(
  { subscription, event, segments }: SegmentedEvent,
  window: TimeWindow,
  registrations: readonly Known[],
): ReconcileTask[] {
  const known = registrations.find(({ name }) => name === subscription);
  const subscriptionId = known?.subscriptionId ?? null;
  return segments.flatMap(({ filter, isEarlier, ...segment }) => {
    const fromUs = Math.max(segment.fromUs, window.fromUs);
    const toUs = Math.min(segment.toUs, window.toUs);
    if (fromUs >= toUs) return [];
    return [{ subscription, subscriptionId, event, filter, isEarlier, fromUs, toUs }];
  });
}

/** Pushes sent this long before a gap may not have been stored. */
const beforeGapUs = 5 * minuteUs;

/** Time without a round after which pushes may be lost: the receiver was stopped, or the machine slept. */
const withoutRoundUs = 20 * minuteUs;

/** A comparison dated further in the future was made with a wrong clock, and is repeated. */
const clockToleranceUs = 5 * minuteUs;

/** Pushes of newer events may still arrive. */
const deliveryTimeUs = 2 * minuteUs;

export interface DueOptions {
  /** Oldest first, as all arrays here. */
  definitions: readonly Definition[];
  registrations: readonly Known[];
  /** Covers at least the horizon. */
  coverage: readonly HourCoverage[];
  gaps: readonly Gap[];
  /** Earlier events were checked by the last round; null after a start. */
  checkedAtUs: number | null;
  nowUs: number;
  /** Pruning horizon: earlier hours are not compared. By the same clock as `nowUs`. */
  unprunedSinceUs: number;
}

/** A window that is compared at once. */
export interface DuePart {
  /** True for the time after the settled hours, which may lack events after a start, sleep or gap. */
  isEarly: boolean;
  window: TimeWindow;
  tasks: ReconcileTask[];
}

/** Due parts of one subscription and kind of event: the early one, then the hours, oldest first. */
export interface DueKind {
  subscription: string;
  event: SubscriptionEvent;
  parts: DuePart[];
}

/** Returns what is due. Adjacent hours are divided into parts of 1, 2, 4, … hours, so that a failure affects few. */
export function dueKinds(options: DueOptions): DueKind[] {
  const { definitions, registrations, coverage, nowUs } = options;
  const compared = new Map(coverage.map((hour) => [hourKey(hour, hour.hourUs), hour]));
  return segmentsOf(definitions).flatMap(({ subscription, event, segments: all }) => {
    const segments = all.filter(({ isEarlier }) => !isEarlier);
    const kind = { subscription, event, segments };
    const hours = settledHours(segments, options)
      .filter((at) => isDue(at, compared.get(hourKey(kind, at)), nowUs))
      .map((at) => ({ fromUs: at, toUs: at + hourUs }));
    const part = (window: TimeWindow, isEarly: boolean): DuePart => {
      return { isEarly, window, tasks: cutTasks(kind, window, registrations) };
    };
    const parts = [
      ...earlyWindow(subscription, options).map((window) => part(window, true)),
      ...mergeWindows(hours)
        .flatMap(doublingParts)
        .map((window) => part(window, false)),
    ].filter(({ tasks }) => tasks.length > 0);
    return parts.length === 0 ? [] : [{ subscription, event, parts }];
  });
}

function doublingParts({ fromUs, toUs }: TimeWindow): TimeWindow[] {
  const parts: TimeWindow[] = [];
  let at = fromUs;
  for (let us = hourUs; at < toUs; us *= 2) {
    parts.push({ fromUs: at, toUs: Math.min(at + us, toUs) });
    at += us;
  }
  return parts;
}

/** Returns true for a settled hour that is not known to be complete, or was compared before it was a day old and now is. */
function isDue(at: number, compared: HourCoverage | undefined, nowUs: number): boolean {
  if (compared === undefined || compared.missing > 0) return true;
  const { comparedAtUs } = compared;
  const endUs = at + hourUs;
  // A command may have compared the hour before it settled.
  const isEarly = comparedAtUs < endUs + settlingUs;
  const isOld = nowUs >= endUs + recheckAfterUs && comparedAtUs < endUs + recheckAfterUs;
  return isEarly || isOld || comparedAtUs > nowUs + clockToleranceUs;
}

/** Returns the settled whole hours within the horizon in which the subscription was in force. */
function settledHours(
  segments: readonly Segment[],
  { nowUs, unprunedSinceUs }: DueOptions,
): number[] {
  const hours: number[] = [];
  const firstUs = Math.max(
    hourOf(nowUs - comparisonHorizonUs) + hourUs,
    hourOf(segments[0]?.fromUs ?? nowUs),
    Math.ceil(unprunedSinceUs / hourUs) * hourUs,
  );
  for (let at = firstUs; at < settledUpTo(nowUs); at += hourUs) {
    if (segments.some(({ fromUs, toUs }) => fromUs < at + hourUs && toUs > at)) hours.push(at);
  }
  return hours;
}

/** Returns the end of the last settled hour. */
function settledUpTo(nowUs: number): number {
  return hourOf(nowUs - settlingUs);
}

/**
 * Returns the window that may lack events, until now, without the settled hours, which are compared separately. Empty if
 * nothing interrupted the receiver and the subscription since the last round.
 */
function earlyWindow(
  subscription: string,
  { gaps, checkedAtUs, nowUs, unprunedSinceUs }: DueOptions,
): TimeWindow[] {
  const settledUs = settledUpTo(nowUs);
  const sinceUs = Math.max(settledUs, checkedAtUs ?? settledUs);
  const isStart = checkedAtUs === null || nowUs - checkedAtUs > withoutRoundUs;
  const ended = gaps.filter(
    (gap) => gap.subscription === subscription && gap.toUs !== null && gap.toUs > sinceUs,
  );
  const missingSinceUs = Math.min(
    ...ended.map((gap) => gap.fromUs - beforeGapUs),
    isStart ? sinceUs : Number.POSITIVE_INFINITY,
  );
  const fromUs = Math.max(missingSinceUs, settledUs, unprunedSinceUs);
  const toUs = nowUs - deliveryTimeUs;
  return fromUs < toUs ? [{ fromUs, toUs }] : [];
}

/** Key of an hour of one kind of event. */
export const hourKey = (kind: { subscription: string; event: string }, at: number) =>
  `${kind.subscription} ${kind.event} ${at}`;

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
