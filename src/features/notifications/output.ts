/** Flags that select notifications of the log, and their output in every format. */

import { type Command, InvalidArgumentError, Option } from 'commander';
import { addSpan, eventFlagText, maxAgeOption } from '../../core/cli/flags.ts';
import type { Io, Output } from '../../core/cli/io.ts';
import { painter } from '../../core/cli/output.ts';
import { printTable } from '../../core/cli/print-report.ts';
import { type OutputForm, type WrittenRows, writeRows } from '../../core/cli/row-forms.ts';
import { AppError } from '../../core/terms/app-error.ts';
import {
  type NotificationLog,
  type NotificationQuery,
  type NotificationRow,
  namePatternMax,
  notificationSources,
} from '../../core/terms/ports.ts';
import { notificationFields, toNotificationJson } from '../../core/terms/read-models.ts';
import type { Column } from '../../core/terms/report.ts';
import { subscriptionEvents } from '../../core/terms/subscription.ts';
import { jsonOf, printable } from '../../core/terms/text.ts';
import { isTooOld } from '../../filter/product-age.ts';
import { factsOfRecord, type ProductCells } from '../../filter/product-facts.ts';
import { productView } from '../../filter/product-view.ts';
import { type ProductRecord, recordIn } from '../../filter/values.ts';
import { cellsOfRecord, productColumns, timeColumn, type WithCells } from '../products/output.ts';

export interface FilterFlags {
  ackId?: string;
  productId?: string;
  name?: string;
  event?: string[];
  subscription?: string;
  source?: string;
  since?: number;
  until?: number;
  maxAge?: number;
  time: 'received' | 'notification';
}

export function addFilterOptions(command: Command, io: Io): Command {
  command
    .option('--ack-id <id>', 'AckId of the notification')
    .option('--product-id <id>', 'id of the product')
    .option(
      '--name <pattern>',
      'product name (* matches any text, ? matches one character)',
      pattern,
    )
    .option('--event <names>', eventFlagText, splitNames)
    .option('--subscription <name>', 'subscription name (default: all)')
    .addOption(
      new Option('--source <source>', 'source of the notification').choices(notificationSources),
    );
  return addSpan(command, io, 'see --time')
    .addOption(
      new Option('--time <which>', 'time that --since and --until refer to')
        .choices(['received', 'notification'])
        .default('received'),
    )
    .addOption(maxAgeOption());
}

/** Converts the flags to a query of the log. */
export function toQuery(flags: FilterFlags): NotificationQuery {
  const { ackId, productId, name, event: events, subscription, source, time } = flags;
  const { since: sinceUs, until: untilUs } = flags;
  return { ackId, productId, name, events, subscription, source, time, sinceUs, untilUs };
}

/** Returns the log without notifications of products that are too old by their records. */
export function withMaxAge<Log extends Pick<NotificationLog, 'find' | 'body'>>(
  log: Log,
  maxAgeUs: number | undefined,
  signal?: AbortSignal,
): Log {
  if (maxAgeUs === undefined) return log;
  const find = async function* ({ limit = Number.POSITIVE_INFINITY, ...query }: NotificationQuery) {
    let found = 0;
    for await (const row of log.find(query)) {
      // The caller sees only the rows that are left.
      signal?.throwIfAborted();
      if (isTooOld(productView((await recordOf(row, log)) ?? {}), maxAgeUs)) continue;
      yield row;
      found += 1;
      if (found >= limit) return;
    }
  };
  return { ...log, find };
}

/** Warns about unknown event names, which may be typing errors or new events of the catalogue. */
export function warnOfUnknownEvents(
  { event = [] }: Pick<FilterFlags, 'event'>,
  io: Pick<Io, 'env' | 'stderr'>,
): void {
  const known: readonly string[] = subscriptionEvents;
  for (const name of event.filter((one) => !known.includes(one))) {
    const label = painter(io, io.stderr)('yellow', `Unknown event "${printable(name)}"`);
    io.stderr.write(`${label}. Documented events: ${known.join(', ')}.\n`);
  }
}

function splitNames(text: string): string[] {
  const names = text.split(',').map((name) => name.trim().toLowerCase());
  if (names.includes(''))
    throw new InvalidArgumentError('Use one or more events, comma-separated.');
  return names;
}

function pattern(text: string): string {
  if (text.length <= namePatternMax) return text;
  throw new InvalidArgumentError(`Use at most ${namePatternMax} characters.`);
}

type ListedNotification = WithCells & { row: NotificationRow };

const { name, cloud, place, sensed, type, tile } = productColumns;

/** The position, the subscription and the times seen are the first to go. */
const usualColumns: readonly Column<ListedNotification>[] = [
  timeColumn('received', ({ receivedAtUs }: NotificationRow) => receivedAtUs),
  { title: 'event', value: ({ row }) => row.event },
  ...[name, cloud, place, sensed, type, tile],
  { title: 'subscription', value: ({ row }) => row.subscription, drop: 7 },
  { title: 'position', isNumber: true, drop: 8, value: ({ row }) => String(row.position) },
  { title: 'seen', isNumber: true, drop: 9, value: ({ row }) => row.timesSeen },
];

/**
 * Writes notifications as a stream. `log` provides their bodies; `columns` replaces the default columns of table and
 * CSV; a `wide` table ignores the terminal width.
 */
export function writeNotifications(
  output: Output,
  form: OutputForm,
  rows: AsyncIterable<NotificationRow>,
  log: Pick<NotificationLog, 'body'>,
  { columns, wide = false }: { columns?: readonly string[] | undefined; wide?: boolean } = {},
): Promise<WrittenRows<NotificationRow>> {
  const forms = {
    table: (some: AsyncIterable<NotificationRow>) =>
      printTable(output, usualColumns, listed(some, log), { wide }),
    json: toNotificationJson,
    fields: notificationFields,
    values: toNotificationJson,
  };
  return writeRows(output, form, rows, forms, { columns });
}

async function* listed(
  rows: AsyncIterable<NotificationRow>,
  log: Pick<NotificationLog, 'body'>,
): AsyncGenerator<ListedNotification> {
  for await (const row of rows) yield { row, cells: await notificationCells(row, log) };
}

/** Cells of a notification's product, from the record in the body and the product name. */
export async function notificationCells(
  row: NotificationRow,
  log: Pick<NotificationLog, 'body'>,
): Promise<ProductCells> {
  const record = await recordOf(row, log);
  return cellsOfRecord(factsOfRecord(record ?? {}, row.productName), record);
}

/** Returns null if the body has no record, was pruned or is unreadable, so that a list can continue. */
async function recordOf(
  { position, bodyIndex }: NotificationRow,
  log: Pick<NotificationLog, 'body'>,
): Promise<ProductRecord | null> {
  try {
    const text = new TextDecoder().decode(await log.body(position));
    return recordIn(jsonOf(text), bodyIndex);
  } catch (error) {
    if (error instanceof AppError) return null;
    throw error;
  }
}
