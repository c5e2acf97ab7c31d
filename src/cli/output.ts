/** Output for people: tables that fit the terminal, wrapped and coloured text, progress; and safe writes of any text. */

import { styleText } from 'node:util';
import { formatDateUs } from '../domain/dates.ts';
import { cellWidth, printable } from '../domain/text.ts';
import type { Io, Output } from './io.ts';

export interface Column<Row> {
  title: string;
  value: (row: Row) => string;
  align?: 'right';
  /** Cut, in the middle, when the terminal is too narrow. One column of a table may be. */
  flexible?: true;
  /** The least width that it is cut to; 20 by default, for names that are long. */
  widthMin?: number;
  /** Printed only where the terminal has the width for the whole column; lower ranks are added first. */
  optionalRank?: number;
  /** Where the terminal has no width for this optional column, those that have a short form are printed in it. */
  wanted?: true;
  short?: Pick<Column<Row>, 'title' | 'value'>;
  /** Rows that say nothing without this optional column: one of them makes it a required one. */
  requiredBy?: (row: Row) => boolean;
  /** Such rows have it in place of the columns from this title on instead, where it is not printed. */
  spanFrom?: string;
  /** Never cut, also where other columns are: the user asked for exactly this. */
  whole?: true;
}

/** A column of counts, titled as their field unless a title is given; `-` for null. */
export function countColumn<Key extends string>(
  key: Key,
  title: string = key,
): Column<Readonly<Record<Key, number | null>>> {
  const value = ({ [key]: count }: Readonly<Record<Key, number | null>>) =>
    count === null ? '-' : whole(count);
  return { title, value, align: 'right' };
}

/** Rows that decide the widths; later ones that are longer push their line out. */
const measuredRowsMax = 500;

const gap = '  ';

const flexibleWidthMin = 20;

/** Optional columns leave a required flexible one as much as this. */
const flexibleWidthKept = 30;

/** Cells of the other columns are short by nature; what comes from outside may be anything. */
const fixedWidthMax = 40;

/**
 * Prints the title line, if there is a row, and the rows; returns how many there were. A `wide` table has all columns
 * whole, however wide the terminal is.
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

/** The columns of a terminal; no limit in a pipe. */
export function widthOf({ isTTY, columns }: Output): number {
  return isTTY === true && columns !== undefined ? columns : Number.POSITIVE_INFINITY;
}

/** The columns that are printed, each with its width. */
interface Layout<Row> {
  columns: readonly Column<Row>[];
  widths: readonly number[];
  /** A column that is not printed, but for rows that need it: in place of the columns from `at` on. */
  span: { column: Column<Row>; at: number; width: number } | null;
}

function layoutOf<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  available: number,
): Layout<Row> {
  const full = fittedLayout(columns, rows, available);
  const lacks = columns.some((column) => column.wanted && !full.columns.includes(column));
  if (!lacks) return full;
  return fittedLayout(
    columns.map((column) => ({ ...column, ...column.short })),
    rows,
    available,
  );
}

function fittedLayout<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  available: number,
): Layout<Row> {
  const measured = columns.map((column) => {
    const cells = [column.title, ...rows.map((row) => printable(column.value(row)))];
    const longest = cells.reduce((most, cell) => Math.max(most, cell.length), 0);
    const width = column.flexible || column.whole ? longest : Math.min(longest, fixedWidthMax);
    const { optionalRank, requiredBy, spanFrom } = column;
    const isRequired = spanFrom === undefined && requiredBy && rows.some(requiredBy);
    return { column, width, rank: isRequired ? undefined : optionalRank };
  });
  const required = measured.filter(({ rank }) => rank === undefined);
  let total = -gap.length;
  for (const { column, width } of required) {
    total += gap.length + (column.flexible ? Math.min(width, flexibleWidthKept) : width);
  }
  const chosen = new Set(required);
  for (const one of measured.toSorted((a, b) => (a.rank ?? 0) - (b.rank ?? 0))) {
    if (chosen.has(one) || total + gap.length + one.width > available) continue;
    chosen.add(one);
    total += gap.length + one.width;
  }
  const shown = measured.filter((one) => chosen.has(one));
  const widths = fittedWidths(shown, available);
  const layout = { columns: shown.map(({ column }) => column), widths };
  return { ...layout, span: spanOf(columns, layout, available) };
}

function spanOf<Row>(
  columns: readonly Column<Row>[],
  { columns: shown, widths }: Pick<Layout<Row>, 'columns' | 'widths'>,
  available: number,
): Layout<Row>['span'] {
  const column = columns.find(({ spanFrom }) => spanFrom !== undefined);
  const at = shown.findIndex(({ title }) => title === column?.spanFrom);
  if (column === undefined || at === -1 || shown.includes(column)) return null;
  const before = widths.slice(0, at).reduce((sum, width) => sum + width + gap.length, 0);
  return { column, at, width: Math.max(column.widthMin ?? flexibleWidthMin, available - before) };
}

function fittedWidths<Row>(
  shown: readonly { column: Column<Row>; width: number }[],
  available: number,
): number[] {
  const total = shown.reduce((sum, { width }) => sum + width + gap.length, -gap.length);
  const excess = Math.max(0, total - available);
  return shown.map(({ column: { flexible, widthMin: least = flexibleWidthMin }, width }) =>
    flexible ? Math.max(Math.min(width, least), width - excess) : width,
  );
}

function lineOf<Row>(layout: Layout<Row>, row: Row): string {
  const { columns, span } = layout;
  const cellsOf = (some: readonly Column<Row>[]) => some.map(({ value }) => printable(value(row)));
  if (!span?.column.requiredBy?.(row)) return formatLine(layout, cellsOf(columns));
  const text = shorten(printable(span.column.value(row)), span.width);
  return formatLine(layout, cellsOf(columns.slice(0, span.at)), [text]);
}

function formatLine<Row>(
  { columns, widths }: Layout<Row>,
  cells: readonly string[],
  rest: readonly string[] = [],
): string {
  const padded = cells.map((cell, i) => {
    const [column, width = 0] = [columns[i], widths[i]];
    const text = column?.whole ? cell : shorten(cell, column?.flexible ? width : fixedWidthMax);
    return column?.align === 'right' ? text.padStart(width) : text.padEnd(width);
  });
  return `${[...padded, ...rest].join(gap).trimEnd()}\n`;
}

/** Cuts a text in the middle: both ends of a name say more. */
export function shorten(text: string, width: number): string {
  if (text.length <= width) return text;
  // By characters, so that none is cut in two.
  const characters = Array.from(text);
  if (characters.length <= width) return text;
  const head = Math.ceil((width - 1) / 2);
  const tail = characters.slice(characters.length - (width - 1 - head));
  return `${characters.slice(0, head).join('')}…${tail.join('')}`;
}

/** Where less is left beside the indent, broken lines would be harder to read than long ones. */
const widthMin = 30;

/**
 * The lines of a text, each with the indent before it. A word that is too long has a line of its own, whole.
 * Off a terminal, and on one without a known width, there is one line, for programs.
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
  for (const word of text.split(' ')) {
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

/** A painter for one stream; it leaves texts alone off a terminal and under NO_COLOR. */
export function painter(
  io: Pick<Io, 'env'>,
  output: Output,
): (style: Style, text: string) => string {
  const coloured = output.isTTY === true && !io.env.NO_COLOR;
  return (style, text) => (coloured ? styleText(style, text, { validateStream: false }) : text);
}

/** Resolves when the stream is ready for more, so that a million rows need no memory. */
export async function writeOut(output: Output, chunk: string | Uint8Array): Promise<void> {
  if (output.write(chunk)) return;
  await new Promise<void>((resolve) => output.once('drain', resolve));
}

/**
 * The same for words of others in no colours of ours: a file gets them as they are, a terminal must not be steered by
 * them. Line feeds stay.
 */
export function writeForeign(output: Output, chunk: string | Uint8Array): Promise<void> {
  if (!output.isTTY) return writeOut(output, chunk);
  const text = typeof chunk === 'string' ? chunk : new TextDecoder().decode(chunk);
  return writeOut(output, text.split('\n').map(printable).join('\n'));
}

/** Writes an array, one element a line, and what stands around it. On a terminal, any text in it is safe. */
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

/** Prints a value as JSON, indented, or in one line. On a terminal, any text in it is safe. */
export function printJson(output: Output, value: unknown, form?: 'line'): Promise<void> {
  return writeForeign(output, `${JSON.stringify(value, null, form === 'line' ? 0 : 2)}\n`);
}

/** ISO 8601 UTC for programs; null for no time. */
export const isoTime = (us: number | null) => (us === null ? null : formatDateUs(us));

export const whole = (count: number) => count.toLocaleString('en-US');

/** `1 dead letter`, `1,288 dead letters`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${whole(count)} ${count === 1 ? one : many}`;
}

/** A line on standard error that shows the progress of long work; silent where there is no terminal. */
export interface ProgressLine {
  show(text: string): void;
  /** Removes the line, for another text or at the end. */
  clear(): void;
  /** Ends the line, which stays. */
  done(): void;
}

/** The line is rewritten in place, and cut to the width of the terminal. */
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
    done: () => {
      if (shown !== '') stderr.write('\n');
      shown = '';
    },
  };
}
