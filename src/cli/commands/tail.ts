/** `earshot tail`: follows the log, and goes on where it stopped when the reader has a name. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { readDataConfig } from '../../config/read-config.ts';
import { followLog } from '../../domain/follow-log.ts';
import { toNotificationJson } from '../../domain/json-rows.ts';
import type { NotificationQuery, NotificationRow } from '../../domain/ports.ts';
import { printable } from '../../domain/printable.ts';
import { openStore, openStoreReader, type Store, type StoreReader } from '../../store/store.ts';
import {
  addFilterOptions,
  type FilterFlags,
  toQuery,
  warnOfUnknownEvents,
} from '../filter-options.ts';
import type { Io } from '../io.ts';
import { wholeNumber } from '../number-argument.ts';
import { pause } from '../until-aborted.ts';
import { writeForeign } from '../write-out.ts';

/** How often the end of the log is looked at. */
const pollMs = 500;
/** A named reader's position is stored at least after this many rows. */
const rowsPerMoveMax = 1000;

interface TailFlags extends FilterFlags {
  reader?: string;
  from?: 'start' | 'now' | number;
  output: 'lines' | 'ndjson';
  follow: boolean;
}

export function tailCommand(io: Io): Command {
  return addFilterOptions(new Command('tail'), io)
    .description('Follow notifications as they arrive.')
    .option(
      '--reader <name>',
      'store the position under this name, and go on from it next time',
      readerName,
    )
    .option(
      '--from <where>',
      'start, now, or a position (default: where the reader stopped, else now)',
      startingPoint,
    )
    .addOption(
      new Option('--output <form>', 'lines for people or ndjson')
        .choices(['lines', 'ndjson'])
        .default('lines'),
    )
    .option('--no-follow', 'stop at the end of the log instead of waiting for more')
    .addHelpText(
      'after',
      `
A named reader is stored after its rows are written: after a crash some may come again, none is
left out. The same name keeps one position, whatever the filter.

Examples:
  $ earshot tail
  $ earshot tail --event deleted --output ndjson
  $ earshot tail --reader downloads --from start --no-follow --output ndjson   what is new`,
    )
    .action((flags: TailFlags) => tail(io, flags));
}

async function tail(io: Io, flags: TailFlags): Promise<void> {
  warnOfUnknownEvents(flags, io);
  const { dataDir } = readDataConfig(io);
  const { reader } = flags;
  if (reader === undefined) {
    const store = openStoreReader(dataDir);
    return closing(store, async () => {
      const from = await positionOf(flags.from ?? 'now', store);
      await print(io, flags, store, from, async () => undefined);
    });
  }
  const store = await openStore({ dataDir, nowUs: io.nowUs, mustExist: true });
  return closing(store, async () => {
    const known = flags.from === undefined ? await store.cursor(reader) : null;
    const from = known ?? (await positionOf(flags.from ?? 'now', store));
    const move = (position: number) => store.moveCursor(reader, position, io.nowUs());
    await move(from);
    await print(io, flags, store, from, move);
  });
}

async function print(
  io: Io,
  flags: TailFlags,
  store: StoreReader | Store,
  afterPosition: number,
  move: (position: number) => Promise<void>,
): Promise<void> {
  let written = afterPosition;
  let unstored = 0;
  const storePosition = async () => {
    if (unstored > 0) await move(written);
    unstored = 0;
  };
  const stop = new AbortController();
  const signal = AbortSignal.any([io.signal, stop.signal]);
  const wait = async () => {
    await storePosition();
    if (flags.follow) await pause(pollMs, signal);
    else stop.abort();
  };
  const query: NotificationQuery = toQuery(flags);
  for await (const row of followLog({ log: store, query, afterPosition, wait, signal })) {
    await writeForeign(io.stdout, lineOf(row, flags.output));
    written = row.position;
    unstored += 1;
    if (unstored >= rowsPerMoveMax) await storePosition();
  }
  await storePosition();
}

function lineOf(row: NotificationRow, form: TailFlags['output']): string {
  const output = toNotificationJson(row);
  if (form === 'ndjson') return `${JSON.stringify(output)}\n`;
  const time = output.receivedAt.slice(0, 19).replace('T', ' ');
  const product = printable(row.productName ?? row.productId);
  return `${time}  ${printable(row.event).padEnd(8)}  ${product}\n`;
}

async function positionOf(
  from: 'start' | 'now' | number,
  store: Pick<Store, 'lastPosition'>,
): Promise<number> {
  if (typeof from === 'number') return from;
  return from === 'start' ? 0 : store.lastPosition();
}

async function closing(store: { close(): Promise<void> }, use: () => Promise<void>): Promise<void> {
  try {
    await use();
  } finally {
    await store.close();
  }
}

function readerName(text: string): string {
  if (/^[a-z0-9][a-z0-9._-]{0,62}$/.test(text)) return text;
  throw new InvalidArgumentError('Use small letters, digits, dots and dashes; at most 63.');
}

function startingPoint(text: string): 'start' | 'now' | number {
  if (text === 'start' || text === 'now') return text;
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('Use start, now, or a position.');
  return wholeNumber()(text);
}
