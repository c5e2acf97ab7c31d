/** Simulates months of a subscription with the watchdog's silence rule, then stops the subscription. */
import { quantile } from '../../bench/figures.ts';
import { hourUs } from '../../src/core/terms/dates.ts';
import {
  historyUs,
  type PushHistory,
  usualSilence,
} from '../../src/features/subscriptions/pushes.ts';
import { createRandom, type Random } from '../../src/sandbox/clock.ts';
import type { SubscriptionKind } from './subscription-kinds.ts';

/** Simulates `count` subscriptions of a kind, with fixed seeds. Hours are from the stop to the alarm. */
export function playKind(kind: SubscriptionKind, count: number, months: number) {
  const played = Array.from({ length: count }, (_, seed) =>
    playMonths(kind, months, createRandom(seed * 7919 + 1)),
  );
  const hours = played.map(({ detectedHours }) => detectedHours);
  return {
    name: kind.name,
    falseAlarms: played.reduce((sum, one) => sum + one.falseAlarms, 0),
    detectedHoursMedian: noticedAfter(0.5, hours),
    detectedHours95: noticedAfter(0.95, hours),
  };
}

/**
 * Returns the hours within which the alarm was raised for a share of the subscriptions. Null, in `hours` and as
 * the result: not within the simulated time.
 */
export function noticedAfter(share: number, hours: readonly (number | null)[]): number | null {
  const found = quantile(
    hours.map((one) => one ?? Infinity),
    share,
  );
  return found === Infinity ? null : found;
}

export const hoursOfMonth = 30 * 24;
export const detectionHoursMax = 90 * 24;
/** Interval at which rates are learned again. They change slowly, and a long interval saves time. */
const learnEveryHours = 6;
/** Start of a week in 2026. */
const beginUs = Math.floor(1_780_000_000_000_000 / (168 * hourUs)) * 168 * hourUs;

/**
 * Simulates one subscription from its creation, to include rates learned from little data. Its silence is
 * checked at the end of each hour, and right before each push, where it is longest.
 */
function playMonths(kind: SubscriptionKind, months: number, random: Random) {
  const pushesOf = kind.create(random);
  const silence = createSilence();
  // It stops at a random hour.
  const hours = months * hoursOfMonth + random.integer(0, 12 * 24);
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
  for (let hour = 1; hour <= detectionHoursMax; hour += 1) {
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
