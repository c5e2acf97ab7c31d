/** Plays months of one subscription to the watchdog's rule of silence, and then stops it. */
import { hourUs } from '../src/domain/coverage.ts';
import type { Random } from '../src/sandbox/random.ts';
import { silenceOdds } from '../src/watch/check-silence.ts';
import { type Arrivals, type LearnedRates, learnRates } from '../src/watch/learn-rates.ts';
import { rememberedUs } from '../src/watch/push-memory.ts';
import type { SubscriptionKind } from './false-alarm-kinds.ts';

export interface MonthsPlayed {
  readonly falseAlarms: number;
  /** From the stop to the alarm; null when there was none within 90 days. */
  readonly detectedHours: number | null;
}

const hoursOfDay = 24;
export const daysOfMonth = 30;
const detectionDaysMax = 90;
/** Rates change slowly: learned anew so often, which is quicker to play. */
const learnEveryHours = 6;
/** Any hour that is a week's first, in 2026. */
const beginUs = Math.floor(1_780_000_000_000_000 / (168 * hourUs)) * 168 * hourUs;

/**
 * The subscription is new at the beginning, so that what is learned from little counts as well. Its silence is
 * judged at the end of each hour, and right before each push, where it is longest.
 */
export function playMonths(kind: SubscriptionKind, months: number, random: Random): MonthsPlayed {
  const pushesOf = kind.create(random);
  const silence = createSilence();
  // It stops at any hour of any day.
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
    silence.note(startUs, { pushes, lastAtUs });
  }
  const stopUs = beginUs + hours * hourUs;
  for (let hour = 1; hour <= detectionDaysMax * hoursOfDay; hour += 1) {
    if (silence.isAlarm(stopUs + hour * hourUs)) return { falseAlarms, detectedHours: hour };
  }
  return { falseAlarms, detectedHours: null };
}

/** What the watchdog knows of a subscription that is watched all the time. */
function createSilence() {
  const arrivals = new Map<number, Arrivals>();
  let learned: LearnedRates | null = null;
  let learnedAtUs = 0;
  const watchedUntil = (toUs: number) => [{ fromUs: Math.max(beginUs, toUs - rememberedUs), toUs }];
  return {
    note: (startUs: number, arrived: Arrivals) => {
      arrivals.set(startUs, arrived);
      for (const us of arrivals.keys()) {
        if (us >= startUs - rememberedUs) break;
        arrivals.delete(us);
      }
      if (learned !== null && startUs - learnedAtUs < learnEveryHours * hourUs) {
        learned = { ...learned, lastPushAtUs: arrived.lastAtUs };
        return;
      }
      const watched = watchedUntil(startUs + hourUs);
      learned = learnRates({ arrivals, watched, lostHours: [] });
      learnedAtUs = startUs;
    },
    isAlarm: (nowUs: number): boolean => {
      if (learned === null) return false;
      const silence = { fromUs: learned.lastPushAtUs, toUs: nowUs };
      return silenceOdds(learned, watchedUntil(nowUs), silence)?.isAlarm ?? false;
    },
  };
}
