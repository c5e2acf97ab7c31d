/** Terminal output: tables, wrapped and coloured text, progress lines, and safe writing of untrusted text. */

import { styleText } from 'node:util';
import { formatDateUs } from '../domain/dates.ts';
import { countText } from '../domain/formats.ts';
import { cellWidth, printable } from '../domain/text.ts';
import type { Io, Output } from './io.ts';

export interface Column<Row> {
  title: string;
  value: (row: Row) => string;
  align?: 'right';
  /** Takes the remaining width, and is shortened in the middle if necessary: first the columns that keep less. */
  flexible?: true;
  /** Width of a flexible column that optional columns leave to it (default: 30), such as that of a product name. */
  keep?: number;
  /** Printed only if the terminal has enough width; lower ranks are added first. */
  optionalRank?: number;
  /** Never shortened. */
  whole?: true;
}

/** Column of counts, with the field name as default title; `-` for null. */
export function countColumn<Key extends string>(
  key: Key,
  title: string = key,
): Column<Readonly<Record<Key, number | null>>> {
  const value = ({ [key]: count }: Readonly<Record<Key, number | null>>) =>
    count === null ? '-' : countText(count);
  return { title, value, align: 'right' };
}

/** Number of rows that determine the column widths; longer cells of later rows exceed them. */
const measuredRowsMax = 500;

const gap = '  ';

const flexibleWidthMin = 12;

const flexibleWidthKept = 30;

/** Maximum width of the other columns: their cells are short, except for unexpected external values. */
const fixedWidthMax = 40;

/**
 * Prints the rows, with a title line if there is any row. Returns the number of rows. A `wide` table prints all columns
 * in full, on any terminal width.
 */
export async function printTable<Row>(
  output: Output,
  columns: readonly Column<Row>[],
  rows: AsyncIterable<Row> | Iterable<Row>,
  { wide = false } = {},
): Promise<number> {
  const measured: Row[] = [];
  let layout: Layout<Row> | null = null;
  let count = 0;
  const flush = async (): Promise<Layout<Row>> => {
    const first = measured.splice(0);
    const chosen = layoutOf(columns, first, wide ? Number.POSITIVE_INFINITY : widthOf(output));
    const titles = chosen.columns.map(({ title }) => title);
    const lines = [formatLine(chosen, titles), ...first.map((row) => lineOf(chosen, row))];
    await writeOut(output, lines.join(''));
    return chosen;
  };
  for await (const row of rows) {
    count += 1;
    if (layout !== null) await writeOut(output, lineOf(layout, row));
    else if (measured.push(row) === measuredRowsMax) layout = await flush();
  }
  if (measured.length > 0) await flush();
  return count;
}

/** Width of a terminal in characters; no limit in a pipe. */
export function widthOf({ isTTY, columns }: Output): number {
  return isTTY === true && columns !== undefined ? columns : Number.POSITIVE_INFINITY;
}

/** Printed columns with their widths. */
interface Layout<Row> {
  columns: readonly Column<Row>[];
  widths: readonly number[];
}

/** Adds optional columns while there is width, and shortens flexible columns if there is too little. */
function layoutOf<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  available: number,
): Layout<Row> {
  const measured = columns.map((column) => {
    const cells = [column.title, ...rows.map((row) => printable(column.value(row)))];
    const longest = cells.reduce((most, cell) => Math.max(most, cell.length), 0);
    const { flexible, whole, keep = flexibleWidthKept } = column;
    const width = flexible || whole ? longest : Math.min(longest, fixedWidthMax);
    return { column, width, needed: gap.length + (flexible ? Math.min(width, keep) : width) };
  });
  const chosen = new Set(measured.filter(({ column }) => column.optionalRank === undefined));
  let used = [...chosen].reduce((sum, { needed }) => sum + needed, -gap.length);
  const rankOf = ({ column }: (typeof measured)[0]) => column.optionalRank ?? 0;
  for (const one of measured.toSorted((a, b) => rankOf(a) - rankOf(b))) {
    if (chosen.has(one)) continue;
    // A column of a higher rank never displaces one of a lower rank.
    if (used + one.needed > available) break;
    chosen.add(one);
    used += one.needed;
  }
  const shown = measured.filter((one) => chosen.has(one));
  const total = shown.reduce((sum, { width }) => sum + width + gap.length, -gap.length);
  let excess = Math.max(0, total - available);
  for (const one of shown.toSorted((a, b) => a.needed - b.needed)) {
    if (!one.column.flexible) continue;
    const cut = Math.min(excess, Math.max(0, one.width - flexibleWidthMin));
    one.width -= cut;
    excess -= cut;
  }
  return {
    columns: shown.map(({ column }) => column),
    widths: shown.map(({ width }) => width),
  };
}

function lineOf<Row>(layout: Layout<Row>, row: Row): string {
  return formatLine(
    layout,
    layout.columns.map(({ value }) => printable(value(row))),
  );
}

function formatLine<Row>({ columns, widths }: Layout<Row>, cells: readonly string[]): string {
  const padded = cells.map((cell, i) => {
    const [column, width = 0] = [columns[i], widths[i]];
    const text = column?.whole ? cell : shorten(cell, column?.flexible ? width : fixedWidthMax);
    return column?.align === 'right' ? text.padStart(width) : text.padEnd(width);
  });
  return `${padded.join(gap).trimEnd()}\n`;
}

/** Shortens a text in the middle: both ends of a product name matter. */
export function shorten(text: string, width: number): string {
  if (text.length <= width) return text;
  // By code points, so that none is split.
  const characters = Array.from(text);
  if (characters.length <= width) return text;
  const head = Math.ceil((width - 1) / 2);
  const tail = characters.slice(characters.length - (width - 1 - head));
  return `${characters.slice(0, head).join('')}…${tail.join('')}`;
}

/** Minimum width for wrapping; below it, wrapped lines are harder to read than long ones. */
const widthMin = 30;

/**
 * Wraps a text to indented lines. Does not split a word or a command in backticks, so that a command can be pasted.
 * Returns one line if the output is not a terminal, or its width is unknown.
 */
export function wrapText(
  text: string,
  indent: string,
  { isTTY, columns }: Pick<Output, 'isTTY' | 'columns'>,
): string[] {
  const width = (columns ?? 0) - indent.length;
  if (isTTY !== true || width < widthMin) return [`${indent}${text}`];
  const lines: string[] = [];
  let line = '';
  let used = 0;
  for (const word of text.split(/ (?=(?:[^`]*`[^`]*`)*[^`]*$)/)) {
    const wide = cellWidth(word);
    if (line !== '' && used + 1 + wide > width) {
      lines.push(line);
      line = '';
      used = 0;
    }
    used += wide + (line === '' ? 0 : 1);
    line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].map((one) => `${indent}${one}`);
}

type Style = Parameters<typeof styleText>[0];

/** Returns a function that colours text for a stream; no colours outside a terminal, with NO_COLOR or TERM=dumb. */
export function painter(
  io: Pick<Io, 'env'>,
  output: Output,
): (style: Style, text: string) => string {
  const coloured = output.isTTY === true && !io.env.NO_COLOR && io.env.TERM !== 'dumb';
  return (style, text) => (coloured ? styleText(style, text, { validateStream: false }) : text);
}

/** Writes and resolves when the stream accepts more, so that a million rows need little memory. */
export async function writeOut(output: Output, chunk: string | Uint8Array): Promise<void> {
  if (output.write(chunk)) return;
  await new Promise<void>((resolve) => output.once('drain', resolve));
}

/** Like `writeOut`, for untrusted text: escapes control characters on a terminal, except line feeds. */
export function writeForeign(output: Output, chunk: string | Uint8Array): Promise<void> {
  if (!output.isTTY) return writeOut(output, chunk);
  const text = typeof chunk === 'string' ? chunk : new TextDecoder().decode(chunk);
  return writeOut(output, text.split('\n').map(printable).join('\n'));
}

/** Writes a JSON array, one element per line, between `begin` and `end`. Safe for untrusted text. */
export async function writeJson<Row>(
  output: Output,
  rows: AsyncIterable<Row> | Iterable<Row>,
  { begin = '', end = '', element = (row: Row): unknown => row } = {},
): Promise<number> {
  let count = 0;
  for await (const row of rows) {
    const before = count === 0 ? `${begin}[\n` : ',\n';
    await writeForeign(output, `${before}${JSON.stringify(element(row))}`);
    count += 1;
  }
  await writeOut(output, `${count === 0 ? `${begin}[` : '\n'}]${end}\n`);
  return count;
}

/** Prints a value as JSON, indented or on one line. Safe for untrusted text. */
export function printJson(output: Output, value: unknown, form?: 'line'): Promise<void> {
  return writeForeign(output, `${JSON.stringify(value, null, form === 'line' ? 0 : 2)}\n`);
}

/** ISO 8601 UTC; null for no time. */
export const isoTime = (us: number | null) => (us === null ? null : formatDateUs(us));

/** Progress line on standard error; silent without a terminal. */
export interface ProgressLine {
  show(text: string): void;
  /** Removes the line. */
  clear(): void;
}

/** Rewrites the line in place, limited to the width of the terminal. */
export function createProgressLine(stderr: Output): ProgressLine {
  let shown = '';
  const write = (text: string) => {
    if (stderr.isTTY !== true || text === shown) return;
    const width = Math.max(20, (stderr.columns || 100) - 1);
    const cut = text.slice(0, width);
    stderr.write(`\r${cut.padEnd(shown.length)}`);
    shown = cut;
  };
  return {
    show: write,
    clear: () => {
      if (shown !== '') stderr.write(`\r${' '.repeat(shown.length)}\r`);
      shown = '';
    },
  };
}
