/** `earshot sinks`: lists and tests sinks, and delivers a part of the log again. */

import { defineCommand, defineGroup, withParts } from '../../core/cli/command.ts';
import {
  addSpan,
  confirm,
  dryRunOption,
  jsonOption,
  readWindow,
  yesOption,
} from '../../core/cli/flags.ts';
import { type Io, pause } from '../../core/cli/io.ts';
import { createProgressLine, printJson, writeJson } from '../../core/cli/output.ts';
import { printReport } from '../../core/cli/print-report.ts';
import { loadConfig } from '../../core/config/config.ts';
import { readConfigState } from '../../core/config/subscriptions-file.ts';
import { createRunProgram } from '../../core/host/run-program.ts';
import { activeAlertsOf } from '../../core/status/status.ts';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import { formatDateUs, shortDateUs } from '../../core/terms/dates.ts';
import { situationAt } from '../../core/terms/evaluation.ts';
import { toJson } from '../../core/terms/json-rows.ts';
import type { NotificationRow } from '../../core/terms/ports.ts';
import { counted, countText, printable } from '../../core/terms/text.ts';
import type { Store } from '../../store/store.ts';
import { absenceNote } from '../coverage/completeness.ts';
import { compileMatcher, type Matcher, sampleDocument } from '../messages/document.ts';
import { messageUrls, messageWriter } from '../messages/formats.ts';
import { deadCommand, dropCommand, retryCommand } from './dead-letters.ts';
import { definedSink, noFileNote, readDeliveryState, unknownDelivery } from './definitions.ts';
import { attemptOnce } from './delivery.ts';
import { openTarget, type SinkDefinition } from './registry.ts';
import { evaluateConfig, evaluateSink, readSinks, sinkSchema, sinksReport } from './report.ts';

const listCommand = defineCommand('list', {
  description: 'Show state, queue, dead letters and errors of every sink.',
  flags: (command) => command.addOption(jsonOption()),
  help: `Columns, fewer on a narrow terminal:
  state      ok, warning or critical, explained below the table
  target     kind of the sink; "gone" if the sink is not in earshot.config.ts
  behind     number of log positions that the sink has not read; "-" if never started
  waiting    number of queued notifications
  lag        age of the oldest undelivered notification
  delivered  number of acknowledged deliveries
  last       time of the last acknowledged delivery

Fields of --json: those of a sink in /api/status (docs/reference/http.md).

Examples:
  $ earshot sinks list                                           print a table
  $ earshot sinks list --json | jq '.[] | select(.dead > 0)'     list sinks with dead letters
  $ watch -n 10 earshot sinks list                               repeat every 10 seconds`,
  run: listSinks,
});

async function listSinks(io: Io, { json }: { json?: true }): Promise<void> {
  const noFile = noFileNote(io);
  // In another folder than the receiver's, it is not known which sinks are configured.
  const delivery = noFile === null ? await readDeliveryState(io) : unknownDelivery;
  const configFile = await readConfigState(io);
  await withParts(io, ['reader'], async ({ reader }) => {
    const alerts = await activeAlertsOf(io.features, reader);
    const nowUs = io.nowUs();
    const situation = situationAt(nowUs, alerts);
    const read = await readSinks(reader, delivery);
    const sinks = read.map((one) => ({ ...one, evaluation: evaluateSink(one, situation) }));
    const config = evaluateConfig({ configFile, receiver: null }, situation);
    if (json)
      await writeJson(
        io.stdout,
        sinks.map((one) => toJson(sinkSchema, one)),
      );
    else await printReport(io, sinksReport(sinks, { config, nowUs }));
    const receiver =
      json || sinks.length === 0
        ? null
        : await absenceNote(reader.completeness, nowUs, 'nothing is delivered');
    for (const note of [...(json ? config.evidence : []), noFile, receiver])
      if (note !== null) io.stderr.write(`\n${note}\n`);
  });
}

const testCommand = defineCommand('test', {
  description: 'Deliver a test notification to a sink and print the response.',
  flags: (command) => command.argument('<sink>', 'name of the sink'),
  help: `The command sends a built-in sample. The delivered document has \`"test": true\` and an id that
starts with test_. The position of the sink does not change.

Exit codes: 0 acknowledged, 1 not acknowledged, 2 wrong usage or configuration.

Examples:
  $ earshot sinks test hook                   test one sink
  $ earshot sinks test hook && echo works     use the exit code
  $ earshot sinks list                        show the names of the sinks`,
  run: testSink,
});

/** Rejects with `unavailable` if the sink does not acknowledge the sample. */
async function testSink(io: Io, _flags: object, name: string): Promise<void> {
  const definition = await definedSink(name, io);
  const { subscriptions, events } = definition;
  const id = `test_${io.newId()}`;
  const document = {
    ...{ ...sampleDocument, id, notificationId: id, sink: name },
    subscription: subscriptions[0] ?? sampleDocument.subscription,
    event: events[0] ?? sampleDocument.event,
    receivedAt: formatDateUs(io.nowUs()),
  };
  const urls = messageUrls(loadConfig(io, ['catalogueUrl', 'publicUrl', 'console']));
  const write = messageWriter(definition.message, { urls, nowUs: io.nowUs });
  const message = await write(document);
  const target = openTarget(definition, {
    run: createRunProgram(io),
    nowUs: io.nowUs,
    logger: { info: (fields) => printOutput(io, fields) },
  });
  io.stderr.write(`Sending a sample to ${name}: test delivery ${id}.\n`);
  try {
    const answer = await attemptOnce([message], definition, { target, pause, signal: io.signal });
    if (answer.kind !== 'acknowledged') {
      throw new AppError(
        'unavailable',
        `${name} did not acknowledge the test delivery: ${answer.reason}.`,
        { advice: 'To check the requirements of the sink: `earshot doctor`.' },
      );
    }
    io.stdout.write(`${name} acknowledged the test delivery ${id}.\n`);
  } finally {
    await target.close();
  }
}

/** Prints the output of a command sink. */
function printOutput({ stderr }: Pick<Io, 'stderr'>, fields: object): void {
  for (const [stream, text] of Object.entries(fields)) {
    if (!['stdout', 'stderr'].includes(stream) || typeof text !== 'string' || text === '') continue;
    for (const line of text.split('\n')) stderr.write(`  ${stream}: ${printable(line)}\n`);
  }
}

const replayCommand = defineCommand('replay', {
  description: 'Deliver notifications of the log to a sink again.',
  flags: (command, io) => {
    command.requiredOption('--sink <name>', 'sink of earshot.config.ts');
    return addSpan(command, io, 'time of receipt', 'start of the log')
      .option('--filter <expression>', '$filter expression (in addition to the filter of the sink)')
      .addOption(dryRunOption())
      .addOption(yesOption())
      .addOption(jsonOption());
  },
  help: `The command counts the notifications that match the filter of the sink and the flags, and asks for
confirmation. The receiver queues a few of them at a time, so that new notifications do not wait.
The JSON document of a replayed notification has replay: true, a new id, and the notificationId of
the first delivery. If no receiver is running, then the delivery starts when you start the receiver.
A second replay is refused until the notifications of the first replay are queued.

Fields of --json: sink, notifications, replay. replay is the id of the new replay, or null.

Examples:
  $ earshot sinks replay --sink bus --since 7d --dry-run                   count notifications
  $ earshot sinks replay --sink bus --since 2026-11-01 --until 2026-11-02 --yes     replay one day
  $ earshot sinks replay --sink act --filter "Collection/Name eq 'SENTINEL-1'" --since 24h`,
  run: replay,
});

interface ReplayFlags {
  sink: string;
  since?: number;
  until?: number;
  filter?: string;
  dryRun?: true;
  yes?: true;
  json?: true;
}

async function replay(io: Io, flags: ReplayFlags): Promise<void> {
  const definition = await definedSink(flags.sink, io);
  readWindow(flags, io);
  await withParts(io, ['store'], async ({ store }) => {
    const { sink, dryRun, json } = flags;
    const found = await findMatching(io, { store, definition, flags });
    if (!json) io.stderr.write(`${previewText(found, flags)}\n`);
    let id: number | null = null;
    if (found !== null && !dryRun) {
      const what = counted(found.count, 'notification');
      await confirm(io, `Deliver ${what} to ${sink} again?`, flags);
      ({ id } = await store.sinks.addReplay(replayOf(flags, found, io.nowUs())));
    }
    if (json) {
      const answer = { sink, notifications: found?.count ?? 0, replay: id };
      await printJson(io.stdout, answer, 'line');
    } else if (id !== null) {
      io.stderr.write(`Queued replay ${id}. Progress: \`earshot sinks list\`.\n`);
    }
    if (id === null) return;
    const note = await absenceNote(store.completeness, io.nowUs(), 'nothing is delivered');
    if (note !== null) io.stderr.write(`${note}\n`);
  });
}

function replayOf(flags: ReplayFlags, { first, last }: Found, requestedAtUs: number) {
  const { sink, filter = '', since: sinceUs = null, until: untilUs = null } = flags;
  const [afterPosition, lastPosition] = [first.position - 1, last.position];
  return { sink, filter, sinceUs, untilUs, afterPosition, lastPosition, requestedAtUs };
}

/** Rows between two updates of the progress line. */
const progressEvery = 5_000;

/** Matching notifications. */
interface Found {
  count: number;
  first: NotificationRow;
  last: NotificationRow;
}

/** Returns null if nothing matches. Rejects with `usage` for an invalid filter, `cancelled` on interruption. */
async function findMatching(
  io: Io,
  deps: { store: Store; definition: SinkDefinition; flags: ReplayFlags },
): Promise<Found | null> {
  const { store, definition, flags } = deps;
  const wants = wantsOf(definition, store, flags.filter);
  let found = null as Found | null;
  const progress = createProgressLine(io.stderr);
  let checked = 0;
  const rows = store.find({ sinceUs: flags.since, untilUs: flags.until, order: 'oldest' });
  for await (const row of rows) {
    if (io.signal.aborted) throw new AppError('cancelled', 'Interrupted. Nothing was changed.');
    checked += 1;
    if (checked % progressEvery === 0) progress.show(`${countText(checked)} checked`);
    if ((await wants(row)) !== 'selected') continue;
    found = { count: (found?.count ?? 0) + 1, first: found?.first ?? row, last: row };
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
function previewText(found: Found | null, flags: ReplayFlags): string {
  const { sink, since, until, filter, dryRun, yes } = flags;
  const from = since === undefined ? 'the start of the log' : shortDateUs(since);
  const window = `Received from ${from} until ${until === undefined ? 'now' : shortDateUs(until)} (UTC)`;
  if (found === null) {
    const matching = filter === undefined ? '' : ' and the filter';
    return `${window}: no notification matches the rules of ${sink}${matching}.`;
  }
  const { count, first, last } = found;
  const verb = yes && !dryRun ? 'will be' : 'would be';
  const [firstAt, lastAt] = [shortDateUs(first.receivedAtUs), shortDateUs(last.receivedAtUs)];
  const times = count === 1 ? `received ${firstAt}` : `the first ${firstAt}, the last ${lastAt}`;
  return `${window}: ${counted(count, 'notification')} ${verb} delivered to ${sink}, ${times}.`;
}

export const sinksCommand = defineGroup('sinks', {
  description: 'List and test sinks; retry or drop dead letters.',
  help: `The receiver delivers notifications to the sinks of earshot.config.ts. A dead letter is a
notification that a sink refused permanently. See docs/sinks.md.

Examples:
  $ earshot sinks                     list sinks
  $ earshot sinks test hook           deliver a test notification
  $ earshot sinks dead bus            list dead letters
  $ earshot sinks retry bus           retry all dead letters`,
  usual: listCommand,
  commands: [testCommand, deadCommand, retryCommand, dropCommand, replayCommand],
});
