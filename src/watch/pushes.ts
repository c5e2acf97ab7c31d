/** Memory of the pushes and comparisons of each subscription, and the time in which they were observed. */
import {
  type CompletenessReader,
  type HourArrivals,
  type HourCoverage,
  hourUs,
} from '../domain/completeness.ts';
import { hourOf } from '../domain/coverage.ts';
import { dayUs } from './texts.ts';

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

/** Age of hours that are read in each round. Older ones are compared again only after an outage. */
const newestUs = 2 * dayUs;

/** Interval at which older hours are read. */
const olderEveryUs = hourUs;

type HoursByName<Hour> = Map<string, Map<string, Hour>>;

export interface PushMemory {
  arrivals: HoursByName<HourArrivals>;
  coverage: HoursByName<HourCoverage>;
  /** Time up to which arrivals are complete, and time at which all coverage was read. */
  arrivedUpToUs: number;
  comparedAtUs: number;
}

export function createPushMemory(): PushMemory {
  return { arrivals: new Map(), coverage: new Map(), arrivedUpToUs: 0, comparedAtUs: 0 };
}

/**
 * Updates the memory; the first call reads the whole history. Removes subscriptions that are not in `names`. Rejects
 * with `unavailable`.
 */
export async function refreshPushMemory(
  memory: PushMemory,
  completeness: CompletenessReader,
  { names, nowUs }: { names: ReadonlySet<string>; nowUs: number },
): Promise<void> {
  const thisHourUs = hourOf(nowUs);
  const oldestUs = hourOf(nowUs - historyUs);
  // After the clock was set back, hours in the future are read again.
  const fromUs = Math.min(Math.max(memory.arrivedUpToUs, oldestUs), thisHourUs);
  for (let sinceUs = fromUs; sinceUs <= nowUs; sinceUs += dayUs) {
    const untilUs = Math.min(sinceUs + dayUs, thisHourUs + hourUs);
    const hours = await completeness.arrivals({ sinceUs, untilUs });
    for (const hour of hours) record(memory.arrivals, `${hour.hourUs}`, hour);
  }
  // The current hour is not complete, and the previous one may get pushes in flight.
  memory.arrivedUpToUs = thisHourUs - hourUs;
  const isDue = Math.abs(nowUs - memory.comparedAtUs) >= olderEveryUs;
  const firstUs = isDue ? oldestUs : hourOf(nowUs - newestUs);
  for (let sinceUs = firstUs; sinceUs < nowUs; sinceUs += dayUs) {
    const hours = await completeness.coverage({ sinceUs, untilUs: sinceUs + dayUs });
    for (const hour of hours) record(memory.coverage, `${hour.hourUs} ${hour.event}`, hour);
  }
  if (isDue) memory.comparedAtUs = nowUs;
  removeOld(memory.arrivals, names, oldestUs);
  removeOld(memory.coverage, names, oldestUs);
}

function record<Hour extends { subscription: string | null }>(
  hours: HoursByName<Hour>,
  key: string,
  hour: Hour,
): void {
  const name = hour.subscription ?? '';
  hours.set(name, (hours.get(name) ?? new Map<string, Hour>()).set(key, hour));
}

function removeOld(
  hours: HoursByName<{ hourUs: number }>,
  names: ReadonlySet<string>,
  oldestUs: number,
): void {
  for (const [name, own] of hours) {
    if (!names.has(name)) hours.delete(name);
    for (const [key, hour] of own) if (hour.hourUs < oldestUs) own.delete(key);
  }
}
