/** The rows of the log as people and programs get them: table, JSON, NDJSON, CSV. */
import { stringify } from 'csv-stringify/sync';
import { AppError } from '../domain/app-error.ts';
import { notificationFields, toNotificationJson } from '../domain/json-rows.ts';
import type { NotificationLog, NotificationRow } from '../domain/ports.ts';
import { jsonOf } from '../domain/text.ts';
import { type ProductRecord, recordIn } from '../filter/product-record.ts';
import { factsOfRecord } from '../store/products/product-rows.ts';
import type { Output } from './io.ts';
import { type Column, chosenColumns, printTable, writeForeign, writeOut } from './output.ts';
import { type ProductCells, productCells, toShortMinute } from './product-cells.ts';

export const outputForms = ['table', 'json', 'ndjson', 'csv'] as const;
export type OutputForm = (typeof outputForms)[number];

type OutputRow = ReturnType<typeof toNotificationJson>;

export interface NotificationOutputOptions {
  /** Fields for table and CSV in place of the usual ones. */
  columns?: readonly string[] | undefined;
  /** Tables are not fitted to the terminal. */
  wide?: boolean;
}

/** A notification with the cells of its product, which several columns share. */
interface ListedNotification {
  row: OutputRow;
  cells: ProductCells;
}

type NotificationColumn = Column<ListedNotification>;

const usualColumns: readonly NotificationColumn[] = [
  {
    title: 'position',
    value: ({ row }) => String(row.position),
    align: 'right',
    optionalRank: 3,
  },
  {
    title: 'received (UTC)',
    value: ({ row }) => shortTime(row.receivedAt),
    short: {
      title: 'received',
      value: ({ row }) => toShortMinute(Date.parse(row.receivedAt) * 1000) ?? '-',
    },
  },
  { title: 'event', value: ({ row }) => row.event },
  { title: 'sat', value: ({ cells }) => cells.mission ?? '-' },
  { title: 'type', value: ({ cells }) => cells.type ?? '-' },
  {
    title: 'sensed (UTC)',
    value: ({ cells }) => cells.sensed ?? '-',
    optionalRank: 0,
    wanted: true,
    short: { title: 'sensed', value: ({ cells }) => cells.short.sensed ?? '-' },
  },
  {
    title: 'tile/orbit',
    value: ({ cells }) => cells.tile ?? '-',
    short: { title: 'tile', value: ({ cells }) => cells.short.tile ?? '-' },
  },
  {
    title: 'cloud',
    value: ({ cells }) => cells.cloud ?? '-',
    align: 'right',
    optionalRank: 1,
    wanted: true,
    short: { title: 'cloud', value: ({ cells }) => cells.short.cloud ?? '-' },
  },
  {
    title: 'place',
    value: ({ cells }) => cells.place ?? '-',
    optionalRank: 2,
    wanted: true,
    short: { title: 'place', value: ({ cells }) => cells.short.place ?? '-' },
  },
  {
    title: 'product',
    value: ({ row }) => row.productName ?? row.productId,
    flexible: true,
    widthMin: 12,
    optionalRank: 5,
    requiredBy: ({ cells }) => cells.mission === null,
    spanFrom: 'sat',
  },
  { title: 'subscription', value: ({ row }) => row.subscription ?? '-', optionalRank: 4 },
  { title: 'seen', value: ({ row }) => String(row.timesSeen), align: 'right', optionalRank: 6 },
];

/** Writes rows as they come; returns how many there were. `log` has the bodies that the rows came in. */
export async function writeRows(
  output: Output,
  form: OutputForm,
  rows: AsyncIterable<NotificationRow>,
  log: Pick<NotificationLog, 'body'>,
  { columns, wide = false }: NotificationOutputOptions = {},
): Promise<number> {
  if (form === 'table' && columns === undefined) {
    return printTable(output, usualColumns, listed(rows, log), { wide });
  }
  const outputRows = mapped(rows);
  if (form === 'table') {
    return printTable(
      output,
      chosenColumns<OutputRow>(columns ?? [], (row) => row),
      outputRows,
    );
  }
  if (form === 'json') return writeJson(output, outputRows);
  const fields = columns ?? notificationFields;
  let count = 0;
  if (form === 'csv') await writeOut(output, `${fields.join(',')}\n`);
  for await (const row of outputRows) {
    count += 1;
    await writeForeign(output, lineOf(form, row, fields));
  }
  return count;
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

async function* listed(
  rows: AsyncIterable<NotificationRow>,
  log: Pick<NotificationLog, 'body'>,
): AsyncGenerator<ListedNotification> {
  for await (const row of rows) {
    yield { row: toNotificationJson(row), cells: await notificationCells(row, log) };
  }
}

/** Writes an array, one element a line. Works for any rows, and on a terminal for any text in them. */
export async function writeJson<Row>(
  output: Output,
  rows: AsyncIterable<Row> | Iterable<Row>,
): Promise<number> {
  let count = 0;
  for await (const row of rows) {
    await writeForeign(output, `${count === 0 ? '[\n' : ',\n'}${JSON.stringify(row)}`);
    count += 1;
  }
  await writeOut(output, count === 0 ? '[]\n' : '\n]\n');
  return count;
}

function lineOf(
  form: 'ndjson' | 'csv',
  row: Readonly<Record<string, unknown>>,
  fields: readonly string[],
): string {
  if (form === 'ndjson') return `${JSON.stringify(row)}\n`;
  // Names come from outside: a spreadsheet must not take one for a formula.
  return stringify([fields.map((field) => row[field])], { escape_formulas: true });
}

async function* mapped(rows: AsyncIterable<NotificationRow>): AsyncGenerator<OutputRow> {
  for await (const row of rows) yield toNotificationJson(row);
}

/** To the second: `2026-11-20 06:00:00`. */
function shortTime(iso: string): string {
  return iso.slice(0, 19).replace('T', ' ');
}
