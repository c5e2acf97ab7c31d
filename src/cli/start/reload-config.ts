/** Applies changes of earshot.config.ts to a receiver that runs. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { faultySinks, type LoadedSinks, loadEachSink } from '../../config/sinks.ts';
import {
  loadSubscriptionsFile,
  readConfigFile,
  subscriptionsFileName,
} from '../../config/subscriptions-file.ts';
import { loadSummaryRules } from '../../config/summary-rules.ts';
import { AppError, errorText } from '../../domain/app-error.ts';
import { errorFields, type Job, startJob } from '../../domain/job.ts';
import type { Logger } from '../../domain/ports.ts';
import { pause } from '../io.ts';

/** How often the file is checked. A poll also sees files on network drives and replaced symbolic links. */
const pollMs = 500;

/** How long a load that hangs is waited for at the end. */
const stopGraceMs = 1_000;

/** For a file that waits for something while it loads. */
const loadTimeoutMs = 30_000;

export interface ConfigWatch {
  /** Why the current version is rejected, without secrets; null when it is in effect. */
  rejected(): string | null;
  /**
   * Applies each later version that is valid as a whole; a rejected one is logged, and the version before stays in
   * effect. `apply` gets the sinks; all else reads the file itself.
   */
  start(apply: (sinks: LoadedSinks) => Promise<void>): void;
  stop(): Promise<void>;
}

/**
 * Reads the file for the first time. One that cannot be read as a whole is logged here, once for all parts of the
 * program. What differs from the file as it was at this call is a change.
 */
export async function watchConfig(folder: string, log: Logger): Promise<ConfigWatch> {
  const path = join(folder, subscriptionsFileName);
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
    await readConfigFile(path);
  } catch (error) {
    hasVersion = false;
    reject(
      error,
      'rejected the configuration file; no sinks, summaries or maintenance until it is fixed',
    );
  }
  const reload = async (apply: (sinks: LoadedSinks) => Promise<void>, signal: AbortSignal) => {
    const mark = markOf(path);
    // Two equal readings: the file is written completely.
    const isSettled = mark === last;
    last = mark;
    if (!isSettled || mark === applied) return;
    applied = mark;
    try {
      // Without a version in effect, there is nothing that a removed file could stop by mistake.
      if (hasVersion && mark === '') throw removed(path);
      await apply(await loadWhole(folder));
      [rejected, hasVersion] = [null, true];
      log.info({ path }, 'applied the changed configuration file');
    } catch (error) {
      if (signal.aborted) return;
      const effect = hasVersion ? 'the version before stays in effect' : 'no version is in effect';
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
          failed: 'the configuration file could not be checked',
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
      'Put it back; to run without it, restart the receiver, or write `export default { sinks: {} };` to it.',
  });
}

/** All parts of the file, valid together. Rejects with `configuration`, all problems at once. */
async function loadWhole(folder: string): Promise<LoadedSinks> {
  const enough = new AbortController();
  const load = [
    loadEachSink(folder),
    loadSubscriptionsFile(folder),
    loadSummaryRules(folder),
  ] as const;
  const loaded = await Promise.race([
    Promise.all(load),
    pause(loadTimeoutMs, enough.signal),
  ]).finally(() => enough.abort());
  if (loaded === undefined) {
    throw new AppError('configuration', `It did not load within ${loadTimeoutMs / 1_000} s.`);
  }
  const [sinks] = loaded;
  if (sinks.faulty.length > 0) throw faultySinks(folder, sinks.faulty);
  return sinks;
}

/** Differs when the file was replaced or written; empty when there is none. */
function markOf(path: string): string {
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats === undefined ? '' : `${stats.ino} ${stats.mtimeMs} ${stats.size}`;
  } catch {
    return 'unreadable';
  }
}
