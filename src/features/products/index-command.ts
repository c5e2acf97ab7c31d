/** `earshot admin index`: shows and rebuilds the product index. */

import { defineCommand, defineGroup, withParts } from '../../core/cli/command.ts';
import { jsonOption } from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { createProgressLine, painter, printJson } from '../../core/cli/output.ts';
import { printReport } from '../../core/cli/print-report.ts';
import { loadConfig } from '../../core/config/config.ts';
import { AppError, errorText, isAppError } from '../../core/terms/app-error.ts';
import * as report from '../../core/terms/report.ts';
import { counted, countText } from '../../core/terms/text.ts';
import type { IndexState, Products } from '../../filter/products.ts';
import type { DataPlace } from '../../store/engine/disk-limit.ts';
import { catchUpIndex, type IndexProgress, rebuildIndex } from './index-file/index-maintenance.ts';

const jsonFields = `Fields of --json: indexedPosition, lastPosition, behind, products, tombstones, skipped.
  behind      lag: number of log positions that are not indexed yet
  tombstones  number of deleted products
  skipped     number of notifications that could not be indexed

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.`;

const statusCommand = defineCommand('status', {
  description: 'Show the state of the product index: position, lag and number of products.',
  flags: (command) => command.addOption(jsonOption()),
  help: `${jsonFields}

Examples:
  $ earshot admin index status                             print the state
  $ earshot admin index status --json | jq .behind         print the lag in positions
  $ earshot admin index status --data-dir /srv/earshot     read another data directory`,
  needs: ['products'],
  run: async ({ products, ...io }, { json }: { json?: true }) =>
    printState(await products.indexState(), json, io),
});

const rebuildCommand = defineCommand('rebuild', {
  description: 'Rebuild the product index from the log.',
  flags: (command) => command.addOption(jsonOption()),
  help: `The receiver can run meanwhile. Queries use the old index until the new index is complete. If you
interrupt the command, then the old index remains.

${jsonFields}

Examples:
  $ earshot admin index rebuild                             rebuild and show the progress
  $ earshot admin index rebuild --json                      rebuild and print JSON
  $ earshot admin index rebuild && earshot admin index status     rebuild, then print the state`,
  run: async (io, { json }: { json?: true }) => {
    const { signal } = io;
    const progress = createIndexProgress(io, 'Building the index');
    await rebuildIndex({
      ...loadConfig(io, ['data']),
      signal,
      onProgress: progress.show,
    }).finally(progress.clear);
    if (signal.aborted) throw new AppError('cancelled', 'Interrupted. The old index is unchanged.');
    await withParts(io, ['products'], async ({ products }) =>
      printState(await products.indexState(), json, io),
    );
  },
});

export const indexCommand = defineGroup('index', {
  description: 'Show or rebuild the product index.',
  help: `Examples:
  $ earshot admin index                   print the state
  $ earshot admin index rebuild           rebuild from the log
  $ earshot admin index status --json     print all fields`,
  usual: statusCommand,
  commands: [rebuildCommand],
});

async function printState(state: IndexState, json: true | undefined, io: Io): Promise<void> {
  const { indexedPosition, lastPosition, products, tombstones, skipped } = state;
  const behind = Math.max(0, lastPosition - indexedPosition);
  if (json) {
    const shown = { indexedPosition, lastPosition, behind, products, tombstones, skipped };
    return printJson(io.stdout, shown, 'line');
  }
  const lag = behind === 0 ? 'up to date' : `${counted(behind, 'position')} behind`;
  const facts = report.facts(
    ['products', products],
    ['tombstones', tombstones],
    [
      'indexed up to',
      `position ${countText(indexedPosition)} of ${countText(lastPosition)} (${lag})`,
    ],
    [
      'not indexed',
      skipped === 0 ? null : `${counted(skipped, 'unreadable notification')}, kept in the log`,
    ],
  );
  const next = report.text('`earshot start` and `earshot query products` update the index.');
  await printReport(io, { title: 'Product index', blocks: behind === 0 ? [facts] : [facts, next] });
}

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
    if (!(await isCurrent(products))) {
      const failure = await catchUp(place, io);
      if (failure !== null) await printLag(products, failure, io);
    }
    await use(products);
  });
}

/** Shows the progress on a terminal. */
function createIndexProgress({ stderr }: Pick<Io, 'stderr'>, what: string) {
  const { show, clear } = createProgressLine(stderr);
  return {
    show: ({ indexedPosition, lastPosition }: IndexProgress) => {
      if (lastPosition === 0) return;
      show(`${what}: ${Math.floor((indexedPosition / lastPosition) * 100)} %`);
    },
    clear,
  };
}

/** True if no update is needed, which is usual while a receiver runs; saves starting a thread. */
async function isCurrent(products: Products): Promise<boolean> {
  try {
    const { indexedPosition, lastPosition } = await products.indexProgress();
    return indexedPosition === lastPosition;
  } catch (error) {
    // There is no index yet.
    if (isAppError(error, 'unavailable')) return false;
    throw error;
  }
}

async function catchUp(place: DataPlace, io: Io): Promise<AppError | null> {
  const { signal } = io;
  const progress = createIndexProgress(io, 'Indexing');
  try {
    await catchUpIndex({ ...place, signal, onProgress: progress.show });
    if (signal.aborted) throw new AppError('cancelled', 'Stopped. Completed indexing is kept.');
    return null;
  } catch (error) {
    // The existing index can still be queried.
    if (isAppError(error, 'unavailable') || isAppError(error, 'conflict')) return error;
    throw error;
  } finally {
    progress.clear();
  }
}

async function printLag(products: Products, failure: AppError, io: Io): Promise<void> {
  const { indexedPosition, lastPosition } = await products.indexProgress();
  const missing = lastPosition - indexedPosition;
  if (missing <= 0) return;
  const label = painter(io, io.stderr)('yellow', `${missing} notifications are not indexed yet`);
  io.stderr.write(`${label}, so the result may be incomplete: ${errorText(failure)}\n`);
}
