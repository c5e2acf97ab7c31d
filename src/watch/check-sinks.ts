/** Alerts of sinks: waiting and failing notifications, faults, and dead letters. */
import { type SinkCounts, unusedSink } from '../domain/sinks.ts';
import { minuteUs } from '../domain/time-units.ts';
import { type Moment, type Problem, problem, row, type WatchDeps } from './situation.ts';
import { countText, lengthText, momentText, quoted } from './texts.ts';

/** A sink, or all sinks with the name ''. */
export interface SinkView extends Omit<SinkCounts, 'failed'> {
  /** True if the configuration defines it; null if that is not known. */
  isSetUp: boolean | null;
  /** Reason why nothing can be delivered to it. */
  fault: string | null;
  /** True when only the problem of all sinks counts, because nothing can be delivered to any. */
  isBlocked?: boolean;
  /** Reason why the current `earshot.config.ts` is not in effect; only for all sinks. */
  rejected?: string | null;
}

/** Waiting time that raises the alert, and waiting time below which it is resolved. */
const waitingUs = { raise: 15 * minuteUs, resolve: 5 * minuteUs, critical: 360 * minuteUs };

const severityOf = (waitsUs: number) => (waitsUs > waitingUs.critical ? 'critical' : 'warning');

const counted = (waiting: number) =>
  waiting === 1 ? '1 notification is' : `${countText(waiting)} notifications are`;

/** Checks the delivery to a sink. Replayed items only count if their delivery fails. */
export function checkDelivery(
  { sink, isSetUp, fault, rejected = null, waiting, error, ...view }: SinkView,
  { nowUs, alert }: Pick<Moment, 'nowUs' | 'alert'>,
): Problem | null {
  const reason = fault ?? rejected;
  if (reason !== null) {
    return problem(
      fault === null ? 'warning' : severityOf(nowUs - (alert?.raisedAtUs ?? nowUs)),
      fault === null
        ? 'The current earshot.config.ts is rejected, and the last valid version stays in effect.'
        : `Nothing is delivered to ${sink === '' ? 'any sink' : `the sink ${sink}`}.`,
      'Fix the fault; a running receiver reloads earshot.config.ts automatically. `earshot doctor` checks the configuration.',
      quoted(reason),
    );
  }
  const drop = `drop the waiting notifications with \`earshot sinks drop ${sink} --waiting\``;
  if (isSetUp === false) {
    if (view.oldestQueuedAtUs === null) return null;
    return problem(
      'warning',
      `The sink ${sink} is no longer configured, and ${counted(waiting)} waiting for it.`,
      `Add the sink to earshot.config.ts again, or ${drop}.`,
    );
  }
  const sinceUs = Math.min(view.oldestLiveQueuedAtUs ?? nowUs, view.failingSinceUs ?? nowUs);
  const waitsUs = nowUs - sinceUs;
  if (waitsUs <= waitingUs[alert === undefined ? 'raise' : 'resolve']) return null;
  return problem(
    severityOf(waitsUs),
    `The sink ${sink} has a backlog: a notification has waited for ${lengthText(waitsUs)}.`,
    `Run \`earshot sinks list\` to see the reason, then fix the target: delivery resumes automatically. Otherwise ${drop}.`,
    `The notification was queued at ${momentText(sinceUs)}; ${counted(waiting)} waiting.`,
    error !== null && `Last failure: ${quoted(error)}`,
  );
}

/** Checks for dead letters. Further ones update the number of the active alert. */
export function checkDeadLetters({ sink, isSetUp, dead, error }: SinkView): Problem | null {
  if (dead === 0) return null;
  return problem(
    'warning',
    `The sink ${sink} has refused ${dead === 1 ? '1 notification' : `${countText(dead)} notifications`} permanently.`,
    `Run \`earshot sinks dead ${sink}\` to see why. Then retry the dead letters with \`earshot sinks retry ${sink} --all\`, or drop them with \`earshot sinks drop ${sink} --all\`.`,
    isSetUp === false && 'The sink is no longer configured.',
    error !== null && `Last failure: ${quoted(error)}`,
  );
}

export const sinkRows = [
  row<SinkView>('sink', (view, moment) =>
    view.isBlocked ? 'unchecked' : checkDelivery(view, moment),
  ),
  row<SinkView>('sink-refused', checkDeadLetters),
];

/** Reads the facts of all sinks, by name. Rejects with `unavailable`. */
export async function readSinks({
  sinks,
  deliveryState,
}: WatchDeps): Promise<[name: string, view: SinkView][]> {
  const { names, faults, fault, rejected = null } = deliveryState();
  const counts = await sinks.counts();
  const each = [...new Set([...(names ?? []), ...counts.map(({ sink }) => sink)])].map((sink) => ({
    ...(counts.find((one) => one.sink === sink) ?? unusedSink(sink)),
    isSetUp: names === null ? null : names.includes(sink),
    fault: faults?.get(sink) ?? null,
    isBlocked: fault !== null,
  }));
  const all = { ...unusedSink(''), isSetUp: null, fault, rejected };
  return [all, ...each].map((view) => [view.sink, view]);
}
