/** `earshot compact`: compresses the log. */
import { dataSections, loadConfig } from '../../config/config.ts';
import { AppError } from '../../domain/app-error.ts';
import { sizeText } from '../../domain/text.ts';
import { type Compacted, compactLog } from '../../store/bodies/compact-log.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import type { Store } from '../../store/store.ts';
import { defineCommand, type Parts } from '../command.ts';
import { jsonOption } from '../flags.ts';
import { type Io, pause } from '../io.ts';
import { counted, createProgressLine, printJson } from '../output.ts';

export const compactCommand = defineCommand('compact', {
  description: 'Compress the bodies of the log and free disk space.',
  flags: (command) => command.addOption(jsonOption()),
  help: `The compression is lossless. On receipt, the receiver compresses each body with a fast method.
Later, the bodies are packed: many bodies are compressed together. An idle receiver packs every
hour, unless EARSHOT_COMPACT is off. This command packs now, including the bodies that older
versions of earshot stored. Each pack is compared with the original bodies before the original
bodies are deleted. The receiver can run meanwhile. You can interrupt the command, and run the
command again to continue.

Fields of --json: bodies, unreadable, bytesBefore, bytesAfter, givenBackBytes. bodies is the number
of packed bodies. unreadable is the number of damaged database rows, which stay unchanged.
bytesBefore and bytesAfter are sizes of earshot.db. givenBackBytes is the difference.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot compact            compress and show the progress
  $ earshot compact --json     compress and print JSON
  $ nice earshot compact       compress with low priority`,
  needs: ['store'],
  run: compact,
});

/** Longer than one step of a compacting receiver, which releases the lock after each step. */
const lockWaitMs = 30_000;

/** Pause between two steps, in which others can acquire the lock. */
const restMs = 20;

/** Rejects with `cancelled` on interruption, and with `conflict` while another program compacts. */
async function compact(io: Io & Pick<Parts, 'store'>, { json }: { json?: true }): Promise<void> {
  const { store, signal } = io;
  const place = loadConfig(io, dataSections);
  const release = await createAcquireLock(place.dataDir)('compact', { waitMs: lockWaitMs, signal });
  const progress = createProgressLine(io.stderr);
  try {
    const bytesBefore = await fileBytes(store);
    const compacted = await compactLog({
      ...place,
      // No reserve: compaction frees more space than it uses, so it must run on a nearly full disk.
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
        'Interrupted. Completed steps are kept; run the command again to continue.',
      );
    }
    await print(io, { compacted, bytesBefore, bytesAfter: await fileBytes(store), json });
  } finally {
    progress.done();
    release();
  }
}

async function fileBytes({ pruning }: Pick<Store, 'pruning'>): Promise<number> {
  const { usedBytes, freeBytes } = await pruning.logSize();
  return usedBytes + freeBytes;
}

async function print(
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
      : `${counted(unreadable, 'damaged block')} of bodies not compressed. To recover ${unreadable === 1 ? 'it' : 'them'}, restore a backup.\n`;
  stderr.write(
    `Compacted ${counted(bodies, 'body', 'bodies')}. earshot.db: ${sizeText(bytesAfter)}, ${sizeText(givenBackBytes)} less.\n${damaged}`,
  );
}
