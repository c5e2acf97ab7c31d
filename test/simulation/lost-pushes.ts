/** Simulates months of a subscription that loses some pushes, with the watchdog's rule, then loses more. */

import { quantile } from '../../bench/figures.ts';
import { hourUs } from '../../src/core/terms/dates.ts';
import { countedUs, lostPushes } from '../../src/features/subscriptions/pushes.ts';
import { createRandom, type Random } from '../../src/sandbox/clock.ts';
import type { SubscriptionKind } from './subscription-kinds.ts';

/** Loss of pushes, usual or caused by a failure. */
interface Loss {
  readonly share: number;
  /** Number of consecutive pushes lost at a time. */
  readonly burst: number;
}

export const usualLosses: readonly (Loss & { readonly name: string })[] = [
  { name: '0.1 % at random', share: 0.001, burst: 1 },
  { name: '1 % at random', share: 0.01, burst: 1 },
  { name: '0.1 % in bursts of 10', share: 0.001, burst: 10 },
  { name: '1 % in bursts of 10', share: 0.01, burst: 10 },
];

/** Shares of the pushes lost after a failure. */
const fallShares = [0.3, 1] as const;

/** Simulates `count` subscriptions of a kind, with fixed seeds. Hours are from each failure to its alarm. */
export function playLosses(kind: SubscriptionKind, usual: Loss, count: number, months: number) {
  const played = Array.from({ length: count }, (_, seed) =>
    playLoss(kind, usual, months, createRandom(seed * 7919 + 1)),
  );
  return {
    falseAlarms: played.reduce((total, one) => total + one.falseAlarms, 0),
    falls: fallShares.map((share, i) => {
      const hours = played.map(({ detectedHours }) => detectedHours[i] ?? null);
      return { share, hoursMedian: noticedAfter(0.5, hours), hours95: noticedAfter(0.95, hours) };
    }),
  };
}

const hoursOfMonth = 30 * 24;
const detectionHoursMax = 90 * 24;

/** Returns the hours within which the alarm was raised for a share of the subscriptions; null if not within the simulated time. */
function noticedAfter(share: number, hours: readonly (number | null)[]): number | null {
  const found = quantile(
    hours.map((one) => one ?? Infinity),
    share,
  );
  return found === Infinity ? null : found;
}

/** Hours that are kept: more than the rule uses. */
const keptHours = 48;

type Hour = Parameters<typeof lostPushes>[0][number];

/**
 * Checks each hour once, when it is counted. After the months, each failure begins from the same state; hours are
 * from the failure to its alarm, null when there was none within 90 days.
 */
function playLoss(kind: SubscriptionKind, usual: Loss, months: number, random: Random) {
  const pushesOf = kind.create(random);
  const hours: Hour[] = [];
  const lose = createLoss(usual, random);
  const raisesAlarm = createAlarmCheck(hours);
  let falseAlarms = 0;
  const count = months * hoursOfMonth;
  for (let hour = 0; hour < count; hour += 1) {
    const expected = pushesOf(hour);
    if (raisesAlarm(hourOf(hour, expected, lose(expected)))) falseAlarms += 1;
  }
  // The later pushes are the same for each failure.
  const rest = Array.from({ length: detectionHoursMax }, (_, i) => pushesOf(count + i));
  const detectedHours = fallShares.map((share) => {
    const loseMore = createLoss({ share, burst: 1 }, random);
    const raisesAlarmAfterFailure = createAlarmCheck([...hours]);
    const found = rest.findIndex((expected, i) =>
      raisesAlarmAfterFailure(hourOf(count + i, expected, loseMore(expected))),
    );
    return found < 0 ? null : found + 1 + countedUs / hourUs;
  });
  return { falseAlarms, detectedHours };
}

/** Returns a function that draws how many of the given pushes are lost. */
function createLoss({ share, burst }: Loss, random: Random): (pushes: number) => number {
  let left = 0;
  return (pushes) => {
    let lost = 0;
    for (let i = 0; i < pushes; i += 1) {
      if (left === 0 && random.chance(share / burst)) left = burst;
      if (left === 0) continue;
      left -= 1;
      lost += 1;
    }
    return lost;
  };
}

const hourOf = (hour: number, expected: number, recovered: number): Hour => ({
  ...{ hourUs: hour * hourUs, expected, recovered, missing: 0 },
});

/** Returns a check whether an hour raises an alarm. No alarm is active at the beginning. */
function createAlarmCheck(hours: Hour[]): (hour: Hour) => boolean {
  let isActive = false;
  return (hour) => {
    hours.push(hour);
    if (hours.length > keptHours) hours.shift();
    const wasActive = isActive;
    const nowUs = hour.hourUs + hourUs + countedUs;
    const watched = [{ fromUs: 0, toUs: nowUs }];
    isActive = lostPushes(hours, { watched, nowUs, isActive })?.areTooMany ?? false;
    return isActive && !wasActive;
  };
}
