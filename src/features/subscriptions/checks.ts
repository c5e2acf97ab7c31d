/** Checks of subscriptions: whether they run, queues, missing events, lost pushes. */
import { oldestEntryAgeUs } from '../../admin/pull-queue.ts';
import { dayUs, hourUs, minuteUs } from '../../core/terms/dates.ts';
import { checkOf, type Problem, problem } from '../../core/terms/evaluation.ts';
import { counted, countText, lengthText, momentText, percentText } from '../../core/terms/text.ts';
import { comparisonHorizonUs, type HourCoverage, settlingUs } from '../coverage/completeness.ts';
import { lostPushes as lostPushesOf } from './pushes.ts';
import { isRunning, type SubscriptionState } from './state.ts';

const reach = {
  push: 'Run `earshot doctor` to check whether the catalogue can reach this endpoint',
  pull: 'Run `earshot doctor` to check the account and the access to the queue',
} as const;

const lostPushes = checkOf<SubscriptionState>('lost-pushes', (view, { nowUs, alert }) => {
  const { name, type, coverage, watched } = view;
  const losses = lostPushesOf(coverage, { watched, nowUs, isActive: alert !== undefined });
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
const notRunning = checkOf<SubscriptionState>('not-running', (view, { nowUs, upSinceUs }) => {
  const { name, type, changedByPerson, pausedSeenAtUs, id } = view;
  const { unfinished } = view.registration;
  if (view.pausedOnPurpose || isRunning(view)) return null;
  const needsPerson = changedByPerson || (unfinished && type === 'pull');
  const resumesItself = view.maintenance && !needsPerson;
  const found = problem(
    'critical',
    `The subscription ${name} is not running, although it should run: no notifications arrive.`,
    'Run `earshot register` to make the subscription run. If that fails, `earshot doctor` shows why.',
    pausedSeenAtUs !== null && `The pause was first seen at ${momentText(pausedSeenAtUs)}.`,
    id === null && 'The catalogue has no subscription of this name.',
    unfinished && 'A change of the subscription was interrupted.',
    changedByPerson && 'A person changed the subscription in the catalogue.',
  );
  const raiseAfterUs = resumesItself ? maintenanceUs : brieflyUs;
  const firstRoundUs = upSinceUs + firstRoundsUs - raiseAfterUs;
  const seenUs = pausedSeenAtUs ?? nowUs;
  return {
    ...found,
    raiseAfterUs,
    sinceUs: resumesItself ? Math.max(seenUs, firstRoundUs) : seenUs,
  };
});

/** Maximum age of hours with missing events: that of automatic comparison, minus a day. */
const missingBackUs = comparisonHorizonUs - dayUs;

/** Time since the end of the newest compared hour that raises the alert, and below which it is resolved. */
const uncomparedUs = { raise: settlingUs + 6 * hourUs, resolve: settlingUs + 2 * hourUs };

/** Checks for missing events, and for a comparison that has stopped. Both are fetched by one command. */
const missingCheck = checkOf<SubscriptionState>('missing', (view, { nowUs, upSinceUs, alert }) => {
  const { name, coverage, knownSinceUs, reconcile } = view;
  const oldestUs = nowUs - missingBackUs;
  const missing = coverage.filter((hour) => hour.missing > 0 && hour.hourUs >= oldestUs);
  if (missing.length > 0) {
    const sinceUs = Math.min(...missing.map((hour) => hour.comparedAtUs));
    // No alert for a user who first checks and then fetches.
    return { ...missingFinding(name, missing), raiseAfterUs: hourUs, sinceUs };
  }
  const comparedUs = Math.max(knownSinceUs, ...coverage.map((hour) => hour.hourUs + hourUs));
  const limitUs = uncomparedUs[alert === undefined ? 'raise' : 'resolve'];
  if (!reconcile || nowUs - comparedUs < limitUs) return null;
  // After a start, earshot first catches up.
  if (nowUs - upSinceUs < limitUs) return 'unchecked';
  return problem(
    'warning',
    `Events of the subscription ${name} may be missing: no hour has been compared with the catalogue for ${lengthText(nowUs - comparedUs)}.`,
    `${reconcileStep(name, comparedUs, nowUs - (nowUs % hourUs))} to compare the open hours. If that fails, the command prints the reason.`,
    `The newest compared hour ended at ${momentText(comparedUs)}. An hour is normally compared ${lengthText(settlingUs)} after its end.`,
  );
});

/** Describes hours with missing events, of which there is at least one. */
export function missingFinding(
  name: string,
  hours: readonly Pick<HourCoverage, 'hourUs' | 'missing'>[],
): Problem {
  const count = hours.reduce((sum, hour) => sum + hour.missing, 0);
  const starts = hours.map((hour) => hour.hourUs);
  const [fromUs, toUs] = [Math.min(...starts), Math.max(...starts) + hourUs];
  return problem(
    'warning',
    `${counted(count, 'event')} of the subscription ${name} ${count === 1 ? 'is' : 'are'} missing from the log.`,
    `${reconcileStep(name, fromUs, toUs)} to fetch them.`,
    `They occurred between ${momentText(fromUs)} and ${momentText(toUs)}.`,
  );
}

/** Returns the command, with times in minutes. */
function reconcileStep(name: string, fromUs: number, toUs: number): string {
  const iso = (us: number) => `${momentText(us).slice(0, 16).replace(' ', 'T')}Z`;
  return `Run \`earshot reconcile --since ${iso(fromUs)} --until ${iso(toUs)} --subscription ${name}\``;
}

/** Share of the maximum length, and age of the oldest entry, at which the alert is raised and becomes critical. */
const queueLevels = {
  warning: { share: 0.3, ageUs: dayUs },
  critical: { share: 0.7, ageUs: 2.25 * dayUs },
} as const;

/** Shorter failures are retried without an alert. */
const failingUs = hourUs;

/** Checks the queue: unread entries, and failures. */
const queueCheck = checkOf<SubscriptionState>('queue', (view, { nowUs }) => {
  const { name, type, pausedSeenAtUs, queue } = view;
  if (queue === null) return type === 'pull' ? 'unchecked' : null;
  const { failure, failingSinceUs, length, lengthMax } = queue;
  // The catalogue may refuse to read the queue of a paused subscription, in which nothing arrives.
  if (pausedSeenAtUs !== null && failure !== null) return null;
  const oldestAgeUs = oldestEntryAgeUs(queue, nowUs) ?? 0;
  const isAt = ({ share, ageUs }: (typeof queueLevels)['warning' | 'critical']) =>
    (length ?? 0) >= share * lengthMax || oldestAgeUs >= ageUs;
  const isWarning = isAt(queueLevels.warning);
  if (!isWarning && failure === null) return null;
  const found = problem(
    isAt(queueLevels.critical) ? 'critical' : 'warning',
    `The queue of the subscription ${name} ${failure === null ? 'has many or old unread notifications' : 'cannot be read'}.`,
    failure === null
      ? 'No action is needed while the number decreases. Otherwise raise EARSHOT_PULL_REQUESTS_PER_MINUTE, or make the filter more specific.'
      : 'Run `earshot doctor` to check the account and the access to the queue.',
    failure !== null && `Requests fail since ${momentText(failingSinceUs ?? nowUs)}: ${failure}`,
    length !== null &&
      `About ${countText(length)} of at most ${countText(lengthMax)} entries are unread.`,
    oldestAgeUs > 0 &&
      `The oldest is ${lengthText(oldestAgeUs)} old. After three days, the catalogue removes its record.`,
  );
  return isWarning
    ? found
    : { ...found, raiseAfterUs: failingUs, sinceUs: failingSinceUs ?? nowUs };
});

/** Checks of what is expected to arrive. */
export const subscriptionChecks = [notRunning, queueCheck];

/** Checks of what did not arrive. */
export const coverageChecks = [missingCheck, lostPushes];
