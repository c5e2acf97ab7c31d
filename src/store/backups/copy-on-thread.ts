/** Lets the thread for backups make a copy: shows how far it is, and ends it when asked. */
import { truncate } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { DataPlace } from '../engine/disk-limit.ts';
import { type Remote, remote } from '../engine/rpc.ts';
import { StoreThread, threadFile } from '../engine/thread.ts';
import { wasEnded } from './backup-job.ts';
import type { BackupProgress, Copied, CopyRequest } from './backup-messages.ts';
import type { BackupOperations } from './backup-thread.ts';

const progressEveryMs = 200;

export interface BackupWatch {
  /** Called several times a second while there is something to tell. */
  onProgress?: ((progress: BackupProgress) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/**
 * The file is there, and empty. Rejects with `cancelled` when the signal is aborted, and has cut the file short then:
 * SQLite looks through a whole database in one call, which ends early only in this way.
 */
export async function copyOnThread(
  place: DataPlace,
  request: CopyRequest,
  { onProgress, signal }: BackupWatch,
): Promise<Copied> {
  const thread = new StoreThread(threadFile('backups/backup-thread'), {
    ...place,
    callTimeoutSeconds: Number.POSITIVE_INFINITY,
  });
  const backup = remote<BackupOperations>(thread);
  const ended = new AbortController();
  const stop = () => {
    void backup.stop().catch(() => undefined);
    void truncate(request.file).catch(() => undefined);
  };
  try {
    await thread.start();
    const answer = backup.copy(request);
    signal?.addEventListener('abort', stop, { once: true });
    if (signal?.aborted) stop();
    const told = tellProgress(backup, ended.signal, onProgress);
    await Promise.allSettled([answer]);
    ended.abort();
    await told;
    // Also where it was asked in the last moment: the file may have been cut short after it was checked.
    if (signal?.aborted) throw wasEnded();
    return await answer;
  } finally {
    signal?.removeEventListener('abort', stop);
    await thread.close();
  }
}

async function tellProgress(
  backup: Pick<Remote<BackupOperations>, 'progress'>,
  signal: AbortSignal,
  onProgress: BackupWatch['onProgress'],
): Promise<void> {
  while (onProgress !== undefined && !signal.aborted) {
    await delay(progressEveryMs, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    const progress = await backup.progress().catch(() => null);
    if (progress !== null) onProgress(progress);
  }
}
