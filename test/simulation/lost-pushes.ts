/** Plays months of one subscription, of whose pushes some are lost, to the watchdog's rule, and then loses more. */
import { hourUs } from '../../src/domain/completeness.ts';
import { createRandom, type Random } from '../../src/sandbox/clock.ts';
import {
  areTooMany,
  countedUs,
  lostPushOdds,
  type TalliedHour,
  talliedUs,
} from '../../src/watch/check-silence.ts';
import { noticedAfter } from './false-alarms.ts';
import type { SubscriptionKind } from './subscription-kinds.ts';

/** What is lost as a matter of course, or when something is wrong. */
interface Loss {
  readonly share: number;
  /** So many pushes in a row at a time. */
  readonly burst: number;
}

export interface UsualLoss extends Loss {
  readonly name: string;
}

export const usualLosses: readonly UsualLoss[] = [
  { name: '0.1 % at random', share: 0.001, burst: 1 },
  { name: '1 % at random', share: 0.01, burst: 1 },
  { name: '0.1 % in bursts of 10', share: 0.001, burst: 10 },
  { name: '1 % in bursts of 10', share: 0.01, burst: 10 },
];

/** What is lost when something is wrong. */
export const fallShares = [0.3, 1] as const;

/** Of one kind of subscription and one usual loss. */
export interface LossFigures {
  readonly kind: string;
  readonly usual: string;
  readonly months: number;
  readonly falseAlarms: number;
  readonly falseAlarmsPerMonth: number;
  /** Those of each subscription's first month, in which what is usual is learned. */
  readonly firstMonthAlarms: number;
  /** Of each fall, by its share. Null where half, or one in twenty, was not noticed within 90 days. */
  readonly falls: readonly { share: number; hoursMedian: number | null; hours95: number | null }[];
}

/** The same seeds give the same figures. */
export function playLosses(
  kind: SubscriptionKind,
  usual: UsualLoss,
  count: number,
  months: number,
): LossFigures {
  const played = Array.from({ length: count }, (_, seed) =>
    playLoss(kind, usual, months, createRandom(seed * 7919 + 1)),
  );
  const sum = (of: (one: (typeof played)[number]) => number) =>
    played.reduce((total, one) => total + of(one), 0);
  const falseAlarms = sum((one) => one.falseAlarms);
  return {
    kind: kind.name,
    usual: usual.name,
    months: count * months,
    falseAlarms,
    falseAlarmsPerMonth: falseAlarms / (count * months),
    firstMonthAlarms: sum((one) => one.firstMonthAlarms),
    falls: fallShares.map((share, i) => {
      const hours = played.map(({ detectedHours }) => detectedHours[i] ?? null);
      return { share, hoursMedian: noticedAfter(0.5, hours), hours95: noticedAfter(0.95, hours) };
    }),
  };
}

const hoursOfDay = 24;
const hoursOfMonth = 30 * hoursOfDay;
const detectionHoursMax = 90 * hoursOfDay;
const talliedHoursMax = talliedUs / hourUs;

/**
 * Judged once for each hour, when it counts. After the months, each fall begins from the same state; hours are from
 * it to its alarm, null when there was none within 90 days.
 */
function playLoss(kind: SubscriptionKind, usual: Loss, months: number, random: Random) {
  const pushesOf = kind.create(random);
  const hours: TalliedHour[] = [];
  const lose = createLoss(usual, random);
  const judge = createJudge(hours);
  let falseAlarms = 0;
  let firstMonthAlarms = 0;
  const count = months * hoursOfMonth;
  for (let hour = 0; hour < count; hour += 1) {
    const expected = pushesOf(hour);
    if (!judge({ startUs: hour * hourUs, expected, lost: lose(expected) })) continue;
    falseAlarms += 1;
    if (hour < hoursOfMonth) firstMonthAlarms += 1;
  }
  // What comes afterwards is the same for each fall.
  const rest = Array.from({ length: detectionHoursMax }, (_, i) => pushesOf(count + i));
  const detectedHours = fallShares.map((share) => {
    const loseMore = createLoss({ share, burst: 1 }, random);
    const judgeFall = createJudge([...hours]);
    const found = rest.findIndex((expected, i) =>
      judgeFall({ startUs: (count + i) * hourUs, expected, lost: loseMore(expected) }),
    );
    return found < 0 ? null : found + 1 + countedUs / hourUs;
  });
  return { falseAlarms, firstMonthAlarms, detectedHours };
}

/** How many of so many pushes are lost. */
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

/** Returns whether the hour raises an alarm. One that lasts at the beginning is forgotten. */
function createJudge(hours: TalliedHour[]): (hour: TalliedHour) => boolean {
  let raisedAtUs: number | undefined;
  return (hour) => {
    hours.push(hour);
    if (hours.length > talliedHoursMax) hours.shift();
    // Odds grow shorter with an hour that lost nothing, but for a little: what leaves the day may have lost less.
    if (hour.lost === 0 && raisedAtUs === undefined) return false;
    const nowUs = hour.startUs + hourUs + countedUs;
    const wasLasting = raisedAtUs !== undefined;
    const odds = lostPushOdds(hours, nowUs, raisedAtUs);
    const isLasting = odds !== null && areTooMany(odds, wasLasting);
    raisedAtUs = isLasting ? (raisedAtUs ?? nowUs) : undefined;
    return isLasting && !wasLasting;
  };
}
