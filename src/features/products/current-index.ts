/** Updates the product index before a command queries it. */

import { withParts } from '../../core/cli/command.ts';
import type { Io } from '../../core/cli/io.ts';
import { createProgressLine, painter, warn } from '../../core/cli/output.ts';
import { AppError, errorText, isAppError } from '../../core/terms/app-error.ts';
import { counted } from '../../core/terms/text.ts';
import type { Products } from '../../filter/products.ts';
import type { DataPlace } from '../../store/engine/disk-limit.ts';
import { catchUpIndex } from './index-file/index-maintenance.ts';
import { isUpToDate } from './index-file/products.ts';

/**
 * Updates the index, and keeps it open while `use` runs. If it cannot be written, prints its lag instead.
 * Rejects with `cancelled` if the user stops the update.
 */
export async function withCurrentIndex(
  place: DataPlace,
  io: Io,
  use: (products: Products) => Promise<void>,
): Promise<void> {
  await withParts(io, ['products'], async ({ products }) => {
    if (!(await isUpToDate(products))) {
      const failure = await catchUp(place, io);
      if (failure !== null) await printLag(products, failure, io);
    }
    await use(products);
  });
}

async function catchUp(place: DataPlace, io: Io): Promise<AppError | null> {
  const { signal } = io;
  const progress = createProgressLine(io.stderr);
  const skipped: number[] = [];
  try {
    await catchUpIndex({
      ...{ ...place, signal },
      onProgress: (done) => {
        skipped.push(...done.skipped);
        const { indexedPosition, lastPosition } = done;
        if (lastPosition === 0) return;
        progress.show(`Indexing: ${Math.floor((indexedPosition / lastPosition) * 100)} %`);
      },
    });
    if (signal.aborted) throw new AppError('cancelled', 'Stopped. Completed indexing is kept.');
    return null;
  } catch (error) {
    // The existing index can still be queried.
    if (isAppError(error, 'unavailable') || isAppError(error, 'conflict')) return error;
    throw error;
  } finally {
    progress.clear();
    if (skipped.length > 0) {
      const what = `${counted(skipped.length, 'unreadable notification')}, kept in the log`;
      warn(io, `skipped ${what}: position ${skipped.slice(0, 5).join(', ')}`);
    }
  }
}

async function printLag(products: Products, failure: AppError, io: Io): Promise<void> {
  const { indexedPosition, lastPosition } = await products.indexProgress();
  const missing = lastPosition - indexedPosition;
  if (missing <= 0) return;
  const label = painter(io, io.stderr)('yellow', `${missing} notifications are not indexed yet`);
  io.stderr.write(`${label}, so the result may be incomplete: ${errorText(failure)}\n`);
}
