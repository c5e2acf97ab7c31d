/** Evaluates the subscriptions, and the queues of pull subscriptions. */
import { type QueueState, queueOutlook } from '../../domain/pull-queue.ts';
import type { StatusFacts, SubscriptionStatus } from '../../domain/status.ts';
import { lifetimeLimits } from '../../watch/check-subscriptions.ts';
import { agoText, lengthText, momentText } from '../../watch/texts.ts';
import { counted } from '../output.ts';
import {
  type Evaluate,
  type Evaluation,
  isWatched,
  listed,
  unused,
  warning,
  well,
} from './evaluation.ts';

export const evaluateSubscriptions: Evaluate = (facts) => {
  const { subscriptions, log } = facts;
  if (subscriptions.length === 0) {
    return log?.lastReceivedAtUs === null
      ? warning(
          'No subscription is registered, so no notifications will arrive.',
          'Add a subscription to earshot.config.ts and run `earshot register`.',
        )
      : unused('none registered here');
  }
  return notRunning(facts) ?? unreadable(facts) ?? ending(facts) ?? well(summed(facts));
};

const inspect = (name: string) =>
  `To inspect the subscription: \`earshot subscriptions show ${name}\`. To resume it: \`earshot maintain\`.`;

/** While a receiver runs, the watchdog reports this, after giving maintenance time to fix it. */
function notRunning(facts: StatusFacts): Evaluation | null {
  if (isWatched(facts)) return null;
  const names = facts.subscriptions.filter(isStopped).map(({ name }) => name);
  if (names.length === 0) return null;
  return warning(
    `Subscriptions that are not running, although they should be: ${listed(names)}.`,
    'To resume the subscriptions: `earshot register`.',
  );
}

const isStopped = ({ state, pausedOnPurpose }: SubscriptionStatus) =>
  state !== 'running' && !pausedOnPurpose;

function ending({ subscriptions, atUs }: StatusFacts): Evaluation | null {
  for (const { name, pausesAtUs, cancelsAtUs } of subscriptions) {
    const ends = [
      { endUs: cancelsAtUs, verb: 'delete' },
      { endUs: pausesAtUs, verb: 'pause' },
    ] as const;
    for (const { endUs, verb } of ends) {
      if (endUs === null || endUs - atUs > lifetimeLimits[verb].warningUs) continue;
      return warning(`The catalogue will ${verb} ${name} at ${momentText(endUs)}.`, inspect(name));
    }
  }
  return null;
}

function summed(facts: StatusFacts): string {
  const { subscriptions, atUs } = facts;
  const running = subscriptions.filter(({ state }) => state === 'running');
  const last = ({ name, lastDeliveryAtUs }: SubscriptionStatus) =>
    `${name} (${lastDeliveryAtUs === null ? 'none yet' : agoText(atUs - lastDeliveryAtUs)})`;
  const others = subscriptions.filter(({ state }) => state !== 'running');
  return [
    running.length === 0
      ? 'none running'
      : `${running.length} running, last notification: ${listed(running.map(last))}`,
    ...(others.length === 0
      ? []
      : [listed(others.map(({ name, state }) => `${name} is ${stateText[state]}`))]),
    ...facts.queues.map((state) => queueText(state, atUs)),
  ].join('; ');
}

const stateText: Record<SubscriptionStatus['state'], string> = {
  running: 'running',
  paused: 'paused',
  unfinished: 'being changed',
  absent: 'missing in the catalogue',
};

/**
 * A queue that cannot be read at the moment; the watchdog raises an alert later. The catalogue may refuse to read the
 * queue of a paused subscription.
 */
function unreadable(facts: StatusFacts): Evaluation | null {
  const isPaused = (name: string) =>
    facts.subscriptions.some((one) => one.name === name && one.state === 'paused');
  const failing = facts.queues.find(
    ({ subscription, failure }) => failure !== null && !isPaused(subscription),
  );
  if (failing === undefined) return null;
  return warning(
    `The queue of ${failing.subscription} cannot be read: ${failing.failure}`,
    `${isWatched(facts) ? 'The receiver retries. ' : ''}To check the account: \`earshot doctor\`.`,
  );
}

/** Formats for example: `queue of alps: 1,240 entries, the oldest 3.5 h old`. */
export function queueText(state: QueueState, nowUs: number): string {
  const { length, oldestAgeUs } = queueOutlook(state, nowUs);
  const name = `queue of ${state.subscription}`;
  if (length === null) return `${name}: not read yet`;
  if (length === 0) return `${name}: empty`;
  const age = oldestAgeUs ? `, the oldest ${lengthText(oldestAgeUs)} old` : '';
  return `${name}: ${counted(length, 'entry', 'entries')}${age}`;
}
