/** Selects what is compared automatically, and when: from what was compared, and when the receiver was down. */
import type { Gap, Registration } from '../domain/account.ts';
import { type Definition, type HourCoverage, hourUs, type Uptime } from '../domain/completeness.ts';
import { hourOf } from '../domain/coverage.ts';
import {
  cutTasks,
  isInForce,
  mergeWindows,
  oldestFirst,
  type ReconcileTask,
  type SegmentedEvent,
  segmentsOf,
  type TimeWindow,
} from './tasks.ts';

const minuteUs = 60_000_000;

/** Before the last sign of life: what was on its way then may not have been stored. */
const beforeAwayUs = 5 * minuteUs;

/** So far ahead of us, no clock was right: what is known from then counts as unknown. */
const clockToleranceUs = 5 * minuteUs;

/** The newest events may still be on their way, without anybody having been away. */
const onTheirWayUs = 2 * minuteUs;

export interface DueTasks {
  /** Hours that are over, have settled, and are not known to be complete. */
  tasks: ReconcileTask[];
  /** Hours that were compared before they were a day old, and now are: records appear late. */
  rechecks: ReconcileTask[];
  /** What may be missing of the time since, after we were away. To be compared without coverage. */
  earlyChecks: ReconcileTask[];
}

export interface DueOptions {
  /** Oldest first, as all lists here. */
  definitions: readonly Definition[];
  registrations: readonly Pick<Registration, 'name' | 'subscriptionId'>[];
  /** Of the horizon, at least. */
  coverage: readonly HourCoverage[];
  /** By the same clock as `nowUs`. */
  uptimes: readonly Uptime[];
  gaps: readonly Gap[];
  /** When early looks were last taken; what had ended before is not looked at again. */
  earlyCheckedAtUs?: number | null | undefined;
  nowUs: number;
  /** How long after its end an hour is compared first. */
  settlingUs: number;
  /** How long after its end it is compared once more. */
  recheckAfterUs: number;
  /** How far back hours are compared automatically. */
  comparisonHorizonUs: number;
  /** Nothing before is compared, as what was received then was pruned; by the same clock as `nowUs`. */
  unprunedSinceUs: number;
}

/** Every list is oldest first, with neighbouring hours in one task. */
export function dueTasks(options: DueOptions): DueTasks {
  const { definitions, registrations, coverage } = options;
  const compared = new Map(coverage.map((hour) => [hourKey(hour, hour.hourUs), hour]));
  const segmented = segmentsOf(definitions);
  const inWindows = (kind: SegmentedEvent, windows: TimeWindow[]) =>
    windows.flatMap((window) => cutTasks(kind, window, window, registrations));
  const due: ReconcileTask[] = [];
  const again: ReconcileTask[] = [];
  const early: ReconcileTask[] = [];
  for (const kind of segmented) {
    const hours = settledHours(kind, options).map((at) => {
      return { at, state: stateOf(at, compared.get(hourKey(kind, at)), options) };
    });
    const windowsOf = (state: HourState) =>
      mergeWindows(
        hours
          .filter((hour) => hour.state === state)
          .map(({ at }) => ({ fromUs: at, toUs: at + hourUs })),
      );
    due.push(...inWindows(kind, windowsOf('unknown')));
    again.push(...inWindows(kind, windowsOf('early')));
    early.push(...inWindows(kind, earlyWindow(kind.subscription, options)));
  }
  return {
    tasks: oldestFirst(due),
    rechecks: oldestFirst(again),
    earlyChecks: oldestFirst(early),
  };
}

/** `early`: it was compared, but before late records had their day to appear. */
type HourState = 'unknown' | 'early' | 'known';

function stateOf(
  at: number,
  compared: HourCoverage | undefined,
  { nowUs, settlingUs, recheckAfterUs }: DueOptions,
): HourState {
  const endUs = at + hourUs;
  if (compared === undefined || compared.missing > 0) return 'unknown';
  // A command may have looked before the hour had settled.
  if (compared.comparedAtUs < endUs + settlingUs) return 'unknown';
  if (compared.comparedAtUs > nowUs + clockToleranceUs) return 'unknown';
  const isOld = nowUs >= endUs + recheckAfterUs;
  return isOld && compared.comparedAtUs < endUs + recheckAfterUs ? 'early' : 'known';
}

/** The whole hours of the horizon that have settled and in which the events were asked for. */
function settledHours(
  { segments }: SegmentedEvent,
  { nowUs, settlingUs, comparisonHorizonUs, unprunedSinceUs }: DueOptions,
): number[] {
  const hours: number[] = [];
  const firstUs = Math.max(
    hourOf(nowUs - comparisonHorizonUs) + hourUs,
    hourOf(segments[0]?.fromUs ?? nowUs),
    Math.ceil(unprunedSinceUs / hourUs) * hourUs,
  );
  for (let at = firstUs; at < settledUpTo({ nowUs, settlingUs }); at += hourUs) {
    if (isInForce(segments, { fromUs: at, toUs: at + hourUs })) hours.push(at);
  }
  return hours;
}

/** The end of the last hour that has settled. */
function settledUpTo({ nowUs, settlingUs }: Pick<DueOptions, 'nowUs' | 'settlingUs'>): number {
  return hourOf(nowUs - settlingUs);
}

/**
 * From before we were away until just now, where settled hours, which are compared as such, leave off.
 * None when nothing has ended since the last look.
 */
function earlyWindow(subscription: string, options: DueOptions): TimeWindow[] {
  const { nowUs, earlyCheckedAtUs = null, unprunedSinceUs } = options;
  const settledUs = settledUpTo(options);
  const sinceUs = Math.max(settledUs, earlyCheckedAtUs ?? settledUs);
  const recent = awayTimes(subscription, options).filter(({ toUs }) => toUs > sinceUs);
  if (recent.length === 0) return [];
  const awayUs = Math.min(...recent.map(({ fromUs }) => fromUs));
  const fromUs = Math.max(awayUs - beforeAwayUs, settledUs, unprunedSinceUs);
  const toUs = nowUs - onTheirWayUs;
  return fromUs < toUs ? [{ fromUs, toUs }] : [];
}

/** Between our signs of life, and where the subscription is known to have sent nothing for a while. */
function awayTimes(subscription: string, { uptimes, gaps }: DueOptions): TimeWindow[] {
  // Whoever asks is up: the last sign of life has been given, the next one will be.
  const down = uptimes.flatMap(({ toUs }, i) => {
    const next = uptimes[i + 1];
    return next === undefined ? [] : [{ fromUs: toUs, toUs: next.fromUs }];
  });
  const silent = gaps.flatMap((gap) =>
    gap.subscription === subscription && gap.toUs !== null
      ? [{ fromUs: gap.fromUs, toUs: gap.toUs }]
      : [],
  );
  return [...down, ...silent];
}

const hourKey = (kind: { subscription: string; event: string }, at: number) =>
  `${kind.subscription} ${kind.event} ${at}`;
