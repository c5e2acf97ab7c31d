/** Alerts of subscriptions: silence, lost pushes, lifetime, and whether they run. */
import { dayUs, hourUs, minuteUs } from '../domain/time-units.ts';
import { coveredUs } from './pushes.ts';
import { lostPushes, usualSilence } from './silence.ts';
import { isRunning, problem, row, type SubscriptionView } from './situation.ts';
import { countText, lengthText, momentText, percentText } from './texts.ts';

const reach = {
  push: 'Run `earshot doctor` to check whether the catalogue can reach this endpoint',
  pull: 'Run `earshot doctor` to check the account and the access to the queue',
} as const;

/**
 * An active alert is resolved by the next push, or when the subscription should no longer run. Nothing else resolves
 * it, such as a limit that has changed.
 */
export const silenceRow = row<SubscriptionView>('silence', (view, { nowUs, alert }) => {
  const { name, type, status, arrivals, watched, coverage } = view;
  if (status === 'paused') return null;
  if (!isRunning(view)) return 'unchecked';
  if (alert && arrivals.some(({ lastAtUs }) => lastAtUs > alert.raisedAtUs)) return null;
  const lost = coverage.filter(({ recovered, missing }) => recovered + missing > 0);
  const usual = usualSilence({ arrivals, watched, lostHours: lost.map((hour) => hour.hourUs) });
  if (usual === null) return 'unchecked';
  const { lastPushAtUs, longestUs, limitUs, watchedUs } = usual;
  const silentUs = coveredUs(watched, { fromUs: lastPushAtUs, toUs: nowUs });
  if (silentUs <= limitUs && alert === undefined) return null;
  return problem(
    'critical',
    `No notification of the subscription ${name} has arrived for ${lengthText(nowUs - lastPushAtUs)}. This is unusually long.`,
    `${reach[type]}, and \`earshot subscriptions show ${name}\` to check whether the subscription is still running.`,
    `The last notification arrived at ${momentText(lastPushAtUs)}.`,
    `The longest silence in ${lengthText(watchedUs)} of observation was ${lengthText(longestUs)}. The limit is ${lengthText(limitUs)}.`,
  );
});

export const lostPushesRow = row<SubscriptionView>('lost-pushes', (view, { nowUs, alert }) => {
  const { name, type, coverage, watched } = view;
  const losses = lostPushes(coverage, { watched, nowUs, isActive: alert !== undefined });
  if (losses === null) return 'unchecked';
  const { startUs, expected, lost, areTooMany } = losses;
  if (!areTooMany) return null;
  return problem(
    lost * 2 > expected ? 'critical' : 'warning',
    `The catalogue did not deliver ${countText(lost)} of ${countText(expected)} events of the subscription ${name}.`,
    `${reach[type]}, and \`earshot coverage --since 7d\` to see when the losses started.`,
    `That is ${percentText(lost / expected)} since ${momentText(startUs)}. Hours in which earshot was interrupted are not counted.`,
  );
});

/** Duration of a change by earshot (seconds), with margin. */
const brieflyUs = 10 * minuteUs;

/** Interval of maintenance (6 h), with margin. */
const maintenanceUs = 7 * hourUs;

/** After a start, the first maintenance round runs within two minutes and is retried soon after a failure. */
const firstRoundsUs = 30 * minuteUs;

/** Ignores subscriptions whose desired status is `paused`. */
export const notRunningRow = row<SubscriptionView>('not-running', (view, { nowUs, upSinceUs }) => {
  const { name, type, status, changedByPerson, pausedSeenAtUs, subscriptionId, unfinished } = view;
  if (status !== 'running' || isRunning(view)) return null;
  const needsPerson = changedByPerson || (unfinished && type === 'pull');
  const resumesItself = view.maintenance && !needsPerson;
  if (resumesItself && nowUs - upSinceUs < firstRoundsUs) return 'unchecked';
  const found = problem(
    'critical',
    `The subscription ${name} is not running, although it should run: no notifications arrive.`,
    `Run \`earshot register\` to make the subscription run${resumesItself ? '. To see why maintenance failed, run `earshot maintain`' : ''}.`,
    pausedSeenAtUs !== null && `The pause was first seen at ${momentText(pausedSeenAtUs)}.`,
    subscriptionId === null && 'The catalogue has no subscription of this name.',
    unfinished && 'A change of the subscription was interrupted.',
    changedByPerson && 'A person changed the subscription in the catalogue.',
  );
  const raiseAfterUs = resumesItself ? maintenanceUs : brieflyUs;
  return { ...found, raiseAfterUs, sinceUs: pausedSeenAtUs ?? nowUs };
});

/**
 * Ends of a subscription (specification, Limits), and the time before them at which the alert is raised and becomes
 * critical. The alert is resolved when `resolveMarginUs` more is left.
 */
export const lifetimeLimits = {
  pause: { warningUs: 14 * dayUs, criticalUs: 3 * dayUs, cause: '60 days without a delivery' },
  delete: { warningUs: 30 * dayUs, criticalUs: 7 * dayUs, cause: 'a year without a notification' },
} as const;

const resolveMarginUs = dayUs;

export const lifetimeRow = row<SubscriptionView>('lifetime', (view, { nowUs, alert }) => {
  const { name, lastDeliveryAtUs, lifetimes } = view;
  const known = lifetimes({ registration: view, lastDeliveryAtUs, nowUs });
  if (known === null) return 'unchecked';
  const marginUs = alert === undefined ? 0 : resolveMarginUs;
  const pausesAtUs = isRunning(view) ? known.pausesAtUs : Number.POSITIVE_INFINITY;
  const ends = [
    { end: 'delete', leftUs: known.cancelsAtUs - nowUs, ...lifetimeLimits.delete },
    { end: 'pause', leftUs: pausesAtUs - nowUs, ...lifetimeLimits.pause },
  ].filter(({ leftUs, warningUs }) => leftUs <= warningUs + marginUs);
  const first = ends.find(({ leftUs, criticalUs }) => leftUs < criticalUs) ?? ends[0];
  if (first === undefined) return null;
  const { end, leftUs, criticalUs, cause } = first;
  return problem(
    leftUs < criticalUs ? 'critical' : 'warning',
    `The catalogue will ${end} the subscription ${name} ${leftUs > 0 ? `in ${lengthText(leftUs)}` : 'any time now'}.`,
    `Check the filter with \`earshot subscriptions show ${name}\`. If it no longer matches products, change or remove the subscription. After a pause, maintenance (\`earshot maintain\`) resumes the subscription.`,
    `The last delivery of this subscription was ${lastDeliveryAtUs === null ? 'never' : `at ${momentText(lastDeliveryAtUs)}`}. The catalogue will ${end} it after ${cause}.`,
  );
});
