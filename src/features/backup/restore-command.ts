/** `earshot restore`: restores or checks a backup. */

import { join, resolve } from 'node:path';
import { defineCommand } from '../../core/cli/command.ts';
import { confirm, jsonOption, yesOption } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { printJson } from '../../core/cli/output.ts';
import { loadConfig } from '../../core/config/config.ts';
import { isAppError } from '../../core/terms/app-error.ts';
import { counted } from '../../core/terms/text.ts';
import { tablesOf } from '../../store/tables.ts';
import {
  type Backup,
  checkBackup,
  compactTime,
  diskError,
  madeText,
  readBackup,
} from './backup-folder.ts';
import { oldContents, refuseInUse, restoreBackup } from './restore-backup.ts';

export const restoreCommand = defineCommand('restore', {
  description: 'Restore a data directory from a backup, or check a backup.',
  flags: (command) =>
    command
      .argument('<backup>', 'folder of the backup')
      .option(
        '--check',
        'exit with code 3 if there is a problem (the backup is damaged; --check restores nothing)',
      )
      .addOption(yesOption())
      .addOption(jsonOption()),
  help: `Stop the receiver first: a data directory in use is refused. The command copies and checks the
backup, and moves the old contents of the data directory to its subfolder before-restore-<time>.
Nothing is deleted. After an interruption, run the command again.

Then start the receiver, which fetches newer notifications of the last 30 days. If the backup is
older, also run \`earshot reconcile --since\`. The sinks get the fetched notifications again.

Fields of --json: path, bytes, and those of manifest.json in the backup. Without --check, also
dataDir and movedTo, the folder with the old contents; null without old contents.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 damaged backup (--check).

Examples:
  $ earshot restore --check /mnt/backups/earshot-20261121T120000Z     check
  $ earshot restore /mnt/backups/earshot-20261121T120000Z             restore
  $ earshot restore /mnt/backups/earshot-20261121T120000Z --data-dir /tmp/copy    as a copy`,
  run: runRestore,
});

type RestoreFlags = { [Name in 'check' | 'yes' | 'json']?: true };

async function runRestore(io: Io, flags: RestoreFlags, path = ''): Promise<void> {
  if (flags.check) return check(io, resolve(path), flags);
  const { dataDir } = loadConfig(io, ['data']);
  const backup = readBackup(resolve(path));
  refuseInUse(dataDir);
  const tables = tablesOf(io.features);
  const aside = join(dataDir, `before-restore-${compactTime(io.nowUs())}`);
  const old = oldContents(dataDir, backup);
  if (old.length > 0) {
    io.stderr.write(`${dataDir} contains ${old.join(', ')}, to be moved to ${aside}.\n`);
    await confirm(io, `Restore ${contentText(backup)}?`, flags);
  }
  await restoreBackup(backup, { dataDir, tables, aside, signal: io.signal });
  const movedTo = old.length > 0 ? aside : null;
  if (flags.json) return printJson(io.stdout, { ...backup, dataDir, movedTo }, 'line');
  io.stderr.write(`${dataDir}: ${contentText(backup)}.
Next: start the receiver, then run \`earshot doctor\`. Newer notifications of the last 30 days are fetched automatically.
Without a shared log, fetch all newer notifications: \`earshot reconcile --since ${backup.madeAt.slice(0, 19)}Z\`
`);
}

/** Rejects with `differences` if the backup is damaged. */
async function check(io: Io, path: string, { json }: RestoreFlags): Promise<void> {
  try {
    const backup = readBackup(path);
    await checkBackup(backup, { tables: tablesOf(io.features), signal: io.signal });
    if (json) await printJson(io.stdout, backup, 'line');
    else io.stderr.write(`${path}: ${contentText(backup)}. The backup is intact.\n`);
  } catch (error) {
    if (isAppError(error, 'invalid')) throw error.with({ code: 'differences', cause: error });
    throw diskError(error, path);
  }
}

function contentText(backup: Backup): string {
  return `${counted(backup.notifications, 'notification')} as of ${madeText(backup)} (UTC)`;
}
