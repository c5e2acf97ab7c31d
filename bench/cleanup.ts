/** What must not outlive the benchmark: its child processes and temporary folders. */
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** Remembers what has to go. */
export interface Cleanup {
  /** Creates a folder below `parent` that is removed by `run` or `removeFolder`. */
  temporaryFolder(parent: string): string;
  removeFolder(folder: string): void;
  /** Makes `run` end this process if it still runs by then. */
  ownProcess(child: ChildProcess): void;
  /** Ends what runs and removes what is left, at once. May be repeated; never throws. */
  run(): void;
}

/**
 * Creates a cleanup that also runs when this process exits or is told to end, whatever the reason.
 * Only SIGKILL leaves something behind. The caller still calls `run` when the work is done.
 */
export function createCleanup(): Cleanup {
  const folders = new Set<string>();
  const children = new Set<ChildProcess>();
  const run = () => {
    process.off('exit', run).off('SIGINT', onInterrupt).off('SIGTERM', onTerminate);
    for (const child of children) child.kill('SIGKILL');
    for (const folder of folders) removeFolder(folder);
    children.clear();
  };
  const onSignal = (signal: 'SIGINT' | 'SIGTERM') => () => {
    run();
    // With our handler gone, the signal has its usual effect and the shell sees why we ended.
    process.kill(process.pid, signal);
  };
  const onInterrupt = onSignal('SIGINT');
  const onTerminate = onSignal('SIGTERM');
  const removeFolder = (folder: string) => {
    try {
      rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
      folders.delete(folder);
    } catch {
      // A killed process may hold files for a moment on some systems; `run` tries again.
    }
  };
  process.on('exit', run).on('SIGINT', onInterrupt).on('SIGTERM', onTerminate);
  return {
    temporaryFolder(parent) {
      const folder = mkdtempSync(join(parent, 'earshot-bench-'));
      folders.add(folder);
      return folder;
    },
    removeFolder,
    ownProcess(child) {
      children.add(child);
      child.once('exit', () => children.delete(child));
    },
    run,
  };
}
