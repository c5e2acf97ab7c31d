/** `earshot restore`: makes a data directory of a backup. */

import { statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { dataSections, loadConfig } from '../../config/config.ts';
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
import { addHiddenAlias, confirm, folder, yesOption } from '../flags.ts';
import type { Io } from '../io.ts';
import { printJson } from '../output.ts';

export const restoreCommand = defineCommand('restore', {
  description: 'Make a data directory of a backup, or look whether a backup is sound.',
  flags: (command) => {
    command
      .argument('<file>', 'a file that `earshot backup` has written')
      .option('--check', 'only look whether all of it is as it was made; exits 3 when it is not')
      .addOption(yesOption())
      .option('--json', 'as JSON: file madeAt version notifications lastPosition bytes files …');
    return addHiddenAlias(command, '--to <folder>', { of: 'dataDir', parse: folder });
  },
  help: `Stop the receiver first: a directory that is in use is refused. The backup is copied there, read in
full and held against the figures in it, before anything of the old contents is touched. These are
not deleted: they go into a folder before-restore-<time> within, from where they may be removed.

What came after the backup was made is fetched from the catalogue by the receiver when it starts, as
after any outage (30 days back; \`earshot reconcile --since\` goes further). Sinks get what came
after the backup once more.

Fields of --json: file, madeAt, version (of the earshot that made it), notifications, lastPosition
(of the log), bytes, files (those of the data directory that it holds); without --check also dataDir
and movedTo (where the old contents are; null without any).

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 not sound (--check).

Examples:
  $ earshot restore --check /mnt/backups/earshot-20261121T120000Z.db
  $ earshot restore /mnt/backups/earshot-20261121T120000Z.db
  $ earshot restore /mnt/backups/earshot-20261121T120000Z.db --data-dir /tmp/inspect`,
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
  const { dataDir } = loadConfig(io, dataSections);
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
    if (json) await printJson(io.stdout, toJson(file, backup), 'line');
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
