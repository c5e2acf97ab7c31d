/** The rows of the log as people and programs get them: table, JSON, NDJSON, CSV. */
import { stringify } from 'csv-stringify/sync';
import { formatDateUs } from '../domain/notification-date.ts';
import type { NotificationRow } from '../domain/ports.ts';
import { printable } from '../domain/printable.ts';
import type { Output } from './io.ts';
import { type Column, printTable } from './table.ts';
import { writeOut } from './write-out.ts';

export const outputForms = ['table', 'json', 'ndjson', 'csv'] as const;
export type OutputForm = (typeof outputForms)[number];

/** The fields of a row in every machine-readable form, in this order. */
export const rowFields = [
  'position',
  'ackId',
  'productId',
  'productName',
  'event',
  'subscription',
  'subscriptionId',
  'notificationDate',
  'receivedAt',
  'source',
  'timesSeen',
] as const;

export type OutputRow = ReturnType<typeof toOutputRow>;

/** A row with the names and forms of the interface contract: times ISO 8601 UTC, absent ones null. */
export function toOutputRow(row: NotificationRow) {
  const { notificationDateUs: date } = row;
  return {
    position: row.position,
    ackId: row.ackId,
    productId: row.productId,
    productName: row.productName,
    event: row.event,
    subscription: row.subscription,
    subscriptionId: row.subscriptionId,
    notificationDate: date === null ? null : formatDateUs(date),
    receivedAt: formatDateUs(row.receivedAtUs),
    source: row.source,
    timesSeen: row.timesSeen,
  } satisfies Record<(typeof rowFields)[number], unknown>;
}

const columns: readonly Column<OutputRow>[] = [
  { title: 'position', value: (row) => String(row.position), align: 'right' },
  { title: 'received (UTC)', value: (row) => shortTime(row.receivedAt) },
  { title: 'event', value: (row) => row.event },
  { title: 'product', value: (row) => row.productName ?? row.productId, flexible: true },
  { title: 'subscription', value: (row) => row.subscription ?? '-' },
  { title: 'seen', value: (row) => String(row.timesSeen), align: 'right' },
];

/** Writes rows as they come; returns how many there were. */
export async function writeRows(
  output: Output,
  form: OutputForm,
  rows: AsyncIterable<NotificationRow>,
): Promise<number> {
  const outputRows = mapped(rows);
  if (form === 'table') return printTable(output, columns, outputRows);
  if (form === 'json') return writeJson(output, outputRows);
  let count = 0;
  if (form === 'csv') await writeOut(output, `${rowFields.join(',')}\n`);
  for await (const row of outputRows) {
    count += 1;
    const line = lineOf(form, row);
    // A file gets the text as it is; a terminal must not be steered by it.
    await writeOut(output, output.isTTY ? `${printable(line.trimEnd())}\n` : line);
  }
  return count;
}

/** Writes an array, one element a line. Works for any rows. */
export async function writeJson<Row>(
  output: Output,
  rows: AsyncIterable<Row> | Iterable<Row>,
): Promise<number> {
  let count = 0;
  for await (const row of rows) {
    await writeOut(output, `${count === 0 ? '[\n' : ',\n'}${JSON.stringify(row)}`);
    count += 1;
  }
  await writeOut(output, count === 0 ? '[]\n' : '\n]\n');
  return count;
}

function lineOf(form: 'ndjson' | 'csv', row: OutputRow): string {
  if (form === 'ndjson') return `${JSON.stringify(row)}\n`;
  // Names come from outside: a spreadsheet must not take one for a formula.
  return stringify([rowFields.map((field) => row[field])], { escape_formulas: true });
}

async function* mapped(rows: AsyncIterable<NotificationRow>): AsyncGenerator<OutputRow> {
  for await (const row of rows) yield toOutputRow(row);
}

/** To the second: `2026-11-20 06:00:00`. */
function shortTime(iso: string): string {
  return iso.slice(0, 19).replace('T', ' ');
}
