/** Opens the product index for one command, with what has arrived until now in it. */
import { AppError, errorText, isAppError } from '../../domain/app-error.ts';
import type { Products } from '../../domain/products.ts';
import type { DataPlace } from '../../store/engine/disk-limit.ts';
import { catchUpIndex, type IndexProgress } from '../../store/products/index-maintenance.ts';
import { openProducts } from '../../store/products/products.ts';
import { painter } from '../colour.ts';
import type { Io } from '../io.ts';

/**
 * Brings the index up to date, and holds it open while `use` runs. Where it cannot be written, as by a
 * user who may only read, says how far it has got. Rejects with `cancelled` when the user ends it.
 */
export async function withCurrentIndex(
  place: DataPlace,
  io: Io,
  use: (products: Products) => Promise<void>,
): Promise<void> {
  await withIndex(place.dataDir, async (products) => {
    if (!(await isCurrent(products))) {
      const failure = await catchUp(place, io);
      if (failure !== null) await tellLag(products, failure, io);
    }
    await use(products);
  });
}

/** Holds the index open as it is. */
export async function withIndex(
  dataDir: string,
  use: (products: Products) => Promise<void>,
): Promise<void> {
  const products = openProducts(dataDir);
  try {
    await use(products);
  } finally {
    await products.close();
  }
}

/** Shows how far the work has got, on a terminal. `done` ends the line. */
export function createProgress({ stderr }: Pick<Io, 'stderr'>, what: string) {
  let shown = '';
  return {
    show: ({ indexedPosition, lastPosition }: IndexProgress) => {
      if (stderr.isTTY !== true || lastPosition === 0) return;
      const percent = Math.floor((indexedPosition / lastPosition) * 100);
      const text = `\r${what}: ${percent} %`;
      if (text !== shown) stderr.write(text);
      shown = text;
    },
    done: () => {
      if (shown !== '') stderr.write('\n');
    },
  };
}

/** Most often it is, beside a running receiver; then there is no thread to start. */
async function isCurrent(products: Products): Promise<boolean> {
  try {
    const { indexedPosition, lastPosition } = await products.indexState();
    return indexedPosition === lastPosition;
  } catch (error) {
    // There is none yet.
    if (isAppError(error, 'unavailable')) return false;
    throw error;
  }
}

async function catchUp(place: DataPlace, io: Io): Promise<AppError | null> {
  const { signal } = io;
  const progress = createProgress(io, 'Indexing');
  try {
    await catchUpIndex({ ...place, signal, onProgress: progress.show });
    if (signal.aborted) throw new AppError('cancelled', 'Ended. What was indexed by now is kept.');
    return null;
  } catch (error) {
    // What was indexed before can still be asked.
    if (isAppError(error, 'unavailable') || isAppError(error, 'conflict')) return error;
    throw error;
  } finally {
    progress.done();
  }
}

async function tellLag(products: Products, failure: AppError, io: Io): Promise<void> {
  const { indexedPosition, lastPosition } = await products.indexState();
  const missing = lastPosition - indexedPosition;
  if (missing <= 0) return;
  const label = painter(io, io.stderr)('yellow', `${missing} notifications are not indexed yet`);
  io.stderr.write(`${label}, so the answer lacks them: ${errorText(failure)}\n`);
}
