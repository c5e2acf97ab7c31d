/** `earshot prune`: removes the oldest notifications, and gives their space back. */
import { Command, InvalidArgumentError, Option } from 'commander';
import type { z } from 'zod';
import { type Config, type DataConfig, dataSections, loadConfig } from '../../config/config.ts';
import { keptAge, keptSize } from '../../config/values.ts';
import { AppError } from '../../domain/app-error.ts';
import { formatDateUs, shortDateUs } from '../../domain/dates.ts';
import type {
  Keep,
  LogHolder,
  LogSize,
  Prunable,
  PrunePhase,
  PruneWish,
} from '../../domain/pruning.ts';
import { sinkReader } from '../../domain/sinks.ts';
import { summaryReader } from '../../domain/summaries.ts';
import { sizeText } from '../../domain/text.ts';
import { requireDatabase } from '../../store/engine/database.ts';
import { createTakeLock } from '../../store/engine/locks.ts';
import { removeLeftovers } from '../../store/leftovers.ts';
import { pruneIndex } from '../../store/products/index-maintenance.ts';
import { type Pruned, pruneLog } from '../../store/pruning/prune-log.ts';
import { openStore, openStoreReader, type Store, type StoreReader } from '../../store/store.ts';
import { confirm, yesOption } from '../flags.ts';
import { type Io, pause } from '../io.ts';
import { counted, whole, writeOut } from '../output.ts';

export function pruneCommand(io: Io): Command {
  return new Command('prune')
    .description('Remove the oldest notifications for good, and give their space back.')
    .option('--older-than <age>', 'what was received longer ago: 365d, 52w', argument(keptAge))
    .option('--to-size <size>', 'until the log takes up no more: 20GB, 512MiB', argument(keptSize))
    .option('--quarantine', 'also entries of that age that are still held in quarantine')
    .addOption(
      new Option(
        '--forget-reader <name>',
        'give up the place of a reader, and do nothing else',
      ).conflicts(['olderThan', 'toSize', 'quarantine', 'dryRun', 'json']),
    )
    .option('--dry-run', 'tell what would go and what holds it back, and do nothing')
    .addOption(yesOption())
    .option('--json', 'as JSON: notifications from until bytes quarantined heldBy removed')
    .addHelpText(
      'after',
      `
Tells first what will go, then asks. Without --older-than and --to-size it does what EARSHOT_KEEP
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
    )
    .action(async (flags: PruneFlags) => {
      await runPrune(io, flags);
    });
}

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
  if (flags.forgetReader !== undefined) return forgetReader(io, config, flags.forgetReader, flags);
  const wish: PruneWish = {
    keep: keepOf(flags, config),
    withHeld: flags.quarantine === true,
    freeShare: 0,
    nowUs: io.nowUs(),
  };
  if (flags.dryRun) {
    await closing(openStoreReader(config.dataDir), async (store) => {
      const found = await tellPrunable(io, store, wish, flags);
      await tellJson(io, flags, found, null);
    });
    return;
  }
  const options = { ...config, nowUs: io.nowUs, mustExist: true };
  requireDatabase(config.dataDir);
  await removeLeftovers(config.dataDir);
  await closing(await openStore(options), async (store) => {
    const found = await tellPrunable(io, store, wish, flags);
    if (found.notifications + found.quarantined > 0) await confirm(io, questionText(found), flags);
    const removed = await remove(io, { config, store, wish, found });
    if (flags.json) await tellJson(io, flags, found, removed);
    else io.stderr.write(prunedText(removed, await store.pruning.logSize()));
  });
}

/** What the flags say; without any, what the receiver would do by itself. */
function keepOf(
  { olderThan, toSize }: PruneFlags,
  { keep }: DataConfig & Pick<Config, 'keep'>,
): Keep {
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
  wish: PruneWish,
  { json }: PruneFlags,
): Promise<Prunable> {
  const found = await pruning.prunable(wish);
  if (!json) io.stderr.write(previewText(found, await pruning.logSize(), wish.keep.bytes !== null));
  return found;
}

async function tellJson(
  io: Io,
  { json }: PruneFlags,
  found: Prunable,
  removed: Removed | null,
): Promise<void> {
  if (json) await writeOut(io.stdout, `${JSON.stringify(toPruneJson(found, removed))}\n`);
}

interface Means {
  config: DataConfig & Pick<Config, 'keep'>;
  store: Store;
  wish: PruneWish;
  found: Prunable;
}

/** Rejects with `cancelled` when the user ends it, and with `conflict` while another program prunes. */
async function remove(io: Io, { config, store, wish, found }: Means): Promise<Removed> {
  const { pruning } = store;
  const { signal } = io;
  const release = await createTakeLock(config.dataDir)('prune', { waitMs: 0 });
  const progress = createPruneProgress(io, found);
  try {
    const before = await pruning.logSize();
    const pruned = await pruneLog(wish, { pruning, pause, signal, onStep: progress.show });
    const after = await pruning.logSize();
    if (!signal.aborted) {
      await pruneIndex({ ...config, signal, onPruned: progress.showIndex });
    }
    if (signal.aborted) throw stopped();
    const fileBytes = (size: typeof before) => size.usedBytes + size.freeBytes;
    return { pruned, givenBackBytes: Math.max(0, fileBytes(before) - fileBytes(after)) };
  } finally {
    progress.done();
    release();
  }
}

function stopped(): AppError {
  return new AppError(
    'cancelled',
    'Stopped. What was removed by then is gone; the same command goes on from there.',
  );
}

async function closing<Opened extends { close(): Promise<void> }>(
  opened: Opened,
  use: (opened: Opened) => Promise<void>,
): Promise<void> {
  try {
    await use(opened);
  } finally {
    await opened.close();
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
  if (quarantined > 0)
    lines.push(`Also ${counted(quarantined, 'entry', 'entries')} of the quarantine.`);
  if (heldBy.length > 0) lines.push('More would go, but it is held back by:');
  for (const holder of heldBy) {
    lines.push(`  ${holderText(holder)}`, `    ${holderHint(holder)}`);
  }
  return `${lines.join('\n')}\n`;
}

function questionText({ notifications, quarantined }: Prunable): string {
  const parts = [
    ...(notifications > 0 ? [counted(notifications, 'notification')] : []),
    ...(quarantined > 0 ? [`${counted(quarantined, 'entry', 'entries')} of the quarantine`] : []),
  ];
  return `Remove ${parts.join(' and ')} for good?`;
}

function prunedText({ pruned, givenBackBytes }: Removed, size: LogSize): string {
  const summaries = pruned['summary-jobs'] + pruned['summary-texts'];
  const parts = [
    counted(pruned.notifications, 'notification'),
    ...(pruned.quarantine > 0
      ? [`${counted(pruned.quarantine, 'entry', 'entries')} of the quarantine`]
      : []),
    ...(summaries > 0 ? [`${counted(summaries, 'row')} of summaries`] : []),
  ];
  const file = sizeText(size.usedBytes + size.freeBytes);
  return `Removed: ${parts.join(', ')}. The log's file has ${file} now, ${sizeText(givenBackBytes)} less.\n`;
}

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
    from: fromUs === null ? null : formatDateUs(fromUs),
    until: untilUs === null ? null : formatDateUs(untilUs),
    bytes,
    quarantined,
    heldBy: heldBy.map(({ name, position, sinceUs }) => ({
      name,
      position,
      since: sinceUs === null ? null : formatDateUs(sinceUs),
    })),
    removed: removed === null ? null : removedJson(removed),
  };
}

function removedJson({ pruned, givenBackBytes }: Removed) {
  return {
    notifications: pruned.notifications,
    quarantined: pruned.quarantine,
    summaries: pruned['summary-jobs'] + pruned['summary-texts'],
    givenBackBytes,
  };
}

interface PruneProgress {
  show(phase: PrunePhase, pruned: Readonly<Pruned>): void;
  showIndex(events: number): void;
  /** Ends the line. */
  done(): void;
}

function createPruneProgress(
  { stderr }: Pick<Io, 'stderr'>,
  { notifications }: Prunable,
): PruneProgress {
  let shown = '';
  const write = (text: string) => {
    if (stderr.isTTY !== true) return;
    stderr.write(`\r${text.padEnd(shown.length)}`);
    shown = text;
  };
  return {
    show: (phase, pruned) => {
      const gone = pruned.notifications;
      if (phase === 'space') write(`Giving space back: ${sizeText(pruned.space)}`);
      else write(`Removing: ${whole(gone)} of ${whole(Math.max(gone, notifications))}`);
    },
    showIndex: (events) => write(`Product index: ${counted(events, 'event')} taken out`),
    done: () => {
      if (shown !== '') stderr.write('\n');
    },
  };
}

async function forgetReader(
  io: Io,
  config: DataConfig,
  key: string,
  options: { yes?: true },
): Promise<void> {
  const store = await openStore({ ...config, nowUs: io.nowUs, mustExist: true });
  try {
    const holders = await store.pruning.logHolders();
    const reader = holders.find((one) => one.kind === 'cursor' && one.key === key);
    if (reader === undefined) throw unknownReader(key, holders);
    refuseLeftovers(key, holders);
    await confirm(io, `Forget the place of ${holderText(reader)}?`, options);
    await store.pruning.forgetReader(key);
    io.stderr.write(`Forgotten. Where ${key} reads again, it is as if for the first time.\n`);
  } finally {
    await store.close();
  }
}

function unknownReader(key: string, holders: readonly LogHolder[]): AppError {
  const known = holders.filter(({ kind }) => kind === 'cursor').map((one) => one.key);
  const names = known.length === 0 ? 'There is none.' : `Known are: ${known.join(', ')}.`;
  return new AppError('usage', `There is no reader ${key}. ${names}`);
}

/** Without its place, a sink would be known no longer, and what is left of it could not be dropped. */
function refuseLeftovers(key: string, holders: readonly LogHolder[]): void {
  const left = holders.find((one) => one.kind !== 'cursor' && sinkReader(one.key) === key);
  if (left === undefined) return;
  throw new AppError('conflict', `There still is: ${holderText(left)}.`, {
    advice: holderHint(left),
  });
}

/** Such as `reader downloads, at position 1,200 since 2026-01-03 …`. */
export function holderText({ name, position, sinceUs }: LogHolder): string {
  const since = sinceUs === null ? '' : ` since ${shortDateUs(sinceUs)}`;
  return `${name}, at position ${whole(Math.max(position, 0))}${since}`;
}

/** What lets it move on, and what gives it up. */
function holderHint({ kind, key }: LogHolder): string {
  switch (kind) {
    case 'cursor':
      return `${readOn(key)}; \`earshot prune --forget-reader ${key}\` gives its place up.`;
    case 'index':
      return '`earshot start` and `earshot query products` go on with it.';
    case 'waiting':
      return `\`earshot sinks list\` shows why; \`earshot sinks drop ${key} --waiting\` gives it up.`;
    case 'dead-letters':
      return `\`earshot sinks dead ${key}\` shows them; \`earshot sinks drop ${key} --all\` gives them up.`;
    case 'replay':
      return `The receiver goes on with it; \`earshot sinks drop ${key} --waiting\` ends it.`;
    case 'summary-jobs':
      return '`earshot summarize` writes them; `earshot summarize --drop all` gives them up.';
  }
}

function readOn(key: string): string {
  if (key === summaryReader) return '`earshot summarize` goes on from there';
  if (key.includes(':'))
    return 'The receiver goes on from there, if earshot.config.ts has the sink';
  return `\`earshot tail --reader ${key}\` goes on from there`;
}
