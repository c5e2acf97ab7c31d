/** Estimates how long a comparison will take yet. */
import type { TimeWindow } from './reconcile-task.ts';
import type { TaskWalk } from './task-walk.ts';

export interface TimeLeft {
  /** Tells how far the list of a window is, and returns the milliseconds that are left; null at first. */
  after(state: {
    window: TimeWindow;
    upToUs: number;
    seen: number;
    total: number | null;
  }): number | null;
  /** Tells that a window is done. */
  done(window: TimeWindow): void;
}

/** Takes it that all windows are as full, and the rest is as slow, as what is done. */
export function createTimeLeft(walks: readonly TaskWalk[], nowUs: () => number): TimeLeft {
  const beganAtUs = nowUs();
  const widthUs = ({ fromUs, toUs }: TimeWindow) => toUs - fromUs;
  const allUs = walks.flatMap(({ windows }) => windows).reduce((sum, one) => sum + widthUs(one), 0);
  let doneUs = 0;
  return {
    after: ({ window, upToUs, seen, total }) => {
      const byTime = (upToUs - window.fromUs) / widthUs(window);
      const share = upToUs >= window.toUs || !total ? byTime : Math.min(1, seen / total);
      const done = (doneUs + share * widthUs(window)) / allUs;
      const elapsedMs = Math.max(0, nowUs() - beganAtUs) / 1_000;
      return done > 0 ? Math.round((elapsedMs * (1 - done)) / done) : null;
    },
    done: (window) => {
      doneUs += widthUs(window);
    },
  };
}
