/** What backups in a folder are called, and which of them are old. */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { formatDateUs } from '../../domain/notification-date.ts';

/** `earshot-20261121T120000Z.db`: by name is by time. */
const ownName = /^earshot-\d{8}T\d{6}Z\.db$/;

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

/** Keeps a number of backups, `newest` among them whatever its name. Returns the names of those that it removed. */
export function removeOldBackups(
  folder: string,
  { keep, newest }: { keep: number; newest: string },
): string[] {
  const old = backupsIn(folder)
    .filter((name) => name !== newest)
    .slice(keep - 1);
  for (const name of old) rmSync(join(folder, name), { force: true });
  return old;
}
