/** Applies changes of earshot.config.ts to a running receiver. */

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { type Io, pause } from '../core/cli/io.ts';
import {
  type ConfigPlace,
  readConfigFile,
  subscriptionsFileName,
} from '../core/config/subscriptions-file.ts';

import { errorFields, type Job, startJob } from '../core/host/job.ts';
import { AppError, errorText } from '../core/terms/app-error.ts';
import type { Logger } from '../core/terms/ports.ts';

/** Polling interval. Polling also detects changes on network drives and replaced symbolic links. */
const pollMs = 500;

/** Maximum wait at shutdown for a load that hangs. */
const stopGraceMs = 1_000;

/** For a file whose code waits for something. */
const loadTimeoutMs = 30_000;

export interface ConfigWatch {
  /** Returns why the current version is rejected, without secrets; null if it is in effect. */
  rejected(): string | null;
  /**
   * Applies each later version that is completely valid. A rejected version is logged, and the previous one
   * stays in effect. Each job reads its own part.
   */
  start(apply: () => Promise<void>): void;
  stop(): Promise<void>;
}

/**
 * Reads the file for the first time, and logs a file that cannot be read, once for all parts of the program.
 * Later versions count as changes.
 */
export async function watchConfig(
  place: ConfigPlace & Pick<Io, 'features'>,
  log: Logger,
): Promise<ConfigWatch> {
  const path = join(place.workingDir, subscriptionsFileName);
  let applied = markOf(path);
  let last = applied;
  let rejected: string | null = null;

  const reject = (error: unknown, message: string) => {
    const details = error instanceof AppError ? error.details : [];
    rejected = [errorText(error), ...details].join(' ');
    log.error(errorFields(error), message);
  };
  let hasVersion = true;
  try {
    await readConfigFile(place);
  } catch (error) {
    hasVersion = false;
    reject(
      error,
      'rejected the configuration file; sinks, summaries and maintenance are off until it is fixed',
    );
  }
  const reload = async (apply: () => Promise<void>, signal: AbortSignal) => {
    const mark = markOf(path);
    // Two equal readings mean that the file is completely written.
    const isSettled = mark === last;
    last = mark;
    if (!isSettled || mark === applied) return;
    applied = mark;
    try {
      // Removing a file that is in effect would stop all of its sinks, so it is rejected.
      if (hasVersion && mark === '') throw removed(path);
      await checkWhole(place);
      await apply();
      [rejected, hasVersion] = [null, true];
      log.info({ path }, 'applied the changed configuration file');
    } catch (error) {
      if (signal.aborted) return;
      const effect = hasVersion
        ? 'the previous version stays in effect'
        : 'sinks, summaries and maintenance stay off';
      reject(error, `rejected the changed configuration file; ${effect}`);
    }
  };
  let job: Job | undefined;
  return {
    rejected: () => rejected,
    start: (apply) => {
      job = startJob(
        {
          every: { firstMs: pollMs, intervalMs: pollMs },
          run: (signal) => reload(apply, signal),
          failed: 'failed to check the configuration file',
          stopGraceMs,
        },
        { pause, random: () => 0.5, log },
      );
    },
    stop: async () => job?.stop(),
  };
}

function removed(path: string): AppError {
  return new AppError('configuration', `${path} was removed.`, {
    advice:
      'Restore the file. If the file is no longer needed, restart the receiver. Without a restart, write `export default { sinks: {} };` to the file.',
  });
}

/** Checks all parts of the file. Rejects with `configuration` and the problems. */
async function checkWhole(place: ConfigPlace & Pick<Io, 'features'>): Promise<void> {
  const done = new AbortController();
  const check = Promise.all(place.features.map(({ checkConfigFile }) => checkConfigFile?.(place)));
  const checked = await Promise.race([check, pause(loadTimeoutMs, done.signal)]).finally(() =>
    done.abort(),
  );
  if (checked !== undefined) return;
  throw new AppError('configuration', `The file did not load within ${loadTimeoutMs / 1_000} s.`);
}

/** Returns a mark that changes when the file is replaced or written; empty without a file. */
function markOf(path: string): string {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats === undefined ? '' : `${stats.ino} ${stats.mtimeMs} ${stats.size}`;
  } catch {
    return 'unreadable';
  }
}
