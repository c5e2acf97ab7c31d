/** What `earshot backup` does: makes one, has it remembered, and tells where it is. */

import { statSync } from 'node:fs';
import { extname, join, resolve, sep } from 'node:path';
import { type BackupConfig, readBackupConfig } from '../../config/backup-config.ts';
import { AppError, errorText } from '../../domain/app-error.ts';
import type { BackupRun } from '../../domain/backups.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import { sizeText } from '../../domain/size-text.ts';
import { openStore, openStoreReader } from '../../store/store.ts';
import type { Io } from '../io.ts';
import { writeOut } from '../write-out.ts';
import { backupName } from './backup-names.ts';
import { createBackupProgress } from './backup-progress.ts';
import { makeRememberedBackup, type RememberedBackup } from './remembered-backup.ts';

export interface BackupFlags {
  to?: string;
  force?: true;
  withoutSecrets?: true;
  json?: true;
}

export async function runBackup(io: Io, flags: BackupFlags & { version: string }): Promise<void> {
  const config = readBackupConfig(io);
  const progress = createBackupProgress(io);
  const made = await makeRememberedBackup(
    {
      place: config,
      ...targetOf(flags, config, io),
      replace: flags.force === true,
      version: flags.version,
      withSecrets: flags.withoutSecrets !== true,
      onProgress: progress.show,
      signal: io.signal,
    },
    { nowUs: io.nowUs, remember: (run) => remember(io, config, run) },
  ).finally(progress.done);
  await tell(io, made, flags);
}

/** The file of the backup; in a folder, which is created, it gets its name from the time. */
function targetOf(
  { to }: BackupFlags,
  { folder }: BackupConfig,
  { nowUs }: Io,
): { file: string; createsFolder: boolean } {
  const path = to === undefined ? folder : resolve(to);
  if (path === null) {
    throw new AppError('usage', 'No place for the backup is named.', {
      advice: 'Add --to FOLDER or --to FILE, or set EARSHOT_BACKUP_DIR.',
    });
  }
  const isFolder =
    to === undefined ||
    to.endsWith(sep) ||
    extname(path) === '' ||
    statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  return { file: isFolder ? join(path, backupName(nowUs())) : path, createsFolder: isFolder };
}

/** A backup is none the worse for not being remembered. */
async function remember(io: Io, place: BackupConfig, run: BackupRun): Promise<void> {
  try {
    // A file of an older version stays as it is: its receiver may be running still.
    const reader = openStoreReader(place.dataDir);
    await reader.lastPosition().finally(() => reader.close());
    const store = await openStore({ ...place, nowUs: io.nowUs, mustExist: true });
    await store.backups.recordBackup(run).finally(() => store.close());
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    if (error.code === 'configuration') return;
    io.stderr.write(`This could not be remembered for \`earshot status\`: ${errorText(error)}\n`);
  }
}

async function tell(io: Io, made: RememberedBackup, { json }: BackupFlags): Promise<void> {
  const { run, bytes, notifications, lastPosition, files } = made;
  const { file, startedAtUs, endedAtUs } = run;
  if (json) {
    const shown = { file, bytes, notifications, lastPosition, files };
    const times = { startedAt: formatDateUs(startedAtUs), endedAt: formatDateUs(endedAtUs) };
    return writeOut(io.stdout, `${JSON.stringify({ ...shown, ...times })}\n`);
  }
  const secrets =
    files.length === 0
      ? 'It holds no secrets.'
      : 'It holds secrets: keep it as safe as this machine.';
  io.stderr.write(
    `${notifications} notifications, ${sizeText(bytes)}, checked against the log. ${secrets}\n`,
  );
  await writeOut(io.stdout, `${file}\n`);
}
