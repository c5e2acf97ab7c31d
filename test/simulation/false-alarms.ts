/** Simulates months of a subscription with the watchdog's silence rule, then stops the subscription. */
import { quantile } from '../../bench/figures.ts';
import { hourUs } from '../../src/core/terms/time-units.ts';
import { historyUs } from '../../src/features/subscriptions/pushes.ts';
import { type PushHistory, usualSilence } from '../../src/features/subscriptions/silence.ts';
import { createRandom, type Random } from '../../src/sandbox/clock.ts';
import type { SubscriptionKind } from './subscription-kinds.ts';

/** Figures of one kind. Hours are from the stop to the alarm; null when not detected within 90 days. */
export interface KindFigures {
  readonly name: string;
  readonly about: string;
  readonly months: number;
  readonly falseAlarms: number;
  readonly falseAlarmsPerMonth: number;
  readonly detectedHoursMedian: number | null;
  readonly detectedHours95: number | null;
}

/** Simulates `count` subscriptions of a kind, with fixed seeds. */
export function playKind(kind: SubscriptionKind, count: number, months: number): KindFigures {
  const played = Array.from({ length: count }, (_, seed) =>
    playMonths(kind, months, createRandom(seed * 7919 + 1)),
  );
  const falseAlarms = played.reduce((sum, one) => sum + one.falseAlarms, 0);
  const hours = played.map(({ detectedHours }) => detectedHours);
  return {
    name: kind.name,
    about: kind.about,
    months: count * months,
    falseAlarms,
    falseAlarmsPerMonth: falseAlarms / (count * months),
    detectedHoursMedian: noticedAfter(0.5, hours),
    detectedHours95: noticedAfter(0.95, hours),
  };
}

/**
 * Returns the hours within which the alarm was raised for a share of the subscriptions. Null, in `hours` and as
 * the result: not within the simulated time.
 */
export function noticedAfter(share: number, hours: readonly (number | null)[]): number | null {
  const all = hours.map((one) => one ?? Number.POSITIVE_INFINITY);
  const found = quantile(all, share) ?? Number.POSITIVE_INFINITY;
  return Number.isFinite(found) ? found : null;
}

const hoursOfDay = 24;
const daysOfMonth = 30;
const detectionDaysMax = 90;
/** Interval at which rates are learned again. They change slowly, and a long interval saves time. */
const learnEveryHours = 6;
/** Start of a week in 2026. */
const beginUs = Math.floor(1_780_000_000_000_000 / (168 * hourUs)) * 168 * hourUs;

/**
 * Simulates one subscription from its creation, to include rates learned from little data. Its silence is
 * checked at the end of each hour, and right before each push, where it is longest. Hours are from the stop to the
 * alarm; null when there was none within 90 days.
 */
function playMonths(kind: SubscriptionKind, months: number, random: Random) {
  const pushesOf = kind.create(random);
  const silence = createSilence();
  // It stops at a random hour.
  const hours = months * daysOfMonth * hoursOfDay + random.integer(0, 12 * hoursOfDay);
  let falseAlarms = 0;
  let isAlarm = false;
  for (let hour = 0; hour < hours; hour += 1) {
    const pushes = pushesOf(hour);
    const startUs = beginUs + hour * hourUs;
    const lastAtUs = startUs + Math.floor(hourUs * random.next() ** (1 / Math.max(1, pushes)));
    const untilUs = pushes === 0 ? startUs + hourUs : startUs + (lastAtUs - startUs) / pushes;
    if (!isAlarm && silence.isAlarm(untilUs)) {
      falseAlarms += 1;
      isAlarm = true;
    }
    if (pushes === 0) continue;
    isAlarm = false;
    silence.record(startUs, { pushes, lastAtUs });
  }
  const stopUs = beginUs + hours * hourUs;
  for (let hour = 1; hour <= detectionDaysMax * hoursOfDay; hour += 1) {
    if (silence.isAlarm(stopUs + hour * hourUs)) return { falseAlarms, detectedHours: hour };
  }
  return { falseAlarms, detectedHours: null };
}

/** Creates the watchdog's state of a subscription that is watched without gaps. */
function createSilence() {
  const arrivals: PushHistory['arrivals'][number][] = [];
  let usual: ReturnType<typeof usualSilence> = null;
  let learnedAtUs = 0;
  return {
    record: (startUs: number, arrived: { pushes: number; lastAtUs: number }) => {
      arrivals.push({ hourUs: startUs, ...arrived });
      while ((arrivals[0]?.hourUs ?? startUs) < startUs - historyUs) arrivals.shift();
      if (usual !== null && startUs - learnedAtUs < learnEveryHours * hourUs) {
        usual = { ...usual, lastPushAtUs: arrived.lastAtUs };
        return;
      }
      const toUs = startUs + hourUs;
      const watched = [{ fromUs: Math.max(beginUs, toUs - historyUs), toUs }];
      usual = usualSilence({ arrivals, watched, lostHours: [] });
      learnedAtUs = startUs;
    },
    isAlarm: (nowUs: number): boolean =>
      usual !== null && nowUs - usual.lastPushAtUs > usual.limitUs,
  };
}
