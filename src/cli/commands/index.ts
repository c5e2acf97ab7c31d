/** `earshot index`: the state of the product index, and its rebuild. */
import type { Command } from 'commander';
import { dataSections, loadConfig } from '../../config/config.ts';
import { AppError } from '../../domain/app-error.ts';
import type { IndexState } from '../../domain/products.ts';
import { rebuildIndex } from '../../store/products/index-maintenance.ts';
import { asCalled } from '../called-as.ts';
import { defineCommand, defineGroup, withParts } from '../command.ts';
import type { Io } from '../io.ts';
import { printJson, writeOut } from '../output.ts';
import { createIndexProgress } from '../product-index.ts';

const jsonFlag = (command: Command) =>
  command.option(
    '--json',
    'as JSON: indexedPosition lastPosition behind products tombstones skipped',
  );

const statusCommand = defineCommand('status', {
  description: 'Show how far the index has got, and what is in it.',
  flags: jsonFlag,
  help: `Fields of --json: indexedPosition and lastPosition (of the log of notifications), behind (how many
positions are left), products, tombstones (deleted products), skipped (notifications that could not
be indexed).

Example:
  $ earshot index status`,
  needs: ['products'],
  run: async ({ products, ...io }, { json }: { json?: true }) =>
    printState(await products.indexState(), json, io),
});

const rebuildCommand = defineCommand('rebuild', {
  description: 'Rebuild the index. Notifications are stored meanwhile, and nothing is lost.',
  flags: jsonFlag,
  help: `The old index answers until the new one is ready. Ended early, the old one stays as it was.

Example:
  $ earshot index rebuild`,
  run: async (io, { json }: { json?: true }) => {
    const { signal } = io;
    const progress = createIndexProgress(io, 'Building the index');
    await rebuildIndex({
      ...loadConfig(io, dataSections),
      signal,
      onProgress: progress.show,
    }).finally(progress.done);
    if (signal.aborted) throw new AppError('cancelled', 'Ended. The old index is as it was.');
    await withParts(io, ['products'], async ({ products }) =>
      printState(await products.indexState(), json, io),
    );
  },
});

export const indexCommand = defineGroup('index', {
  description: 'Show the state of the product index, or rebuild it from the notifications.',
  help: `Examples:
  $ earshot index
  $ earshot index rebuild`,
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
  const progress =
    behind === 0
      ? 'up to date'
      : `${behind} behind; \`earshot start\` and \`earshot query products\` continue with it`;
  const lines = [
    `products       ${products}`,
    `tombstones     ${tombstones}`,
    `indexed up to  ${indexedPosition} of ${lastPosition} (${progress})`,
    ...(skipped === 0
      ? []
      : [`not indexed    ${skipped} that cannot be read; they are in the log`]),
  ];
  await writeOut(io.stdout, asCalled(`${lines.join('\n')}\n`, io));
}
