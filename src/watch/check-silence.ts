/** Checks for silence and lost pushes. When most subscriptions are silent, one alert covers all. */
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

/** Minimum number of running subscriptions for a common alert. */
const runningMin = 3;

/** Share of silent subscriptions above which the common alert is raised. */
const silentShare = 0.5;

/** Subject of the common alert. */
const all = '';

/**
 * Checks silence of all subscriptions. While most are silent, active alerts of single ones stay, and no new ones are
 * raised.
 */
export function checkAllSilence(
  registrations: readonly Registration[],
  situation: Situation,
): CheckResult {
  const types = registrations.filter(isRunning).map(({ type }) => type);
  const running = types.length;
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
    cause: `${silent.length} of ${running} subscriptions are silent: almost no notifications arrive.`,
    evidence: [
      `Silent for longer than is likely by chance: ${silent.join(', ')}.`,
      ...findings.map(({ cause }) => cause),
    ],
    nextStep: `Run \`earshot doctor\` to check ${checks[types.includes('push') ? 'push' : 'pull']}, and \`earshot subscriptions list\` to check whether the subscriptions are still running.`,
  });
  return joinResults([{ checked, findings: ongoing }, common]);
}

const kind = 'silence';

/**
 * An active alert is resolved by the next push, or when the subscription should no longer run. Nothing else resolves
 * it, not even rates learned meanwhile.
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
  return found(findingOf(registration, learned, odds, nowUs));
}

/** Words for the two types of subscriptions. */
const words = {
  push: { one: 'push', many: 'pushes', lost: 'pushed' },
  pull: { one: 'notification', many: 'notifications', lost: 'read from the queue' },
} as const;

const checks = {
  push: 'whether the catalogue can reach this endpoint',
  pull: 'the account and the access to the queue',
} as const;

function findingOf(
  { name, type }: Registration,
  { lastPushAtUs, longestSilence, watchedHours }: LearnedRates,
  { expected, odds }: SilenceOdds,
  nowUs: number,
) {
  const { one, many } = words[type];
  const length = lengthText(nowUs - lastPushAtUs);
  return {
    severity: 'critical',
    cause: `No ${one} of the subscription ${name} has arrived for ${length}. This is unlikely to be chance.`,
    evidence: [
      `The last notification arrived at ${momentText(lastPushAtUs)}.`,
      `About ${rounded(expected)} ${many} were expected since then, and about ${rounded(longestSilence)} in the longest earlier silence.`,
      `The probability of such a silence is ${oddsText(odds)}, based on ${rounded(watchedHours / 24)} days of observation.`,
    ],
    nextStep: `Run \`earshot doctor\` to check ${checks[type]}, and \`earshot subscriptions show ${name}\` to check whether the subscription is still running.`,
  } as const;
}

function oddsText(odds: number): string {
  return odds < 1e-9 ? 'less than 1 in 1,000,000,000' : `1 in ${Math.round(1 / odds)}`;
}

/** Maximum usual delay of a push after its event; the receiver must have been up until then. */
const pushDelayUs = hourUs / 6;

/**
 * Time after which an hour is counted. It is compared earlier, and a push that arrives after its event was fetched is
 * no longer counted as lost: a catalogue with an hour of delay has lost nothing.
 */
export const countedUs = hourUs + pushDelayUs;

/** Minimum share of an hour with the receiver up, as a short interruption is no downtime. */
const upShareMin = 0.999;

/**
 * Checks for lost pushes, using only hours in which the receiver was up all the time: losses caused by our own
 * downtime are known.
 */
export function checkLostPushes({ name, type }: Registration, situation: Situation): CheckResult {
  const { many, lost: verb } = words[type];
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
    cause: `The subscription ${name} loses more ${many} than usual: ${countText(lost)} of ${countText(expected)} events were not ${verb}.`,
    evidence: [
      `That is ${percentText(lost / expected)} since ${sinceText}; ${percentText(lostPushes.usual)} is usual.`,
      'Hours in which earshot was interrupted are not counted.',
    ],
    nextStep: `Run \`earshot doctor\` to check ${checks[type]}, and \`earshot coverage --since 7d\` to see when the losses started.`,
  });
}

/** Returns the sums of all kinds of events by hour, oldest first. */
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
  /** Probability above which a silence raises no alert. */
  oddsMax: number;
  /** Minimum ratio to the longest natural silence. */
  longestFactor: number;
  /** Minimum hours of observation before checking. */
  watchedHoursMin: number;
  /** Minimum hours with pushes; fewer do not show how long silences are. */
  busyHoursMin: number;
}

const silenceRule: SilenceRule = {
  oddsMax: 1e-2,
  longestFactor: 2,
  watchedHoursMin: 168,
  busyHoursMin: 6,
};

interface SilenceOdds {
  /** Expected pushes since the last one, while observed. */
  expected: number;
  /** Probability that none arrived. */
  odds: number;
  /** Number of expected pushes above which it is an alarm. */
  limit: number;
  isAlarm: boolean;
}

/** Returns the probability of a silence that starts with the last push; null when too little was learned. */
export function silenceOdds(
  learned: LearnedRates,
  watched: readonly Span[],
  silence: Span,
  rule: SilenceRule = silenceRule,
): SilenceOdds | null {
  const { dispersion, longestSilence, watchedHours, busyHours } = learned;
  if (watchedHours < rule.watchedHoursMin || busyHours < rule.busyHoursMin) return null;
  const expected = expectedPushes(learned, watched, silence);
  // A burst counts once. This is the probability of no independent one when this many are expected (Poisson).
  const odds = Math.exp(-expected / dispersion);
  const limit = Math.max(-Math.log(rule.oddsMax) * dispersion, rule.longestFactor * longestSilence);
  return { expected, odds, limit, isAlarm: expected > limit };
}

/** Events of one or more hours, and how many of them were not pushed. */
export interface Tally {
  expected: number;
  lost: number;
}

export interface TalliedHour extends Tally {
  startUs: number;
}

/** Minimum number of latest hours that are checked; more if they contain fewer events than `expectedMin`. */
const hoursMin = 24;
const expectedMin = 5;
/** Length of the time before them that defines the usual share. */
const usualUs = 30 * dayUs;
/** Older hours are ignored. */
export const talliedUs = 2 * usualUs;
/** Usual share assumed at first, weighted as this number of events, and maximum usual share. */
const usualShareMin = 0.001;
const usualWeight = 1_000;
const usualShareMax = 0.1;
/** Maximum dispersion: this many unexpected losses are never chance. */
const dispersionMax = 30;
/**
 * Probability that raises the alert, low because every hour is checked again, and probability above which it is
 * resolved.
 */
const oddsMax = 1e-4;
const oddsResolveMin = 1e-2;

export interface LostPushOdds {
  latest: Tally;
  /** Start of the latest hours. */
  sinceUs: number;
  /** Usual share. */
  usual: number;
  /** Ratio of variance to mean of the losses per hour: 1 for single losses, more for bursts. */
  dispersion: number;
  odds: number;
}

/**
 * Returns the probability of the latest losses; null when no event was expected lately. `hours` are those with the
 * receiver up, oldest first. `raisedAtUs` is the start of an active alert: later losses do not make bursts usual,
 * otherwise the alert would resolve itself.
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
  // A burst counts once, as in a silence.
  return { latest, sinceUs, usual, dispersion, odds: oddsOf(latest, usual) ** (1 / dispersion) };
}

/**
 * Measures dispersion around the actual share of losses; around the assumed share, single losses would look like
 * bursts.
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

/** Returns true when the losses raise an alert, or keep it active. */
export function areTooMany({ odds }: Pick<LostPushOdds, 'odds'>, isActive: boolean): boolean {
  return odds <= (isActive ? oddsResolveMin : oddsMax);
}

/** Returns the share of events that are not pushed, weighted with the assumed usual share. */
export function usualShareOf({ expected, lost }: Tally): number {
  const share = (lost + usualShareMin * usualWeight) / (expected + usualWeight);
  return Math.min(usualShareMax, Math.max(usualShareMin, share));
}

/**
 * Returns an upper bound of the probability that this many or more pushes are lost by chance: the Chernoff bound of
 * the binomial distribution, exp(-n D(k/n ‖ p)). It prefers a missed alert to a false one.
 */
export function oddsOf({ expected, lost }: Tally, usual: number): number {
  const share = lost / expected;
  if (share <= usual) return 1;
  const rest = share === 1 ? 0 : (1 - share) * Math.log((1 - share) / (1 - usual));
  // Rounding gives 1.0000000000000002 where the two shares are nearly equal.
  return Math.min(1, Math.exp(-expected * (share * Math.log(share / usual) + rest)));
}
