/** Says how unlikely it is that so many of the latest events came by no push, and how many are usual. */
import { dayUs } from './situation.ts';

/** Events of an hour, or of several, and how many of them came by no push. */
export interface Tally {
  expected: number;
  lost: number;
}

export interface TalliedHour extends Tally {
  startUs: number;
}

/** The latest hours that are checked; more where they held fewer events than those. */
const hoursMin = 24;
const expectedMin = 5;
/** Before them, so long, is what is usual. */
const usualUs = 30 * dayUs;
/** Older hours play no part. */
export const talliedUs = 2 * usualUs;
/** Assumed of everybody, with the weight of so many events; and the most that is ever taken for usual. */
const usualShareMin = 0.001;
const usualWeight = 1_000;
const usualShareMax = 0.1;
/** However uneven it was, so many lost events that were not to be expected are no chance. */
const dispersionMax = 30;
/** Each hour is checked again, so the odds must be long; it is over when they are short again. */
const oddsMax = 1e-4;
const oddsOverMin = 1e-2;

export interface LostPushOdds {
  latest: Tally;
  /** Where the latest hours begin. */
  sinceUs: number;
  /** Share that is taken for usual. */
  usual: number;
  /** Variance to mean of what is lost in an hour: 1 where pushes are lost one by one, more in bursts. */
  dispersion: number;
  odds: number;
}

/**
 * Null where nothing was to be expected of late. `hours` are those we were up in, oldest first. Of an alert that lasts,
 * `raisedAtUs` is when it was raised: what it brought makes no burst usual, or it would end by itself.
 */
export function lostPushOdds(
  hours: readonly TalliedHour[],
  nowUs: number,
  raisedAtUs = Number.POSITIVE_INFINITY,
): LostPushOdds | null {
  const latest: Tally = { expected: 0, lost: 0 };
  const before: Tally = { expected: 0, lost: 0 };
  const unevenness = createUnevenness();
  let sinceUs = nowUs;
  for (let i = hours.length - 1; i >= 0; i -= 1) {
    const hour = hours[i];
    if (hour === undefined) break;
    const isFew = hours.length - 1 - i < hoursMin || latest.expected < expectedMin;
    const isLatest = hour.startUs > nowUs - usualUs && isFew;
    if (isLatest) sinceUs = hour.startUs;
    else if (hour.startUs < sinceUs - usualUs) break;
    const sum = isLatest ? latest : before;
    sum.expected += hour.expected;
    sum.lost += hour.lost;
    if (!isLatest && hour.startUs < raisedAtUs - dayUs) unevenness.note(hour);
  }
  if (latest.expected === 0) return null;
  const usual = usualShareOf(before);
  const dispersion = unevenness.dispersion();
  // A burst counts once, as it does in a silence.
  return { latest, sinceUs, usual, dispersion, odds: oddsOf(latest, usual) ** (1 / dispersion) };
}

/**
 * Around the share that was lost indeed: around what is assumed of everybody, single losses would look like bursts.
 */
function createUnevenness() {
  let [expected, lost, expectedSquared, product, lostSquared] = [0, 0, 0, 0, 0];
  return {
    note: (hour: Tally) => {
      expected += hour.expected;
      lost += hour.lost;
      expectedSquared += hour.expected ** 2;
      product += hour.expected * hour.lost;
      lostSquared += hour.lost ** 2;
    },
    dispersion: () => {
      if (lost === 0) return 1;
      const share = lost / expected;
      const variance = lostSquared - 2 * share * product + share ** 2 * expectedSquared;
      return Math.min(dispersionMax, Math.max(1, variance / lost));
    },
  };
}

/** Whether it is an alarm, or still is one that lasts. */
export function areTooMany({ odds }: Pick<LostPushOdds, 'odds'>, isActive: boolean): boolean {
  return odds <= (isActive ? oddsOverMin : oddsMax);
}

/** Share of events that come by no push, drawn towards what is assumed of everybody. */
export function usualShareOf({ expected, lost }: Tally): number {
  const share = (lost + usualShareMin * usualWeight) / (expected + usualWeight);
  return Math.min(usualShareMax, Math.max(usualShareMin, share));
}

/**
 * Upper bound of the probability that this many or more pushes are lost by chance: the Chernoff bound of the
 * binomial distribution, exp(-n D(k/n ‖ p)). It prefers a missed alert over a false one.
 */
export function oddsOf({ expected, lost }: Tally, usual: number): number {
  const share = lost / expected;
  if (share <= usual) return 1;
  const rest = share === 1 ? 0 : (1 - share) * Math.log((1 - share) / (1 - usual));
  // Rounding gives 1.0000000000000002 where the two shares are nearly equal.
  return Math.min(1, Math.exp(-expected * (share * Math.log(share / usual) + rest)));
}
