/** Sinks in the status, with their alerts. */

import { z } from 'zod';
import { readConfigState } from '../../core/config/subscriptions-file.ts';
import {
  flag,
  gaugesIn,
  level,
  type Sample,
  seconds,
  secondsSince,
} from '../../core/status/gauge.ts';
import {
  defineStatusPart,
  type Status,
  type StatusSources,
  watchOne,
} from '../../core/status/status.ts';
import { type Evaluation, isProblem, ok, worstOf } from '../../core/terms/evaluation.ts';
import { countText, listed } from '../../core/terms/text.ts';
import { readDeliveryState, unknownDelivery } from './definitions.ts';
import {
  configCheck,
  type EvaluatedSink,
  evaluateConfig,
  evaluateSink,
  readSinks,
  type SinkState,
  sinkChecks,
  sinkSchema,
} from './report.ts';
import type { DeliveryState } from './terms.ts';

declare module '../../core/status/status.ts' {
  interface StatusFacts {
    sinks: readonly SinkState[];
  }
  interface EvaluatedFacts {
    sinks: readonly EvaluatedSink[];
  }
}

/** Asks the job of a running receiver, or reads the file. */
async function readDelivery({ running, io }: StatusSources): Promise<DeliveryState> {
  if (running === null) return readDeliveryState(io);
  const state = running.job('sinks')?.state as (() => DeliveryState) | undefined;
  return state?.() ?? unknownDelivery;
}

const readStates = async (sources: StatusSources): Promise<SinkState[]> =>
  readSinks(sources.store, await readDelivery(sources));

const labels = { sink: 'name of the sink' };

/** Returns a value of each sink, with the label. */
const each =
  <Value>(read: (sink: EvaluatedSink, atUs: number) => Value) =>
  ({ sinks, atUs }: Pick<Status, 'sinks' | 'atUs'>) =>
    sinks.map((sink) => [{ sink: sink.name }, read(sink, atUs)] as const);

const part = defineStatusPart({
  name: 'sinks',
  unknown: { sinks: [] },
  fields: { sinks: z.array(sinkSchema) },
  open: (sources) => ({
    read: async () => ({ sinks: await readStates(sources) }),
    watch: () => [
      watchOne(configCheck, async () => ({
        fault: (await readDelivery(sources)).fault,
        configFile: await readConfigState(sources.io),
        receiver: await sources.receiver(),
      })),
      {
        checks: sinkChecks,
        read: async () => (await readStates(sources)).map((sink) => [sink.name, sink] as const),
      },
    ],
  }),
  evaluateEach: ({ sinks }, situation) => ({
    sinks: sinks.map((one) => ({ ...one, evaluation: evaluateSink(one, situation) })),
  }),
  evaluate: ({ sinks, configFile, receiver }, situation): Evaluation => {
    const config = evaluateConfig({ configFile, receiver }, situation);
    const problem = worstOf([...sinks.map((one) => one.evaluation), config].filter(isProblem));
    if (problem !== undefined) return problem;
    if (sinks.length === 0) return ok('none configured');
    const waiting = sinks.reduce((sum, one) => sum + one.waiting, 0);
    const queue = waiting === 0 ? 'queue empty' : `${countText(waiting)} queued`;
    return ok(`${listed(sinks.map(({ name }) => name))}: ${queue}`);
  },
  alertKinds: [configCheck, ...sinkChecks].map(({ kind }) => kind),
  metrics: {
    Sinks: [
      level(
        'earshot_sink_level',
        'Level of a sink, as `earshot sinks` shows it.',
        each(({ evaluation }) => evaluation),
        labels,
      ),
      gaugesIn('items')(
        'earshot_sink_items',
        'Number of notifications in the queue of a sink (waiting), and of dead letters (dead).',
        ({ sinks }) =>
          sinks.flatMap(({ name, waiting, dead }): Sample[] => [
            [{ sink: name, state: 'waiting' }, waiting],
            [{ sink: name, state: 'dead' }, dead],
          ]),
        { ...labels, state: 'waiting, dead' },
      ),
      seconds(
        'earshot_sink_oldest_waiting_seconds',
        'Age of the oldest notification in the queue of a sink; 0 with an empty queue.',
        each(({ oldestWaitingAtUs }, atUs) => secondsSince(oldestWaitingAtUs, atUs)),
        labels,
      ),
      seconds(
        'earshot_sink_failing_seconds',
        'Time since which a sink accepts nothing; 0 if the last delivery succeeded.',
        each(({ failingSinceUs }, atUs) => secondsSince(failingSinceUs, atUs)),
        labels,
      ),
      flag(
        'earshot_sink_faulty',
        '1 while no delivery to a sink is possible, because of a fault in the settings of the sink or in the sink.',
        each(({ fault }) => fault !== null),
        labels,
      ),
    ],
  },
});

export const parts = [part];
