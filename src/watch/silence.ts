/** Rules for silence and lost pushes, from the known pushes of one subscription. */
import { type HourArrivals, type HourCoverage, hourUs } from '../domain/completeness.ts';
import { coveredUs, type Span } from './pushes.ts';
import { dayUs } from './texts.ts';

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

/** Silence that is usual for a subscription. */
export interface UsualSilence {
  lastPushAtUs: number;
  /** Longest silence between two pushes. */
  longestUs: number;
  /** Silence above which an alert is raised. */
  limitUs: number;
  /** Time of observation until the last push. */
  watchedUs: number;
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
 * Returns the usual silence; null with too few data. The current silence is not part of it, otherwise it would become
 * usual.
 */
export function usualSilence({ arrivals, watched, lostHours }: PushHistory): UsualSilence | null {
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

/** Events of one or more hours, and how many of them were not pushed. */
export interface Tally {
  expected: number;
  lost: number;
}

export interface TalliedHour extends Tally {
  startUs: number;
}

/** Minimum number of latest hours that are checked; more if they contain fewer events than `expectedMin`. */
const hoursMin = 24;
const expectedMin = 5;

/** Older hours are ignored. */
export const talliedUs = 30 * dayUs;

/** Losses that raise the alert: a number and a share of the events. */
const lostMin = 3;
const lostShareMin = 0.2;

/** Returns the latest hours together; null when they contain too few events. `hours` are sorted, oldest first. */
export function latestTally(hours: readonly TalliedHour[], nowUs: number): TalliedHour | null {
  const sum: TalliedHour = { startUs: nowUs, expected: 0, lost: 0 };
  for (let i = hours.length - 1; i >= 0; i -= 1) {
    const hour = hours[i];
    if (hour === undefined || hour.startUs < nowUs - talliedUs) break;
    if (hours.length - 1 - i >= hoursMin && sum.expected >= expectedMin) break;
    sum.startUs = hour.startUs;
    sum.expected += hour.expected;
    sum.lost += hour.lost;
  }
  return sum.expected === 0 ? null : sum;
}

/** Returns true when the losses raise an alert, or keep it active: half as many are enough for that. */
export function areTooMany({ expected, lost }: Tally, isActive: boolean): boolean {
  return lost >= Math.max(lostMin, lostShareMin * expected) / (isActive ? 2 : 1);
}

/** Maximum usual delay of a push after its event; the receiver must have been up until then. */
const pushDelayUs = hourUs / 6;

/**
 * Time after which an hour is counted. It is compared earlier, and a push that arrives after its event was fetched is
 * no longer counted as lost: a catalogue with an hour of delay has lost nothing.
 */
export const countedUs = hourUs + pushDelayUs;

/** Minimum share of an hour with the receiver up, as a short interruption is no downtime. */
const upShareMin = 0.999;

/**
 * Returns the sums of all kinds of events by hour, oldest first. Uses only hours in which the receiver was up all the
 * time: losses caused by our own downtime are known.
 */
export function talliedHours(
  coverage: readonly HourCoverage[],
  watched: readonly Span[],
  nowUs: number,
): TalliedHour[] {
  const byHour = new Map<number, TalliedHour>();
  for (const { hourUs: startUs, expected, recovered, missing } of coverage) {
    if (startUs < nowUs - talliedUs || startUs + hourUs + countedUs > nowUs) continue;
    const known = byHour.get(startUs) ?? { startUs, expected: 0, lost: 0 };
    known.expected += expected;
    known.lost += recovered + missing;
    byHour.set(startUs, known);
  }
  const neededUs = hourUs + pushDelayUs;
  const isUp = ({ startUs: fromUs }: TalliedHour) =>
    coveredUs(watched, { fromUs, toUs: fromUs + neededUs }) >= upShareMin * neededUs;
  return [...byHour.values()].filter(isUp).sort((a, b) => a.startUs - b.startUs);
}
