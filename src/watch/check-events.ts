/** Alerts of events that are not in the log, or may be lost: missing events, and the queues of pull subscriptions. */
import type { AlertFinding } from '../domain/alerts.ts';
import {
  comparisonHorizonUs,
  type HourCoverage,
  hourUs,
  settlingUs,
} from '../domain/completeness.ts';
import { type QueueState, queueOutlook } from '../domain/pull-queue.ts';
import { type AlertRow, coverageOf, type Moment, type SubscriptionView } from './situation.ts';
import { countText, dayUs, lengthText, minuteUs, momentText, rounded } from './texts.ts';

/** Maximum age of checked hours: that of automatic comparison, minus a day. */
const checkedBackUs = comparisonHorizonUs - dayUs;

/**
 * Delay of a comparison, with earshot running all the time, that raises the alert, and delay below which it is
 * resolved.
 */
const openUs = { raise: 6 * hourUs, resolve: 2 * hourUs };

/** Maximum age of the last heartbeat, which is written every minute. */
const heartbeatUs = 10 * minuteUs;

/** Checks for missing events, and for hours that were not compared in time. Both are fetched by one command. */
export const missingRow: AlertRow<SubscriptionView> = {
  kind: 'missing',
  check: (view, moment) => {
    const { name } = view.registration;
    const hours = coverageOf(view);
    const sinceUs = moment.nowUs - checkedBackUs;
    const missing = hours.filter((hour) => hour.missing > 0 && hour.hourUs >= sinceUs);
    if (missing.length > 0) {
      const comparedAtUs = Math.min(...missing.map((hour) => hour.comparedAtUs));
      // No alert for a user who first checks and then fetches.
      return { raiseAfterUs: hourUs, sinceUs: comparedAtUs, ...missingFinding(name, missing) };
    }
    const open = openHours(view, hours, moment);
    const [oldestUs] = open ?? [];
    if (open === null || oldestUs === undefined) {
      return open === null || hours.length === 0 ? 'unchecked' : null;
    }
    const untilUs = moment.nowUs - (moment.nowUs % hourUs);
    return {
      severity: 'warning',
      cause: `Events of the subscription ${name} may be missing: ${countText(open.length)} hours have not been compared with the catalogue.`,
      evidence: [
        `The oldest of these hours started at ${momentText(oldestUs)}. An hour is normally compared ${lengthText(settlingUs)} after its end.`,
      ],
      nextStep: `${reconcileStep(name, oldestUs, untilUs)} to compare these hours. If that fails, the command prints the reason.`,
    };
  },
};

/** Describes hours with missing events, of which there is at least one. */
export function missingFinding(
  name: string,
  hours: readonly Pick<HourCoverage, 'hourUs' | 'missing'>[],
): Omit<AlertFinding, 'kind' | 'subject'> {
  const count = hours.reduce((sum, hour) => sum + hour.missing, 0);
  const starts = hours.map((hour) => hour.hourUs);
  const [fromUs, toUs] = [Math.min(...starts), Math.max(...starts) + hourUs];
  return {
    severity: 'warning',
    cause: `${countText(count)} events of the subscription ${name} are missing from the log.`,
    evidence: [`They occurred between ${momentText(fromUs)} and ${momentText(toUs)}.`],
    nextStep: `${reconcileStep(name, fromUs, toUs)} to fetch them.`,
  };
}

/** Returns the command, with times in minutes. */
function reconcileStep(name: string, fromUs: number, toUs: number): string {
  const iso = (us: number) => `${momentText(us).slice(0, 16).replace(' ', 'T')}Z`;
  return `Run \`earshot reconcile --since ${iso(fromUs)} --until ${iso(toUs)} --subscription ${name}\``;
}

/**
 * Returns hours that were not compared for all events in time, oldest first; none while earshot has only started
 * recently and is catching up. Null when that is not known.
 */
function openHours(
  { registration: { name }, facts }: SubscriptionView,
  hours: readonly HourCoverage[],
  { nowUs, upSinceUs, alert }: Moment,
): number[] | null {
  if (!facts.reconcile) return [];
  if (nowUs - (facts.uptimes.at(-1)?.toUs ?? 0) > heartbeatUs) return null;
  if (nowUs - upSinceUs < openUs.raise && alert === undefined) return [];
  const untilUs = nowUs - settlingUs - openUs[alert === undefined ? 'raise' : 'resolve'];
  const definitions = facts.definitions.filter(({ subscription }) => subscription === name);
  const beganUs = definitions[0]?.fromUs ?? nowUs;
  const sinceUs = Math.max(beganUs, nowUs - checkedBackUs, facts.unprunedSinceUs);
  const known = new Set(hours.map((hour) => `${hour.hourUs} ${hour.event}`));
  const open: number[] = [];
  for (let us = Math.ceil(sinceUs / hourUs) * hourUs; us + hourUs <= untilUs; us += hourUs) {
    const events = definitions.findLast(({ fromUs }) => fromUs <= us)?.events ?? [];
    if (events.some((event) => !known.has(`${us} ${event}`))) open.push(us);
  }
  return open;
}

/** Share of the maximum length, and age of the oldest entry, at which the alert is raised and becomes critical. */
const queueLevels = {
  warning: { share: 0.3, ageUs: dayUs, lossUs: 36 * hourUs },
  critical: { share: 0.7, ageUs: 2.25 * dayUs, lossUs: 12 * hourUs },
} as const;

/** Failures shorter than this are retried without an alert. */
const failingUs = hourUs;

/** Checks the queue: unread entries, and failures. While it cannot be read, entries are lost after `lossUs`. */
export const queueRow: AlertRow<SubscriptionView> = {
  kind: 'queue',
  check: ({ registration: { name, type, pausedSeenAtUs }, facts }, { nowUs }) => {
    if (type !== 'pull') return null;
    const state = facts.queues.find(({ subscription }) => subscription === name);
    if (state === undefined) return 'unchecked';
    const { failure, failingSinceUs, lengthMax } = state;
    // The catalogue may refuse to read the queue of a paused subscription, in which nothing arrives.
    if (pausedSeenAtUs !== null && failure !== null) return null;
    const { length, oldestAgeUs, leftUs } = queueOutlook(state, nowUs);
    const isAt = (level: keyof typeof queueLevels) => {
      const { share, ageUs, lossUs } = queueLevels[level];
      const isNearLoss = failure !== null && leftUs !== null && leftUs < lossUs;
      return (length ?? 0) >= share * lengthMax || (oldestAgeUs ?? 0) >= ageUs || isNearLoss;
    };
    const isFailing = failingSinceUs !== null && nowUs - failingSinceUs >= failingUs;
    if (!isAt('warning') && !isFailing) return null;
    const severity = isAt('critical') ? 'critical' : 'warning';
    const evidence = queueEvidence(state, nowUs);
    if (failure !== null) {
      return {
        ...{ severity, evidence },
        cause: `The queue of the subscription ${name} cannot be read.`,
        nextStep: 'Run `earshot doctor` to check the account and the access to the queue.',
      };
    }
    return {
      ...{ severity, evidence },
      cause: `The queue of the subscription ${name} has many or old unread notifications.`,
      nextStep:
        'No action is needed while the number decreases. Otherwise raise EARSHOT_PULL_REQUESTS_PER_MINUTE, or make the filter more specific.',
    };
  },
};

function queueEvidence(state: QueueState, nowUs: number): string[] {
  const { lengthMax, failure, failingSinceUs, entriesPerHour } = state;
  const { length, oldestAgeUs } = queueOutlook(state, nowUs);
  const oldest = `The oldest is ${lengthText(oldestAgeUs ?? 0)} old. After three days, the catalogue removes its record.`;
  return [
    length !== null &&
      `About ${countText(length)} of at most ${countText(lengthMax)} entries are unread.`,
    Boolean(oldestAgeUs) && oldest,
    entriesPerHour !== null && `About ${rounded(entriesPerHour)} notifications arrive per hour.`,
    failure !== null && `Requests fail since ${momentText(failingSinceUs ?? nowUs)}: ${failure}`,
  ].filter((line) => line !== false);
}

/** Time after which another reader that was not noticed again counts as gone. */
const otherReaderUs = dayUs;

export const queueReaderRow: AlertRow<SubscriptionView> = {
  kind: 'queue-reader',
  check: ({ registration: { name, type }, facts }, { nowUs, alert }) => {
    if (type !== 'pull') return null;
    const state = facts.queues.find(({ subscription }) => subscription === name);
    if (state === undefined) return 'unchecked';
    const { otherReader } = state;
    // After a restart of the receiver, nothing is known of the time before.
    if (nowUs - (otherReader?.atUs ?? alert?.raisedAtUs ?? 0) > otherReaderUs) return null;
    if (otherReader === null) return 'unchecked';
    return {
      severity: 'critical',
      cause: `Entries leave the queue of the subscription ${name} without earshot, so earshot may miss notifications.`,
      evidence: [
        `At ${momentText(otherReader.atUs)}, ${countText(otherReader.entries)} entries left the queue that earshot had not read or not yet acknowledged.`,
        'All readers of a queue share one position.',
      ],
      nextStep:
        'Stop any other program that reads this queue, or give it a subscription of its own. The comparison with the catalogue fetches what is missing.',
    };
  },
};
