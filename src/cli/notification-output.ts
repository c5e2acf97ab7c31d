/** Notifications of the log in every form of output. */
import { AppError } from '../domain/app-error.ts';
import { notificationFields, toNotificationJson } from '../domain/json-rows.ts';
import type { NotificationLog, NotificationRow } from '../domain/ports.ts';
import { jsonOf } from '../domain/text.ts';
import { type ProductRecord, recordIn } from '../filter/product-record.ts';
import { factsOfRecord } from '../store/products/product-rows.ts';
import type { Output } from './io.ts';
import { type Column, printTable } from './output.ts';
import {
  type ProductCells,
  productCells,
  productColumns,
  shortColumn,
  timeColumn,
} from './product-cells.ts';
import { type OutputForm, type WrittenRows, writeRows } from './row-forms.ts';

interface ListedNotification {
  row: NotificationRow;
  cells: ProductCells;
}

const { mission, type, sensed, tile, cloud, place, name } = productColumns;

const usualColumns: readonly Column<ListedNotification>[] = [
  {
    title: 'position',
    value: ({ row }) => String(row.position),
    align: 'right',
    optionalRank: 3,
  },
  timeColumn('received', ({ receivedAtUs }: NotificationRow) => receivedAtUs, 'second'),
  { title: 'event', value: ({ row }) => row.event },
  mission,
  type,
  { ...sensed, short: shortColumn('sensed', 'sensed') },
  { ...tile, short: shortColumn('tile', 'tile') },
  cloud,
  place,
  { ...name, title: 'product', optionalRank: 5 },
  { title: 'subscription', value: ({ row }) => row.subscription ?? '-', optionalRank: 4 },
  { title: 'seen', value: ({ row }) => String(row.timesSeen), align: 'right', optionalRank: 6 },
];

/**
 * Writes notifications as they come. `log` has the bodies that they came in; `columns` replaces the usual ones of
 * table and CSV; a `wide` table is not fitted to the terminal.
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
  return writeRows(output, form, rows, forms, columns);
}

async function* listed(
  rows: AsyncIterable<NotificationRow>,
  log: Pick<NotificationLog, 'body'>,
): AsyncGenerator<ListedNotification> {
  for await (const row of rows) yield { row, cells: await notificationCells(row, log) };
}

/** The cells of a notification's product, from the record in its body and the product's name. */
export async function notificationCells(
  row: NotificationRow,
  log: Pick<NotificationLog, 'body'>,
): Promise<ProductCells> {
  const record = await recordOf(row, log);
  return productCells(factsOfRecord(record ?? {}, row.productName), record);
}

/** Null where the body has no record, was pruned, or cannot be read: a list continues without it. */
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
