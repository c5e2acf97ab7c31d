/** How often the watchdog takes lost pushes for too many that are usual, and how soon it notices a fall. */
import { createRandom } from '../src/sandbox/random.ts';
import { type SubscriptionKind, subscriptionKinds } from './false-alarm-kinds.ts';
import { fallShares, playLoss, type UsualLoss, usualLosses } from './lost-push-months.ts';
import { noticedAfter } from './noticed-after.ts';
import { alignTable, figure } from './table.ts';

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

/** Of all kinds and losses. */
export function playAllLosses(count: number, months: number, show: (name: string) => void) {
  return subscriptionKinds.flatMap((kind) =>
    usualLosses.map((usual) => {
      show(`${kind.name}, ${usual.name}`);
      return playLosses(kind, usual, count, months);
    }),
  );
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

export function renderLosses(figures: readonly LossFigures[]): string {
  const falls = fallShares.flatMap((share) => [`${share * 100} % lost h`, '95 % h']);
  const header = ['Subscription', 'lost as usual', 'months', 'false alarms', 'of them at first'];
  const rows = figures.map((one) => [
    one.kind,
    one.usual,
    String(one.months),
    String(one.falseAlarms),
    String(one.firstMonthAlarms),
    figure(one.falseAlarmsPerMonth, 3),
    ...one.falls.flatMap(({ hoursMedian, hours95 }) => [figure(hoursMedian), figure(hours95)]),
  ]);
  return `${alignTable([[...header, 'a month', ...falls], ...rows])}\n`;
}
