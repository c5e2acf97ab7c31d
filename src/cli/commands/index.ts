/** `earshot index`: the state of the product index, and its rebuild. */
import { Command } from 'commander';
import { dataSections, loadConfig } from '../../config/config.ts';
import { AppError } from '../../domain/app-error.ts';
import type { IndexState } from '../../domain/products.ts';
import { rebuildIndex } from '../../store/products/index-maintenance.ts';
import { asCalled } from '../called-as.ts';
import type { Io } from '../io.ts';
import { writeOut } from '../output.ts';
import { createProgress, withIndex } from '../product-index.ts';

export function indexCommand(io: Io): Command {
  return new Command('index')
    .description('Show the state of the product index, or rebuild it from the notifications.')
    .addHelpText(
      'after',
      `
Examples:
  $ earshot index
  $ earshot index rebuild`,
    )
    .addCommand(statusCommand(io), { isDefault: true })
    .addCommand(rebuildCommand(io));
}

const fields = 'indexedPosition lastPosition behind products tombstones skipped';

function statusCommand(io: Io): Command {
  return new Command('status')
    .description('Show how far the index has got, and what is in it.')
    .option('--json', `as JSON: ${fields}`)
    .addHelpText(
      'after',
      `
Fields of --json: indexedPosition and lastPosition (of the log of notifications), behind (how many
positions are left), products, tombstones (deleted products), skipped (notifications that could not
be indexed).

Example:
  $ earshot index status`,
    )
    .action(({ json }: { json?: true }) =>
      withIndex(loadConfig(io, dataSections).dataDir, async (index) =>
        tell(await index.indexState(), json, io),
      ),
    );
}

function rebuildCommand(io: Io): Command {
  return new Command('rebuild')
    .description('Rebuild the index. Notifications are stored meanwhile, and nothing is lost.')
    .option('--json', `as JSON: ${fields}`)
    .addHelpText(
      'after',
      `
The old index answers until the new one is ready. Ended early, the old one stays as it was.

Example:
  $ earshot index rebuild`,
    )
    .action(({ json }: { json?: true }) => rebuild(json, io));
}

async function rebuild(json: true | undefined, io: Io): Promise<void> {
  const place = loadConfig(io, dataSections);
  const { signal } = io;
  const progress = createProgress(io, 'Building the index');
  await rebuildIndex({ ...place, signal, onProgress: progress.show }).finally(progress.done);
  if (signal.aborted) throw new AppError('cancelled', 'Ended. The old index is as it was.');
  await withIndex(place.dataDir, async (index) => tell(await index.indexState(), json, io));
}

async function tell(state: IndexState, json: true | undefined, io: Io): Promise<void> {
  const { indexedPosition, lastPosition, products, tombstones, skipped } = state;
  const behind = Math.max(0, lastPosition - indexedPosition);
  if (json) {
    const shown = { indexedPosition, lastPosition, behind, products, tombstones, skipped };
    return writeOut(io.stdout, `${JSON.stringify(shown)}\n`);
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
