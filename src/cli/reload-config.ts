/** Applies changes of earshot.config.ts to a receiver that runs. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { faultySinks, type LoadedSinks, loadEachSink } from '../config/sinks-config.ts';
import { loadSubscriptionsFile, subscriptionsFileName } from '../config/subscriptions-file.ts';
import { loadSummaryRules } from '../config/summary-rules.ts';
import { AppError } from '../domain/app-error.ts';
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

/** Remembers the file as it is now: what is read later than this call and differs is a change. */
export function watchConfig(folder: string, log: Logger): ConfigWatch {
  const stopping = new AbortController();
  const path = join(folder, subscriptionsFileName);
  let applied = markOf(path);
  let last = applied;
  let rejected: string | null = null;
  let running: Promise<void> = Promise.resolve();

  const reload = async (apply: (sinks: LoadedSinks) => Promise<void>) => {
    try {
      await apply(await loadWhole(folder));
      rejected = null;
      log.info({ path }, 'applied the changed configuration file');
    } catch (error) {
      if (stopping.signal.aborted) return;
      const isOurs = error instanceof AppError;
      const details = isOurs ? error.details : [];
      rejected = [error instanceof Error ? error.message : String(error), ...details].join(' ');
      const fields = isOurs ? { reason: error.message, details } : { err: error };
      log.error(
        fields,
        'rejected the changed configuration file; the version before stays in effect',
      );
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

/** All parts of the file, valid together. Rejects with `configuration`, all problems at once. */
async function loadWhole(folder: string): Promise<LoadedSinks> {
  if (markOf(join(folder, subscriptionsFileName)) === '') {
    throw new AppError('configuration', `${join(folder, subscriptionsFileName)} is gone.`);
  }
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
