/** `earshot import`: takes over what another data directory has received. */

import { join } from 'node:path';
import { Command } from 'commander';
import { readDataConfig } from '../../config/read-config.ts';
import { AppError } from '../../domain/app-error.ts';
import { databaseFileName, inodeOf } from '../../store/engine/database.ts';
import { openStore, openStoreReader } from '../../store/store.ts';
import { importLog } from '../import-log.ts';
import type { Io } from '../io.ts';
import { openPushedHere } from '../pushed-here.ts';
import { writeOut } from '../write-out.ts';

export function importCommand(io: Io): Command {
  return new Command('import')
    .description('Take over what another data directory has received, such as that of an old host.')
    .argument('<folder>', 'the other data directory; it is only read')
    .option('--json', 'as one JSON object: notifications stored duplicates quarantined')
    .addHelpText(
      'after',
      `
Beside a running receiver, too. What both have is stored once, so it may be interrupted and run
again. Times of receipt are kept; bodies that were no notifications come along into the quarantine.
An event that the other one had looked up at the catalogue (source reconcile) and that was pushed
here is known already; the product index is brought up to date for that.

Fields of --json: notifications (read there), stored (new here), duplicates (known here already),
quarantined (bodies put into the quarantine here).

Example:
  $ earshot import /var/lib/earshot/from-the-old-host`,
    )
    .action((folder: string, flags: { json?: true }) => importFrom(folder, flags, io));
}

async function importFrom(folder: string, { json }: { json?: true }, io: Io): Promise<void> {
  const place = readDataConfig(io);
  checkFolder(folder, place.dataDir);
  const from = openStoreReader(folder);
  try {
    const to = await openStore({ ...place, nowUs: io.nowUs });
    const pushedHere = openPushedHere(place, io.signal);
    try {
      const { stderr, signal } = io;
      const counts = await importLog(from, to, { stderr, signal, pushedHere });
      if (json) return await writeOut(io.stdout, `${JSON.stringify(counts)}\n`);
      const { notifications, stored, duplicates, quarantined } = counts;
      const held = quarantined === 0 ? '' : ` ${quarantined} bodies went into the quarantine.`;
      io.stderr.write(
        `${notifications} notifications read: ${stored} stored, ${duplicates} known already.${held}\n`,
      );
    } finally {
      await pushedHere.close();
      await to.close();
    }
  } finally {
    await from.close();
  }
}

/** Words of the store speak of our own data directory; this is about the other one. */
function checkFolder(folder: string, dataDir: string): void {
  const refuse = (message: string, advice: string) => new AppError('usage', message, { advice });
  const inode = inodeOf(join(folder, databaseFileName));
  if (inode === -1) {
    throw refuse(
      `There is no ${databaseFileName} in ${folder}.`,
      'Name the folder that holds the other one.',
    );
  }
  if (inode === inodeOf(join(dataDir, databaseFileName))) {
    throw refuse(`${folder} is the data directory itself.`, 'Name the one to take over.');
  }
}
