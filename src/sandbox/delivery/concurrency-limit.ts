/** Lets only so many tasks run at the same time; the others wait in line. */

export interface ConcurrencyLimit {
  /** Runs a task when its turn has come, first come first served; settles as the task does. */
  run<Result>(task: () => Promise<Result>): Promise<Result>;
}

/** Creates a limit of `tasksMax` tasks at a time. */
export function createConcurrencyLimit(tasksMax: number): ConcurrencyLimit {
  const line: (() => void)[] = [];
  let running = 0;
  return {
    run: async (task) => {
      // A task that ends hands its place to the first in line, so that no newcomer slips in between.
      if (running >= tasksMax) await new Promise<void>((resolve) => line.push(resolve));
      else running += 1;
      try {
        return await task();
      } finally {
        const next = line.shift();
        if (next) next();
        else running -= 1;
      }
    },
  };
}
