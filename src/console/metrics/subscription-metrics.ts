/** Metrics of subscriptions, and of the queues of pull subscriptions. */
import { queueOutlook } from '../../domain/pull-queue.ts';
import type { Status, SubscriptionStatus } from '../../domain/status.ts';
import {
  flag,
  gaugesIn,
  moment,
  registeredNames,
  type Sample,
  type StatusMetric,
  seconds,
  toSeconds,
  type Value,
} from './status-gauge.ts';

const pullNames = 'name of the pull subscription';

const states = [
  'running',
  'paused',
  'unfinished',
  'absent',
] as const satisfies SubscriptionStatus['state'][];

const ofEach =
  (momentOf: (subscription: SubscriptionStatus) => number | null) =>
  ({ subscriptions }: Status): Sample[] =>
    subscriptions.map((one) => [{ subscription: one.name }, toSeconds(momentOf(one))]);

export const subscriptionMetrics: readonly StatusMetric[] = [
  flag(
    'earshot_subscription_state',
    '1 for the last known state of a registered subscription, 0 for all other states. unfinished: a change of the subscription is not complete. absent: not in the catalogue.',
    ({ subscriptions }) =>
      subscriptions.flatMap(({ name, state: current }) =>
        states.map((state): Sample => [{ subscription: name, state }, state === current]),
      ),
    { subscription: registeredNames, state: states.join(', ') },
  ),
  moment(
    'earshot_subscription_last_delivery_timestamp_seconds',
    'Time of the last push for a subscription.',
    ofEach(({ lastDeliveryAtUs }) => lastDeliveryAtUs),
    { subscription: registeredNames },
  ),
  moment(
    'earshot_subscription_pause_timestamp_seconds',
    'Time at which the catalogue pauses a subscription, unless a notification arrives earlier.',
    ofEach(({ pausesAtUs }) => pausesAtUs),
    { subscription: registeredNames },
  ),
  moment(
    'earshot_subscription_cancellation_timestamp_seconds',
    'Time at which the catalogue deletes a subscription, unless a notification arrives earlier.',
    ofEach(({ cancelsAtUs }) => cancelsAtUs),
    { subscription: registeredNames },
  ),
];

/** Returns the samples of a value of each queue. */
function ofQueues(value: (queue: Status['queues'][number], atUs: number) => Value) {
  return ({ queues, atUs }: Status) =>
    queues.map((queue): Sample => [{ subscription: queue.subscription }, value(queue, atUs)]);
}

/** Metrics of pull subscriptions, absent without one. */
export const queueMetrics: readonly StatusMetric[] = [
  gaugesIn('entries')(
    'earshot_pull_queue_entries',
    'Number of unread entries of a queue, estimated since the last answer of the catalogue.',
    ofQueues((queue, atUs) => queueOutlook(queue, atUs).length),
    { subscription: pullNames },
  ),
  gaugesIn('entries')(
    'earshot_pull_queue_entries_max',
    'Maximum number of entries of a queue. With more entries, the catalogue drops the oldest ones.',
    ofQueues(({ lengthMax }) => lengthMax),
    { subscription: pullNames },
  ),
  seconds(
    'earshot_pull_oldest_entry_age_seconds',
    'Age of the oldest unread entry; 0 for an empty queue. After three days, an entry loses its record.',
    ofQueues((queue, atUs) => toSeconds(queueOutlook(queue, atUs).oldestAgeUs)),
    { subscription: pullNames },
  ),
  flag(
    'earshot_pull_failing',
    '1 while a queue cannot be read.',
    ofQueues(({ failure }) => failure !== null),
    { subscription: pullNames },
  ),
  moment(
    'earshot_pull_last_read_timestamp_seconds',
    'Time of the last successful request to a queue.',
    ofQueues(({ readAtUs }) => toSeconds(readAtUs)),
    { subscription: pullNames },
  ),
  gaugesIn('requests')(
    'earshot_pull_requests',
    'Number of requests to a queue since the start.',
    ofQueues(({ requests }) => requests),
    { subscription: pullNames },
  ),
];
