/** Opens the product index for one command, with what has arrived until now in it. */
import { AppError, errorText, isAppError } from '../domain/app-error.ts';
import type { Products, QueryExplanation } from '../domain/products.ts';
import { printable } from '../domain/text.ts';
import type { DataPlace } from '../store/engine/disk-limit.ts';
import { catchUpIndex, type IndexProgress } from '../store/products/index-maintenance.ts';
import { withParts } from './command.ts';
import type { Io } from './io.ts';
import { createProgressLine, painter } from './output.ts';

/**
 * Brings the index up to date, and holds it open while `use` runs. Where it cannot be written, as by a
 * user who may only read, says how far it has got. Rejects with `cancelled` when the user ends it.
 */
export async function withCurrentIndex(
  place: DataPlace,
  io: Io,
  use: (products: Products) => Promise<void>,
): Promise<void> {
  await withParts(io, ['products'], async ({ products }) => {
    if (!(await isCurrent(products))) {
      const failure = await catchUp(place, io);
      if (failure !== null) await tellLag(products, failure, io);
    }
    await use(products);
  });
}

/** Shows how far the work has got, on a terminal. `done` ends the line. */
export function createIndexProgress({ stderr }: Pick<Io, 'stderr'>, what: string) {
  const { show, done } = createProgressLine(stderr);
  return {
    show: ({ indexedPosition, lastPosition }: IndexProgress) => {
      if (lastPosition === 0) return;
      show(`${what}: ${Math.floor((indexedPosition / lastPosition) * 100)} %`);
    },
    done,
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
  const progress = createIndexProgress(io, 'Indexing');
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

/** One part after the other, each under its name. */
export function explanationLines(explanation: QueryExplanation): string[] {
  const { narrowedBy, byColumns, byRecords, plan } = explanation;
  const parts = {
    'narrowed by': [narrowedBy ?? 'nothing: all are looked at in their order'],
    'by columns': byColumns,
    'by records': byRecords,
    plan,
  };
  return Object.entries(parts).flatMap(([name, texts]) =>
    texts.map((text, i) => `${(i === 0 ? name : '').padEnd(12)}${printable(text)}`),
  );
}
