/** Selects the hours to compare automatically, from earlier comparisons and from the receiver's downtimes. */
import type { Gap, Registration } from '../../admin/account.ts';
import { hourOf, hourUs, minuteUs } from '../../core/terms/dates.ts';
import type { Definition, HourCoverage, Uptime } from './completeness.ts';
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

/** Pushes sent this long before the last heartbeat may not have been stored. */
const beforeDowntimeUs = 5 * minuteUs;

/** A comparison dated further in the future was made with a wrong clock, and is repeated. */
const clockToleranceUs = 5 * minuteUs;

/** Pushes of newer events may still arrive. */
const deliveryTimeUs = 2 * minuteUs;

export interface DueTasks {
  /** Past, settled hours that are not known to be complete. */
  tasks: ReconcileTask[];
  /** Hours compared before they were a day old, which now are: some records appear late. */
  rechecks: ReconcileTask[];
  /** The time after the settled hours, following a downtime. Compared without writing coverage. */
  earlyChecks: ReconcileTask[];
}

export interface DueOptions {
  /** Oldest first, as all arrays here. */
  definitions: readonly Definition[];
  registrations: readonly Pick<Registration, 'name' | 'subscriptionId'>[];
  /** Covers at least the horizon. */
  coverage: readonly HourCoverage[];
  /** By the same clock as `nowUs`. */
  uptimes: readonly Uptime[];
  gaps: readonly Gap[];
  /** Time of the last early check; downtimes that ended before it are not checked again. */
  earlyCheckedAtUs?: number | null | undefined;
  nowUs: number;
  /** Delay from the end of an hour to its first comparison. */
  settlingUs: number;
  /** Delay from the end of an hour to its second comparison. */
  recheckAfterUs: number;
  /** Maximum age of hours that are compared automatically. */
  comparisonHorizonUs: number;
  /** Pruning horizon: earlier hours are not compared. By the same clock as `nowUs`. */
  unprunedSinceUs: number;
}

/** Each array is oldest first; adjacent hours form one task. */
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

/** `early`: compared less than a day after its end, so late records may be missing. */
type HourState = 'unknown' | 'early' | 'known';

function stateOf(
  at: number,
  compared: HourCoverage | undefined,
  { nowUs, settlingUs, recheckAfterUs }: DueOptions,
): HourState {
  const endUs = at + hourUs;
  if (compared === undefined || compared.missing > 0) return 'unknown';
  // A command may have compared the hour before it settled.
  if (compared.comparedAtUs < endUs + settlingUs) return 'unknown';
  if (compared.comparedAtUs > nowUs + clockToleranceUs) return 'unknown';
  const isOld = nowUs >= endUs + recheckAfterUs;
  return isOld && compared.comparedAtUs < endUs + recheckAfterUs ? 'early' : 'known';
}

/** Returns the settled whole hours within the horizon in which the subscription was in force. */
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

/** Returns the end of the last settled hour. */
function settledUpTo({ nowUs, settlingUs }: Pick<DueOptions, 'nowUs' | 'settlingUs'>): number {
  return hourOf(nowUs - settlingUs);
}

/**
 * Returns the window from the first recent downtime until now, without the settled hours, which are
 * compared separately. Empty if no downtime ended since the last early check.
 */
function earlyWindow(subscription: string, options: DueOptions): TimeWindow[] {
  const { nowUs, earlyCheckedAtUs = null, unprunedSinceUs } = options;
  const settledUs = settledUpTo(options);
  const sinceUs = Math.max(settledUs, earlyCheckedAtUs ?? settledUs);
  const recent = downtimes(subscription, options).filter(({ toUs }) => toUs > sinceUs);
  if (recent.length === 0) return [];
  const downSinceUs = Math.min(...recent.map(({ fromUs }) => fromUs));
  const fromUs = Math.max(downSinceUs - beforeDowntimeUs, settledUs, unprunedSinceUs);
  const toUs = nowUs - deliveryTimeUs;
  return fromUs < toUs ? [{ fromUs, toUs }] : [];
}

/** Returns the receiver's downtimes and the known gaps of the subscription. */
function downtimes(subscription: string, { uptimes, gaps }: DueOptions): TimeWindow[] {
  // The last uptime is still running.
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

/** Maximum number of hours skipped at once. */
const skippedHoursMax = 8;

/** Tasks that are compared together. */
export interface RoundPart {
  /** Oldest first. A task longer than an hour is split after its first hour. */
  tasks: readonly ReconcileTask[];
  /** False for early checks. */
  coverage: boolean;
}

export type Kind = Pick<ReconcileTask, 'subscription' | 'event'>;

export type KindRound = ReturnType<typeof createKindRound>;

/**
 * Leaves a failed hour to the next round. If the first hour of a part fails, skips more hours, twice as many
 * each time. The first hour is queried alone, so that a failure of later hours does not affect it.
 */
export function createKindRound(kind: Kind, due: DueTasks) {
  const { earlyChecks, tasks, rechecks } = due;
  const parts = [partOf(earlyChecks, false), partOf(tasks, true), partOf(rechecks, true)].filter(
    (part) => part.tasks.length > 0,
  );
  const skipped: TimeWindow[] = [];
  let failures = 0;
  let skippedHours = 1;
  let hasProgress = false;
  let hasFailedEarlyCheck = false;

  /** Skips the hour at which the next part failed: everything before `reachedUs` is compared. */
  function failed(reachedUs: number) {
    const [part] = parts;
    const [first] = part?.tasks ?? [];
    if (part === undefined || first === undefined) return;
    failures += 1;
    if (!part.coverage) hasFailedEarlyCheck = true;
    const failedTask = part.tasks.find(({ toUs }) => toUs > reachedUs) ?? first;
    const failedHourUs = hourOf(Math.max(failedTask.fromUs, reachedUs));
    const isFirstHour = failedHourUs === hourOf(first.fromUs);
    if (!isFirstHour) hasProgress = true;
    const resumeUs = failedHourUs + (isFirstHour ? skippedHours : 1) * hourUs;
    skippedHours = isFirstHour ? Math.min(skippedHours * 2, skippedHoursMax) : 1;
    for (const { fromUs, toUs } of part.tasks) {
      const window = { fromUs: Math.max(fromUs, failedHourUs), toUs: Math.min(toUs, resumeUs) };
      if (window.fromUs < window.toUs) skipped.push(window);
    }
    const rest = part.tasks.flatMap((task) =>
      task.toUs > resumeUs ? [{ ...task, fromUs: Math.max(task.fromUs, resumeUs) }] : [],
    );
    parts.splice(0, 1, ...(rest.length === 0 ? [] : [partOf(rest, part.coverage)]));
  }

  return {
    kind,
    /** Returns the next part; null if none is left. */
    next: () => parts[0] ?? null,
    done: () => {
      parts.shift();
      skippedHours = 1;
      hasProgress = true;
    },
    failed,
    failures: () => failures,
    /** True if anything was compared. */
    hasProgress: () => hasProgress,
    /** True if all early checks succeeded. */
    isEarlyChecked: () => !hasFailedEarlyCheck && parts.every(({ coverage }) => coverage),
    /** Returns what was skipped or not attempted, oldest first. */
    left: (): TimeWindow[] => mergeWindows([...skipped, ...parts.flatMap((part) => part.tasks)]),
  };
}

function partOf(tasks: readonly ReconcileTask[], coverage: boolean): RoundPart {
  return { coverage, tasks: tasks.flatMap(firstHourApart) };
}

function firstHourApart(task: ReconcileTask): ReconcileTask[] {
  const endUs = hourOf(task.fromUs) + hourUs;
  if (endUs >= task.toUs) return [task];
  return [
    { ...task, toUs: endUs },
    { ...task, fromUs: endUs },
  ];
}
