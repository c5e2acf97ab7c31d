/**
 * Learns the usual rate and unevenness of the pushes of a subscription, by hour of the week, from the remembered
 * pushes and comparisons.
 */
import { type CompletenessReader, type HourCoverage, hourUs } from '../domain/completeness.ts';
import { hourOf } from '../domain/coverage.ts';

const hoursOfDay = 24;

const hoursOfWeek = 168;

/** Pushes received within one hour. */
export interface Arrivals {
  pushes: number;
  lastAtUs: number;
}

/** Known pushes of one subscription. */
export interface PushHistory {
  /** By start of the hour; hours without a push are omitted. */
  arrivals: ReadonlyMap<number, Arrivals>;
  /**
   * Spans in which pushes would have been received: the receiver was up, the subscription ran, and its definition was
   * the current one.
   */
  watched: readonly Span[];
  /** Hours with events that were not pushed. A silence that contains one is not natural. */
  lostHours: readonly number[];
}

export interface LearnedRates {
  /** Pushes per hour, by hour of the week. Counted from 1970, so the first hour is on a Thursday. */
  perHour: Float64Array;
  /** Ratio of variance to mean of the pushes per hour: 1 for single pushes, hundreds for bursts. */
  dispersion: number;
  /** Longest natural silence, in expected pushes. */
  longestSilence: number;
  /** Hours used for learning, and those of them with pushes. */
  watchedHours: number;
  busyHours: number;
  /** Time of the last push. Learning ends there, so that the current silence does not become usual. */
  lastPushAtUs: number;
}

/**
 * Weights, in hours, of the overall and the daily rate in the rate of an hour of the week, which is observed only a
 * few times.
 */
const overallHours = 12;

const dayHours = 12;

/** Learns the rates; returns null without any observed push. */
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

/** Returns the expected pushes in [fromUs, toUs), as far as it was observed. */
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
  /** Observed share. */
  share: number;
}

/** Returns the hours that were at least partly observed, oldest first. */
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

/**
 * Returns the rates by hour of the week, weighted with the rate of that hour of all days, which is weighted with the
 * overall rate.
 */
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

/** Returns the longest silence, from the last push of an hour to the first push of the next hour with one. */
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
    // Only the time of the last push is known: assume that they arrived evenly.
    if (silence !== null) longest = Math.max(longest, silence + (expected * lastPart) / pushes);
    silence = lost.has(startUs) ? null : expected * (1 - lastPart);
  }
  return longest;
}

const nextHour = (us: number) => hourOf(us) + hourUs;

const rateAt = (perHour: Float64Array, us: number) =>
  perHour[Math.floor(us / hourUs) % hoursOfWeek] ?? 0;

/** A time span from `fromUs` (inclusive) to `toUs` (exclusive). */
export interface Span {
  fromUs: number;
  toUs: number;
}

/** Returns the parts of the spans within [fromUs, toUs). */
export function clipped(spans: readonly Span[], fromUs: number, toUs: number): Span[] {
  return spans
    .map((span) => ({
      fromUs: Math.max(span.fromUs, fromUs),
      toUs: Math.min(span.toUs, toUs),
    }))
    .filter((span) => span.fromUs < span.toUs);
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

/** Returns the share of [fromUs, toUs) covered by the spans, 0 to 1. */
export function shareOf(spans: readonly Span[], fromUs: number, toUs: number): number {
  const coveredUs = clipped(spans, fromUs, toUs).reduce(
    (sum, span) => sum + span.toUs - span.fromUs,
    0,
  );
  return coveredUs / (toUs - fromUs);
}

const dayUs = hoursOfDay * hourUs;
/**
 * Length of the history. An orbit cycle takes up to 12 days; a shorter history has too few of them
 * (test/simulation/false-alarms.ts).
 */
export const historyUs = 13 * 7 * dayUs;
/**
 * Age of hours that are read in each round: they are compared again until about a day old, later only after an
 * outage.
 */
const newestUs = 2 * dayUs;
/** Older days that are read in each round, so that all are read within an hour. */
const olderDaysPerRound = 2;

export interface PushMemory {
  /** By subscription, then by hour of receipt. */
  arrivals: Map<string, Map<number, Arrivals>>;
  /** By subscription, then by hour and event. */
  coverage: Map<string, Map<string, HourCoverage>>;
  /** Time up to which arrivals are complete; null before the first round. */
  arrivedUpToUs: number | null;
  /** Next older day of coverage to read. */
  nextDayUs: number;
}

export function createPushMemory(): PushMemory {
  return { arrivals: new Map(), coverage: new Map(), arrivedUpToUs: null, nextDayUs: 0 };
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
  const oldestUs = hourOf(nowUs - historyUs);
  const isFirst = memory.arrivedUpToUs === null;
  // After the clock was set back, remembered future hours are read again.
  const fromUs = Math.min(Math.max(memory.arrivedUpToUs ?? oldestUs, oldestUs), hourOf(nowUs));
  for (let us = fromUs; us <= nowUs; us += dayUs) {
    const untilUs = Math.min(us + dayUs, hourOf(nowUs) + hourUs);
    recordArrivals(memory, await completeness.arrivals({ sinceUs: us, untilUs }), names);
  }
  // The current hour is not complete, and the previous one may get pushes in flight.
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
