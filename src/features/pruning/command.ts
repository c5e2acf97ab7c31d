/** `earshot prune`: deletes the oldest notifications and frees their disk space. */
import { Option } from 'commander';
import { defineCommand, withParts } from '../../core/cli/command.ts';
import { confirm, dryRunOption, jsonOption, parsedBy, yesOption } from '../../core/cli/flags.ts';
import { type Io, pause } from '../../core/cli/io.ts';
import { createProgressLine, isoTime, printJson } from '../../core/cli/output.ts';
import { unknownName } from '../../core/cli/row-forms.ts';
import { type DataConfig, loadConfig } from '../../core/config/config.ts';
import { keptAge, keptSize } from '../../core/config/variables.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { shortDateUs } from '../../core/terms/dates.ts';
import { counted, countText, sizeText } from '../../core/terms/text.ts';
import { requireDatabase } from '../../store/engine/database.ts';
import type { LogSize, Prunable, PruneRequest, Retention } from '../../store/pruning/terms.ts';
import type { Store, StoreReader } from '../../store/store.ts';
import { blockerText, countsOf, type Pruned, pruneLog } from './job.ts';

export const pruneCommand = defineCommand('prune', {
  description: 'Delete old notifications permanently and free disk space.',
  flags: (command) =>
    command
      .option(
        '--older-than <age>',
        'minimum age of the deleted data (such as 365d or 52w)',
        parsedBy(keptAge),
      )
      .option(
        '--to-size <size>',
        'maximum size of earshot.db, such as 20GB or 512MiB',
        parsedBy(keptSize),
      )
      .option('--quarantine', 'also delete quarantined bodies of the same age')
      .addOption(
        new Option(
          '--remove-reader <name>',
          'reader whose stored position is deleted (deletes no notifications)',
        ).conflicts(['olderThan', 'toSize', 'quarantine', 'dryRun', 'json']),
      )
      .addOption(dryRunOption())
      .addOption(yesOption())
      .addOption(jsonOption()),
  help: `The command shows what will be deleted, and asks for confirmation. Without --older-than and
--to-size, the limits of EARSHOT_KEEP apply. With both flags, both limits apply. The receiver
can run meanwhile. You can interrupt the command, and run the command again to continue. Deleted
notifications are not fetched again and not counted as missing.

A notification is kept until all readers have processed the notification. Readers are sinks (with
queue and dead letters), replays, summaries, the product index and \`earshot tail --reader\`. The
command lists the readers that block the pruning, with advice. To remove an unused reader, use
--remove-reader. The reader of a sink is named sink:<name>.

Fields of --json: notifications, from, until, bytes, quarantined, heldBy, removed.
  from, until  times of receipt of the first deleted and the first kept notification
  heldBy       fields name, position and since of each reader that blocks the pruning
  removed      counts of deleted rows, and released disk space; null with --dry-run

Examples:
  $ earshot prune --older-than 365d --dry-run     print a preview
  $ earshot prune --older-than 365d               delete after a prompt
  $ earshot prune --to-size 20GB --yes            delete without a prompt
  $ earshot prune --remove-reader downloads       remove the reader downloads`,
  run: runPrune,
});

interface PruneFlags {
  /** Microseconds. */
  olderThan?: number;
  /** Bytes. */
  toSize?: number;
  quarantine?: true;
  removeReader?: string;
  dryRun?: true;
  yes?: true;
  json?: true;
}

async function runPrune(io: Io, flags: PruneFlags): Promise<void> {
  const config = loadConfig(io, ['data', 'keep']);
  const { removeReader: reader } = flags;
  if (reader !== undefined) {
    return withParts(io, ['store'], ({ store }) => removeReader({ ...io, store }, reader, flags));
  }
  const request: PruneRequest = {
    keep: keepOf(flags, config.keep),
    withQuarantined: flags.quarantine === true,
    freeShare: 0,
    nowUs: io.nowUs(),
  };
  if (flags.dryRun) {
    return withParts(io, ['reader'], async ({ reader }) => {
      const found = await printPrunable(io, reader, request, flags);
      if (flags.json) await printJson(io.stdout, toPruneJson(found, null), 'line');
    });
  }
  requireDatabase(config.dataDir);
  await withParts(io, ['store'], async ({ store }) => {
    const found = await printPrunable(io, store, request, flags);
    if (found.notifications + found.quarantined > 0) await confirm(io, questionText(found), flags);
    const removed = await remove(io, { config, store, request, found });
    if (flags.json) await printJson(io.stdout, toPruneJson(found, removed), 'line');
    else io.stderr.write(prunedText(removed, await store.pruning.logSize()));
  });
}

/** Retention of the flags; without any, of EARSHOT_KEEP. */
function keepOf({ olderThan, toSize }: PruneFlags, keep: Retention | null): Retention {
  if (olderThan !== undefined || toSize !== undefined) {
    return { ageUs: olderThan ?? null, bytes: toSize ?? null };
  }
  if (keep !== null) return keep;
  throw new AppError(
    'usage',
    'The limit is missing: EARSHOT_KEEP is not set. Add --older-than 365d, --to-size 20GB, or both.',
  );
}

async function printPrunable(
  io: Io,
  { pruning }: Pick<StoreReader, 'pruning'>,
  request: PruneRequest,
  { json }: PruneFlags,
): Promise<Prunable> {
  const found = await pruning.prunable(request);
  if (!json)
    io.stderr.write(previewText(found, await pruning.logSize(), request.keep.bytes !== null));
  return found;
}

/** Rejects with `cancelled` on interruption, and with `conflict` while another program prunes. */
async function remove(
  io: Io,
  deps: { config: DataConfig; store: Store; request: PruneRequest; found: Prunable },
): Promise<Pruned> {
  const { config, store, request, found } = deps;
  const { stderr, signal } = io;
  const { pruning } = store;
  const release = await store.acquireLock('prune', { waitMs: 0 });
  const progress = createProgressLine(stderr);
  try {
    const onStep = (phase: string, { notifications, space }: Pruned) => {
      const all = Math.max(notifications, found.notifications);
      if (phase === 'space') progress.show(`Freeing disk space: ${sizeText(space)}`);
      else progress.show(`Deleted ${countText(notifications)} of ${counted(all, 'notification')}`);
    };
    const pruned = await pruneLog(request, { pruning, pause, signal, onStep });
    const { dataDir, diskReserveBytes } = config;
    const place = { dataDir, diskReserveBytes, signal, onProgress: progress.show };
    const slots = io.features.flatMap(({ afterPruning }) => afterPruning?.() ?? []);
    for (const prune of await Promise.all(slots)) if (!signal.aborted) await prune(place);
    if (signal.aborted) {
      throw new AppError(
        'cancelled',
        'Interrupted. Some notifications were deleted; run the command again to continue.',
      );
    }
    return pruned;
  } finally {
    progress.clear();
    release();
  }
}

/** Describes what will be deleted. `isEstimated`: a limit by size is exact only when it is reached. */
function previewText(found: Prunable, size: LogSize, isEstimated: boolean): string {
  const { notifications, fromUs, untilUs, bytes, quarantined, heldBy } = found;
  const lines: string[] = [];
  if (fromUs === null || untilUs === null) lines.push('No notifications to delete.');
  else {
    const count = `${isEstimated ? 'about ' : ''}${counted(notifications, 'notification')}`;
    lines.push(
      `Selected for deletion: ${count}, received from ${shortDateUs(fromUs)} until ${shortDateUs(untilUs)} (UTC); about ${sizeText(bytes)} of ${sizeText(size.usedBytes)}.`,
    );
  }
  lines.push(...entriesText(quarantined).map((text) => `Selected for deletion: ${text}.`));
  if (heldBy.length > 0) lines.push('Pruning is blocked by:');
  for (const blocker of heldBy) {
    lines.push(`  ${blockerText(blocker)}`, `    ${blocker.advice}`);
  }
  return `${lines.join('\n')}\n`;
}

function questionText({ notifications, quarantined }: Prunable): string {
  const parts = [
    ...(notifications > 0 ? [counted(notifications, 'notification')] : []),
    ...entriesText(quarantined),
  ];
  return `Delete ${parts.join(' and ')} permanently?`;
}

const entriesText = (count: number) =>
  count === 0 ? [] : [counted(count, 'quarantined body', 'quarantined bodies')];

function prunedText(pruned: Pruned, size: LogSize): string {
  const { notifications, quarantined, givenBackBytes, ...others } = countsOf(pruned);
  const rows = Object.entries<number>(others).filter(([, count]) => count > 0);
  const parts = [
    counted(notifications, 'notification'),
    ...entriesText(quarantined),
    ...rows.map(([group, count]) => `${countText(count)} ${group}`),
  ];
  const file = sizeText(size.usedBytes + size.freeBytes);
  return `Deleted ${parts.join(', ')}. earshot.db: ${file}, ${sizeText(givenBackBytes)} less.\n`;
}

/** Times are ISO 8601 UTC; `removed` is null if nothing was deleted, as with `--dry-run`. */
function toPruneJson(found: Prunable, removed: Pruned | null) {
  const { notifications, fromUs, untilUs, bytes, quarantined, heldBy } = found;
  return {
    notifications,
    from: isoTime(fromUs),
    until: isoTime(untilUs),
    bytes,
    quarantined,
    heldBy: heldBy.map(({ name, position, sinceUs }) => ({
      name,
      position,
      since: isoTime(sinceUs),
    })),
    removed: removed && countsOf(removed),
  };
}

async function removeReader(
  io: Io & { store: Store },
  key: string,
  options: { yes?: true },
): Promise<void> {
  const { pruning } = io.store;
  const blockers = await pruning.pruneBlockers();
  const reader = blockers.find((one) => one.kind === 'cursor' && one.key === key);
  if (reader === undefined) {
    const known = blockers.filter(({ kind }) => kind === 'cursor').map((one) => one.key);
    throw unknownName('reader', key, known);
  }
  // Without its position, a sink would be unknown, and its queue and dead letters could not be dropped.
  const left = blockers.find((one) => one.kind !== 'cursor' && one.key === key);
  if (left !== undefined) {
    throw new AppError('conflict', `Reader ${key} has unfinished work: ${blockerText(left)}.`, {
      advice: left.advice,
    });
  }
  await confirm(
    io,
    `Without a stored position, the reader can skip notifications. Delete the stored position of ${blockerText(reader)}?`,
    options,
  );
  await pruning.removeReader(key);
  io.stderr.write(
    `Removed reader ${key}. When this reader runs again, it starts without a stored position.\n`,
  );
}
