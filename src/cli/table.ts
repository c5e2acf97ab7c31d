/** Prints rows as an aligned table that fits the terminal, and streams what is beyond the first page. */

import { AppError } from '../domain/app-error.ts';
import { printable } from '../domain/printable.ts';
import { likelyNames } from '../filter/hints/nearest-name.ts';
import type { Output } from './io.ts';
import { writeOut } from './write-out.ts';

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

export interface TableOptions {
  /** Prints all columns whole, however wide the terminal is. */
  wide?: boolean;
}

/** Rows that decide the widths; later ones that are longer push their line out. */
const measuredRowsMax = 500;
const gap = '  ';
const flexibleWidthMin = 20;
/** Optional columns leave a required flexible one as much as this. */
const flexibleWidthKept = 30;
/** Cells of the other columns are short by nature; what comes from outside may be anything. */
const fixedWidthMax = 40;

/** Prints the title line, if there is a row, and the rows; returns how many there were. */
export async function printTable<Row>(
  output: Output,
  columns: readonly Column<Row>[],
  rows: AsyncIterable<Row> | Iterable<Row>,
  { wide = false }: TableOptions = {},
): Promise<number> {
  let measured: Row[] | null = [];
  let layout: Layout<Row> | null = null;
  let count = 0;
  const flush = async (first: readonly Row[]): Promise<Layout<Row>> => {
    const chosen = layoutOf(columns, first, wide ? Number.POSITIVE_INFINITY : widthOf(output));
    const lines = [titlesOf(chosen), ...first.map((row) => lineOf(chosen, row))];
    await writeOut(output, lines.join(''));
    return chosen;
  };
  for await (const row of rows) {
    count += 1;
    if (layout !== null) await writeOut(output, lineOf(layout, row));
    else if (measured?.push(row) === measuredRowsMax) {
      layout = await flush(measured);
      measured = null;
    }
  }
  if (measured !== null && measured.length > 0) await flush(measured);
  return count;
}

/** Reads `--columns a,b,c`. Throws `usage` with the valid names for one that is unknown. */
export function readColumnNames(text: string, valid: readonly string[]): string[] {
  const names = text.split(',').map((name) => name.trim());
  const unknown = names.filter((name) => !valid.includes(name));
  if (unknown.length === 0) return [...new Set(names)];
  const which = unknown.map((name) => `"${printable(name)}"`).join(', ');
  const near = [...new Set(unknown.flatMap((name) => likelyNames(name, valid)))];
  const hint = near.length === 0 ? '' : ` Did you mean ${near.join(' or ')}?`;
  throw new AppError(
    'usage',
    `--columns: unknown ${unknown.length === 1 ? 'column' : 'columns'} ${which}.${hint}`,
    { advice: `Use names from: ${valid.join(', ')}.` },
  );
}

/** Columns that show fields as they are in CSV, whole; absent values as `-`. */
export function chosenColumns<Row>(
  fields: readonly string[],
  valuesOf: (row: Row) => Readonly<Record<string, unknown>>,
): Column<Row>[] {
  return fields.map((field) => ({
    title: field,
    value: (row) => String(valuesOf(row)[field] ?? '-'),
    whole: true,
  }));
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
    const width = cells.reduce((most, cell) => Math.max(most, lengthOf(cell, column)), 0);
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
  return shown.map(({ column, width }) =>
    column.flexible ? Math.max(leastWidth(column, width), width - excess) : width,
  );
}

function leastWidth<Row>({ flexible, widthMin }: Column<Row>, width: number): number {
  return flexible ? Math.min(width, widthMin ?? flexibleWidthMin) : width;
}

function titlesOf<Row>(layout: Layout<Row>): string {
  return formatLine(
    layout,
    layout.columns.map(({ title }) => title),
  );
}

function lineOf<Row>(layout: Layout<Row>, row: Row): string {
  const { columns, span } = layout;
  if (span?.column.requiredBy?.(row)) {
    const cells = columns.slice(0, span.at).map(({ value }) => printable(value(row)));
    const text = shorten(printable(span.column.value(row)), span.width);
    return formatLine(layout, cells, [text]);
  }
  return formatLine(
    layout,
    layout.columns.map(({ value }) => printable(value(row))),
  );
}

function lengthOf<Row>(cell: string, { flexible, whole }: Column<Row>): number {
  return flexible || whole ? cell.length : Math.min(cell.length, fixedWidthMax);
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
