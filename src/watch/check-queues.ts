/** Checks the queues of pull subscriptions: unread entries, failures, and other readers. */
import type { Registration } from '../domain/account.ts';
import { hourUs } from '../domain/completeness.ts';
import { type QueueState, queueOutlook } from '../domain/pull-queue.ts';
import {
  type CheckResult,
  checkOf,
  countText,
  dayUs,
  joinResults,
  lengthText,
  momentText,
  notChecked,
  rounded,
  type Situation,
} from './situation.ts';

/** Share of the maximum length, and age of the oldest entry, at which the alert is raised and becomes critical. */
export const queueLevels = {
  warning: { share: 0.3, ageUs: dayUs },
  critical: { share: 0.7, ageUs: 2.25 * dayUs },
} as const;

/** While a queue cannot be read: time until entries are lost at which the alert is raised and becomes critical. */
export const lossAhead = { warningUs: 36 * hourUs, criticalUs: 12 * hourUs };

/** Failures shorter than this are retried without an alert. */
const failingUs = hourUs;

/** Time after which another reader that was not noticed again counts as gone. */
const otherReaderUs = dayUs;

/** Checks the queue of a pull subscription. An active alert is resolved when the queue is read again. */
export function checkQueue(
  { name, type, pausedSeenAtUs }: Registration,
  situation: Situation,
): CheckResult {
  const state = situation.queues.find(({ subscription }) => subscription === name);
  if (type !== 'pull') {
    return joinResults([
      checkOf('queue', name, situation).fine,
      checkOf('queue-reader', name, situation).fine,
    ]);
  }
  if (state === undefined) return notChecked;
  // The catalogue may refuse to read the queue of a paused subscription, in which nothing arrives.
  const isRefused = pausedSeenAtUs !== null && state.failure !== null;
  const unread = isRefused ? checkOf('queue', name, situation).fine : checkUnread(state, situation);
  return joinResults([unread, checkOtherReader(state, situation)]);
}

type Level = keyof typeof queueLevels;

function checkUnread(state: QueueState, situation: Situation): CheckResult {
  const { subscription: name, lengthMax, failure, failingSinceUs, entriesPerHour } = state;
  const { nowUs } = situation;
  const { fine, found } = checkOf('queue', name, situation);
  const { length, oldestAgeUs, leftUs } = queueOutlook(state, nowUs);
  const failsForUs = failingSinceUs === null ? 0 : nowUs - failingSinceUs;
  const isAt = (level: Level) => {
    const { share, ageUs } = queueLevels[level];
    const isNearLoss = failure !== null && leftUs !== null && leftUs < lossAhead[`${level}Us`];
    return (length ?? 0) >= share * lengthMax || (oldestAgeUs ?? 0) >= ageUs || isNearLoss;
  };
  const isFailing = failsForUs >= failingUs;
  if (!isAt('warning') && !isFailing) return fine;
  const cause =
    failure !== null
      ? `The queue of the subscription ${name} cannot be read.`
      : `The queue of the subscription ${name} has many or old unread notifications.`;
  const evidence = [
    ...(length === null
      ? []
      : [`About ${countText(length)} of at most ${countText(lengthMax)} entries are unread.`]),
    ...(oldestAgeUs
      ? [
          `The oldest is ${lengthText(oldestAgeUs)} old. After three days, the catalogue removes its record.`,
        ]
      : []),
    ...(entriesPerHour === null
      ? []
      : [`About ${rounded(entriesPerHour)} notifications arrive per hour.`]),
    ...(failure === null
      ? []
      : [`Requests fail since ${momentText(failingSinceUs ?? nowUs)}: ${failure}`]),
  ];
  const nextStep =
    failure !== null
      ? 'Run `earshot doctor` to check the account and the access to the queue.'
      : 'No action is needed while the number decreases. Otherwise raise EARSHOT_PULL_REQUESTS_PER_MINUTE, or make the filter more specific.';
  return found({ severity: isAt('critical') ? 'critical' : 'warning', cause, evidence, nextStep });
}

function checkOtherReader(state: QueueState, situation: Situation): CheckResult {
  const { subscription: name, otherReader } = state;
  const { nowUs } = situation;
  const { alert, fine, found } = checkOf('queue-reader', name, situation);
  // After a restart of the receiver, nothing is known of the time before.
  const noticedAtUs = otherReader?.atUs ?? alert?.raisedAtUs ?? null;
  if (noticedAtUs === null || nowUs - noticedAtUs > otherReaderUs) return fine;
  if (otherReader === null) return notChecked;
  return found({
    severity: 'critical',
    cause: `Entries leave the queue of the subscription ${name} without earshot, so earshot may miss notifications.`,
    evidence: [
      `At ${momentText(otherReader.atUs)}, ${countText(otherReader.entries)} entries left the queue that earshot had not read or not yet acknowledged.`,
      'All readers of a queue share one position.',
    ],
    nextStep:
      'Stop any other program that reads this queue, or give it a subscription of its own. The comparison with the catalogue fetches what is missing.',
  });
}
