/** Subscriptions and their coverage in the status, with their alerts. */
import { z } from 'zod';
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
import {
  defineStatusPart,
  type Status,
  type StatusSources,
  type Watch,
} from '../../core/status/status.ts';
import { weekUs } from '../../core/terms/dates.ts';
import {
  type Evaluation,
  evaluate,
  evaluation,
  isProblem,
  ok,
  type Situation,
  worstOf,
} from '../../core/terms/evaluation.ts';
import { agoText, counted, countText, lengthText, listed } from '../../core/terms/text.ts';
import {
  type CoverageSummary,
  comparisonFields,
  coverageSummaryFields,
  isDue,
  notComparedText,
  readSubscriptionCoverage,
  sumCoverage,
  toComparison,
  toSummary,
} from '../coverage/coverage.ts';
import { comparisonOffBy } from '../coverage/settings.ts';
import { coverageChecks, subscriptionChecks } from './checks.ts';
import {
  type EvaluatedSubscription,
  readSubscriptions,
  type SubscriptionState,
  subscriptionSchema,
} from './state.ts';

declare module '../../core/status/status.ts' {
  interface StatusFacts {
    subscriptions: readonly SubscriptionState[];
    /** Coverage of the last seven days. */
    coverage: readonly CoverageSummary[];
    /** Why hours are not compared automatically; null when they are. */
    comparisonOff: string | null;
  }
  interface EvaluatedFacts {
    subscriptions: readonly (SubscriptionState & Pick<EvaluatedSubscription, 'evaluation'>)[];
  }
}

/** Formats for example: `queue of alps: 1,240 entries, the oldest 3.5 h old`. */
function queueText({ name, queue }: SubscriptionState, nowUs: number): string | null {
  if (queue === null) return null;
  const { length } = queue;
  if (length === null) return `queue of ${name}: not read yet`;
  if (length === 0) return `queue of ${name}: empty`;
  const oldestAgeUs = oldestEntryAgeUs(queue, nowUs);
  const age = oldestAgeUs ? `, the oldest ${lengthText(oldestAgeUs)} old` : '';
  return `queue of ${name}: ${counted(length, 'entry', 'entries')}${age}`;
}

const stateTexts: Record<SubscriptionState['state'], string> = {
  running: 'running',
  paused: 'paused on purpose',
  unfinished: 'being changed',
  absent: 'not in the catalogue',
};

function evaluateSubscription(one: SubscriptionState, situation: Situation): Evaluation {
  const { name: subject, state, lastDeliveryAtUs } = one;
  const last =
    lastDeliveryAtUs === null
      ? 'no notification yet'
      : `last notification ${agoText(situation.nowUs - lastDeliveryAtUs)}`;
  const fine = ok(state === 'running' ? `running, ${last}` : stateTexts[state]);
  return evaluate(subscriptionChecks, one, { subject, situation, fine });
}

type Queue = NonNullable<EvaluatedSubscription['queue']>;

const pullNames = 'name of the pull subscription';

const states = Object.keys(stateTexts);

/** Defines the metric of a time of each subscription. */
const momentOfEach = (
  name: string,
  meaning: string,
  momentUs: (subscription: EvaluatedSubscription) => number | null,
) => {
  const read = ({ subscriptions }: Status): Sample[] =>
    subscriptions.map((one) => [{ subscription: one.name }, toSeconds(momentUs(one))]);
  return moment(name, meaning, read, { subscription: registeredNames });
};

const subscriptionMetrics: readonly StatusMetric[] = [
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
  momentOfEach(
    'earshot_subscription_last_delivery_timestamp_seconds',
    'Time of the last push for a subscription.',
    ({ lastDeliveryAtUs }) => lastDeliveryAtUs,
  ),
  momentOfEach(
    'earshot_subscription_pause_timestamp_seconds',
    'Time at which the catalogue pauses a subscription, unless a notification arrives earlier.',
    ({ pausesAtUs }) => pausesAtUs,
  ),
  momentOfEach(
    'earshot_subscription_cancellation_timestamp_seconds',
    'Time at which the catalogue deletes a subscription, unless a notification arrives earlier.',
    ({ cancelsAtUs }) => cancelsAtUs,
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
const queueMetrics: readonly StatusMetric[] = [
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

const subscriptionsPart = defineStatusPart({
  name: 'subscriptions',
  unknown: { subscriptions: [] },
  fields: { subscriptions: z.array(subscriptionSchema) },
  open: (sources) => {
    const { administration, completeness } = sources.store;
    const read = async (nowUs: number) => {
      const maintenance = sources.running?.job('maintenance') !== undefined;
      const reconcile = comparisonOffBy(sources) === null;
      return readSubscriptions({ administration, completeness, maintenance, reconcile }, nowUs);
    };
    return {
      read: async (nowUs) => ({ subscriptions: await read(nowUs) }),
      watch: (nowUs): Watch<SubscriptionState>[] => [
        {
          checks: [...subscriptionChecks, ...coverageChecks],
          read: async () => (await read(nowUs)).map((one) => [one.name, one]),
        },
      ],
    };
  },
  evaluateEach: ({ subscriptions }, situation) => ({
    subscriptions: subscriptions.map((one) => ({
      ...one,
      evaluation: evaluateSubscription(one, situation),
    })),
  }),
  evaluate: ({ subscriptions, log, atUs }): Evaluation => {
    if (subscriptions.length === 0) {
      return log?.lastReceivedAtUs === null
        ? evaluation(
            'warning',
            'No subscription is registered, so no notifications will arrive.',
            'Add a subscription to earshot.config.ts and run `earshot register`.',
          )
        : ok('none registered here');
    }
    const problem = worstOf(subscriptions.map((one) => one.evaluation).filter(isProblem));
    if (problem !== undefined) return problem;
    const texts = subscriptions.map((one) => `${one.name} (${one.evaluation.text})`);
    const queues = subscriptions.flatMap((one) => queueText(one, atUs) ?? []);
    return ok([listed(texts), ...queues].join('; '));
  },
  alertKinds: [...subscriptionChecks, ...coverageChecks].map(({ kind }) => kind),
  metrics: { Subscriptions: subscriptionMetrics, 'Queues of pull subscriptions': queueMetrics },
});

/** Reads the coverage of seven days, as `earshot coverage` prints it. */
export async function readCoverage(
  { completeness }: Pick<StatusSources['store'], 'completeness'>,
  nowUs: number,
): Promise<CoverageSummary[]> {
  const window = { sinceUs: nowUs - weekUs, untilUs: nowUs, nowUs };
  const coverage = await readSubscriptionCoverage(completeness, window);
  return coverage.map(({ hours: _, ...summary }) => summary);
}

/** Describes what the counts leave out. */
function uncomparedText(coverage: readonly CoverageSummary[], off: string | null): string[] {
  const names = coverage.flatMap((one) => (one.state === 'not-compared' ? [one.subscription] : []));
  return [
    ...(names.length === 0 ? [] : [`not compared yet: ${listed(names)}`]),
    ...(off === null ? [] : [`automatic comparison is off: ${off.replace(/\.$/, '')}`]),
  ];
}

const coveragePart = defineStatusPart({
  name: 'coverage',
  unknown: { coverage: [], comparisonOff: null },
  fields: {
    coverage: z.array(z.object(coverageSummaryFields)).describe('Coverage of the last seven days.'),
    comparison: comparisonFields,
  },
  toFields: ({ coverage, comparisonOff: off }) => ({
    coverage: coverage.map((one) => toSummary(one, off)),
    comparison: toComparison(off),
  }),
  open: (sources) => ({
    read: async (nowUs) => ({
      comparisonOff: comparisonOffBy(sources),
      coverage: await readCoverage(sources.store, nowUs),
    }),
  }),
  evaluate: ({ coverage, atUs, subscriptions, receiver, ...status }, situation): Evaluation => {
    const problem = worstOf(
      subscriptions
        .map((one) => evaluate(coverageChecks, one, { subject: one.name, situation, fine: ok('') }))
        .filter(isProblem),
    );
    if (problem !== undefined) return problem;
    const sum = sumCoverage(coverage);
    if (sum === null) return ok('no subscription registered, so nothing is expected');
    const off = receiver === null ? 'The receiver is not running.' : status.comparisonOff;
    if (sum.state === 'not-compared') {
      const when = { comparisonOff: off, nowUs: atUs };
      const next = isDue(sum, when) ? 'Run `earshot reconcile` to compare now.' : null;
      return evaluation('ok', notComparedText(sum, when), next);
    }
    const { expected, missing, recovered, late } = sum;
    // Hours of several subscriptions have no sum.
    const unknownHours = Math.max(...coverage.map((one) => one.unknownHours));
    const counts = [
      missing === 0 ? 'none missing' : `${countText(missing)} missing`,
      ...(recovered === 0 ? [] : [`${countText(recovered)} recovered`]),
      ...(late === 0 ? [] : [`${countText(late)} late`]),
    ];
    const open = counted(unknownHours, 'hour');
    const hours = unknownHours === 0 ? 'all due hours compared' : `${open} not compared`;
    const found = `${counted(expected, 'event')} expected: ${counts.join(', ')}`;
    const left = uncomparedText(coverage, receiver === null ? null : status.comparisonOff);
    return ok([`7 days, ${hours}; ${found}`, ...left].join('; '));
  },
  metrics: {
    Completeness: [
      gaugesIn('events')(
        'earshot_coverage_events',
        'Events in the catalogue in the last seven days, without events before the start of the subscription. expected: all events. missing: not in the log. recovered: not pushed, but fetched. late: pushed more than half an hour after the event. Absent before the first comparison.',
        ({ coverage }) =>
          coverage
            .filter(({ state }) => state !== 'not-compared')
            .flatMap(({ subscription, expected, missing, recovered, late }) =>
              Object.entries({ expected, missing, recovered, late }).map(
                ([kind, count]): Sample => [{ subscription, kind }, count],
              ),
            ),
        { subscription: registeredNames, kind: 'expected, missing, recovered, late' },
      ),
      gaugesIn('hours')(
        'earshot_coverage_unknown_hours',
        'Number of hours in the last seven days that ended more than half an hour ago, but are not compared with the catalogue.',
        ({ coverage }) =>
          coverage.map(({ subscription, unknownHours }) => [{ subscription }, unknownHours]),
        { subscription: registeredNames },
      ),
    ],
  },
});

export const parts = [subscriptionsPart, coveragePart];
