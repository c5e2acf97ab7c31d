/** What `earshot restore` does: shows what it will do, asks, restores, and says what to do next. */
import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { readDataConfig } from '../../config/read-config.ts';
import { isAppError } from '../../domain/app-error.ts';
import { formatDateUs, shortDateUs } from '../../domain/notification-date.ts';
import { sizeText } from '../../domain/size-text.ts';
import { type InspectedBackup, inspectBackup } from '../../store/backups/inspect-backup.ts';
import { oldContents, refuseInUse } from '../../store/backups/old-contents.ts';
import { restoreBackup } from '../../store/backups/restore-backup.ts';
import { verifySealed } from '../../store/backups/verify-backup.ts';
import { confirm } from '../confirm.ts';
import type { Io } from '../io.ts';
import { writeOut } from '../write-out.ts';
import { compactTime } from './backup-names.ts';
import { createBackupProgress } from './backup-progress.ts';
import { isKeptFile } from './kept-files.ts';

export interface RestoreFlags {
  check?: true;
  yes?: true;
  json?: true;
}

export async function runRestore(io: Io, path: string, flags: RestoreFlags): Promise<void> {
  const file = resolve(path);
  if (flags.check) return check(io, file, flags);
  const { dataDir } = readDataConfig(io);
  const backup = inspectBackup(file, isKeptFile);
  warnOfReaders(io, file, backup);
  refuseInUse(dataDir);
  const aside = join(dataDir, `before-restore-${compactTime(io.nowUs())}`);
  const isMoved = await askAboutOld(io, { dataDir, aside, backup, flags });
  const progress = createBackupProgress(io);
  const { signal } = io;
  const options = { file, dataDir, aside, isKept: isKeptFile };
  await restoreBackup({ ...options, onProgress: progress.show, signal }).finally(progress.done);
  if (flags.json) {
    const movedTo = isMoved ? aside : null;
    return writeOut(
      io.stdout,
      `${JSON.stringify({ ...toJson(file, backup), dataDir, movedTo })}\n`,
    );
  }
  io.stderr.write(`${restoredText(dataDir, backup, isMoved ? aside : null).join('\n')}\n`);
}

/** A copy has the rights that were given to it on its way. */
function warnOfReaders({ stderr }: Io, file: string, { files }: InspectedBackup): void {
  const isOpen = (statSync(file).mode & 0o004) !== 0;
  if (files.length === 0 || !isOpen) return;
  stderr.write(
    `${file} holds secrets, and every user of this machine may read it. Run: chmod 600 ${file}\n`,
  );
}

/** Rejects with `differences` for a backup that is not as it was made. */
async function check(io: Io, file: string, { json }: RestoreFlags): Promise<void> {
  const progress = createBackupProgress(io);
  const watch = { onProgress: progress.show, signal: io.signal };
  try {
    const backup = inspectBackup(file, isKeptFile);
    warnOfReaders(io, file, backup);
    await verifySealed(file, backup, watch).finally(progress.done);
    if (json) await writeOut(io.stdout, `${JSON.stringify(toJson(file, backup))}\n`);
    else io.stderr.write(`${summaryOf(file, backup)} It is as it was made.\n`);
  } catch (error) {
    if (!isAppError(error, 'invalid')) throw error;
    throw error.with({ code: 'differences', cause: error });
  }
}

/** Resolves with whether there is anything to be moved aside. */
async function askAboutOld(
  io: Io,
  about: { dataDir: string; aside: string; backup: InspectedBackup; flags: RestoreFlags },
): Promise<boolean> {
  const { dataDir, aside, backup, flags } = about;
  const old = oldContents(
    dataDir,
    backup.files.map(({ path }) => path),
  );
  if (old.length === 0) return false;
  const entries = old.map(({ name, stats }) => {
    const size = stats.isFile() ? sizeText(stats.size) : 'folder';
    return `  ${name.padEnd(28)}  ${size.padStart(8)}  ${shortDateUs(stats.mtimeMs * 1_000)}`;
  });
  io.stderr.write(
    `${dataDir} holds:\n${entries.join('\n')}\nAll of it will be moved to ${aside}.\n`,
  );
  const made = shortDateUs(backup.madeAtUs);
  await confirm(io, `Restore ${backup.notifications} notifications as of ${made} (UTC)?`, flags);
  return true;
}

function restoredText(dataDir: string, backup: InspectedBackup, aside: string | null): string[] {
  const made = formatDateUs(backup.madeAtUs);
  return [
    summaryOf(dataDir, backup),
    ...(aside === null ? [] : [`The old contents are in ${aside}; remove it when all is well.`]),
    ...(backup.files.length > 0
      ? []
      : [
          'The backup holds no secrets. Without credentials in the data directory, or the variables, run `earshot credentials create`, and `earshot register` after the start.',
        ]),
    'Next: start the receiver. It fetches what came since by itself, 30 days back; then `earshot doctor`.',
    `For all at once, or for longer: \`earshot reconcile --since ${made.slice(0, 19)}Z\``,
  ];
}

function summaryOf(place: string, { notifications, madeAtUs }: InspectedBackup): string {
  return `${place}: ${notifications} notifications as of ${shortDateUs(madeAtUs)} (UTC).`;
}

function toJson(file: string, backup: InspectedBackup) {
  const { madeAtUs, version, notifications, lastPosition, bytes, files } = backup;
  return {
    file,
    madeAt: formatDateUs(madeAtUs),
    ...{ version, notifications, lastPosition, bytes },
    files: files.map(({ path }) => path),
  };
}
