/** Alerts of events that are not in the log, or may be lost: missing events, and the queues of pull subscriptions. */
import { comparisonHorizonUs, type HourCoverage, settlingUs } from '../domain/completeness.ts';
import { queueOutlook } from '../domain/pull-queue.ts';
import { dayUs, hourUs } from '../domain/time-units.ts';
import { type Problem, problem, row, type SubscriptionView } from './situation.ts';
import { countText, lengthText, momentText } from './texts.ts';

/** Maximum age of hours with missing events: that of automatic comparison, minus a day. */
const missingBackUs = comparisonHorizonUs - dayUs;

/** Time since the end of the newest compared hour that raises the alert, and below which it is resolved. */
const uncomparedUs = { raise: settlingUs + 6 * hourUs, resolve: settlingUs + 2 * hourUs };

/** Checks for missing events, and for a comparison that has stopped. Both are fetched by one command. */
export const missingRow = row<SubscriptionView>('missing', (view, { nowUs, upSinceUs, alert }) => {
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
    `${countText(count)} events of the subscription ${name} are missing from the log.`,
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
  warning: { share: 0.3, ageUs: dayUs, lossUs: 36 * hourUs },
  critical: { share: 0.7, ageUs: 2.25 * dayUs, lossUs: 12 * hourUs },
} as const;

/** Failures shorter than this are retried without an alert. */
const failingUs = hourUs;

/** Checks the queue: unread entries, and failures. While it cannot be read, entries are lost after `lossUs`. */
export const queueRow = row<SubscriptionView>('queue', (view, { nowUs }) => {
  const { name, type, pausedSeenAtUs, queue } = view;
  if (queue === undefined) return type === 'pull' ? 'unchecked' : null;
  const { failure, failingSinceUs, lengthMax } = queue;
  // The catalogue may refuse to read the queue of a paused subscription, in which nothing arrives.
  if (pausedSeenAtUs !== null && failure !== null) return null;
  const { length, oldestAgeUs, leftUs } = queueOutlook(queue, nowUs);
  const isAt = ({ share, ageUs, lossUs }: (typeof queueLevels)[keyof typeof queueLevels]) =>
    (length ?? 0) >= share * lengthMax ||
    (oldestAgeUs ?? 0) >= ageUs ||
    (failure !== null && leftUs !== null && leftUs < lossUs);
  const isFailing = failingSinceUs !== null && nowUs - failingSinceUs >= failingUs;
  if (!isAt(queueLevels.warning) && !isFailing) return null;
  return problem(
    isAt(queueLevels.critical) ? 'critical' : 'warning',
    `The queue of the subscription ${name} ${failure === null ? 'has many or old unread notifications' : 'cannot be read'}.`,
    failure === null
      ? 'No action is needed while the number decreases. Otherwise raise EARSHOT_PULL_REQUESTS_PER_MINUTE, or make the filter more specific.'
      : 'Run `earshot doctor` to check the account and the access to the queue.',
    failure !== null && `Requests fail since ${momentText(failingSinceUs ?? nowUs)}: ${failure}`,
    length !== null &&
      `About ${countText(length)} of at most ${countText(lengthMax)} entries are unread.`,
    Boolean(oldestAgeUs) &&
      `The oldest is ${lengthText(oldestAgeUs ?? 0)} old. After three days, the catalogue removes its record.`,
  );
});

/** Time after which another reader that was not noticed again counts as gone. */
const otherReaderUs = dayUs;

export const queueReaderRow = row<SubscriptionView>('queue-reader', (view, { nowUs, alert }) => {
  const { name, type, queue } = view;
  if (queue === undefined) return type === 'pull' ? 'unchecked' : null;
  const { otherReader } = queue;
  // After a restart of the receiver, nothing is known of the time before.
  if (nowUs - (otherReader?.atUs ?? alert?.raisedAtUs ?? 0) > otherReaderUs) return null;
  if (otherReader === null) return 'unchecked';
  const { atUs, entries } = otherReader;
  return problem(
    'critical',
    `Entries leave the queue of the subscription ${name} without earshot, so earshot may miss notifications.`,
    'Stop any other program that reads this queue, or give it a subscription of its own. The comparison with the catalogue fetches what is missing.',
    `At ${momentText(atUs)}, ${countText(entries)} entries left the queue that earshot had not read or not yet acknowledged.`,
  );
});
