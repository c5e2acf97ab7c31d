/** Plays months of one subscription, of whose pushes some are lost, to the watchdog's rule, and then loses more. */
import { hourUs } from '../src/domain/coverage.ts';
import type { Random } from '../src/sandbox/random.ts';
import { countedUs } from '../src/watch/check-silence.ts';
import {
  areTooMany,
  lostPushOdds,
  type TalliedHour,
  talliedUs,
} from '../src/watch/lost-push-odds.ts';
import type { PushesOfHour, SubscriptionKind } from './false-alarm-kinds.ts';

/** What is lost as a matter of course. */
export interface UsualLoss {
  readonly name: string;
  readonly share: number;
  /** So many pushes in a row at a time. */
  readonly burst: number;
}

export const usualLosses: readonly UsualLoss[] = [
  { name: '0.1 % at random', share: 0.001, burst: 1 },
  { name: '1 % at random', share: 0.01, burst: 1 },
  { name: '0.1 % in bursts of 10', share: 0.001, burst: 10 },
  { name: '1 % in bursts of 10', share: 0.01, burst: 10 },
];

/** What is lost when something is wrong. */
export const fallShares = [0.3, 1] as const;

export interface LossPlayed {
  readonly falseAlarms: number;
  /** Of the first of the months, in which it is learned what is usual. */
  readonly firstMonthAlarms: number;
  /** From each fall to its alarm, in hours; null when there was none within 90 days. */
  readonly detectedHours: readonly (number | null)[];
}

const hoursOfDay = 24;
const hoursOfMonth = 30 * hoursOfDay;
const detectionHoursMax = 90 * hoursOfDay;
const talliedHoursMax = talliedUs / hourUs;

/** Judged once for each hour, when it counts. After the months, each fall begins from the same state. */
export function playLoss(
  kind: SubscriptionKind,
  usual: UsualLoss,
  months: number,
  random: Random,
): LossPlayed {
  const pushesOf = kind.create(random);
  const hours: TalliedHour[] = [];
  const lose = createLoss(usual, random);
  const judge = createJudge(hours);
  let falseAlarms = 0;
  let firstMonthAlarms = 0;
  const count = months * hoursOfMonth;
  for (let hour = 0; hour < count; hour += 1) {
    if (!judge(tallyOf(pushesOf, hour, lose))) continue;
    falseAlarms += 1;
    if (hour < hoursOfMonth) firstMonthAlarms += 1;
  }
  // What comes afterwards is the same for each fall.
  const rest = Array.from({ length: detectionHoursMax }, (_, i) => pushesOf(count + i));
  const detectedHours = fallShares.map((share) => {
    const fallen = createLoss({ name: '', share, burst: 1 }, random);
    const judgeFall = createJudge([...hours]);
    const found = rest.findIndex((pushes, i) =>
      judgeFall(tallyOf(() => pushes, count + i, fallen)),
    );
    return found < 0 ? null : found + 1 + countedUs / hourUs;
  });
  return { falseAlarms, firstMonthAlarms, detectedHours };
}

function tallyOf(pushesOf: PushesOfHour, hour: number, lose: (pushes: number) => number) {
  const expected = pushesOf(hour);
  return { startUs: hour * hourUs, expected, lost: lose(expected) };
}

/** How many of so many pushes are lost. */
function createLoss({ share, burst }: UsualLoss, random: Random): (pushes: number) => number {
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
