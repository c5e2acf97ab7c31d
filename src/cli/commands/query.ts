/** `earshot query`: what has been received. */
import { Option } from 'commander';
import { AppError } from '../../domain/app-error.ts';
import { formatDateUs, shortDateUs } from '../../domain/dates.ts';
import { notificationFields } from '../../domain/json-rows.ts';
import type { DriftCount, NotificationQuery } from '../../domain/ports.ts';
import type { StoreReader } from '../../store/store.ts';
import { defineCommand, type Parts } from '../command.ts';
import {
  addOutputForms,
  addTableFlags,
  limitOption,
  type OutputFlags,
  wholeNumber,
} from '../flags.ts';
import type { Io } from '../io.ts';
import {
  addFilterOptions,
  type FilterFlags,
  toQuery,
  warnOfUnknownEvents,
  writeNotifications,
} from '../notification-output.ts';
import { type Column, printTable, writeForeign, writeJson, writeOut } from '../output.ts';
import { type OutputForm, outputForms, readColumns, reportNextPage } from '../row-forms.ts';
import { queryProductsCommand } from './query-products.ts';
import { querySummariesCommand } from './query-summaries.ts';

/** A person's first look; programs get everything unless they set a limit. */
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
  description: 'Show notifications that have been received. Works while the receiver runs.',
  flags: (command, io) => {
    addFilterOptions(command, io)
      .addOption(
        new Option('--order <order>', 'newest or oldest first')
          .choices(['newest', 'oldest'])
          .default('newest'),
      )
      .addOption(limitOption({ note: `table: ${tableRowsDefault}, else all` }))
      .option('--after <position>', 'only later ones than this position', wholeNumber())
      .option('--before <position>', 'only earlier ones than this position', wholeNumber());
    return addTableFlags(addOutputForms(command, outputForms))
      .addOption(
        new Option(
          '--body',
          'print the request bodies instead, once each, byte by byte as they came (also compressed ones)',
        ).conflicts(['output', 'json', 'columns', 'wide']),
      )
      .addCommand(queryProductsCommand(io))
      .addCommand(querySummariesCommand(io))
      .addCommand(driftCommand(io));
  },
  help: `Fields of the JSON and CSV rows: position ackId productId productName event subscription
subscriptionId notificationDate receivedAt source timesSeen. The table shows what identifies the
product, and its name where the terminal has the width; a narrow one gets shorter times and places,
all in UTC and degrees. Times are ISO 8601 UTC. In CSV, a text that a spreadsheet would take for a
formula begins with an apostrophe.

Examples:
  $ earshot query --since 24h --event created
  $ earshot query --name 'S2?_MSIL2A_*T32TQM*' --output csv > tiles.csv
  $ earshot query --ack-id MTcy… --body | jq .value.Footprint
  $ earshot query --since 2026-11-01 --until 2026-11-02 --time notification --json
  $ earshot query --before 1201 --limit 50             the page before position 1201`,
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
  if (flags.body) return writeBodies(io, question);
  const { reader, stdout, stderr } = io;
  const options = { columns: columnsOf(flags), wide };
  const found = reader.find(question);
  const { count, last } = await writeNotifications(stdout, form, found, reader, options);
  if (form !== 'table') return;
  if (last === undefined) return void stderr.write(await nothingMatches(flags, reader));
  const bound = order === 'newest' ? '--before' : '--after';
  reportNextPage(io, { count, limit }, `${bound} ${last.position}`);
}

async function nothingMatches({ name }: QueryFlags, reader: StoreReader): Promise<string> {
  if ((await reader.lastPosition()) === 0) return 'Nothing has been received yet.\n';
  const advice =
    name === undefined
      ? 'Without flags, `earshot query` shows the newest.'
      : "A --name must match as a whole, and case counts: '*T32TQM*'.";
  return `No notification matches. ${advice}\n`;
}

/**
 * Prints one body exactly as it came, still encoded where it had a Content-Encoding; several are separated by a line
 * break. A body with several notifications is printed once.
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
  if (printed.size === 0)
    throw new AppError('not_found', 'No notification matches, so there is no body.');
  if (stdout.isTTY) await writeOut(stdout, '\n');
}

const driftColumns: readonly Column<DriftCount>[] = [
  { title: 'shape', value: ({ shape }) => shape },
  { title: 'count', value: ({ count }) => String(count), align: 'right' },
  { title: 'first seen (UTC)', value: ({ firstSeenAtUs }) => shortDateUs(firstSeenAtUs, 'second') },
  { title: 'last seen (UTC)', value: ({ lastSeenAtUs }) => shortDateUs(lastSeenAtUs, 'second') },
];

const driftCommand = defineCommand('drift', {
  description: 'Show in which ways notifications differed from the documented form, and how often.',
  flags: (command) => command.option('--json', 'as JSON: shape count firstSeenAt lastSeenAt'),
  help: `Example:
  $ earshot query drift`,
  needs: ['reader'],
  run: async ({ reader, stdout }, { json }: { json?: true }) => {
    const rows = await reader.drift();
    const element = ({ shape, count, firstSeenAtUs, lastSeenAtUs }: DriftCount) => ({
      ...{ shape, count },
      firstSeenAt: formatDateUs(firstSeenAtUs),
      lastSeenAt: formatDateUs(lastSeenAtUs),
    });
    if (json) await writeJson(stdout, rows, { element });
    else await printTable(stdout, driftColumns, rows);
  },
});
