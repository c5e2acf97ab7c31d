/** Judges whether each subscription runs, and for how long it will. */
import type { StatusFacts, SubscriptionStatus } from '../../domain/status.ts';
import { cancelAhead, pauseAhead } from '../../watch/judge/judge-registration.ts';
import { agoText, momentText } from '../../watch/plain-figures.ts';
import {
  isWatched,
  type Judge,
  type Judgement,
  listed,
  unused,
  warning,
  well,
} from './judgement.ts';

const look = (name: string) =>
  `Look at it with \`earshot subscriptions show ${name}\`, and run \`earshot maintain\`.`;

export const judgeSubscriptions: Judge = (facts) => {
  const { subscriptions, log } = facts;
  if (subscriptions.length === 0) {
    return log?.lastReceivedAtUs === null
      ? warning(
          'No subscription is registered, so nothing will come.',
          'Write one into earshot.config.ts and run `earshot register`.',
        )
      : unused('none is registered here');
  }
  return stopped(facts) ?? ending(facts) ?? well(summed(facts));
};

/** The watchdog gives maintenance the time to put it right, and tells of it then. */
function stopped(facts: StatusFacts): Judgement | null {
  if (isWatched(facts)) return null;
  const names = facts.subscriptions.filter(isStopped).map(({ name }) => name);
  if (names.length === 0) return null;
  return warning(
    `Of the subscriptions, ${listed(names)} should run and ${names.length === 1 ? 'does' : 'do'} not.`,
    'Run `earshot register` to make them run.',
  );
}

const isStopped = ({ state, pausedOnPurpose }: SubscriptionStatus) =>
  state !== 'running' && !pausedOnPurpose;

function ending({ subscriptions, atUs }: StatusFacts): Judgement | null {
  for (const { name, pausesAtUs, cancelsAtUs } of subscriptions) {
    if (cancelsAtUs !== null && cancelsAtUs - atUs <= cancelAhead.warningUs) {
      return warning(
        `The catalogue will delete ${name} at ${momentText(cancelsAtUs)}.`,
        look(name),
      );
    }
    if (pausesAtUs !== null && pausesAtUs - atUs <= pauseAhead.warningUs) {
      return warning(`The catalogue will pause ${name} at ${momentText(pausesAtUs)}.`, look(name));
    }
  }
  return null;
}

function summed({ subscriptions, atUs }: StatusFacts): string {
  const running = subscriptions.filter(({ state }) => state === 'running');
  const last = ({ name, lastDeliveryAtUs }: SubscriptionStatus) =>
    `${name} (${lastDeliveryAtUs === null ? 'nothing yet' : agoText(atUs - lastDeliveryAtUs)})`;
  const others = subscriptions.filter(({ state }) => state !== 'running');
  return [
    running.length === 0 ? 'none runs' : `${running.length} run: ${listed(running.map(last))}`,
    ...(others.length === 0
      ? []
      : [listed(others.map(({ name, state }) => `${name} is ${stateWords[state]}`))]),
  ].join('; ');
}

const stateWords: Record<SubscriptionStatus['state'], string> = {
  running: 'running',
  paused: 'paused',
  unfinished: 'being changed',
  absent: 'not at the catalogue',
};
