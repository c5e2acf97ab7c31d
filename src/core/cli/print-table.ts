/** Prints tables on the terminal: the columns fit its width, and rows are streamed. */
import { shortDateUs } from '../terms/dates.ts';
import type { Column, ReportColumn, Value } from '../terms/report.ts';
import { countText, lengthText, printable, sizeText } from '../terms/text.ts';
import type { Output } from './io.ts';
import { shorten, widthOf, writeOut } from './output.ts';

/** Formats a value; `-` for null. */
export function valueText(value: Value): string {
  if (value === null) return '-';
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return countText(value);
  if ('timeUs' in value) return shortDateUs(value.timeUs);
  if ('spanUs' in value) return lengthText(value.spanUs);
  if ('bytes' in value) return sizeText(value.bytes);
  if ('code' in value) return value.code;
  if ('level' in value) return value.text ?? value.level;
  return value.text;
}

/** Number of rows that determine the column widths; longer cells of later rows exceed them. */
const measuredRowsMax = 500;

const gap = '  ';

const growingWidthMin = 12;

/** Widths that columns which can be dropped leave to those that grow. Longer names than the catalogue's are shortened. */
const widthKept = { text: 30, name: 110 };

/** Maximum width of the other columns: their cells are short, except for unexpected external values. */
const fixedWidthMax = 40;

/**
 * Prints the rows, with a title line if there is any row. Returns the number of rows and the last one. A `wide` table prints all columns
 * in full, on any terminal width.
 */
export async function printTable<Row>(
  output: Output,
  columns: readonly Column<Row>[],
  rows: AsyncIterable<Row> | Iterable<Row>,
  { wide = false } = {},
): Promise<{ count: number; last: Row | undefined }> {
  const measured: Row[] = [];
  let last: Row | undefined;
  let layout: Layout<Row> | null = null;
  let count = 0;
  const flush = async (): Promise<Layout<Row>> => {
    const first = measured.splice(0);
    const chosen = layoutOf(columns, first, wide ? Number.POSITIVE_INFINITY : widthOf(output));
    const titles = lineOf(chosen, ({ title }) => title);
    const lines = first.map((row) => lineOf(chosen, (column) => cellOf(column, row)));
    await writeOut(output, [titles, ...lines].join(''));
    return chosen;
  };
  for await (const row of rows) {
    count += 1;
    last = row;
    if (layout !== null)
      await writeOut(
        output,
        lineOf(layout, (one) => cellOf(one, row)),
      );
    else if (measured.push(row) === measuredRowsMax) layout = await flush();
  }
  if (measured.length > 0) await flush();
  return { count, last };
}

/** Printed columns with their widths. */
type Layout<Row> = readonly { column: Column<Row>; width: number }[];

/** Adds the columns that can be dropped while there is width, and shortens those that grow if there is too little. */
function layoutOf<Row>(
  columns: readonly Column<Row>[],
  rows: readonly Row[],
  available: number,
): Layout<Row> {
  const measured = columns.map((column) => {
    const cells = [column.title, ...rows.map((row) => cellOf(column, row))];
    const longest = cells.reduce((most, cell) => Math.max(most, cell.length), 0);
    const width = canShrink(column) || column.isWhole ? longest : Math.min(longest, fixedWidthMax);
    const kept = column.isName ? widthKept.name : widthKept.text;
    const needed = gap.length + (canShrink(column) ? Math.min(width, kept) : width);
    return { column, width, needed };
  });
  const chosen = new Set(measured.filter(({ column }) => column.drop === undefined));
  let used = [...chosen].reduce((sum, { needed }) => sum + needed, -gap.length);
  const rankOf = ({ column }: (typeof measured)[0]) => column.drop ?? 0;
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
    if (!canShrink(one.column)) continue;
    const cut = Math.min(excess, Math.max(0, one.width - growingWidthMin));
    one.width -= cut;
    excess -= cut;
  }
  return shown;
}

const canShrink = ({ grows, isName }: ReportColumn) => grows === true || isName === true;

function cellOf<Row>({ value }: Column<Row>, row: Row): string {
  return printable(valueText(value(row)));
}

function lineOf<Row>(layout: Layout<Row>, textOf: (column: Column<Row>) => string): string {
  const cells = layout.map(({ column, width }) => {
    const whole = textOf(column);
    const most = canShrink(column) ? width : fixedWidthMax;
    const text = column.isWhole ? whole : shorten(whole, most);
    return column.isNumber ? text.padStart(width) : text.padEnd(width);
  });
  return `${cells.join(gap).trimEnd()}\n`;
}
