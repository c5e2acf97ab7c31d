/** `earshot replay`: delivers a part of the log to a sink once more. */
import { dataSections, loadConfig } from '../../config/config.ts';
import { AppError, isAppError } from '../../domain/app-error.ts';
import { shortDateUs } from '../../domain/dates.ts';
import type { NotificationRow } from '../../domain/ports.ts';
import { unfinishedReplay } from '../../domain/sinks.ts';
import { compileMatcher, type Matcher } from '../../sinks/document.ts';
import type { SinkDefinition } from '../../sinks/registry.ts';
import type { Store } from '../../store/store.ts';
import { defineCommand, withParts } from '../command.ts';
import {
  addSpan,
  confirm,
  readTimeArgument,
  readWindow,
  type TimeArgument,
  yesOption,
} from '../flags.ts';
import type { Io } from '../io.ts';
import { counted, createProgressLine, printJson, whole } from '../output.ts';
import { definedSink, receiverNote, unknownSinkSubscriptions } from '../sink-names.ts';

export const replayCommand = defineCommand('replay', {
  description: 'Hand what was received before over to a sink once more.',
  flags: (command, io) => {
    command.requiredOption('--sink <name>', 'a sink of earshot.config.ts');
    return addSpan(command, readTimeArgument(io), 'received', 'all')
      .option('--filter <expression>', 'only products that match this $filter expression')
      .option('--dry-run', 'tell how many there are, and do nothing')
      .addOption(yesOption())
      .option('--json', 'as JSON: sink notifications replay');
  },
  help: `Counts first what the sink would get: what it wants by its own rules, and of that what matches the
filter; then asks. The receiver hands it over by the same path as what is new, behind what is new,
with replay: true, an id of its own, and notificationId as it was the first time. One that is not
running does it when it starts. Where a replay of the same has not finished, another is refused.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.

Examples:
  $ earshot replay --sink bus --since 7d --dry-run
  $ earshot replay --sink bus --since 2026-11-01 --until 2026-11-02 --yes
  $ earshot replay --sink act --filter "Collection/Name eq 'SENTINEL-1'" --since 24h`,
  run: replay,
});

interface ReplayFlags {
  sink: string;
  since?: TimeArgument;
  until?: TimeArgument;
  filter?: string;
  dryRun?: true;
  yes?: true;
  json?: true;
}

async function replay(io: Io, flags: ReplayFlags): Promise<void> {
  const { dataDir } = loadConfig(io, dataSections);
  const definition = await definedSink(flags.sink, io);
  readWindow(flags, io);
  await withParts(io, ['store'], async ({ store }) => {
    // A subscription that nobody knows may still come: it is no fault.
    for (const { message, hint } of await unknownSinkSubscriptions([definition], store, io)) {
      io.stderr.write(`Warning: ${message} ${hint}\n`);
    }
    const { sink, dryRun, json } = flags;
    const found = await countWanted(io, { store, definition, flags });
    const request = dryRun ? null : requestOf(flags, found);
    const same = request && (await store.sinks.sameReplay(request));
    if (same !== null) throw unfinishedReplay(same);
    if (!json) io.stderr.write(`${previewText(found, flags)}\n`);
    let id: number | null = null;
    if (request !== null) {
      const what = counted(found.count, 'notification');
      await confirm(io, `Hand ${what} over to ${sink} once more?`, flags);
      ({ id } = await store.sinks.addReplay({ ...request, requestedAtUs: io.nowUs() }));
    }
    if (json) {
      const answer = { sink, notifications: found.count, replay: id };
      await printJson(io.stdout, answer, 'line');
    } else if (id !== null) {
      io.stderr.write(`Replay ${id}: the receiver hands them over (\`earshot sinks list\`).\n`);
    }
    const note = id === null ? null : await receiverNote(dataDir);
    if (note !== null) io.stderr.write(`${note}\n`);
  });
}

/** Null where nothing was found. */
function requestOf({ sink, filter = '', since, until }: ReplayFlags, { first, last }: Found) {
  if (first === null || last === null) return null;
  const [sinceUs, untilUs] = [since?.us ?? null, until?.us ?? null];
  const [afterPosition, lastPosition] = [first.position - 1, last.position];
  return { sink, filter, sinceUs, untilUs, afterPosition, lastPosition };
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
  deps: { store: Store; definition: SinkDefinition; flags: ReplayFlags },
): Promise<Found> {
  const { store, definition, flags } = deps;
  const wants = wantsOf(definition, store, flags.filter);
  const found: Found = { count: 0, first: null, last: null };
  const progress = createProgressLine(io.stderr);
  let looked = 0;
  const rows = store.find({ sinceUs: flags.since?.us, untilUs: flags.until?.us, order: 'oldest' });
  for await (const row of rows) {
    if (io.signal.aborted) throw new AppError('cancelled', 'Ended. Nothing was changed.');
    looked += 1;
    if (looked % progressEvery === 0) progress.show(`${whole(looked)} looked at`);
    if (!(await wants(row))) continue;
    found.count += 1;
    found.first ??= row;
    found.last = row;
  }
  progress.done();
  return found;
}

/** The sink's own filter has been looked at: what is wrong is in the flag. */
function wantsOf(definition: SinkDefinition, store: Store, filter: string | undefined): Matcher {
  try {
    return compileMatcher(definition, store, filter);
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
