/** `earshot query`: what has been received. */
import { Command, Option } from 'commander';
import { readDataConfig } from '../../config/read-config.ts';
import { AppError } from '../../domain/app-error.ts';
import { notificationFields } from '../../domain/json-rows.ts';
import { formatDateUs } from '../../domain/notification-date.ts';
import type { DriftCount, NotificationQuery, NotificationRow } from '../../domain/ports.ts';
import { openStoreReader, type StoreReader } from '../../store/store.ts';
import {
  addFilterOptions,
  type FilterFlags,
  toQuery,
  warnOfUnknownEvents,
} from '../filter-options.ts';
import type { Io } from '../io.ts';
import { type OutputForm, outputForms, writeJson, writeRows } from '../notification-output.ts';
import { wholeNumber } from '../number-argument.ts';
import { limitOption, type OutputFlags, outputOption } from '../shared-flags.ts';
import { printTable, readColumnNames } from '../table.ts';
import { writeForeign, writeOut } from '../write-out.ts';
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

export function queryCommand(io: Io): Command {
  const command = addFilterOptions(new Command('query'), io)
    .description('Show notifications that have been received. Works while the receiver runs.')
    .addOption(
      new Option('--order <order>', 'newest or oldest first')
        .choices(['newest', 'oldest'])
        .default('newest'),
    )
    .addOption(limitOption({ note: `table: ${tableRowsDefault}, else all` }))
    .option('--after <position>', 'only later ones than this position', wholeNumber())
    .option('--before <position>', 'only earlier ones than this position', wholeNumber())
    .addOption(outputOption(outputForms))
    .option('--json', 'short for --output json')
    .option('--columns <names>', 'columns of table and csv, with commas between them')
    .option('--wide', 'print whole names, and all columns of the table, on any terminal')
    .addOption(
      new Option(
        '--body',
        'print the request bodies instead, once each, byte by byte as they came (also compressed ones)',
      ).conflicts(['output', 'json', 'columns', 'wide']),
    )
    .addHelpText(
      'after',
      `
Fields of the JSON and CSV rows: position ackId productId productName event subscription
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
    )
    .action((flags: QueryFlags) => query(io, flags));
  return command
    .addCommand(queryProductsCommand(io))
    .addCommand(querySummariesCommand(io))
    .addCommand(driftCommand(io));
}

function driftCommand(io: Io): Command {
  return new Command('drift')
    .description(
      'Show in which ways notifications differed from the documented form, and how often.',
    )
    .option('--json', 'as JSON: shape count firstSeenAt lastSeenAt')
    .addHelpText('after', '\nExample:\n  $ earshot query drift')
    .action(({ json }: { json?: true }) =>
      withReader(io, async (store) => {
        const rows = (await store.drift()).map(toDriftRow);
        if (json) await writeJson(io.stdout, rows);
        else await printTable(io.stdout, driftColumns, rows);
      }),
    );
}

async function query(io: Io, flags: QueryFlags): Promise<void> {
  warnOfUnknownEvents(flags, io);
  const { output: form, order, after, before } = flags;
  const columns = readColumns(flags.columns, form);
  const limit = flags.limit ?? (form === 'table' && !flags.body ? tableRowsDefault : undefined);
  const question = {
    ...toQuery(flags),
    order,
    limit,
    afterPosition: after,
    beforePosition: before,
  };
  await withReader(io, async (store) => {
    if (flags.body) return writeBodies(io, store, question);
    let last: NotificationRow | undefined;
    const noted = async function* () {
      for await (const row of store.find(question)) {
        last = row;
        yield row;
      }
    };
    const options = { columns, wide: flags.wide === true };
    const count = await writeRows(io.stdout, form, noted(), store, options);
    if (form !== 'table') return;
    if (count === 0) io.stderr.write(await nothingMatches(flags, store));
    else tellRest(io, count, limit, order, last);
  });
}

function readColumns(text: string | undefined, form: OutputForm): string[] | undefined {
  if (text === undefined) return undefined;
  if (form === 'table' || form === 'csv') return readColumnNames(text, notificationFields);
  throw new AppError(
    'usage',
    `--columns chooses columns of a table or of csv, and ${form} has none.`,
    { advice: 'Use --output csv, or leave --columns out.' },
  );
}

function tellRest(
  io: Io,
  count: number,
  limit: number | undefined,
  order: 'newest' | 'oldest',
  last: NotificationRow | undefined,
): void {
  if (count !== limit || last === undefined) return;
  const bound = order === 'newest' ? '--before' : '--after';
  io.stderr.write(`${count} shown. For what may follow: the same with ${bound} ${last.position}\n`);
}

async function nothingMatches({ name }: QueryFlags, store: StoreReader): Promise<string> {
  if ((await store.lastPosition()) === 0) return 'Nothing has been received yet.\n';
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
async function writeBodies(io: Io, store: StoreReader, question: NotificationQuery): Promise<void> {
  const printed = new Set<number>();
  for await (const { position } of store.find(question)) {
    const { bodyId, bytes } = await store.original(position);
    if (printed.has(bodyId)) continue;
    if (printed.size > 0) await writeOut(io.stdout, '\n');
    await writeForeign(io.stdout, bytes);
    printed.add(bodyId);
  }
  if (printed.size === 0)
    throw new AppError('not_found', 'No notification matches, so there is no body.');
  if (io.stdout.isTTY) await writeOut(io.stdout, '\n');
}

async function withReader(io: Io, use: (store: StoreReader) => Promise<void>): Promise<void> {
  const store = openStoreReader(readDataConfig(io).dataDir);
  try {
    await use(store);
  } finally {
    await store.close();
  }
}

type DriftRow = ReturnType<typeof toDriftRow>;

function toDriftRow({ shape, count, firstSeenAtUs, lastSeenAtUs }: DriftCount) {
  const [firstSeenAt, lastSeenAt] = [formatDateUs(firstSeenAtUs), formatDateUs(lastSeenAtUs)];
  return { shape, count, firstSeenAt, lastSeenAt };
}

const toSeconds = (iso: string) => iso.slice(0, 19).replace('T', ' ');

const driftColumns = [
  { title: 'shape', value: (row: DriftRow) => row.shape },
  { title: 'count', value: (row: DriftRow) => String(row.count), align: 'right' as const },
  { title: 'first seen (UTC)', value: (row: DriftRow) => toSeconds(row.firstSeenAt) },
  { title: 'last seen (UTC)', value: (row: DriftRow) => toSeconds(row.lastSeenAt) },
];
