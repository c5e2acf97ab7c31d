/** Memory of the pushes and comparisons of all subscriptions, and arithmetic of time spans. */

import { dayUs, hourOf, hourUs } from '../../core/terms/dates.ts';
import type { CompletenessReader, HourArrivals, HourCoverage } from '../coverage/completeness.ts';

/** A time span from `fromUs` (inclusive) to `toUs` (exclusive). */
export interface Span {
  fromUs: number;
  toUs: number;
}

/** Returns the spans without their overlaps with others, which may come in any order and overlap each other. */
export function without(spans: readonly Span[], others: readonly Span[]): Span[] {
  return others.reduce<Span[]>(
    (rest, other) =>
      rest.flatMap(({ fromUs, toUs }) =>
        // The parts before and after the other span.
        [
          { fromUs, toUs: Math.min(toUs, other.fromUs) },
          { fromUs: Math.max(fromUs, other.toUs), toUs },
        ].filter((part) => part.fromUs < part.toUs),
      ),
    [...spans],
  );
}

/** Returns the part of a span that is covered by others, which do not overlap each other. */
export function coveredUs(spans: readonly Span[], { fromUs, toUs }: Span): number {
  return spans.reduce(
    (sum, one) => sum + Math.max(0, Math.min(one.toUs, toUs) - Math.max(one.fromUs, fromUs)),
    0,
  );
}

/**
 * Length of the history. An orbit cycle takes up to 12 days; a shorter history has too few of them
 * (test/simulation/false-alarms.ts).
 */
export const historyUs = 13 * 7 * dayUs;

/** Age of compared hours that are read in each round. Older ones are compared again only after an outage. */
const newestUs = 2 * dayUs;

/** Interval at which older compared hours are read. */
const olderEveryUs = hourUs;

export function createPushMemory() {
  return {
    arrivals: new Map<string, HourArrivals>(),
    coverage: new Map<string, HourCoverage>(),
    /** Time up to which arrivals are complete, and time at which all coverage was read. */
    arrivedUpToUs: 0,
    comparedAtUs: 0,
  };
}

export type PushMemory = ReturnType<typeof createPushMemory>;

/** Updates the memory; the first call reads the whole history. Rejects with `unavailable`. */
export async function refreshPushMemory(
  memory: PushMemory,
  completeness: CompletenessReader,
  nowUs: number,
): Promise<void> {
  const thisHourUs = hourOf(nowUs);
  const oldestUs = hourOf(nowUs - historyUs);
  // After the clock was set back, hours in the future are read again.
  const arrivedUs = Math.min(Math.max(memory.arrivedUpToUs, oldestUs), thisHourUs);
  for (const day of daysOf(arrivedUs, thisHourUs + hourUs)) {
    for (const hour of await completeness.arrivals(day)) {
      memory.arrivals.set(`${hour.subscription} ${hour.hourUs}`, hour);
    }
  }
  // The current hour is not complete, and the previous one may get pushes in flight.
  memory.arrivedUpToUs = thisHourUs - hourUs;
  const isDue = Math.abs(nowUs - memory.comparedAtUs) >= olderEveryUs;
  const sinceUs = isDue ? oldestUs : hourOf(nowUs - newestUs);
  for (const day of daysOf(sinceUs, nowUs)) {
    for (const hour of await completeness.coverage(day)) {
      memory.coverage.set(`${hour.subscription} ${hour.hourUs} ${hour.event}`, hour);
    }
  }
  if (isDue) memory.comparedAtUs = nowUs;
  for (const hours of [memory.arrivals, memory.coverage]) {
    for (const [key, hour] of hours) if (hour.hourUs < oldestUs) hours.delete(key);
  }
}

/** Returns the days of a window, so that no single answer is large. */
function daysOf(sinceUs: number, untilUs: number): { sinceUs: number; untilUs: number }[] {
  return Array.from({ length: Math.ceil((untilUs - sinceUs) / dayUs) }, (_, i) => {
    const dayStartUs = sinceUs + i * dayUs;
    return { sinceUs: dayStartUs, untilUs: Math.min(untilUs, dayStartUs + dayUs) };
  });
}
