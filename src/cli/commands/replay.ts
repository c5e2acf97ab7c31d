/** `earshot replay`: hands a part of the log over to a sink once more. */
import { Command } from 'commander';
import { dataSections, loadConfig } from '../../config/config.ts';
import { faultySinks, loadEachSink } from '../../config/sinks.ts';
import { AppError, isAppError } from '../../domain/app-error.ts';
import { shortDateUs } from '../../domain/dates.ts';
import type { NotificationRow } from '../../domain/ports.ts';
import { type SinkDefinition, unfinishedReplay } from '../../domain/sinks.ts';
import { compileWants, type Wants } from '../../sinks/document.ts';
import { openStore, type Store } from '../../store/store.ts';
import {
  confirm,
  readTimeArgument,
  sinceOption,
  type TimeArgument,
  untilOption,
  yesOption,
} from '../flags.ts';
import type { Io } from '../io.ts';
import { counted, whole, writeOut } from '../output.ts';
import { receiverNote, unknownSink, unknownWanted } from '../sink-names.ts';

export function replayCommand(io: Io): Command {
  const time = readTimeArgument(io);
  return new Command('replay')
    .description('Hand what was received before over to a sink once more.')
    .requiredOption('--sink <name>', 'a sink of earshot.config.ts')
    .addOption(sinceOption(time, 'received', 'all'))
    .addOption(untilOption(time, 'received'))
    .option('--filter <expression>', 'only products that match this $filter expression')
    .option('--dry-run', 'tell how many there are, and do nothing')
    .addOption(yesOption())
    .option('--json', 'as JSON: sink notifications replay')
    .addHelpText(
      'after',
      `
Counts first what the sink would get: what it wants by its own rules, and of that what matches the
filter; then asks. The receiver hands it over by the same path as what is new, behind what is new,
with replay: true, an id of its own, and notificationId as it was the first time. One that is not
running does it when it starts. Where a replay of the same has not finished, another is refused.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot replay --sink bus --since 7d --dry-run
  $ earshot replay --sink bus --since 2026-11-01 --until 2026-11-02 --yes
  $ earshot replay --sink act --filter "Collection/Name eq 'SENTINEL-1'" --since 24h`,
    )
    .action(async (flags: ReplayFlags) => {
      await replay(io, flags);
    });
}

export async function replay(io: Io, flags: ReplayFlags): Promise<void> {
  const place = loadConfig(io, dataSections);
  const definition = await definedSink(io, flags.sink);
  const window = windowOf(flags, io);
  const store = await openStore({ ...place, nowUs: io.nowUs, mustExist: true });
  try {
    await warnOfSubscriptions(io, store, definition);
    const { sink, filter = '', dryRun, json } = flags;
    const found = await countWanted(io, { store, definition, flags });
    const { last } = found;
    const isAsked = !dryRun && last !== null;
    if (isAsked) {
      const lastPosition = last.position;
      const same = await store.sinks.sameReplay({ sink, filter, ...window, lastPosition });
      if (same !== null) throw unfinishedReplay(same);
    }
    if (!json) io.stderr.write(`${previewText(found, flags)}\n`);
    const words = counted(found.count, 'notification');
    if (isAsked) await confirm(io, `Hand ${words} over to ${sink} once more?`, flags);
    const added = isAsked ? await addReplay(store, { ...flags, ...found, ...window }, io) : null;
    if (json) {
      const answer = { sink, notifications: found.count, replay: added?.id ?? null };
      await writeOut(io.stdout, `${JSON.stringify(answer)}\n`);
    } else if (added !== null) {
      io.stderr.write(
        `Replay ${added.id}: the receiver hands them over (\`earshot sinks list\`).\n`,
      );
    }
    if (added !== null) await tellReceiver(io, place.dataDir);
  } finally {
    await store.close();
  }
}

function windowOf({ since, until }: ReplayFlags, io: Pick<Io, 'nowUs'>) {
  // By the moment at which the words were read: 0h would else be some milliseconds.
  const nowUs = since?.readAtUs ?? io.nowUs();
  const [sinceUs, untilUs] = [since?.us ?? null, until?.us ?? null];
  if (sinceUs !== null && sinceUs >= Math.min(untilUs ?? nowUs, nowUs)) {
    throw new AppError(
      'usage',
      'The window is empty: --since must lie before --until, and before now (UTC).',
    );
  }
  return { sinceUs, untilUs };
}

/** One that nobody knows may still come: it is no fault. */
async function warnOfSubscriptions(
  io: Io,
  store: Pick<Store, 'completeness'>,
  definition: SinkDefinition,
): Promise<void> {
  for (const { message, hint } of await unknownWanted([definition], store, io)) {
    io.stderr.write(`Warning: ${message} ${hint}\n`);
  }
}

async function tellReceiver(io: Io, dataDir: string): Promise<void> {
  const note = await receiverNote(dataDir);
  if (note !== null) io.stderr.write(`${note}\n`);
}

/** Rejects with `configuration` for a faulty file or sink, `usage` for a sink that is not in the file. */
async function definedSink(io: Io, name: string): Promise<SinkDefinition> {
  const { workingDir } = io;
  const { definitions, faulty } = await loadEachSink(workingDir);
  const definition = definitions.find((one) => one.name === name);
  if (definition !== undefined) return definition;
  const faults = faulty.filter((one) => one.name === name);
  if (faults.length > 0) throw faultySinks(workingDir, faults);
  const known = [...definitions, ...faulty].map((one) => one.name);
  throw unknownSink(name, known, io);
}

function addReplay(
  { sinks }: Pick<Store, 'sinks'>,
  wish: ReplayFlags & Found & { sinceUs: number | null; untilUs: number | null },
  { nowUs }: Pick<Io, 'nowUs'>,
) {
  const { sink, filter = '', sinceUs, untilUs, first, last } = wish;
  const afterPosition = (first?.position ?? 1) - 1;
  const bounds = { sinceUs, untilUs, afterPosition, lastPosition: last?.position ?? 0 };
  return sinks.addReplay({ sink, filter, ...bounds, requestedAtUs: nowUs() });
}

interface ReplayFlags {
  sink: string;
  since?: TimeArgument;
  until?: TimeArgument;
  filter?: string;
  dryRun?: true;
  yes?: true;
  json?: true;
}

/** Rows between two signs of life on a terminal. */
const progressEvery = 5_000;

interface Found {
  count: number;
  /** Null where nothing was found. */
  first: NotificationRow | null;
  last: NotificationRow | null;
}

/** Rejects with `usage` for a filter that is none, `cancelled` when the user ends it. */
async function countWanted(
  io: Io,
  means: { store: Store; definition: SinkDefinition; flags: ReplayFlags },
): Promise<Found> {
  const { store, definition, flags } = means;
  const wants = wantsOf(definition, store, flags.filter);
  const found: Found = { count: 0, first: null, last: null };
  let looked = 0;
  const rows = store.find({ sinceUs: flags.since?.us, untilUs: flags.until?.us, order: 'oldest' });
  for await (const row of rows) {
    if (io.signal.aborted) throw new AppError('cancelled', 'Ended. Nothing was changed.');
    looked += 1;
    if (io.stderr.isTTY && looked % progressEvery === 0) {
      io.stderr.write(`\r${whole(looked)} looked at`);
    }
    if (!(await wants(row))) continue;
    found.count += 1;
    found.first ??= row;
    found.last = row;
  }
  if (io.stderr.isTTY && looked >= progressEvery) io.stderr.write('\n');
  return found;
}

/** The sink's own filter has been looked at: what is wrong is in the flag. */
function wantsOf(definition: SinkDefinition, store: Store, filter: string | undefined): Wants {
  try {
    return compileWants(definition, store, filter);
  } catch (error) {
    if (!isAppError(error, 'invalid')) throw error;
    throw error.with({ code: 'usage', message: `--filter cannot be used. ${error.message}` });
  }
}

/** The window, how many, and the times of the first and the last of them. */
function previewText({ count, first, last }: Found, flags: ReplayFlags): string {
  const { sink, since, until, filter, dryRun, yes } = flags;
  const from = since === undefined ? 'the start of the log' : shortDateUs(since.us);
  const window = `Received from ${from} until ${until === undefined ? 'now' : shortDateUs(until.us)} (UTC)`;
  if (first === null || last === null) {
    const what = filter === undefined ? '' : ' that matches the filter';
    return `${window}: nothing${what} that ${sink} wants by its own rules.`;
  }
  const are = count === 1 ? 'is' : 'are';
  const verb = yes && !dryRun ? are : 'would be';
  const [firstAt, lastAt] = [shortDateUs(first.receivedAtUs), shortDateUs(last.receivedAtUs)];
  const times = count === 1 ? `received ${firstAt}` : `the first ${firstAt}, the last ${lastAt}`;
  return `${window}: ${counted(count, 'notification')} ${verb} handed over to ${sink}, ${times}.`;
}
