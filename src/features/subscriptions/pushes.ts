/** Pushes and comparisons of all subscriptions, time spans, and the rules for silence and lost pushes. */
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

/** Known pushes of one subscription. */
export interface PushHistory {
  /** Hours with pushes. */
  arrivals: readonly Pick<HourArrivals, 'hourUs' | 'pushes' | 'lastAtUs'>[];
  /**
   * Spans in which pushes would have been received: the receiver was up, the subscription ran, and its definition was
   * the current one. Other time is no silence.
   */
  watched: readonly Span[];
  /** Hours with events that were not pushed. A silence that contains one is not natural. */
  lostHours: readonly number[];
}

/** Minimum time of observation and number of hours with pushes: fewer do not show how long silences are. */
const watchedMinUs = 7 * dayUs;
const busyHoursMin = 6;

/** Ratio of the limit to the longest silence, and to the median silence. */
const longestFactor = 2;
const medianFactor = 20;

/** Bounds of the limit by the median. */
const byMedianUs = { min: hourUs, max: 6 * hourUs };

/**
 * Returns the longest silence between two pushes, and the limit above which a silence raises an alert; null with too
 * few data. The current silence is not part of it, otherwise it would become usual. `watchedUs` is the time of
 * observation until the last push.
 */
export function usualSilence({ arrivals, watched, lostHours }: PushHistory) {
  const busy = arrivals
    .filter(({ hourUs: us }) => coveredUs(watched, { fromUs: us, toUs: us + hourUs }) > 0)
    .sort((a, b) => a.hourUs - b.hourUs);
  const [first, last] = [busy[0], busy.at(-1)];
  if (first === undefined || last === undefined || busy.length < busyHoursMin) return null;
  const watchedUs = coveredUs(watched, { fromUs: 0, toUs: last.lastAtUs });
  if (watchedUs < watchedMinUs) return null;
  let longestUs = 0;
  let beforeUs = first.lastAtUs;
  for (const { hourUs: us, pushes, lastAtUs } of busy.slice(1)) {
    // Only the time of the last push is known: assume that the others arrived evenly.
    const silence = { fromUs: beforeUs, toUs: us + (lastAtUs - us) / pushes };
    beforeUs = lastAtUs;
    const isNatural = !lostHours.some((at) => at + hourUs > silence.fromUs && at < silence.toUs);
    if (isNatural) longestUs = Math.max(longestUs, coveredUs(watched, silence));
  }
  const pushes = busy.map((hour) => hour.pushes).sort((a, b) => a - b);
  const medianUs = hourUs / (pushes[Math.floor(pushes.length / 2)] ?? 1);
  const limitUs = Math.max(
    longestFactor * longestUs,
    Math.min(byMedianUs.max, Math.max(byMedianUs.min, medianFactor * medianUs)),
  );
  return { lastPushAtUs: last.lastAtUs, longestUs, limitUs, watchedUs };
}

/** Number of hours in which losses are counted. */
const hoursMax = 24;

/** Losses that raise the alert: a number and a share of the events. */
const lostMin = 3;
const lostShareMin = 0.2;

/** Maximum usual delay of a push after its event; the receiver must have been up until then. */
const pushDelayUs = hourUs / 6;

/**
 * Time after the end of an hour until it is counted. It is compared earlier, and a push that arrives after its event
 * was fetched is no longer counted as lost: a catalogue with an hour of delay has lost nothing.
 */
export const countedUs = hourUs + pushDelayUs;

/** Minimum share of an hour with the receiver up, as a short interruption is no downtime. */
const upShareMin = 0.999;

/**
 * Returns how many events of the latest counted hours were not pushed; null without such an hour. Ignores hours in
 * which pushes could not be received: losses caused by our own downtime are known. `areTooMany` is true when they raise
 * an alert, or keep an active one: half as many are enough for that.
 */
export function lostPushes(
  coverage: readonly Pick<HourCoverage, 'hourUs' | 'expected' | 'recovered' | 'missing'>[],
  { watched, nowUs, isActive }: { watched: readonly Span[]; nowUs: number; isActive: boolean },
) {
  const neededUs = hourUs + pushDelayUs;
  const counted = coverage.filter(
    ({ hourUs: us }) =>
      us + hourUs + countedUs <= nowUs &&
      coveredUs(watched, { fromUs: us, toUs: us + neededUs }) >= upShareMin * neededUs,
  );
  const starts = [...new Set(counted.map((hour) => hour.hourUs))].sort((a, b) => b - a);
  const startUs = starts.slice(0, hoursMax).at(-1);
  if (startUs === undefined) return null;
  const latest = counted.filter((hour) => hour.hourUs >= startUs);
  const expected = latest.reduce((sum, hour) => sum + hour.expected, 0);
  const lost = latest.reduce((sum, hour) => sum + hour.recovered + hour.missing, 0);
  const areTooMany = lost >= Math.max(lostMin, lostShareMin * expected) / (isActive ? 2 : 1);
  return { startUs, expected, lost, areTooMany };
}
