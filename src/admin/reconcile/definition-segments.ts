/** What a subscription asked for over time, as pieces with one filter each. */
import type { Definition } from '../../domain/completeness.ts';
import type { SubscriptionEvent } from '../../domain/subscription.ts';
import type { TimeWindow } from './reconcile-task.ts';

/** A time in which one kind of events was asked for with one filter; the last one has no end. */
export interface Segment extends TimeWindow {
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
