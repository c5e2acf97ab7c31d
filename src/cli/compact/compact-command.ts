/** What `earshot compact` does: compacts step by step, and says what came of it. */
import { readDataConfig } from '../../config/read-config.ts';
import { AppError } from '../../domain/app-error.ts';
import { sizeText } from '../../domain/size-text.ts';
import { type Compacted, compactLog } from '../../store/bodies/compact-log.ts';
import { createTakeLock } from '../../store/engine/locks.ts';
import { openStore, type Store } from '../../store/store.ts';
import type { Io } from '../io.ts';
import { createProgress } from '../products/current-index.ts';
import { counted } from '../sinks/counted.ts';
import { pause } from '../until-aborted.ts';
import { writeOut } from '../write-out.ts';

/** A receiver that compacts gives way after each step. */
const waitMs = 30_000;
/** Between two steps: others that wait for the lock get it. */
const restMs = 20;

/** Rejects with `cancelled` when the user ends it, and with `conflict` while another program compacts. */
export async function runCompact(io: Io, { json }: { json?: true }): Promise<void> {
  const place = readDataConfig(io);
  const store = await openStore({ ...place, nowUs: io.nowUs, mustExist: true });
  try {
    const { signal } = io;
    const release = await createTakeLock(place.dataDir)('compact', { waitMs, signal });
    const progress = createProgress(io, 'Compacting');
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
          progress.show({ indexedPosition: nextId - 1, lastPosition: lastId }),
      });
      progress.done();
      if (signal.aborted) throw stopped();
      await tell(io, { compacted, bytesBefore, bytesAfter: await fileBytes(store), json });
    } finally {
      progress.done();
      release();
    }
  } finally {
    await store.close();
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
    return writeOut(stdout, `${JSON.stringify(shown)}\n`);
  }
  const damaged =
    unreadable === 0
      ? ''
      : `${counted(unreadable, 'row')} cannot be read and stayed: restore a backup, or live without.\n`;
  stderr.write(
    `Compacted: ${counted(bodies, 'body', 'bodies')}. The log's file has ${sizeText(bytesAfter)} now, ${sizeText(givenBackBytes)} less.\n${damaged}`,
  );
}

function stopped(): AppError {
  return new AppError(
    'cancelled',
    'Stopped. What was compacted by then stays so; the same command goes on from there.',
  );
}
