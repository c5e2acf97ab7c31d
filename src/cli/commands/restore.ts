/** `earshot restore`: restores or verifies a backup. */

import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type DataConfig, dataSections, loadConfig } from '../../config/config.ts';
import { isAppError } from '../../domain/app-error.ts';
import { formatDateUs, shortDateUs } from '../../domain/dates.ts';
import { sizeText } from '../../domain/text.ts';
import { type InspectedBackup, inspectBackup } from '../../store/backups/backup-format.ts';
import {
  oldContents,
  refuseInUse,
  restoreBackup,
  verifySealed,
} from '../../store/backups/restore-backup.ts';
import { compactTime, createBackupProgress, isKeptFile } from '../backup-files.ts';
import { defineCommand } from '../command.ts';
import { addHiddenAlias, confirm, folder, jsonOption, yesOption } from '../flags.ts';
import type { Io } from '../io.ts';
import { counted, printJson } from '../output.ts';

export const restoreCommand = defineCommand('restore', {
  description: 'Restore a data directory from a backup, or verify a backup.',
  flags: (command) => {
    command
      .argument('<file>', 'backup file')
      .option(
        '--check',
        'exit with code 3 if there is a problem (the backup is damaged; --check restores nothing)',
      )
      .addOption(yesOption())
      .addOption(jsonOption());
    return addHiddenAlias(command, '--to <folder>', { of: 'dataDir', parse: folder });
  },
  help: `Stop the receiver first: the command refuses a data directory that is in use. The command copies and
verifies the backup. Then the command moves the old contents of the data directory to the subfolder
before-restore-<time>. Nothing is deleted.

After the restore, start the receiver. From the catalogue, the receiver fetches the notifications
since the backup, but only those of the last 30 days. If the backup is older, also run
\`earshot reconcile --since\` with the time of the backup. The sinks get the fetched notifications a
second time.

Fields of --json: file, madeAt, version, notifications, lastPosition, bytes, files. Without --check,
the output also has dataDir and movedTo. files has the names of the files with secrets. movedTo is
the folder with the old contents; null without old contents.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 damaged backup (--check).

Examples:
  $ earshot restore --check /mnt/backups/earshot-20261121T120000Z.db     verify
  $ earshot restore /mnt/backups/earshot-20261121T120000Z.db             restore
  $ earshot restore /mnt/backups/earshot-20261121T120000Z.db --data-dir /tmp/copy    as a copy`,
  run: runRestore,
});

interface RestoreFlags {
  check?: true;
  yes?: true;
  json?: true;
}

async function runRestore(io: Io, flags: RestoreFlags, path = ''): Promise<void> {
  const file = resolve(path);
  if (flags.check) return check(io, file, flags);
  const { dataDir, sharedLog } = loadConfig(io, dataSections);
  const backup = inspectBackup(file, isKeptFile);
  warnOfReaders(io, file, backup);
  refuseInUse(dataDir);
  const aside = join(dataDir, `before-restore-${compactTime(io.nowUs())}`);
  const isMoved = await askAboutOld(io, { dataDir, aside, backup, flags });
  const progress = createBackupProgress(io);
  const { signal } = io;
  const options = { file, dataDir, aside, mayContain: isKeptFile };
  await restoreBackup({ ...options, onProgress: progress.show, signal }).finally(progress.done);
  if (flags.json) {
    const movedTo = isMoved ? aside : null;
    return printJson(io.stdout, { ...toJson(file, backup), dataDir, movedTo }, 'line');
  }
  io.stderr.write(
    `${restoredText(backup, { dataDir, sharedLog, aside: isMoved ? aside : null }).join('\n')}\n`,
  );
}

/** Warns if other users can read the secrets in the backup: copying may have changed the file mode. */
function warnOfReaders({ stderr }: Io, file: string, { files }: InspectedBackup): void {
  const isOpen = (statSync(file).mode & 0o004) !== 0;
  if (files.length === 0 || !isOpen) return;
  stderr.write(
    `${file} contains secrets, and every user of this machine can read it. Run: chmod 600 ${file}\n`,
  );
}

/** Verifies a backup. Rejects with `differences` if it is damaged. */
async function check(io: Io, file: string, { json }: RestoreFlags): Promise<void> {
  const progress = createBackupProgress(io);
  const watch = { onProgress: progress.show, signal: io.signal };
  try {
    const backup = inspectBackup(file, isKeptFile);
    warnOfReaders(io, file, backup);
    await verifySealed(file, backup, watch).finally(progress.done);
    if (json) await printJson(io.stdout, toJson(file, backup), 'line');
    else io.stderr.write(`${summaryOf(file, backup)} The backup is intact.\n`);
  } catch (error) {
    if (!isAppError(error, 'invalid')) throw error;
    throw error.with({ code: 'differences', cause: error });
  }
}

/** Asks for confirmation if there are old contents. Returns true if they will be moved. */
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
    `${dataDir} contains:\n${entries.join('\n')}\nThese files will be moved to ${aside}.\n`,
  );
  const made = shortDateUs(backup.madeAtUs);
  await confirm(
    io,
    `Restore ${counted(backup.notifications, 'notification')} as of ${made} (UTC)?`,
    flags,
  );
  return true;
}

function restoredText(
  backup: InspectedBackup,
  {
    dataDir,
    sharedLog,
    aside,
  }: Pick<DataConfig, 'dataDir' | 'sharedLog'> & { aside: string | null },
): string[] {
  const made = formatDateUs(backup.madeAtUs);
  const restored = [
    summaryOf(dataDir, backup),
    ...(aside === null
      ? []
      : [`Old contents: ${aside}. Delete the folder when you no longer need it.`]),
  ];
  if (sharedLog !== null) {
    return [
      ...restored,
      'Next: start the receiver, which continues with the later entries of the shared log. Then run `earshot doctor`.',
    ];
  }
  return [
    ...restored,
    ...(backup.files.length > 0
      ? []
      : [
          'The backup contains no secrets. If EARSHOT_ENDPOINT_USERNAME and …_PASSWORD are not set, run `earshot credentials create` now, and `earshot register` after the start.',
        ]),
    'Next: start the receiver, then run `earshot doctor`. The receiver automatically fetches newer notifications of the last 30 days.',
    `To fetch all newer notifications now: \`earshot reconcile --since ${made.slice(0, 19)}Z\``,
  ];
}

function summaryOf(place: string, { notifications, madeAtUs }: InspectedBackup): string {
  return `${place}: ${counted(notifications, 'notification')} as of ${shortDateUs(madeAtUs)} (UTC).`;
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
