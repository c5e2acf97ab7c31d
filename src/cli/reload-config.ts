/** Applies changes of earshot.config.ts to a receiver that runs. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { faultySinks, type LoadedSinks, loadEachSink } from '../config/sinks-config.ts';
import {
  loadSubscriptionsFile,
  readConfigFile,
  subscriptionsFileName,
} from '../config/subscriptions-file.ts';
import { loadSummaryRules } from '../config/summary-rules.ts';
import { AppError, errorText } from '../domain/app-error.ts';
import type { Logger } from '../domain/ports.ts';

/** How often the file is checked. A poll also sees files on network drives and replaced symbolic links. */
const pollMs = 500;
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
  const stopping = new AbortController();
  const path = join(folder, subscriptionsFileName);
  let applied = markOf(path);
  let last = applied;
  let rejected: string | null = null;
  let running: Promise<void> = Promise.resolve();

  const reject = (error: unknown, message: string) => {
    const isOurs = error instanceof AppError;
    const details = isOurs ? error.details : [];
    rejected = [errorText(error), ...details].join(' ');
    log.error(isOurs ? { reason: errorText(error), details } : { err: error }, message);
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
  const reload = async (apply: (sinks: LoadedSinks) => Promise<void>) => {
    try {
      // Where nothing is in effect, there is nothing that a removed file could stop by mistake.
      if (hasVersion && markOf(path) === '') throw removed(path);
      await apply(await loadWhole(folder));
      [rejected, hasVersion] = [null, true];
      log.info({ path }, 'applied the changed configuration file');
    } catch (error) {
      if (stopping.signal.aborted) return;
      const effect = hasVersion ? 'the version before stays in effect' : 'no version is in effect';
      reject(error, `rejected the changed configuration file; ${effect}`);
    }
  };
  const watch = async (apply: (sinks: LoadedSinks) => Promise<void>) => {
    const { signal } = stopping;
    while (!signal.aborted) {
      await delay(pollMs, undefined, { signal }).catch(() => undefined);
      const mark = markOf(path);
      // Two equal looks: the file is written completely.
      const isSettled = mark === last;
      last = mark;
      if (signal.aborted || !isSettled || mark === applied) continue;
      applied = mark;
      await reload(apply);
    }
  };
  return {
    rejected: () => rejected,
    start: (apply) => {
      running = watch(apply);
    },
    // A load that hangs is not waited for longer than for a person to ask a second time.
    stop: async () => {
      stopping.abort();
      await Promise.race([running, delay(1_000)]);
    },
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
  const late = delay(loadTimeoutMs, undefined, { signal: enough.signal }).then(() => {
    throw new AppError('configuration', `It did not load within ${loadTimeoutMs / 1_000} s.`);
  });
  late.catch(() => undefined);
  try {
    const [sinks] = await Promise.race([
      Promise.all([loadEachSink(folder), loadSubscriptionsFile(folder), loadSummaryRules(folder)]),
      late,
    ]);
    if (sinks.faulty.length > 0) throw faultySinks(folder, sinks.faulty);
    return sinks;
  } finally {
    enough.abort();
  }
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
