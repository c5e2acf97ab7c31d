/** The rows of the log as people and programs get them: table, JSON, NDJSON, CSV. */
import { stringify } from 'csv-stringify/sync';
import { notificationFields, toNotificationJson } from '../domain/json-rows.ts';
import type { NotificationRow } from '../domain/ports.ts';
import type { Output } from './io.ts';
import { type Column, printTable } from './table.ts';
import { writeForeign, writeOut } from './write-out.ts';

export const outputForms = ['table', 'json', 'ndjson', 'csv'] as const;
export type OutputForm = (typeof outputForms)[number];

type OutputRow = ReturnType<typeof toNotificationJson>;

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
  if (form === 'csv') await writeOut(output, `${notificationFields.join(',')}\n`);
  for await (const row of outputRows) {
    count += 1;
    await writeForeign(output, lineOf(form, row));
  }
  return count;
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

function lineOf(form: 'ndjson' | 'csv', row: OutputRow): string {
  if (form === 'ndjson') return `${JSON.stringify(row)}\n`;
  // Names come from outside: a spreadsheet must not take one for a formula.
  return stringify([notificationFields.map((field) => row[field])], { escape_formulas: true });
}

async function* mapped(rows: AsyncIterable<NotificationRow>): AsyncGenerator<OutputRow> {
  for await (const row of rows) yield toNotificationJson(row);
}

/** To the second: `2026-11-20 06:00:00`. */
function shortTime(iso: string): string {
  return iso.slice(0, 19).replace('T', ' ');
}
