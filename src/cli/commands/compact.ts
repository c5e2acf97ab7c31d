/** `earshot compact`: makes the log take up as little room as it can. */
import { dataSections, loadConfig } from '../../config/config.ts';
import { AppError } from '../../domain/app-error.ts';
import { sizeText } from '../../domain/text.ts';
import { type Compacted, compactLog } from '../../store/bodies/compact-log.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import type { Store } from '../../store/store.ts';
import { defineCommand, type Parts } from '../command.ts';
import { type Io, pause } from '../io.ts';
import { counted, createProgressLine, printJson } from '../output.ts';

export const compactCommand = defineCommand('compact', {
  description: 'Compress the bodies of the log as far as it goes, and give their space back.',
  flags: (command) =>
    command.option('--json', 'as JSON: bodies unreadable bytesBefore bytesAfter givenBackBytes'),
  help: `Notifications are kept byte by byte. The receiver compresses them in haste, and compacts them every
hour while it has time (EARSHOT_COMPACT); this does the same at once. What an older earshot stored
as it came is converted, too. Each pack is compared with what it replaces before that goes.

It may run while the receiver serves, in short steps, and be ended at any time: the same command
goes on where it was.

Fields of --json: bodies (that were moved into full packs), unreadable (rows that are damaged and
stay as they are), bytesBefore and bytesAfter (of earshot.db), givenBackBytes (by which it shrank).

Examples:
  $ earshot compact
  $ earshot compact --json`,
  needs: ['store'],
  run: compact,
});

/** A receiver that compacts gives way after each step. */
const lockWaitMs = 30_000;

/** Between two steps: others that wait for the lock get it. */
const restMs = 20;

/** Rejects with `cancelled` when the user ends it, and with `conflict` while another program compacts. */
async function compact(io: Io & Pick<Parts, 'store'>, { json }: { json?: true }): Promise<void> {
  const { store, signal } = io;
  const place = loadConfig(io, dataSections);
  const release = await createAcquireLock(place.dataDir)('compact', { waitMs: lockWaitMs, signal });
  const progress = createProgressLine(io.stderr);
  try {
    const bytesBefore = await fileBytes(store);
    const compacted = await compactLog({
      ...place,
      // It frees more than it takes: a disk that is nearly full is what it is good for.
      diskReserveBytes: 0,
      freeShare: 0,
      signal,
      rest: () => pause(restMs, signal),
      onStep: ({ nextId, lastId }) =>
        progress.show(`Compacting: ${Math.floor(((nextId - 1) / lastId) * 100)} %`),
    });
    progress.done();
    if (signal.aborted) {
      throw new AppError(
        'cancelled',
        'Stopped. What was compacted by then stays so; the same command goes on from there.',
      );
    }
    await tell(io, { compacted, bytesBefore, bytesAfter: await fileBytes(store), json });
  } finally {
    progress.done();
    release();
  }
}

async function fileBytes({ pruning }: Pick<Store, 'pruning'>): Promise<number> {
  const { usedBytes, freeBytes } = await pruning.logSize();
  return usedBytes + freeBytes;
}

async function tell(
  { stdout, stderr }: Io,
  done: { compacted: Compacted; bytesBefore: number; bytesAfter: number; json: true | undefined },
): Promise<void> {
  const { compacted, bytesBefore, bytesAfter, json } = done;
  const { bodies, unreadable } = compacted;
  const givenBackBytes = Math.max(0, bytesBefore - bytesAfter);
  if (json) {
    const shown = { bodies, unreadable, bytesBefore, bytesAfter, givenBackBytes };
    return printJson(stdout, shown, 'line');
  }
  const damaged =
    unreadable === 0
      ? ''
      : `${counted(unreadable, 'row')} cannot be read and stayed: restore a backup, or live without.\n`;
  stderr.write(
    `Compacted: ${counted(bodies, 'body', 'bodies')}. The log's file has ${sizeText(bytesAfter)} now, ${sizeText(givenBackBytes)} less.\n${damaged}`,
  );
}
