/** Copies a database page by page as it was at one moment, while others go on writing. */
import { closeSync, fdatasyncSync, openSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import type { BackupJob } from './backup-job.ts';

/** Pages of one step: 1 MiB. */
const stepPages = 64;
/**
 * After so many steps, what was copied is written to the disk. Were it left to the system, all of it would come at
 * once, and a commit of the intake that meets it waits for half a second and more (decision 29).
 */
const stepsPerSync = 16;

/**
 * Copies what the connection sees into an empty file. The connection is in a transaction that has read: SQLite's own
 * copying would begin anew with each commit of others otherwise, and under load never end.
 */
export async function copyPages(source: Database, file: string, job: BackupJob): Promise<void> {
  const descriptor = openSync(file, 'r+');
  let steps = 0;
  const progress = (pages: { totalPages: number; remainingPages: number }) => {
    const { totalPages: total, remainingPages } = pages;
    job.goOn();
    job.progress = { phase: 'copying', done: total - remainingPages, total };
    steps += 1;
    if (steps % stepsPerSync === 0) fdatasyncSync(descriptor);
    return stepPages;
  };
  try {
    await source.backup(file, { progress });
  } finally {
    closeSync(descriptor);
  }
}
