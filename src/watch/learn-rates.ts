/**
 * Learns how much a subscription usually brings at each hour of the week, and how unevenly, from what the
 * watchdog remembers of pushes and comparisons.
 */
import { type CompletenessReader, type HourCoverage, hourUs } from '../domain/completeness.ts';
import { hourOf } from '../domain/coverage.ts';

const hoursOfDay = 24;

const hoursOfWeek = 168;

/** Pushes of one hour of receipt. */
export interface Arrivals {
  pushes: number;
  lastAtUs: number;
}

/** What is known of one subscription. */
export interface PushHistory {
  /** By the hour's beginning; hours without a push are left out. */
  arrivals: ReadonlyMap<number, Arrivals>;
  /** When pushes could have come: we were up, it ran, and it asked for what it asks for now. */
  watched: readonly Span[];
  /** Hours of events that no push told of. A silence that holds one was no natural one. */
  lostHours: readonly number[];
}

export interface LearnedRates {
  /** Pushes an hour, by hour of the week; counted from 1970, so that it begins on a Thursday. */
  perHour: Float64Array;
  /** Variance to mean of the pushes of an hour: 1 where they come one by one, hundreds in bursts. */
  dispersion: number;
  /** The longest natural silence, in pushes that were to be expected meanwhile. */
  longestSilence: number;
  /** Hours that it was learned from, and those of them that brought something. */
  watchedHours: number;
  busyHours: number;
  /** The last push; learning ends with it, so that a silence does not teach that silence is usual. */
  lastPushAtUs: number;
}

/** Hours of no particular time that a rate is mixed with: an hour of the week is seen but a few times. */
const overallHours = 12;

const dayHours = 12;

/** Null when there was no push at all while it was watched. */
export function learnRates(history: PushHistory): LearnedRates | null {
  const hours = watchedHoursOf(history);
  const last = hours.findLast(({ pushes }) => pushes > 0);
  if (last === undefined) return null;
  const training = hours.filter(({ startUs }) => startUs <= last.startUs);
  const perHour = ratesOf(training);
  return {
    perHour,
    dispersion: dispersionOf(training, perHour),
    longestSilence: longestSilenceOf(training, perHour, history.lostHours),
    watchedHours: training.reduce((sum, { share }) => sum + share, 0),
    busyHours: training.filter(({ pushes }) => pushes > 0).length,
    lastPushAtUs: last.lastAtUs,
  };
}

/** Pushes to be expected within [fromUs, toUs), as far as it was watched. */
export function expectedPushes(
  { perHour }: Pick<LearnedRates, 'perHour'>,
  watched: readonly Span[],
  { fromUs, toUs }: Span,
): number {
  let expected = 0;
  for (const span of watched) {
    const endUs = Math.min(span.toUs, toUs);
    for (let us = Math.max(span.fromUs, fromUs); us < endUs; us = nextHour(us)) {
      expected += (rateAt(perHour, us) * (Math.min(nextHour(us), endUs) - us)) / hourUs;
    }
  }
  return expected;
}

interface WatchedHour extends Arrivals {
  startUs: number;
  /** The part of it that was watched. */
  share: number;
}

/** Hours with a push or a moment's watch, oldest first. */
function watchedHoursOf({ arrivals, watched }: PushHistory): WatchedHour[] {
  const shares = new Map<number, number>();
  for (const span of watched) {
    for (let us = hourOf(span.fromUs); us < span.toUs; us += hourUs) {
      const watchedUs = Math.min(span.toUs, us + hourUs) - Math.max(span.fromUs, us);
      shares.set(us, (shares.get(us) ?? 0) + watchedUs / hourUs);
    }
  }
  const none: Arrivals = { pushes: 0, lastAtUs: 0 };
  return [...shares].map(([startUs, share]) => ({
    ...(arrivals.get(startUs) ?? none),
    startUs,
    share,
  }));
}

/** By hour of the week, drawn towards that hour of all days, which is drawn towards all hours. */
function ratesOf(hours: readonly WatchedHour[]): Float64Array {
  const overall = pooled(hours, 1, () => 0, 0);
  const ofDay = pooled(hours, hoursOfDay, () => overall[0] ?? 0, overallHours);
  return pooled(hours, hoursOfWeek, (hour) => ofDay[hour % hoursOfDay] ?? 0, dayHours);
}

function pooled(
  hours: readonly WatchedHour[],
  period: number,
  usual: (hour: number) => number,
  usualHours: number,
): Float64Array {
  const pushes = new Float64Array(period);
  const watched = new Float64Array(period);
  for (const hour of hours) {
    const slot = (hour.startUs / hourUs) % period;
    pushes[slot] = (pushes[slot] ?? 0) + hour.pushes;
    watched[slot] = (watched[slot] ?? 0) + hour.share;
  }
  return pushes.map((sum, slot) => {
    const seen = (watched[slot] ?? 0) + usualHours;
    return seen === 0 ? 0 : (sum + usual(slot) * usualHours) / seen;
  });
}

function dispersionOf(hours: readonly WatchedHour[], perHour: Float64Array): number {
  let squares = 0;
  let sum = 0;
  for (const { startUs, share, pushes } of hours) {
    const expected = rateAt(perHour, startUs) * share;
    squares += (pushes - expected) ** 2;
    sum += expected;
  }
  return sum === 0 ? 1 : Math.max(1, squares / sum);
}

/** From the last push of an hour to the first of the next hour that has one. */
function longestSilenceOf(
  hours: readonly WatchedHour[],
  perHour: Float64Array,
  lostHours: readonly number[],
): number {
  const lost = new Set(lostHours);
  let longest = 0;
  let silence: number | null = null;
  for (const { startUs, share, pushes, lastAtUs } of hours) {
    const expected = rateAt(perHour, startUs) * share;
    if (lost.has(startUs)) silence = null;
    if (pushes === 0) {
      if (silence !== null) silence += expected;
      continue;
    }
    const lastPart = (lastAtUs - startUs) / hourUs;
    // Of several only the last is known: the first stands where it would if they came evenly.
    if (silence !== null) longest = Math.max(longest, silence + (expected * lastPart) / pushes);
    silence = lost.has(startUs) ? null : expected * (1 - lastPart);
  }
  return longest;
}

const nextHour = (us: number) => hourOf(us) + hourUs;

const rateAt = (perHour: Float64Array, us: number) =>
  perHour[Math.floor(us / hourUs) % hoursOfWeek] ?? 0;

/** From `fromUs` (included) until `toUs` (excluded). */
export interface Span {
  fromUs: number;
  toUs: number;
}

/** The spans within [fromUs, toUs). */
export function clipped(spans: readonly Span[], fromUs: number, toUs: number): Span[] {
  return spans
    .map((span) => ({
      fromUs: Math.max(span.fromUs, fromUs),
      toUs: Math.min(span.toUs, toUs),
    }))
    .filter((span) => span.fromUs < span.toUs);
}

/** The spans without what lies within any of the others, which may overlap and come in any order. */
export function without(spans: readonly Span[], others: readonly Span[]): Span[] {
  return others.reduce<Span[]>(
    (left, other) =>
      left.flatMap(({ fromUs, toUs }) =>
        // What comes before the other, and what comes after it.
        [
          { fromUs, toUs: Math.min(toUs, other.fromUs) },
          { fromUs: Math.max(fromUs, other.toUs), toUs },
        ].filter((rest) => rest.fromUs < rest.toUs),
      ),
    [...spans],
  );
}

/** The part of [fromUs, toUs) that the spans cover, 0 to 1. */
export function shareOf(spans: readonly Span[], fromUs: number, toUs: number): number {
  const coveredUs = clipped(spans, fromUs, toUs).reduce(
    (sum, span) => sum + span.toUs - span.fromUs,
    0,
  );
  return coveredUs / (toUs - fromUs);
}

const dayUs = hoursOfDay * hourUs;
/** A cycle of satellites takes up to 12 days: with less, few of its rounds are seen (test/simulation/false-alarms.ts). */
export const historyUs = 13 * 7 * dayUs;
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
  const oldestUs = hourOf(nowUs - historyUs);
  const isFirst = memory.arrivedUpToUs === null;
  // A clock that was set back: what is remembered of the future is asked for again.
  const fromUs = Math.min(Math.max(memory.arrivedUpToUs ?? oldestUs, oldestUs), hourOf(nowUs));
  for (let us = fromUs; us <= nowUs; us += dayUs) {
    const untilUs = Math.min(us + dayUs, hourOf(nowUs) + hourUs);
    recordArrivals(memory, await completeness.arrivals({ sinceUs: us, untilUs }), names);
  }
  // The hour that has just begun gets more, and so may the one before, from what was under way.
  memory.arrivedUpToUs = hourOf(nowUs) - hourUs;
  const days = isFirst ? Math.ceil(historyUs / dayUs) : olderDaysPerRound;
  for (let i = 0; i < days; i += 1) {
    const inReach = memory.nextDayUs >= oldestUs && memory.nextDayUs < nowUs;
    const us = inReach ? memory.nextDayUs : oldestUs;
    await recordCoverage(memory, completeness, names, { sinceUs: us, untilUs: us + dayUs });
    memory.nextDayUs = us + dayUs;
  }
  const newest = { sinceUs: hourOf(nowUs - newestUs), untilUs: nowUs };
  await recordCoverage(memory, completeness, names, newest);
  removeOld(memory, names, oldestUs);
}

function recordArrivals(
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

async function recordCoverage(
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

function removeOld(
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
