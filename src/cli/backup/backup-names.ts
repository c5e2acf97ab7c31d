/** What backups in a folder are called, and which of them are old. */
import { readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { formatDateUs } from '../../domain/notification-date.ts';

/** `earshot-20261121T120000Z.db`: by name is by time. */
const ownName = /^earshot-\d{8}T\d{6}Z\.db$/;
/** What one is called while it is made, or has left when it was interrupted. */
const leftName = /^earshot-\d{8}T\d{6}Z\.db\.part(-journal|-wal|-shm)?$/;

export function backupName(madeAtUs: number): string {
  return `earshot-${compactTime(madeAtUs)}.db`;
}

/** Such as `20261121T120000Z`. */
export function compactTime(us: number): string {
  return `${formatDateUs(us).slice(0, 19).replaceAll(/[-:]/g, '')}Z`;
}

/** Newest first. */
export function backupsIn(folder: string): string[] {
  return readdirSync(folder)
    .filter((name) => ownName.test(name))
    .toSorted()
    .toReversed();
}

/** Written to meanwhile, it is that of another program. */
const leftForMs = 3_600_000;

/**
 * Leaves so many, `newest` among them whatever its name, and nothing that was left half done. `nowMs` is the time of
 * the file system. Returns what it removed.
 */
export function removeOldBackups(
  folder: string,
  { keep, newest, nowMs }: { keep: number; newest: string; nowMs: number },
): string[] {
  const old = backupsIn(folder)
    .filter((name) => name !== newest)
    .slice(keep - 1);
  const isLeft = (name: string) => {
    const changedMs = statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? nowMs;
    return leftName.test(name) && changedMs < nowMs - leftForMs;
  };
  const left = readdirSync(folder).filter(isLeft);
  for (const name of [...old, ...left]) rmSync(join(folder, name), { force: true });
  return old;
}
