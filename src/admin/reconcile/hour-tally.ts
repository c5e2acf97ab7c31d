/** Counts outcomes by the hour, also where two tasks share one. */
import { hourUs } from '../../domain/completeness.ts';
import { hourOf } from '../../domain/coverage-report.ts';
import {
  type EventOutcome,
  noCounts,
  type OutcomeCounts,
  type ReconcileTask,
} from './reconcile-task.ts';

export interface HourTally {
  add(task: ReconcileTask, eventUs: number, outcome: EventOutcome): void;
  /**
   * Says that a task has given all it has of an hour. Returns the hour's counts when no other task has a part
   * in it that is still to come, else null. Then they are forgotten.
   */
  finish(task: ReconcileTask, at: number): OutcomeCounts | null;
}

/** For tasks that do not overlap: those of one kind of events share an hour only at their edges. */
export function createHourTally(tasks: readonly ReconcileTask[]): HourTally {
  const counted = new Map<string, OutcomeCounts>();
  const partsLeft = new Map<string, number>();
  for (const task of tasks) {
    for (const at of edgeHours(task)) {
      const key = hourKey(task, at);
      partsLeft.set(key, (partsLeft.get(key) ?? 0) + 1);
    }
  }
  return {
    add: (task, eventUs, outcome) => {
      const key = hourKey(task, hourOf(eventUs));
      const counts = counted.get(key) ?? noCounts();
      counts.expected += 1;
      counts[outcome] += 1;
      counted.set(key, counts);
    },
    finish: (task, at) => {
      const key = hourKey(task, at);
      const left = (partsLeft.get(key) ?? 1) - 1;
      partsLeft.set(key, left);
      if (left > 0) return null;
      partsLeft.delete(key);
      const counts = counted.get(key) ?? noCounts();
      counted.delete(key);
      return counts;
    },
  };
}

/** The hours of which a task has only a part. */
function edgeHours({ fromUs, toUs }: ReconcileTask): Set<number> {
  return new Set([fromUs, toUs].filter((us) => us % hourUs !== 0).map(hourOf));
}

const hourKey = ({ subscription, event, isEarlier }: ReconcileTask, at: number) =>
  `${subscription} ${event} ${isEarlier} ${at}`;
