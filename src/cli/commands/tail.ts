/** `earshot tail`: prints a part of the log and follows it; a named reader continues where it stopped. */
import { InvalidArgumentError } from 'commander';
import { AppError } from '../../domain/app-error.ts';
import { shortDateUs } from '../../domain/dates.ts';
import { toNotificationJson } from '../../domain/json-rows.ts';
import type { NotificationQuery, NotificationRow } from '../../domain/ports.ts';
import { followLog } from '../../domain/streams.ts';
import { printable } from '../../domain/text.ts';
import type { StoreReader } from '../../store/store.ts';
import { defineCommand, withParts } from '../command.ts';
import { addOutputForms, type OutputFlags, wholeNumber } from '../flags.ts';
import { type Io, pause } from '../io.ts';
import {
  addFilterOptions,
  type FilterFlags,
  notificationCells,
  toQuery,
  warnOfUnknownEvents,
} from '../notification-output.ts';
import { shorten, widthOf, writeForeign } from '../output.ts';
import type { ProductCells } from '../product-cells.ts';

/** How often the end of the log is read. */
const pollMs = 500;
/** A named reader's position is stored at least after this many rows. */
const rowsPerMoveMax = 1000;

type StartingPoint = 'start' | 'now' | number;

interface TailFlags extends FilterFlags, OutputFlags<'lines' | 'json' | 'ndjson'> {
  reader?: string;
  from?: StartingPoint;
  limit?: number;
  wide?: true;
  follow?: boolean;
}

export const tailCommand = defineCommand('tail', {
  description: 'Print notifications as they arrive, and with --since or -n those before.',
  flags: (command, io) => {
    addFilterOptions(command, io)
      .option(
        '-n, --limit <rows>',
        'first the last rows that match, as many as this',
        wholeNumber(),
      )
      .option('-f, --follow', 'wait for more at the end of the log (the default)')
      .option('--no-follow', 'stop at the end of the log instead of waiting for more')
      .option(
        '--reader <name>',
        'store the position under this name, and continue from it next time',
        readerName,
      )
      .option(
        '--from <where>',
        'start, now, or a position (default: where the reader stopped, else now)',
        startingPoint,
      );
    return addOutputForms(command, ['lines', 'json', 'ndjson']).option(
      '--wide',
      'print whole names on any terminal',
    );
  },
  help: `--since prints what the log has from that time on, then follows. --until ends it at that time.
-n N starts with the last N rows that match. Both can be combined; --reader and --from state the
start themselves, so neither goes with them.

Lines have time of receipt (UTC), event, satellite, product type, tile or orbit, cloud cover, place,
and the product's name where the terminal has the width. json and ndjson are the same: one JSON
object per line, with the fields of \`earshot query\`.

A named reader is stored after its rows are written: after a crash some may come again, none is
left out. The same name keeps one position, whatever the filter.

Examples:
  $ earshot tail
  $ earshot tail --since 1h                             the last hour, then what arrives
  $ earshot tail -n 20 --event deleted --output json
  $ earshot tail --since 2026-11-01 --until 2026-11-02 --no-follow
  $ earshot tail --reader downloads --from start --no-follow --output json   what is new`,
  check: (flags: TailFlags, io) => {
    refuseTwoStarts(flags);
    refuseEmptySpan(io, flags);
    warnOfUnknownEvents(flags, io);
  },
  run: async (io, flags) => {
    const { reader: name, from } = flags;
    if (name === undefined) {
      return withParts(io, ['reader'], async ({ reader }) => {
        await print(io, flags, reader, await startOf(flags, reader));
      });
    }
    // The position of a named reader is a change.
    await withParts(io, ['store'], async ({ store }) => {
      const known = from === undefined ? await store.cursor(name) : null;
      const move = (position: number) => store.moveCursor(name, position, io.nowUs());
      const start = known ?? (await startOf(flags, store));
      await move(start);
      await print(io, flags, store, start, move);
    });
  },
});

/** A reader that skipped rows by time or number would leave them out permanently: it must be moved explicitly. */
function refuseTwoStarts({ reader, from, since, limit }: TailFlags): void {
  const start = since === undefined ? '-n' : '--since';
  if (since === undefined && limit === undefined) return;
  if (from !== undefined) {
    throw new AppError('usage', `${start} and --from both state the start.`, {
      advice: 'Use one of them.',
    });
  }
  if (reader === undefined) return;
  throw new AppError(
    'usage',
    `${start} does not go with --reader: the reader continues where it stopped.`,
    { advice: 'Use --from start, now or a position to move it, or leave --reader out.' },
  );
}

function refuseEmptySpan(io: Io, flags: TailFlags): void {
  const { reader, from = 'now', since, limit } = flags;
  const isFromNow = from === 'now' && since === undefined && limit === undefined;
  if (reader !== undefined || !isFromNow) return;
  if (flags.follow === false && flags.from === undefined) {
    io.stderr.write(
      'tail starts with what arrives now, and --no-follow ends it there: nothing is printed. Add --since, -n or --from start.\n',
    );
  }
  if (msUntilEnd(flags, io) > 0) return;
  throw new AppError(
    'usage',
    '--until has passed, and tail starts with what arrives now: nothing could be printed.',
    { advice: 'Add --since, -n or --from start.' },
  );
}

/** The position after which the rows are printed. */
async function startOf(flags: TailFlags, store: StoreReader): Promise<number> {
  const { from = 'now', since, limit } = flags;
  if (typeof from === 'number') return from;
  if (from === 'start') return 0;
  if (limit === 0 || (since === undefined && limit === undefined)) return store.lastPosition();
  if (limit === undefined) return 0;
  let oldest: number | undefined;
  for await (const row of store.find({ ...toQuery(flags), order: 'newest', limit })) {
    oldest = row.position;
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
  let isOver = msUntilEnd(flags, io) === 0;
  const wait = async () => {
    await storePosition();
    // One more round after --until has passed: a row received before it may be committed after it.
    if (flags.follow === false || isOver) return stop.abort();
    const leftMs = msUntilEnd(flags, io);
    isOver = leftMs === 0;
    await pause(isOver ? pollMs : Math.min(pollMs, leftMs), signal);
  };
  const query: NotificationQuery = toQuery(flags);
  const toLine = lineWriter(io, flags, store);
  for await (const row of followLog({ log: store, query, afterPosition, wait, signal })) {
    await writeForeign(io.stdout, await toLine(row));
    written = row.position;
    unstored += 1;
    if (unstored >= rowsPerMoveMax) await storePosition();
  }
  await storePosition();
}

function msUntilEnd({ until = Number.POSITIVE_INFINITY }: TailFlags, io: Io): number {
  return Math.max(0, (until - io.nowUs()) / 1000);
}

function lineWriter(
  { stdout }: Io,
  { output, wide }: TailFlags,
  log: StoreReader,
): (row: NotificationRow) => Promise<string> {
  if (output !== 'lines') return async (row) => `${JSON.stringify(toNotificationJson(row))}\n`;
  const width = wide ? Number.POSITIVE_INFINITY : widthOf(stdout);
  return async (row) => `${lineOf(row, await notificationCells(row, log), width)}\n`;
}

/** Widths of columns from the satellite on: lines stream, so nothing can be measured before. */
const cellWidths = [3, 14, 10, 6, 14] as const;
/** The same on a terminal that is too narrow for them. */
const narrowWidths = [3, 14, 10, 5, 8] as const;
const beginWidth = 29;
const fullWidth = cellWidths.reduce((sum, width) => sum + 2 + width, beginWidth);

/** Columns that the terminal has no width for are left out, from the last on. */
function lineOf(row: NotificationRow, cells: ProductCells, width: number): string {
  const time = shortDateUs(row.receivedAtUs, 'second');
  const begin = `${time}  ${shorten(printable(row.event), 12).padEnd(8)}`;
  const name = printable(row.productName ?? row.productId);
  const { mission, type, tile } = cells;
  if (mission === null) return `${begin}  ${shorten(name, Math.max(12, width - begin.length - 2))}`;
  const [widths, { cloud, place }] =
    width < fullWidth ? [narrowWidths, cells.short] : [cellWidths, cells];
  const columns = [mission, type, tile, cloud?.padStart(widths[3]), place].map((cell, i) =>
    shorten(printable(cell ?? ''), widths[i] ?? 0).padEnd(widths[i] ?? 0),
  );
  let line = begin;
  for (const part of [...columns, name]) {
    if (line.length + 2 + part.trimEnd().length > width) break;
    line += `  ${part}`;
  }
  return line.trimEnd();
}

function readerName(text: string): string {
  if (/^[a-z0-9][a-z0-9._-]{0,62}$/.test(text)) return text;
  throw new InvalidArgumentError('Use small letters, digits, dots and dashes; at most 63.');
}

function startingPoint(text: string): StartingPoint {
  if (text === 'start' || text === 'now') return text;
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('Use start, now, or a position.');
  return wholeNumber()(text);
}
