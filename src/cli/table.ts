/** Prints rows as an aligned table that fits the terminal, and streams what is beyond the first page. */

import { printable } from '../domain/printable.ts';
import type { Output } from './io.ts';
import { writeOut } from './write-out.ts';

export interface Column<Row> {
  title: string;
  value: (row: Row) => string;
  align?: 'right';
  /** Cut, in the middle, when the terminal is too narrow. One column of a table may be. */
  flexible?: true;
  /** The least width that it is cut to; 20 unless told, for names that are long. */
  widthMin?: number;
}

/** Rows that decide the widths; later ones that are longer push their line out. */
const measuredRowsMax = 500;
const gap = '  ';
const flexibleWidthMin = 20;
/** Cells of the other columns are short by nature; what comes from outside may be anything. */
const fixedWidthMax = 40;

/** Prints the title line, if there is a row, and the rows; returns how many there were. */
export async function printTable<Row>(
  output: Output,
  columns: readonly Column<Row>[],
  rows: AsyncIterable<Row> | Iterable<Row>,
): Promise<number> {
  let measured: string[][] | null = [];
  let widths: number[] = [];
  let count = 0;
  const line = (cells: readonly string[]) => `${formatLine(columns, cells, widths)}\n`;
  const flush = async (cells: string[][]) => {
    const titles = columns.map(({ title }) => title);
    widths = fittedWidths(columns, [titles, ...cells], output);
    await writeOut(output, [titles, ...cells].map(line).join(''));
  };
  for await (const row of rows) {
    count += 1;
    const cells = columns.map(({ value }) => printable(value(row)));
    if (measured === null) await writeOut(output, line(cells));
    else if (measured.push(cells) === measuredRowsMax) {
      await flush(measured);
      measured = null;
    }
  }
  if (measured !== null && measured.length > 0) await flush(measured);
  return count;
}

function fittedWidths<Row>(
  columns: readonly Column<Row>[],
  lines: readonly string[][],
  output: Output,
) {
  const widths = columns.map((_, i) =>
    lines.reduce((most, line) => Math.max(most, lengthOf(line[i], columns[i])), 0),
  );
  const flexible = columns.findIndex((column) => column.flexible);
  if (output.isTTY !== true || output.columns === undefined || flexible === -1) return widths;
  const total = widths.reduce((sum, width) => sum + width + gap.length, -gap.length);
  const excess = Math.max(0, total - output.columns);
  const widthMin = columns[flexible]?.widthMin ?? flexibleWidthMin;
  return widths.map((width, i) =>
    i === flexible ? Math.max(Math.min(width, widthMin), width - excess) : width,
  );
}

function lengthOf<Row>(cell = '', column?: Column<Row>): number {
  return column?.flexible ? cell.length : Math.min(cell.length, fixedWidthMax);
}

function formatLine<Row>(
  columns: readonly Column<Row>[],
  cells: readonly string[],
  widths: readonly number[],
): string {
  const padded = cells.map((cell, i) => {
    const width = widths[i] ?? 0;
    const text = shorten(cell, columns[i]?.flexible ? width : fixedWidthMax);
    return columns[i]?.align === 'right' ? text.padStart(width) : text.padEnd(width);
  });
  return padded.join(gap).trimEnd();
}

/** Product names tell most at both ends, so the middle goes. */
function shorten(text: string, width: number): string {
  if (text.length <= width) return text;
  // By characters, so that none is cut in two.
  const characters = Array.from(text);
  if (characters.length <= width) return text;
  const head = Math.ceil((width - 1) / 2);
  const tail = characters.slice(characters.length - (width - 1 - head));
  return `${characters.slice(0, head).join('')}…${tail.join('')}`;
}
