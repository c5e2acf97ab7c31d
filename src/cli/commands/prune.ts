/** `earshot prune`: removes the oldest notifications, and gives their space back. */
import { InvalidArgumentError, Option } from 'commander';
import type { z } from 'zod';
import { type Config, type DataConfig, dataSections, loadConfig } from '../../config/config.ts';
import { keptAge, keptSize } from '../../config/values.ts';
import { AppError } from '../../domain/app-error.ts';
import { shortDateUs } from '../../domain/dates.ts';
import type {
  LogSize,
  Prunable,
  PruneBlocker,
  PrunePhase,
  PruneRequest,
  Retention,
} from '../../domain/pruning.ts';
import { sinkReader } from '../../domain/sinks.ts';
import { summaryReader } from '../../domain/summaries.ts';
import { sizeText } from '../../domain/text.ts';
import { requireDatabase } from '../../store/engine/database.ts';
import { createAcquireLock } from '../../store/engine/locks.ts';
import { removeLeftovers } from '../../store/leftovers.ts';
import { pruneIndex } from '../../store/products/index-maintenance.ts';
import { type Pruned, pruneLog } from '../../store/pruning/prune-log.ts';
import type { Store, StoreReader } from '../../store/store.ts';
import { defineCommand, withParts } from '../command.ts';
import { confirm, yesOption } from '../flags.ts';
import { type Io, pause } from '../io.ts';
import { counted, createProgressLine, isoTime, printJson, whole } from '../output.ts';

export const pruneCommand = defineCommand('prune', {
  description: 'Remove the oldest notifications for good, and give their space back.',
  flags: (command) =>
    command
      .option('--older-than <age>', 'what was received longer ago: 365d, 52w', argument(keptAge))
      .option(
        '--to-size <size>',
        'until the log takes up no more: 20GB, 512MiB',
        argument(keptSize),
      )
      .option('--quarantine', 'also entries of that age that are still held in quarantine')
      .addOption(
        new Option(
          '--forget-reader <name>',
          'give up the place of a reader, and do nothing else',
        ).conflicts(['olderThan', 'toSize', 'quarantine', 'dryRun', 'json']),
      )
      .option('--dry-run', 'tell what would go and what holds it back, and do nothing')
      .addOption(yesOption())
      .option('--json', 'as JSON: notifications from until bytes quarantined heldBy removed'),
  help: `Tells first what will go, then asks. Without --older-than and --to-size it does what EARSHOT_KEEP
says; with both, what fails either goes. It may run while the receiver serves, in short steps, and
be ended at any time: the same command goes on where it was.

What a reader has not finished stays: sinks with what waits for them and what they refused, replays,
summaries, the product index, and the places of \`earshot tail --reader\`. What holds back is named,
with what to do. A reader that nobody uses any more is given up with --forget-reader; of a sink the
name is sink:<name>.

What is gone is not fetched again, and not told to be missing (docs/keeping.md). --to-size speaks of
earshot.db; the product index beside it has a size of its own.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot prune --older-than 365d --dry-run
  $ earshot prune --older-than 365d
  $ earshot prune --to-size 20GB --yes
  $ earshot prune --forget-reader downloads`,
  run: runPrune,
});

function argument(schema: z.ZodType<number, string>): (text: string) => number {
  return (text) => {
    const parsed = schema.safeParse(text);
    if (parsed.success) return parsed.data;
    throw new InvalidArgumentError(`It ${parsed.error.issues.map(({ message }) => message)[0]}.`);
  };
}

interface PruneFlags {
  /** Microseconds. */
  olderThan?: number;
  /** Bytes. */
  toSize?: number;
  quarantine?: true;
  forgetReader?: string;
  dryRun?: true;
  yes?: true;
  json?: true;
}

async function runPrune(io: Io, flags: PruneFlags): Promise<void> {
  const config = loadConfig(io, [...dataSections, 'keep']);
  const { forgetReader: reader } = flags;
  if (reader !== undefined) {
    return withParts(io, ['store'], ({ store }) => forgetReader({ ...io, store }, reader, flags));
  }
  const request: PruneRequest = {
    keep: keepOf(flags, config),
    withQuarantined: flags.quarantine === true,
    freeShare: 0,
    nowUs: io.nowUs(),
  };
  if (flags.dryRun) {
    return withParts(io, ['reader'], async ({ reader }) => {
      const found = await tellPrunable(io, reader, request, flags);
      if (flags.json) await printJson(io.stdout, toPruneJson(found, null), 'line');
    });
  }
  requireDatabase(config.dataDir);
  await removeLeftovers(config.dataDir);
  await withParts(io, ['store'], async ({ store }) => {
    const found = await tellPrunable(io, store, request, flags);
    if (found.notifications + found.quarantined > 0) await confirm(io, questionText(found), flags);
    const removed = await remove(io, { config, store, request, found });
    if (flags.json) await printJson(io.stdout, toPruneJson(found, removed), 'line');
    else io.stderr.write(prunedText(removed, await store.pruning.logSize()));
  });
}

/** What the flags say; without any, what the receiver would do by itself. */
function keepOf(
  { olderThan, toSize }: PruneFlags,
  { keep }: DataConfig & Pick<Config, 'keep'>,
): Retention {
  if (olderThan !== undefined || toSize !== undefined) {
    return { ageUs: olderThan ?? null, bytes: toSize ?? null };
  }
  if (keep !== null) return keep;
  throw new AppError(
    'usage',
    'Say what is to go: --older-than 365d, --to-size 20GB, or both. EARSHOT_KEEP, which would say it as well, is not set.',
  );
}

async function tellPrunable(
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

/** Rejects with `cancelled` when the user ends it, and with `conflict` while another program prunes. */
async function remove(
  { stderr, signal }: Io,
  deps: { config: DataConfig; store: Store; request: PruneRequest; found: Prunable },
): Promise<Removed> {
  const { config, store, request, found } = deps;
  const { pruning } = store;
  const release = await createAcquireLock(config.dataDir)('prune', { waitMs: 0 });
  const progress = createProgressLine(stderr);
  const fileBytes = async () => {
    const { usedBytes, freeBytes } = await pruning.logSize();
    return usedBytes + freeBytes;
  };
  try {
    const bytesBefore = await fileBytes();
    const onStep = (phase: PrunePhase, { notifications, space }: Readonly<Pruned>) => {
      const all = Math.max(notifications, found.notifications);
      if (phase === 'space') progress.show(`Giving space back: ${sizeText(space)}`);
      else progress.show(`Removing: ${whole(notifications)} of ${whole(all)}`);
    };
    const pruned = await pruneLog(request, { pruning, pause, signal, onStep });
    const givenBackBytes = Math.max(0, bytesBefore - (await fileBytes()));
    const onPruned = (events: number) =>
      progress.show(`Product index: ${counted(events, 'event')} taken out`);
    if (!signal.aborted) await pruneIndex({ ...config, signal, onPruned });
    if (signal.aborted) {
      throw new AppError(
        'cancelled',
        'Stopped. What was removed by then is gone; the same command goes on from there.',
      );
    }
    return { pruned, givenBackBytes };
  } finally {
    progress.done();
    release();
  }
}

/** `isEstimated` where it goes by size, which is known exactly only when it is reached. */
function previewText(found: Prunable, size: LogSize, isEstimated: boolean): string {
  const { notifications, fromUs, untilUs, bytes, quarantined, heldBy } = found;
  const lines: string[] = [];
  if (fromUs === null || untilUs === null) lines.push('No notification is to go.');
  else {
    const what = `${isEstimated ? 'about ' : ''}${counted(notifications, 'notification')}`;
    lines.push(
      `To go: ${what}, received from ${shortDateUs(fromUs)} until ${shortDateUs(untilUs)} (UTC), which take up about ${sizeText(bytes)} of ${sizeText(size.usedBytes)}.`,
    );
  }
  lines.push(...entriesText(quarantined).map((text) => `Also ${text}.`));
  if (heldBy.length > 0) lines.push('More would go, but it is held back by:');
  for (const holder of heldBy) {
    lines.push(`  ${holderText(holder)}`, `    ${holderHints[holder.kind](holder.key)}`);
  }
  return `${lines.join('\n')}\n`;
}

function questionText({ notifications, quarantined }: Prunable): string {
  const parts = [
    ...(notifications > 0 ? [counted(notifications, 'notification')] : []),
    ...entriesText(quarantined),
  ];
  return `Remove ${parts.join(' and ')} for good?`;
}

const entriesText = (count: number) =>
  count === 0 ? [] : [`${counted(count, 'entry', 'entries')} of the quarantine`];

function prunedText({ pruned, givenBackBytes }: Removed, size: LogSize): string {
  const summaries = summariesIn(pruned);
  const parts = [
    counted(pruned.notifications, 'notification'),
    ...entriesText(pruned.quarantine),
    ...(summaries > 0 ? [`${counted(summaries, 'row')} of summaries`] : []),
  ];
  const file = sizeText(size.usedBytes + size.freeBytes);
  return `Removed: ${parts.join(', ')}. The log's file has ${file} now, ${sizeText(givenBackBytes)} less.\n`;
}

const summariesIn = (pruned: Pruned) => pruned['summary-jobs'] + pruned['summary-texts'];

interface Removed {
  pruned: Pruned;
  /** By which the file is smaller. */
  givenBackBytes: number;
}

/** Times ISO 8601 UTC; `removed` is null where nothing was to be removed, as by `--dry-run`. */
function toPruneJson(found: Prunable, removed: Removed | null) {
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
    removed: removed && {
      notifications: removed.pruned.notifications,
      quarantined: removed.pruned.quarantine,
      summaries: summariesIn(removed.pruned),
      givenBackBytes: removed.givenBackBytes,
    },
  };
}

async function forgetReader(
  io: Io & { store: Store },
  key: string,
  options: { yes?: true },
): Promise<void> {
  const { pruning } = io.store;
  const holders = await pruning.pruneBlockers();
  const reader = holders.find((one) => one.kind === 'cursor' && one.key === key);
  if (reader === undefined) {
    const known = holders.filter(({ kind }) => kind === 'cursor').map((one) => one.key);
    const names = known.length === 0 ? 'There is none.' : `Known are: ${known.join(', ')}.`;
    throw new AppError('usage', `There is no reader ${key}. ${names}`);
  }
  // Without its place, a sink would be known no longer, and what is left of it could not be dropped.
  const left = holders.find((one) => one.kind !== 'cursor' && sinkReader(one.key) === key);
  if (left !== undefined) {
    const advice = holderHints[left.kind](left.key);
    throw new AppError('conflict', `There still is: ${holderText(left)}.`, { advice });
  }
  await confirm(io, `Forget the place of ${holderText(reader)}?`, options);
  await pruning.removeReader(key);
  io.stderr.write(`Forgotten. Where ${key} reads again, it is as if for the first time.\n`);
}

/** Such as `reader downloads, at position 1,200 since 2026-01-03 …`. */
export function holderText({ name, position, sinceUs }: PruneBlocker): string {
  const since = sinceUs === null ? '' : ` since ${shortDateUs(sinceUs)}`;
  return `${name}, at position ${whole(Math.max(position, 0))}${since}`;
}

/** What lets it move on, and what gives it up. */
const holderHints: Record<PruneBlocker['kind'], (key: string) => string> = {
  cursor: (key) => `${readOn(key)}; \`earshot prune --forget-reader ${key}\` gives its place up.`,
  index: () => '`earshot start` and `earshot query products` go on with it.',
  waiting: (key) =>
    `\`earshot sinks list\` shows why; \`earshot sinks drop ${key} --waiting\` gives it up.`,
  'dead-letters': (key) =>
    `\`earshot sinks dead ${key}\` shows them; \`earshot sinks drop ${key} --all\` gives them up.`,
  replay: (key) => `The receiver goes on with it; \`earshot sinks drop ${key} --waiting\` ends it.`,
  'summary-jobs': () =>
    '`earshot summarize` writes them; `earshot summarize --drop all` gives them up.',
};

function readOn(key: string): string {
  if (key === summaryReader) return '`earshot summarize` goes on from there';
  if (key.includes(':'))
    return 'The receiver goes on from there, if earshot.config.ts has the sink';
  return `\`earshot tail --reader ${key}\` goes on from there`;
}
