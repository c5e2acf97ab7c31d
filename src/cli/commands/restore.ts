/** `earshot restore`: makes a data directory of a backup. */
import { Command } from 'commander';
import type { RestoreFlags } from '../backup/restore-command.ts';
import type { Io } from '../io.ts';
import { addHiddenAlias, folder, yesOption } from '../shared-flags.ts';

export function restoreCommand(io: Io): Command {
  const command = new Command('restore')
    .description('Make a data directory of a backup, or look whether a backup is sound.')
    .argument('<file>', 'a file that `earshot backup` has written')
    .option('--check', 'only look whether all of it is as it was made; exits 3 when it is not')
    .addOption(yesOption())
    .option('--json', 'as JSON: file madeAt version notifications lastPosition bytes files …')
    .addHelpText(
      'after',
      `
Stop the receiver first: a directory that is in use is refused. The backup is copied there, read in
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
    )
    .action(async (file: string, flags: RestoreFlags) => {
      const { runRestore } = await import('../backup/restore-command.ts');
      await runRestore(io, file, flags);
    });
  return addHiddenAlias(command, '--to <folder>', { of: 'dataDir', parse: folder });
}
