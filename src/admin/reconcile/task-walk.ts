/** What of a task is still to be walked, when some of its hours were compared already. */
import { type HourCoverage, hourUs } from '../../domain/completeness.ts';
import { hourOf } from '../../domain/coverage-report.ts';
import type { ReconcileTask, TimeWindow } from './reconcile-task.ts';

export interface TaskWalk {
  task: ReconcileTask;
  /** Oldest first, apart from each other. */
  windows: TimeWindow[];
  /** What was found in the hours that are left out; one that two tasks share stands with the first. */
  skipped: HourCoverage[];
}

/** The walks of tasks, without the hours that are `compared`. */
export function walksOf(
  tasks: readonly ReconcileTask[],
  compared: readonly HourCoverage[],
): TaskWalk[] {
  const toldOf = new Set<HourCoverage>();
  const byKind = Map.groupBy(compared, kindKey);
  return tasks.map((task) => {
    const { fromUs, toUs } = task;
    // Those that it has as a whole: of others, the counts are not of this task.
    const firstUs = Math.max(hourOf(fromUs), task.hours.fromUs);
    const hours = (byKind.get(kindKey(task)) ?? [])
      .filter((hour) => hour.hourUs >= firstUs && hour.hourUs < Math.min(toUs, task.hours.toUs))
      .toSorted((a, b) => a.hourUs - b.hourUs);
    const skipped = hours.filter((hour) => !toldOf.has(hour));
    for (const hour of skipped) toldOf.add(hour);
    return { task, windows: windowsBetween(hours, task), skipped };
  });
}

function windowsBetween(hours: readonly HourCoverage[], task: ReconcileTask): TimeWindow[] {
  const windows: TimeWindow[] = [];
  let { fromUs } = task;
  for (const { hourUs: at } of hours) {
    if (at > fromUs) windows.push({ fromUs, toUs: at });
    fromUs = at + hourUs;
  }
  if (fromUs < task.toUs) windows.push({ fromUs, toUs: task.toUs });
  return windows;
}

const kindKey = ({ subscription, event }: { subscription: string; event: string }) =>
  `${subscription} ${event}`;
