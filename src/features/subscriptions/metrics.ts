/** Metrics of subscriptions, and of the queues of pull subscriptions. */
import { oldestEntryAgeUs } from '../../admin/pull-queue.ts';
import {
  flag,
  gaugesIn,
  level,
  moment,
  registeredNames,
  type Sample,
  type StatusMetric,
  seconds,
  toSeconds,
  type Value,
} from '../../core/status/gauge.ts';
import type { Status } from '../../core/status/status.ts';
import type { EvaluatedSubscription } from './state.ts';

type Queue = NonNullable<EvaluatedSubscription['queue']>;

const pullNames = 'name of the pull subscription';

const states = [
  'running',
  'paused',
  'unfinished',
  'absent',
] as const satisfies EvaluatedSubscription['state'][];

const ofEach =
  (momentOf: (subscription: EvaluatedSubscription) => number | null) =>
  ({ subscriptions }: Status): Sample[] =>
    subscriptions.map((one) => [{ subscription: one.name }, toSeconds(momentOf(one))]);

export const subscriptionMetrics: readonly StatusMetric[] = [
  level(
    'earshot_subscription_level',
    'Level of a subscription, as `earshot status` shows it.',
    ({ subscriptions }) => subscriptions.map((one) => [{ subscription: one.name }, one.evaluation]),
    { subscription: registeredNames },
  ),
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
function ofQueues(value: (queue: Queue, atUs: number) => Value) {
  return ({ subscriptions, atUs }: Status) =>
    subscriptions.flatMap(({ name, queue }): Sample[] =>
      queue === null ? [] : [[{ subscription: name }, value(queue, atUs)]],
    );
}

/** Metrics of pull subscriptions, absent without one. */
export const queueMetrics: readonly StatusMetric[] = [
  gaugesIn('entries')(
    'earshot_pull_queue_entries',
    'Number of unread entries of a queue in the last answer of the catalogue.',
    ofQueues(({ length }) => length),
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
    ofQueues((queue, atUs) => toSeconds(oldestEntryAgeUs(queue, atUs))),
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
];
