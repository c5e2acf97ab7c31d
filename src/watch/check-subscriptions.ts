/** Alerts of subscriptions: silence, lost pushes, lifetime, and whether they run. */
import { hourUs } from '../domain/completeness.ts';
import { coveredUs } from './pushes.ts';
import { areTooMany, latestTally, talliedHours, usualSilence } from './silence.ts';
import {
  type AlertRow,
  coverageOf,
  isRunning,
  type Problem,
  type Result,
  type SubscriptionView,
  watchedSpans,
} from './situation.ts';
import { countText, dayUs, lengthText, minuteUs, momentText, percentText } from './texts.ts';

/** Words for the two types of subscriptions. */
const words = {
  push: { one: 'push', many: 'pushes', lost: 'pushed' },
  pull: { one: 'notification', many: 'notifications', lost: 'read from the queue' },
} as const;

const reach = {
  push: 'Run `earshot doctor` to check whether the catalogue can reach this endpoint',
  pull: 'Run `earshot doctor` to check the account and the access to the queue',
} as const;

/**
 * An active alert is resolved by the next push, or when the subscription should no longer run. Nothing else resolves
 * it, such as a limit that has changed.
 */
export const silenceRow: AlertRow<SubscriptionView> = {
  kind: 'silence',
  check: (view, { nowUs, alert }) => {
    const { name, type, status } = view.registration;
    if (status === 'paused') return null;
    if (!isRunning(view.registration)) return 'unchecked';
    const arrivals = [...(view.facts.memory.arrivals.get(name)?.values() ?? [])];
    if (alert && arrivals.some(({ lastAtUs }) => lastAtUs > alert.raisedAtUs)) return null;
    const watched = watchedSpans(view, nowUs);
    const lost = coverageOf(view).filter(({ recovered, missing }) => recovered + missing > 0);
    const lostHours = lost.map((hour) => hour.hourUs);
    const usual = usualSilence({ arrivals, watched, lostHours });
    if (usual === null) return 'unchecked';
    const { lastPushAtUs, longestUs, limitUs, watchedUs } = usual;
    const silentUs = coveredUs(watched, { fromUs: lastPushAtUs, toUs: nowUs });
    if (silentUs <= limitUs && alert === undefined) return null;
    return {
      severity: 'critical',
      cause: `No ${words[type].one} of the subscription ${name} has arrived for ${lengthText(nowUs - lastPushAtUs)}. This is unusually long.`,
      evidence: [
        `The last notification arrived at ${momentText(lastPushAtUs)}.`,
        `The longest silence in ${lengthText(watchedUs)} of observation was ${lengthText(longestUs)}. The limit is ${lengthText(limitUs)}.`,
      ],
      nextStep: `${reach[type]}, and \`earshot subscriptions show ${name}\` to check whether the subscription is still running.`,
    };
  },
  common: (subjects, results) =>
    commonSilence(
      subjects.map(([, view]) => view),
      results,
    ),
};

/** Minimum number of running subscriptions for a common alert, and share of silent ones above which it is raised. */
const runningMin = 3;
const silentShare = 0.5;

/** Returns the common alert when most subscriptions are silent; null otherwise. `results` are those of each one. */
function commonSilence(
  views: readonly SubscriptionView[],
  results: ReadonlyMap<string, Result>,
): Problem | null {
  const running = views.filter(({ registration }) => isRunning(registration));
  const silent = [...results].filter(([, one]) => one !== null && one !== 'unchecked');
  if (running.length < runningMin || silent.length <= running.length * silentShare) return null;
  const isPush = running.some(({ registration }) => registration.type === 'push');
  return {
    severity: 'critical',
    cause: `${silent.length} of ${running.length} subscriptions are silent: almost no notifications arrive.`,
    evidence: [`Silent for longer than usual: ${silent.map(([name]) => name).join(', ')}.`],
    nextStep: `${reach[isPush ? 'push' : 'pull']}, and \`earshot subscriptions list\` to check whether the subscriptions are still running.`,
  };
}

export const lostPushesRow: AlertRow<SubscriptionView> = {
  kind: 'lost-pushes',
  check: (view, { nowUs, alert }) => {
    const { name, type } = view.registration;
    const hours = talliedHours(coverageOf(view), watchedSpans(view, nowUs), nowUs);
    const latest = latestTally(hours, nowUs);
    if (latest === null) return 'unchecked';
    if (!areTooMany(latest, alert !== undefined)) return null;
    const { lost, expected, startUs } = latest;
    return {
      severity: lost * 2 > expected ? 'critical' : 'warning',
      cause: `The subscription ${name} loses many ${words[type].many}: ${countText(lost)} of ${countText(expected)} events were not ${words[type].lost}.`,
      evidence: [
        `That is ${percentText(lost / expected)} since ${momentText(startUs)}. Hours in which earshot was interrupted are not counted.`,
      ],
      nextStep: `${reach[type]}, and \`earshot coverage --since 7d\` to see when the losses started.`,
    };
  },
};

/** Duration of a change by earshot (seconds), with margin. */
const brieflyUs = 10 * minuteUs;

/** Interval of maintenance (6 h), with margin. */
const maintenanceUs = 7 * hourUs;

/** After a start, the first maintenance round runs within two minutes and is retried soon after a failure. */
const firstRoundsUs = 30 * minuteUs;

/** Ignores subscriptions that were paused by a command of the user or in the desired state. */
export const notRunningRow: AlertRow<SubscriptionView> = {
  kind: 'not-running',
  check: ({ registration, facts }, { nowUs, upSinceUs }) => {
    const { name, status, changedByPerson, pausedSeenAtUs, subscriptionId } = registration;
    if (status !== 'running' || isRunning(registration)) return null;
    const resumesItself = facts.maintenance && !changedByPerson;
    if (resumesItself && nowUs - upSinceUs < firstRoundsUs) return 'unchecked';
    const seen =
      pausedSeenAtUs !== null
        ? `The pause was first seen at ${momentText(pausedSeenAtUs)}.`
        : subscriptionId === null
          ? 'The catalogue has no subscription of this name.'
          : 'A change of the subscription was interrupted.';
    const byPerson = 'A person changed the subscription in the catalogue.';
    return {
      severity: 'critical',
      raiseAfterUs: resumesItself ? maintenanceUs : brieflyUs,
      ...(pausedSeenAtUs !== null && { sinceUs: pausedSeenAtUs }),
      cause: `The subscription ${name} is not running, although it should run: no notifications arrive.`,
      evidence: changedByPerson ? [seen, byPerson] : [seen],
      nextStep: `Run \`earshot register\` to make the subscription run${resumesItself ? '. To see why maintenance failed, run `earshot maintain`' : ''}.`,
    };
  },
};

/**
 * Ends of a subscription (specification, Limits), and the time before them at which the alert is raised and becomes
 * critical. The alert is resolved when `resolveMarginUs` more is left.
 */
export const lifetimeLimits = {
  pause: {
    ...{ warningUs: 14 * dayUs, criticalUs: 3 * dayUs },
    reason: 'The catalogue pauses a subscription after 60 days without a delivery.',
    nextStep:
      'After a pause, maintenance resumes the subscription; without maintenance, run `earshot maintain`.',
  },
  delete: {
    ...{ warningUs: 30 * dayUs, criticalUs: 7 * dayUs },
    reason: 'The catalogue deletes a subscription after 365 days without a notification.',
    nextStep: 'If the filter no longer matches products, change or remove the subscription.',
  },
} as const;

const resolveMarginUs = dayUs;

export const lifetimeRow: AlertRow<SubscriptionView> = {
  kind: 'lifetime',
  check: ({ registration, facts }, { nowUs, alert }) => {
    const { name } = registration;
    const lastDeliveryAtUs = facts.deliveredAtUs.get(name) ?? null;
    const known = facts.lifetimes({ registration, lastDeliveryAtUs, nowUs });
    if (known === null) return 'unchecked';
    const marginUs = alert === undefined ? 0 : resolveMarginUs;
    const pausesAtUs = isRunning(registration) ? known.pausesAtUs : Number.POSITIVE_INFINITY;
    const ends = [
      { end: 'delete', leftUs: known.cancelsAtUs - nowUs, ...lifetimeLimits.delete },
      { end: 'pause', leftUs: pausesAtUs - nowUs, ...lifetimeLimits.pause },
    ].filter(({ leftUs, warningUs }) => leftUs <= warningUs + marginUs);
    const first = ends.find(({ leftUs, criticalUs }) => leftUs < criticalUs) ?? ends[0];
    if (first === undefined) return null;
    const { end, leftUs, criticalUs, reason, nextStep } = first;
    const when = leftUs > 0 ? `in ${lengthText(leftUs)}` : 'any time now';
    return {
      severity: leftUs < criticalUs ? 'critical' : 'warning',
      cause: `The catalogue will ${end} the subscription ${name} ${when}.`,
      evidence: [
        lastDeliveryAtUs === null
          ? 'No delivery of this subscription is known.'
          : `The last delivery of this subscription was at ${momentText(lastDeliveryAtUs)}.`,
        reason,
      ],
      nextStep: `Check the filter with \`earshot subscriptions show ${name}\`. ${nextStep}`,
    };
  },
};
