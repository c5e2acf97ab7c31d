/** `earshot query`: lists received notifications. */

import { Option } from 'commander';
import { defineCommand, type Parts } from '../../core/cli/command.ts';
import {
  addOutputForms,
  addTableFlags,
  jsonOption,
  limitOption,
  type OutputFlags,
  wholeNumber,
} from '../../core/cli/flags.ts';
import type { Io } from '../../core/cli/io.ts';
import { writeForeign, writeJson, writeOut } from '../../core/cli/output.ts';
import { printReport } from '../../core/cli/print-report.ts';
import {
  type OutputForm,
  outputForms,
  readColumns,
  reportNextPage,
  requireSubscription,
} from '../../core/cli/row-forms.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { formatDateUs } from '../../core/terms/dates.ts';
import type { DriftCount, NotificationQuery } from '../../core/terms/ports.ts';
import { notificationFields } from '../../core/terms/read-models.ts';
import * as report from '../../core/terms/report.ts';
import type { StoreReader } from '../../store/store.ts';
import {
  addFilterOptions,
  type FilterFlags,
  toQuery,
  warnOfUnknownEvents,
  withMaxAge,
  writeNotifications,
} from './output.ts';

/** Default limit of tables; the other formats are unlimited. */
const tableRowsDefault = 50;

interface QueryFlags extends FilterFlags, OutputFlags<OutputForm> {
  order: 'newest' | 'oldest';
  limit?: number;
  after?: number;
  before?: number;
  body?: true;
  columns?: string;
  wide?: true;
}

export const queryCommand = defineCommand('query', {
  description: 'Search the received notifications.',
  flags: (command, io) => {
    addFilterOptions(command, io)
      .addOption(
        new Option('--order <order>', 'sort order').choices(['newest', 'oldest']).default('newest'),
      )
      .addOption(limitOption({ note: `${tableRowsDefault} in tables, otherwise unlimited` }))
      .option('--after <position>', 'only rows after this row (higher positions)', wholeNumber())
      .option('--before <position>', 'only rows before this row (lower positions)', wholeNumber());
    return addTableFlags(addOutputForms(command, outputForms))
      .addOption(
        new Option('--body', 'print only the original body, byte for byte').conflicts([
          'output',
          'json',
          'columns',
          'wide',
        ]),
      )
      .addCommand(driftCommand(io));
  },
  help: `Fields of JSON and CSV: position, ackId, productId, productName, event, subscription,
subscriptionId, notificationDate, receivedAt, source, timesSeen. Times are ISO 8601 UTC.
  position   number of the notification in the log
  source     push, or reconcile if the notification was fetched from the catalogue
  timesSeen  number of times that the notification was received
--since and --until refer to the time of receipt. To use the date of the notification, set
--time notification.
In CSV, earshot puts an apostrophe before a text that a spreadsheet would read as a formula. On a
narrow terminal, the table has fewer columns. The receiver can run meanwhile.

Examples:
  $ earshot query --since 24h --event created                     products created since yesterday
  $ earshot query --name '*T32TQM*' --output csv > tiles.csv    notifications of one tile, as CSV
  $ earshot query --ack-id MTcyMQ== --body | jq .value.Footprint  footprint of one notification
  $ earshot query --event created --max-age 30d --json             without reprocessed scenes
  $ earshot query --before 1201 --limit 50                        50 rows before position 1201`,
  needs: ['reader'],
  check: (flags: QueryFlags, io) => {
    warnOfUnknownEvents(flags, io);
    columnsOf(flags);
  },
  run: query,
});

function columnsOf({ columns, output }: QueryFlags): string[] | undefined {
  return readColumns(columns, output, notificationFields);
}

async function query(io: Io & Pick<Parts, 'reader'>, flags: QueryFlags): Promise<void> {
  const { output: form, order, after, before, wide = false } = flags;
  const limit = flags.limit ?? (form === 'table' && !flags.body ? tableRowsDefault : undefined);
  const bounds = { afterPosition: after, beforePosition: before };
  const question = { ...toQuery(flags), ...bounds, order, limit };
  const { subscription, maxAge } = flags;
  const rows = io.reader.find({ subscription, limit: 1 });
  await requireSubscription(subscription, io.reader, rows);
  const reader = withMaxAge(io.reader, maxAge);
  if (flags.body) return writeBodies({ ...io, reader }, question);
  const { stdout, stderr } = io;
  const options = { columns: columnsOf(flags), wide };
  const found = reader.find(question);
  const { count, last } = await writeNotifications(stdout, form, found, reader, options);
  if (form !== 'table') return;
  if (last === undefined) return void stderr.write(await nothingMatches(flags, reader));
  const bound = order === 'newest' ? '--before' : '--after';
  reportNextPage(io, { count, limit }, `${bound} ${last.position}`);
}

async function nothingMatches({ name }: QueryFlags, reader: StoreReader): Promise<string> {
  if ((await reader.lastPosition()) === 0) return 'No notifications received yet.\n';
  const advice =
    name === undefined
      ? 'To show the newest notifications: `earshot query`.'
      : "--name is case-sensitive and must match the whole name. Example: '*T32TQM*'.";
  return `No notification matches. ${advice}\n`;
}

/**
 * Prints bodies byte for byte, with a line break between two. A body with several notifications is printed once.
 */
async function writeBodies(
  { reader, stdout }: Io & Pick<Parts, 'reader'>,
  question: NotificationQuery,
): Promise<void> {
  const printed = new Set<number>();
  for await (const { position } of reader.find(question)) {
    const { bodyId, bytes } = await reader.original(position);
    if (printed.has(bodyId)) continue;
    if (printed.size > 0) await writeOut(stdout, '\n');
    await writeForeign(stdout, bytes);
    printed.add(bodyId);
  }
  if (printed.size === 0) throw new AppError('unavailable', 'No notification matches.');
  if (stdout.isTTY) await writeOut(stdout, '\n');
}

function driftReport(rows: readonly DriftCount[]): report.Report {
  const columns: report.Column<DriftCount>[] = [
    { title: 'shape', value: ({ shape }) => shape },
    { title: 'count', isNumber: true, value: ({ count }) => count },
    { title: 'first seen (UTC)', value: ({ firstSeenAtUs }) => report.time(firstSeenAtUs) },
    { title: 'last seen (UTC)', value: ({ lastSeenAtUs }) => report.time(lastSeenAtUs) },
  ];
  const none = report.empty('All notifications have the documented format.');
  return { title: 'Drift', blocks: [rows.length === 0 ? none : report.table('', columns, rows)] };
}

const driftCommand = defineCommand('drift', {
  description: 'Count notifications that differ from the documented format, by kind of difference.',
  flags: (command) => command.addOption(jsonOption()),
  help: `Fields of --json: shape, count, firstSeenAt, lastSeenAt. The shape is the kind of difference.

Examples:
  $ earshot query drift                             print a table
  $ earshot query drift --json                      print JSON
  $ earshot query drift --data-dir /srv/earshot     read another data directory`,
  needs: ['reader'],
  run: async ({ reader, ...io }, { json }: { json?: true }) => {
    const rows = await reader.drift();
    const element = ({ shape, count, firstSeenAtUs, lastSeenAtUs }: DriftCount) => ({
      ...{ shape, count },
      firstSeenAt: formatDateUs(firstSeenAtUs),
      lastSeenAt: formatDateUs(lastSeenAtUs),
    });
    if (json) await writeJson(io.stdout, rows, { element });
    else await printReport(io, driftReport(rows));
  },
});
