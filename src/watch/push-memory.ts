/** What the watchdog remembers of pushes and comparisons, so that it asks the store for what is new alone. */
import { type CompletenessReader, type HourCoverage, hourUs } from '../domain/coverage.ts';
import { hourOf } from '../domain/coverage-report.ts';
import type { Arrivals } from './learn-rates.ts';

const dayUs = 24 * hourUs;
/** A cycle of satellites takes up to 12 days: with less, few of its rounds are seen (test/simulation/false-alarms.ts). */
export const rememberedUs = 13 * 7 * dayUs;
/** Hours are compared again until they are about a day old, and later only after an outage. */
const newestUs = 2 * dayUs;
/** Older days that are looked at again in each round: all of them within the hour. */
const olderDaysPerRound = 2;

export interface PushMemory {
  /** By subscription, then by hour of receipt. */
  arrivals: Map<string, Map<number, Arrivals>>;
  /** By subscription and hour and event. */
  coverage: Map<string, Map<string, HourCoverage>>;
  /** Up to where arrivals are complete; null before the first round. */
  arrivedUpToUs: number | null;
  /** The older day of coverage that is next. */
  nextDayUs: number;
}

export function createPushMemory(): PushMemory {
  return { arrivals: new Map(), coverage: new Map(), arrivedUpToUs: null, nextDayUs: 0 };
}

/**
 * Brings the memory up to date; the first time with all of it. Subscriptions that are not `names` are
 * forgotten. Rejects with `unavailable`.
 */
export async function refreshPushMemory(
  memory: PushMemory,
  completeness: CompletenessReader,
  { names, nowUs }: { names: ReadonlySet<string>; nowUs: number },
): Promise<void> {
  const oldestUs = hourOf(nowUs - rememberedUs);
  const isFirst = memory.arrivedUpToUs === null;
  // A clock that was set back: what is remembered of the future is asked for again.
  const fromUs = Math.min(Math.max(memory.arrivedUpToUs ?? oldestUs, oldestUs), hourOf(nowUs));
  for (let us = fromUs; us <= nowUs; us += dayUs) {
    const untilUs = Math.min(us + dayUs, hourOf(nowUs) + hourUs);
    noteArrivals(memory, await completeness.arrivals({ sinceUs: us, untilUs }), names);
  }
  // The hour that has just begun gets more, and so may the one before, from what was under way.
  memory.arrivedUpToUs = hourOf(nowUs) - hourUs;
  const days = isFirst ? Math.ceil(rememberedUs / dayUs) : olderDaysPerRound;
  for (let i = 0; i < days; i += 1) {
    const inReach = memory.nextDayUs >= oldestUs && memory.nextDayUs < nowUs;
    const us = inReach ? memory.nextDayUs : oldestUs;
    await noteCoverage(memory, completeness, names, { sinceUs: us, untilUs: us + dayUs });
    memory.nextDayUs = us + dayUs;
  }
  const newest = { sinceUs: hourOf(nowUs - newestUs), untilUs: nowUs };
  await noteCoverage(memory, completeness, names, newest);
  forget(memory, names, oldestUs);
}

function noteArrivals(
  { arrivals }: PushMemory,
  hours: Awaited<ReturnType<CompletenessReader['arrivals']>>,
  names: ReadonlySet<string>,
): void {
  for (const { subscription, hourUs: startUs, pushes, lastAtUs } of hours) {
    if (subscription === null || !names.has(subscription)) continue;
    const known = arrivals.get(subscription) ?? new Map<number, Arrivals>();
    arrivals.set(subscription, known.set(startUs, { pushes, lastAtUs }));
  }
}

async function noteCoverage(
  { coverage }: PushMemory,
  completeness: CompletenessReader,
  names: ReadonlySet<string>,
  window: { sinceUs: number; untilUs: number },
): Promise<void> {
  for (const hour of await completeness.coverage(window)) {
    if (!names.has(hour.subscription)) continue;
    const known = coverage.get(hour.subscription) ?? new Map<string, HourCoverage>();
    coverage.set(hour.subscription, known.set(`${hour.hourUs} ${hour.event}`, hour));
  }
}

function forget(
  { arrivals, coverage }: PushMemory,
  names: ReadonlySet<string>,
  oldestUs: number,
): void {
  for (const name of arrivals.keys()) if (!names.has(name)) arrivals.delete(name);
  for (const name of coverage.keys()) if (!names.has(name)) coverage.delete(name);
  for (const hours of arrivals.values()) {
    for (const startUs of hours.keys()) if (startUs < oldestUs) hours.delete(startUs);
  }
  for (const hours of coverage.values()) {
    for (const [key, hour] of hours) if (hour.hourUs < oldestUs) hours.delete(key);
  }
}
