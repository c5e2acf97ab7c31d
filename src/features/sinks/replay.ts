/** `earshot sinks replay`: delivers a part of the log to a sink again. */

import { defineCommand, withParts } from '../../core/cli/command.ts';
import {
  addSpan,
  confirm,
  dryRunOption,
  jsonOption,
  readTimeArgument,
  readWindow,
  type TimeArgument,
  yesOption,
} from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { createProgressLine, printJson } from '../../core/cli/output.ts';
import { loadConfig } from '../../core/config/config.ts';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import { shortDateUs } from '../../core/terms/dates.ts';
import type { NotificationRow } from '../../core/terms/ports.ts';
import { counted, countText } from '../../core/terms/text.ts';
import type { Store } from '../../store/store.ts';
import { definedSink, receiverNote } from './definitions.ts';
import { compileMatcher, type Matcher } from './document.ts';
import type { SinkDefinition } from './registry.ts';
import { unfinishedReplay } from './terms.ts';

export const replayCommand = defineCommand('replay', {
  description: 'Deliver notifications of the log to a sink again.',
  flags: (command, io) => {
    command.requiredOption('--sink <name>', 'sink of earshot.config.ts');
    return addSpan(command, readTimeArgument(io), 'time of receipt', 'start of the log')
      .option('--filter <expression>', '$filter expression (in addition to the filter of the sink)')
      .addOption(dryRunOption())
      .addOption(yesOption())
      .addOption(jsonOption());
  },
  help: `The command counts the notifications that match the filter of the sink and the flags, and asks for
confirmation. The receiver delivers new notifications first, and then the replayed notifications.
The JSON document of a replayed notification has replay: true, a new id, and the notificationId of
the first delivery. If no receiver is running, then the delivery starts when you start the receiver.
A second replay of the same filter and range is refused until the first replay has finished.

Fields of --json: sink, notifications, replay. replay is the id of the new replay, or null.

Examples:
  $ earshot sinks replay --sink bus --since 7d --dry-run                   count notifications
  $ earshot sinks replay --sink bus --since 2026-11-01 --until 2026-11-02 --yes     replay one day
  $ earshot sinks replay --sink act --filter "Collection/Name eq 'SENTINEL-1'" --since 24h`,
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
  const config = loadConfig(io, ['data']);
  const definition = await definedSink(flags.sink, io);
  readWindow(flags, io);
  await withParts(io, ['store'], async ({ store }) => {
    const { sink, dryRun, json } = flags;
    const found = await countMatching(io, { store, definition, flags });
    const request = dryRun ? null : requestOf(flags, found);
    const same = request && (await store.sinks.sameReplay(request));
    if (same !== null) throw unfinishedReplay(same);
    if (!json) io.stderr.write(`${previewText(found, flags)}\n`);
    let id: number | null = null;
    if (request !== null) {
      const what = counted(found.count, 'notification');
      await confirm(io, `Deliver ${what} to ${sink} again?`, flags);
      ({ id } = await store.sinks.addReplay({ ...request, requestedAtUs: io.nowUs() }));
    }
    if (json) {
      const answer = { sink, notifications: found.count, replay: id };
      await printJson(io.stdout, answer, 'line');
    } else if (id !== null) {
      io.stderr.write(`Queued replay ${id}. Progress: \`earshot sinks list\`.\n`);
    }
    const note =
      id === null ? null : await receiverNote({ ...config, isShared: store.shared !== null });
    if (note !== null) io.stderr.write(`${note}\n`);
  });
}

/** Returns the request; null if nothing was found. */
function requestOf({ sink, filter = '', since, until }: ReplayFlags, { first, last }: Found) {
  if (first === null || last === null) return null;
  const [sinceUs, untilUs] = [since?.us ?? null, until?.us ?? null];
  const [afterPosition, lastPosition] = [first.position - 1, last.position];
  return { sink, filter, sinceUs, untilUs, afterPosition, lastPosition };
}

/** Rows between two updates of the progress line. */
const progressEvery = 5_000;

interface Found {
  count: number;
  /** Null if nothing was found. */
  first: NotificationRow | null;
  last: NotificationRow | null;
}

/** Counts matching notifications. Rejects with `usage` for an invalid filter, `cancelled` on interruption. */
async function countMatching(
  io: Io,
  deps: { store: Store; definition: SinkDefinition; flags: ReplayFlags },
): Promise<Found> {
  const { store, definition, flags } = deps;
  const wants = wantsOf(definition, store, flags.filter);
  const found: Found = { count: 0, first: null, last: null };
  const progress = createProgressLine(io.stderr);
  let checked = 0;
  const rows = store.find({ sinceUs: flags.since?.us, untilUs: flags.until?.us, order: 'oldest' });
  for await (const row of rows) {
    if (io.signal.aborted) throw new AppError('cancelled', 'Interrupted. Nothing was changed.');
    checked += 1;
    if (checked % progressEvery === 0) progress.show(`${countText(checked)} checked`);
    if (!(await wants(row))) continue;
    found.count += 1;
    found.first ??= row;
    found.last = row;
  }
  progress.clear();
  return found;
}

/** The sink's own filter is already checked, so an error is in the flag. */
function wantsOf(definition: SinkDefinition, store: Store, filter: string | undefined): Matcher {
  try {
    return compileMatcher(definition, store, filter);
  } catch (error) {
    if (!isAppError(error, 'invalid')) throw error;
    throw error.with({ code: 'usage', message: `--filter is invalid. ${error.message}` });
  }
}

/** Describes the time range, the count, and the times of the first and last notification. */
function previewText({ count, first, last }: Found, flags: ReplayFlags): string {
  const { sink, since, until, filter, dryRun, yes } = flags;
  const from = since === undefined ? 'the start of the log' : shortDateUs(since.us);
  const window = `Received from ${from} until ${until === undefined ? 'now' : shortDateUs(until.us)} (UTC)`;
  if (first === null || last === null) {
    const matching = filter === undefined ? '' : ' and the filter';
    return `${window}: no notification matches the rules of ${sink}${matching}.`;
  }
  const verb = yes && !dryRun ? 'will be' : 'would be';
  const [firstAt, lastAt] = [shortDateUs(first.receivedAtUs), shortDateUs(last.receivedAtUs)];
  const times = count === 1 ? `received ${firstAt}` : `the first ${firstAt}, the last ${lastAt}`;
  return `${window}: ${counted(count, 'notification')} ${verb} delivered to ${sink}, ${times}.`;
}
