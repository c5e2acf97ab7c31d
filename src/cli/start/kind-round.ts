/** What is still to be compared of one kind of events in a round, and where to go on behind what fails. */

import { hourUs } from '../../domain/coverage.ts';
import { hourOf } from '../../domain/coverage-report.ts';
import type { DueTasks } from '../../reconcile/due-windows.ts';
import type { ReconcileTask, TimeWindow } from '../../reconcile/tasks.ts';

/** The most that is passed over at once. */
const skippedHoursMax = 8;

/** Tasks that are compared in one go. */
export interface RoundPart {
  /** Oldest first. What is longer than an hour has its first hour as a task of its own. */
  tasks: readonly ReconcileTask[];
  /** False for early looks. */
  coverage: boolean;
}

export interface KindRound {
  kind: Pick<ReconcileTask, 'subscription' | 'event'>;
  /** What comes next; null when nothing is left. */
  next(): RoundPart | null;
  done(): void;
  /** Passes over the hour that the next part was stuck in: all before `reachedUs` had been compared. */
  failed(reachedUs: number): void;
  failures(): number;
  /** Whether anything was compared. */
  hasProgress(): boolean;
  /** Whether all early looks were taken. */
  hasLooked(): boolean;
  /** What was passed over or never tried, oldest first. */
  left(): TimeWindow[];
}

/**
 * The hour that fails is left to the next round. Where even the first hour of a part fails, more hours are
 * passed over, twice as many each time. Its being asked for alone keeps one hour from spoiling those before it.
 */
export function createKindRound(kind: KindRound['kind'], due: DueTasks): KindRound {
  const { earlyLooks, tasks, secondLooks } = due;
  const parts = [partOf(earlyLooks, false), partOf(tasks, true), partOf(secondLooks, true)].filter(
    (part) => part.tasks.length > 0,
  );
  const skipped: TimeWindow[] = [];
  let failures = 0;
  let skippedHours = 1;
  let hasProgress = false;
  let missesLook = false;

  function failed(reachedUs: number) {
    const [part] = parts;
    const [first] = part?.tasks ?? [];
    if (part === undefined || first === undefined) return;
    failures += 1;
    if (!part.coverage) missesLook = true;
    const stuck = part.tasks.find(({ toUs }) => toUs > reachedUs) ?? first;
    const stuckUs = hourOf(Math.max(stuck.fromUs, reachedUs));
    const isFirstHour = stuckUs === hourOf(first.fromUs);
    if (!isFirstHour) hasProgress = true;
    const goOnUs = stuckUs + (isFirstHour ? skippedHours : 1) * hourUs;
    skippedHours = isFirstHour ? Math.min(skippedHours * 2, skippedHoursMax) : 1;
    for (const { fromUs, toUs } of part.tasks) {
      const window = { fromUs: Math.max(fromUs, stuckUs), toUs: Math.min(toUs, goOnUs) };
      if (window.fromUs < window.toUs) skipped.push(window);
    }
    const rest = part.tasks.flatMap((task) =>
      task.toUs > goOnUs ? [{ ...task, fromUs: Math.max(task.fromUs, goOnUs) }] : [],
    );
    parts.splice(0, 1, ...(rest.length === 0 ? [] : [partOf(rest, part.coverage)]));
  }

  return {
    kind,
    next: () => parts[0] ?? null,
    done: () => {
      parts.shift();
      skippedHours = 1;
      hasProgress = true;
    },
    failed,
    failures: () => failures,
    hasProgress: () => hasProgress,
    hasLooked: () => !missesLook && parts.every(({ coverage }) => coverage),
    left: () => mergeWindows([...skipped, ...parts.flatMap((part) => part.tasks)]),
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

function mergeWindows(windows: readonly TimeWindow[]): TimeWindow[] {
  const merged: TimeWindow[] = [];
  for (const { fromUs, toUs } of windows.toSorted((a, b) => a.fromUs - b.fromUs)) {
    const last = merged.at(-1);
    if (last !== undefined && last.toUs >= fromUs) last.toUs = Math.max(last.toUs, toUs);
    else merged.push({ fromUs, toUs });
  }
  return merged;
}
