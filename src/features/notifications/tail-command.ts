/** `earshot tail`: prints and follows the log; a named reader continues at its stored position. */

import { InvalidArgumentError, Option } from 'commander';
import { defineCommand, withParts } from '../../core/cli/command.ts';
import { addOutputForms, type OutputFlags, wholeNumber } from '../../core/cli/flags.ts';
import { type Io, pause } from '../../core/cli/io.ts';
import { shorten, widthOf, writeForeign } from '../../core/cli/output.ts';
import { loadConfig } from '../../core/config/config.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { shortDateUs } from '../../core/terms/dates.ts';
import { followLog, type NotificationQuery, type NotificationRow } from '../../core/terms/ports.ts';
import { toNotificationJson } from '../../core/terms/read-models.ts';
import { printable } from '../../core/terms/text.ts';
import { requireFilter } from '../../filter/check.ts';
import type { ProductCells } from '../../filter/product-facts.ts';
import type { StoreReader } from '../../store/store.ts';
import { formatNames, type MessageSettings, messageUrls, stacIds } from '../messages/formats.ts';
import { createMessageReader } from '../messages/message-reader.ts';
import {
  addFilterOptions,
  type FilterFlags,
  notificationCells,
  toQuery,
  warnOfUnknownEvents,
} from './output.ts';

/** Poll interval at the end of the log. */
const pollMs = 500;
/** Maximum rows between two updates of the stored position. */
const rowsPerMoveMax = 1000;

type StartingPoint = 'start' | 'now' | number;

interface TailFlags extends FilterFlags, OutputFlags<'lines' | 'json' | 'ndjson'> {
  reader?: string;
  from?: StartingPoint;
  limit?: number;
  wide?: true;
  follow?: boolean;
  filter?: string;
  format?: MessageSettings['format'];
  stacIds?: MessageSettings['stacIds'];
}

export const tailCommand = defineCommand('tail', {
  description: 'Print notifications as they arrive.',
  flags: (command, io) => {
    addFilterOptions(command, io)
      .option(
        '-n, --limit <rows>',
        'maximum number of rows (stored notifications to print first; default: 0)',
        wholeNumber(),
      )
      .option('--no-follow', 'exit at the end of the log')
      .option(
        '--reader <name>',
        'name of a stored position (the next run continues there)',
        readerName,
      )
      .option(
        '--from <where>',
        'position after which to print: start, now or a number (default: position of --reader, otherwise now)',
        startingPoint,
      )
      .option(
        '--filter <expression>',
        '$filter expression (the record of the notification must match)',
      )
      .addOption(
        new Option('--format <format>', 'format of ndjson (default: document)').choices(
          formatNames,
        ),
      )
      .addOption(
        new Option('--stac-ids <whose>', 'ids of STAC items (default: earshot)').choices(stacIds),
      );
    return addOutputForms(command, ['lines', 'json', 'ndjson']).option(
      '--wide',
      'print full names and all columns, even on a narrow terminal',
    );
  },
  help: `By default, the command prints only new notifications. --since, -n, --from and --reader also select
existing notifications. --since and --until refer to the time of receipt. To use the date of the
notification, set --time notification. With --until, the command exits at the given time. --since
and -n cannot be combined with --from or --reader.

Columns: time of receipt (UTC), event, satellite, product type, tile or orbit, cloud cover, place,
product name. json prints one object per line, with fields of \`earshot query\`. ndjson prints one
message per line, with the record of the product, as /api/feed sends it: the document of sinks, or
another --format.

The position of a reader is stored after the rows have been printed. After a crash, rows can be
printed twice, but no row is skipped. A reader has one position: use another reader for another
filter.

Examples:
  $ earshot tail                                            new notifications
  $ earshot tail --since 1h                                 the last hour, then new notifications
  $ earshot tail -n 20 --event deleted --output json        20 deletions, then new deletions
  $ earshot tail --filter "contains(Name,'_T32TQM_')"       new notifications of one tile
  $ earshot tail --output ndjson --format stac              new products as STAC items
  $ earshot tail --reader downloads --from start --no-follow --json    the rows since the last run`,
  check: (flags: TailFlags, io) => {
    refuseTwoStarts(flags);
    const { output, format, stacIds: ids, filter = '' } = flags;
    if (output !== 'ndjson' && (format ?? ids) !== undefined) {
      throw new AppError('usage', '--format and --stac-ids need --output ndjson.');
    }
    requireFilter(filter, 'Products');
    warnOfUnknownEvents(flags, io);
  },
  run: async (io, flags) => {
    const { reader: name, from } = flags;
    if (name === undefined) {
      return withParts(io, ['reader'], async ({ reader }) => {
        await print(io, flags, reader, await startOf(io, flags, reader));
      });
    }
    // A named reader changes its stored position.
    await withParts(io, ['store'], async ({ store }) => {
      const known = from === undefined ? await store.cursor(name) : null;
      const move = (position: number) => store.moveCursor(name, position, io.nowUs());
      const start = known ?? (await startOf(io, flags, store));
      await move(start);
      await print(io, flags, store, start, move);
    });
  },
});

/** Rejects two start flags. With --reader, --since or -n would skip rows permanently. */
function refuseTwoStarts({ reader, from, since, limit }: TailFlags): void {
  const start = since === undefined ? '-n' : '--since';
  if (since === undefined && limit === undefined) return;
  if (from !== undefined) {
    throw new AppError('usage', `${start} cannot be combined with --from.`, {
      advice: 'Use one of them.',
    });
  }
  if (reader === undefined) return;
  throw new AppError(
    'usage',
    `${start} cannot be combined with --reader: the reader starts at its stored position.`,
    {
      advice: `To move the reader, use --from (start, now or a position). To use ${start}, omit --reader.`,
    },
  );
}

/** Returns the position after which rows are printed. */
async function startOf(io: Io, flags: TailFlags, store: StoreReader): Promise<number> {
  const { from = 'now', since, limit } = flags;
  if (typeof from === 'number') return from;
  if (from === 'start') return 0;
  if (limit === 0 || (since === undefined && limit === undefined)) return store.lastPosition();
  if (limit === undefined) return 0;
  const { selects } = messagesOf(io, flags, store);
  let oldest: number | undefined;
  let left = limit;
  for await (const row of store.find({ ...toQuery(flags), order: 'newest' })) {
    if (!(await selects(row))) continue;
    oldest = row.position;
    left -= 1;
    if (left === 0) break;
  }
  return oldest === undefined ? store.lastPosition() : oldest - 1;
}

async function print(
  io: Io,
  flags: TailFlags,
  store: StoreReader,
  afterPosition: number,
  move: (position: number) => Promise<void> = async () => undefined,
): Promise<void> {
  let written = afterPosition;
  let unstored = 0;
  const storePosition = async () => {
    if (unstored > 0) await move(written);
    unstored = 0;
  };
  const stop = new AbortController();
  const signal = AbortSignal.any([io.signal, stop.signal]);
  let isPastEnd = msUntilEnd(flags, io) === 0;
  const wait = async () => {
    await storePosition();
    // One more poll after --until: a row received before it may be committed after it.
    if (flags.follow === false || isPastEnd) return stop.abort();
    const leftMs = msUntilEnd(flags, io);
    isPastEnd = leftMs === 0;
    await pause(isPastEnd ? pollMs : Math.min(pollMs, leftMs), signal);
  };
  const query: NotificationQuery = toQuery(flags);
  const toLine = lineWriter(io, flags, store);
  for await (const row of followLog({ log: store, query, afterPosition, wait, signal })) {
    const line = await toLine(row);
    if (line !== null) await writeForeign(io.stdout, `${line}\n`);
    written = row.position;
    unstored += 1;
    if (unstored >= rowsPerMoveMax) await storePosition();
  }
  await storePosition();
}

function msUntilEnd({ until = Number.POSITIVE_INFINITY }: TailFlags, io: Io): number {
  return Math.max(0, (until - io.nowUs()) / 1000);
}

function messagesOf(io: Io, flags: TailFlags, log: StoreReader) {
  const { filter = '', maxAge: maxAgeUs = null } = flags;
  const { format = 'document', stacIds: ids = 'earshot' } = flags;
  const rules = { subscriptions: [], events: [], filter, maxAgeUs };
  // Other outputs have no URLs, and do not depend on these settings.
  const urls =
    flags.output === 'ndjson'
      ? messageUrls(loadConfig(io, ['catalogueUrl', 'publicUrl', 'console']))
      : { catalogue: '', receiver: undefined, base: '' };
  const sources = { log, urls, nowUs: io.nowUs };
  const read = createMessageReader({ ...rules, format, stacIds: ids }, sources);
  const isAny = filter === '' && maxAgeUs === null;
  const selects = async (row: NotificationRow) => isAny || (await read(row)) !== null;
  return { read, selects };
}

/** Returns the function that writes the line of a row; null for a row that is not selected. */
function lineWriter(
  io: Io,
  flags: TailFlags,
  log: StoreReader,
): (row: NotificationRow) => Promise<string | null> {
  const { output, wide } = flags;
  const { selects, read } = messagesOf(io, flags, log);
  const width = wide ? Number.POSITIVE_INFINITY : widthOf(io.stdout);
  return async (row) => {
    if (output === 'ndjson') return read(row);
    if (!(await selects(row))) return null;
    if (output === 'json') return JSON.stringify(toNotificationJson(row));
    return lineOf(row, await notificationCells(row, log), width);
  };
}

/** Formats a row: the name of the product is shortened only if it does not fit, and more is added if there is width. */
function lineOf(row: NotificationRow, { cloud, place }: ProductCells, width: number): string {
  const time = shortDateUs(row.receivedAtUs, 'second');
  const begin = `${time}  ${shorten(printable(row.event), 12).padEnd(8)}  `;
  const name = printable(row.productName ?? row.productId);
  let line = begin + shorten(name, Math.max(12, width - begin.length));
  for (const cell of [cloud, place]) {
    const part = cell === null ? '' : `  ${printable(cell)}`;
    if (line.length + part.length > width) break;
    line += part;
  }
  return line;
}

function readerName(text: string): string {
  if (/^[a-z0-9][a-z0-9._-]{0,62}$/.test(text)) return text;
  throw new InvalidArgumentError(
    'Use lower-case letters, digits, dots, dashes and underscores (maximum 63 characters).',
  );
}

function startingPoint(text: string): StartingPoint {
  if (text === 'start' || text === 'now') return text;
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('Use "start", "now" or a position.');
  return wholeNumber()(text);
}
