/** What `earshot backup list` does: looks at each file of a folder that may be a backup. */

import { readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readBackupConfig } from '../../config/backup-config.ts';
import { AppError, errorText } from '../../domain/app-error.ts';
import { errorCodeOf } from '../../domain/error-code.ts';
import { formatDateUs, shortDateUs } from '../../domain/notification-date.ts';
import { sizeText } from '../../domain/size-text.ts';
import { inspectBackup } from '../../store/backups/inspect-backup.ts';
import type { Io } from '../io.ts';
import { type Column, printTable } from '../table.ts';
import { writeOut } from '../write-out.ts';
import { isKeptFile } from './kept-files.ts';

interface Listed {
  file: string;
  /** Microseconds since 1970, UTC. */
  madeAtUs: number | null;
  notifications: number | null;
  lastPosition: number | null;
  bytes: number | null;
  version: string | null;
  fault: string | null;
}

export async function listBackups(
  io: Io,
  named: string | undefined,
  { json }: { json?: true },
): Promise<void> {
  const folder = named === undefined ? readBackupConfig(io).folder : resolve(named);
  if (folder === null) {
    throw new AppError('usage', 'Which folder? EARSHOT_BACKUP_DIR is not set.', {
      advice: 'Name one, such as `earshot backup list /mnt/backups`.',
    });
  }
  const listed = databasesIn(folder)
    .map((name) => inspected(join(folder, name)))
    .toSorted((a, b) => (b.madeAtUs ?? 0) - (a.madeAtUs ?? 0));
  if (json) {
    const rows = listed.map(({ madeAtUs, ...one }) => ({
      ...one,
      madeAt: madeAtUs === null ? null : formatDateUs(madeAtUs),
    }));
    return writeOut(io.stdout, `${JSON.stringify(rows)}\n`);
  }
  await printTable(io.stdout, columns, listed);
  if (listed.length === 0) io.stderr.write(`There are no backups in ${folder}.\n`);
}

const columns: readonly Column<Listed>[] = [
  {
    title: 'made (UTC)',
    value: ({ madeAtUs }) => (madeAtUs === null ? '' : shortDateUs(madeAtUs)),
  },
  {
    title: 'notifications',
    value: ({ notifications }) => `${notifications ?? ''}`,
    align: 'right',
  },
  { title: 'size', value: ({ bytes }) => (bytes === null ? '' : sizeText(bytes)), align: 'right' },
  // The last column, and never cut: a path without its end is of no use.
  { title: 'file', value: ({ file, fault }) => fault ?? file, whole: true },
];

function databasesIn(folder: string): string[] {
  try {
    return readdirSync(folder).filter(
      (name) => name.endsWith('.db') && statSync(join(folder, name)).isFile(),
    );
  } catch (cause) {
    throw new AppError('usage', `${folder} cannot be listed (${errorCodeOf(cause)}).`, { cause });
  }
}

function inspected(file: string): Listed {
  try {
    const { madeAtUs, notifications, lastPosition, bytes, version } = inspectBackup(
      file,
      isKeptFile,
    );
    return { file, madeAtUs, notifications, lastPosition, bytes, version, fault: null };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const none = { madeAtUs: null, notifications: null, lastPosition: null, bytes: null };
    return { file, ...none, version: null, fault: errorText(error) };
  }
}
