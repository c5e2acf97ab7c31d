/** Checks silence and lost pushes. When most subscriptions fall silent, there is one alert for all. */
import type { Registration } from '../domain/account.ts';
import { type HourCoverage, hourUs } from '../domain/completeness.ts';
import {
  expectedPushes,
  type LearnedRates,
  learnRates,
  type Span,
  shareOf,
} from './learn-rates.ts';
import {
  arrivalsOf,
  type CheckResult,
  checkOf,
  countText,
  coverageOf,
  dayUs,
  isRunning,
  joinResults,
  lengthText,
  momentText,
  notChecked,
  percentText,
  rounded,
  type Situation,
  watchedSpans,
} from './situation.ts';

/** Of fewer, each speaks for itself. */
const runningMin = 3;

/** More than this share of those that run. */
const silentShare = 0.5;

/** Their alert has no name. */
const all = '';

/** While most are silent, the alerts of single ones that last go on, and none is added to them. */
export function checkAllSilence(
  registrations: readonly Registration[],
  situation: Situation,
): CheckResult {
  const running = registrations.filter(isRunning).length;
  const { checked, findings } = joinResults(
    registrations.map((one) => checkSilence(one, situation)),
  );
  if (running < runningMin || findings.length <= running * silentShare) {
    return joinResults([{ checked, findings }, checkOf(kind, all, situation).fine]);
  }
  const silent = findings.map(({ subject }) => subject);
  const ongoing = findings.filter(({ subject }) => checkOf(kind, subject, situation).alert);
  const common = checkOf(kind, all, situation).found({
    severity: 'critical',
    cause: `Hardly anything arrives: ${silent.length} of ${running} subscriptions have fallen silent.`,
    evidence: [
      `Silent, for longer than is likely: ${silent.join(', ')}.`,
      ...findings.map(({ cause }) => cause),
    ],
    nextStep:
      'Run `earshot doctor` to see whether the catalogue can reach this endpoint, and `earshot subscriptions list` to see whether they still run.',
  });
  return joinResults([{ checked, findings: ongoing }, common]);
}

const kind = 'silence';

/**
 * A silence that lasts ends with the next push, or when the subscription is no longer to run; nothing else
 * resolves it, so that what was learned in between does not either.
 */
function checkSilence(registration: Registration, situation: Situation): CheckResult {
  const { name, status, heldBy } = registration;
  const { nowUs } = situation;
  const { alert, fine, found } = checkOf(kind, name, situation);
  if (status === 'paused' || heldBy === 'command') return fine;
  if (!isRunning(registration)) return notChecked;
  const arrivals = arrivalsOf(situation, name);
  const pushedSince = (us: number) => [...arrivals.values()].some(({ lastAtUs }) => lastAtUs > us);
  if (alert !== undefined && pushedSince(alert.raisedAtUs)) return fine;
  const watched = watchedSpans(situation, name);
  const lostHours = coverageOf(situation, name)
    .filter(({ recovered, missing }) => recovered + missing > 0)
    .map(({ hourUs }) => hourUs);
  const learned = learnRates({ arrivals, watched, lostHours });
  if (learned === null) return notChecked;
  const silence = { fromUs: learned.lastPushAtUs, toUs: nowUs };
  const odds = silenceOdds(learned, watched, silence);
  if (odds === null) return notChecked;
  if (!odds.isAlarm && alert === undefined) return fine;
  return found(findingOf(name, learned, odds, nowUs));
}

function findingOf(
  name: string,
  { lastPushAtUs, longestSilence, watchedHours }: LearnedRates,
  { expected, odds }: SilenceOdds,
  nowUs: number,
) {
  const length = lengthText(nowUs - lastPushAtUs);
  return {
    severity: 'critical',
    cause: `The subscription ${name} has brought nothing for ${length}, which is unlikely to be chance.`,
    evidence: [
      `The last notification came at ${momentText(lastPushAtUs)}.`,
      `Some ${rounded(expected)} were to be expected since then; the longest silence before was worth ${rounded(longestSilence)}.`,
      `The chance of such a silence is ${oddsText(odds)}, learned from ${rounded(watchedHours / 24)} days of watching.`,
    ],
    nextStep: `Run \`earshot doctor\` to see whether the catalogue can reach this endpoint, and \`earshot subscriptions show ${name}\` to see whether it still isRunning.`,
  } as const;
}

function oddsText(odds: number): string {
  return odds < 1e-9 ? 'less than one in a thousand million' : `1 in ${Math.round(1 / odds)}`;
}

/** A push may come so much later than its event: until then we must have been up. */
const pushDelayUs = hourUs / 6;

/**
 * So long after its end an hour counts. It is compared before, and a push that comes after its event was fetched is
 * taken off what was lost: a catalogue that is an hour late has lost nothing.
 */
export const countedUs = hourUs + pushDelayUs;

/** A moment's break is no downtime. */
const upShareMin = 0.999;

/** Rests on hours in which we were up all the time: what our own downtime lost is no news. */
export function checkLostPushes({ name }: Registration, situation: Situation): CheckResult {
  const { nowUs } = situation;
  const coverage = coverageOf(situation, name);
  const hours = talliedHours(coverage, watchedSpans(situation, name), nowUs);
  const { alert, fine, found } = checkOf('lost-pushes', name, situation);
  const lostPushes = lostPushOdds(hours, nowUs, alert?.raisedAtUs);
  if (lostPushes === null) return notChecked;
  if (!areTooMany(lostPushes, alert !== undefined)) return fine;
  const { lost, expected } = lostPushes.latest;
  const sinceText = momentText(lostPushes.sinceUs);
  return found({
    severity: lost * 2 > expected ? 'critical' : 'warning',
    cause: `The subscription ${name} brings less by push than it should: ${countText(lost)} of ${countText(expected)} events came by no push.`,
    evidence: [
      `That is ${percentText(lost / expected)} since ${sinceText}; ${percentText(lostPushes.usual)} is taken for usual.`,
      'Only hours in which earshot was up all the time are counted.',
    ],
    nextStep:
      'Run `earshot doctor` to see whether the catalogue can reach this endpoint, and `earshot coverage --since 7d` to see when it began.',
  });
}

/** Of all events together, oldest first. */
function talliedHours(
  coverage: readonly HourCoverage[],
  watched: readonly Span[],
  nowUs: number,
): TalliedHour[] {
  const byHour = new Map<number, TalliedHour>();
  for (const { hourUs: startUs, expected, recovered, missing } of coverage) {
    if (startUs < nowUs - talliedUs || startUs + hourUs + countedUs > nowUs) continue;
    const known = byHour.get(startUs) ?? { startUs, expected: 0, lost: 0 };
    const lost = known.lost + recovered + missing;
    byHour.set(startUs, { startUs, expected: known.expected + expected, lost });
  }
  return [...byHour.values()]
    .filter(({ startUs: us }) => shareOf(watched, us, us + hourUs + pushDelayUs) >= upShareMin)
    .sort((a, b) => a.startUs - b.startUs);
}

interface SilenceRule {
  /** A silence that is likelier than this is none to speak of. */
  oddsMax: number;
  /** Times as long as the longest natural one. */
  longestFactor: number;
  /** It has been watched for so long before it is checked. */
  watchedHoursMin: number;
  /** Hours that brought something: fewer tell nothing of how long silences are. */
  busyHoursMin: number;
}

const silenceRule: SilenceRule = {
  oddsMax: 1e-2,
  longestFactor: 2,
  watchedHoursMin: 168,
  busyHoursMin: 6,
};

interface SilenceOdds {
  /** Pushes that were to be expected since the last one, while it was watched. */
  expected: number;
  /** How likely it is that none came. */
  odds: number;
  /** Beyond this many expected pushes it is an alarm. */
  limit: number;
  isAlarm: boolean;
}

/** Null where too little has been learned. `silence` begins with the last push. */
export function silenceOdds(
  learned: LearnedRates,
  watched: readonly Span[],
  silence: Span,
  rule: SilenceRule = silenceRule,
): SilenceOdds | null {
  const { dispersion, longestSilence, watchedHours, busyHours } = learned;
  if (watchedHours < rule.watchedHoursMin || busyHours < rule.busyHoursMin) return null;
  const expected = expectedPushes(learned, watched, silence);
  // Bursts count once: so many independent ones were to be expected, and none came (Poisson).
  const odds = Math.exp(-expected / dispersion);
  const limit = Math.max(-Math.log(rule.oddsMax) * dispersion, rule.longestFactor * longestSilence);
  return { expected, odds, limit, isAlarm: expected > limit };
}

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
const oddsResolveMin = 1e-2;

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
  return odds <= (isActive ? oddsResolveMin : oddsMax);
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
