/** Plans what is to be compared in a window: one task for each filter that held, and kind of event. */
import type { Registration } from '../../domain/administration.ts';
import { type Definition, hourUs } from '../../domain/completeness.ts';
import { hourOf } from '../../domain/coverage-report.ts';
import { subscriptionEvents } from '../../domain/subscription.ts';
import { isInForce, type Segment, type SegmentedEvent, segmentsOf } from './definition-segments.ts';
import type { ReconcileTask, TimeWindow } from './reconcile-task.ts';

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
