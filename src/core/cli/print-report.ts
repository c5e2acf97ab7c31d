/** Prints reports on the terminal: aligned, wrapped, and coloured only on a terminal. */

import { shortDateUs } from '../terms/dates.ts';
import { type Evaluation, isProblem, type Level } from '../terms/evaluation.ts';
import type { Block, Column, Report, ReportColumn, Value } from '../terms/report.ts';
import { countText, lengthText, printable, sizeText } from '../terms/text.ts';
import type { Io, Output } from './io.ts';
import {
  asCalled,
  commandAsCalled,
  painter,
  shorten,
  widthOf,
  wrapText,
  writeOut,
} from './output.ts';

/** Mark and colour of each level. */
const levelLooks = {
  ok: { mark: '  ', style: 'green' },
  unknown: { mark: '? ', style: 'yellow' },
  warning: { mark: '! ', style: 'yellow' },
  critical: { mark: '!!', style: 'red' },
} as const satisfies Record<Level, object>;

type Terminal = Pick<Io, 'stdout' | 'stderr' | 'env'>;

const columnsMax = 100;

/** Prints all blocks of a report. Reasons of empty lists go to standard error. */
export async function printReport(io: Terminal, { blocks }: Report): Promise<void> {
  let isFirst = true;
  for (const block of blocks) {
    if (await printBlock(io, block, isFirst)) isFirst = false;
  }
}

/** Returns false for a block without any text. */
async function printBlock(
  io: Terminal,
  block: Block,
  isFirst: boolean,
  indent = '',
): Promise<boolean> {
  const out = async (lines: readonly string[]) => {
    if (lines.length === 0) return false;
    await writeOut(io.stdout, `${isFirst ? '' : '\n'}${lines.join('\n')}\n`);
    return true;
  };
  switch (block.kind) {
    case 'empty': {
      const next = block.next === null ? '' : ` ${block.next}`;
      io.stderr.write(`${wrapped(`${block.text}${next}`, '', io, io.stderr).join('\n')}\n`);
      return false;
    }
    case 'text':
      return out(wrapped(block.text, '', io).map((line) => painted(line, block.level, io)));
    case 'facts':
      return out(factLines(block.rows).map((line) => `${indent}${line}`));
    case 'commands':
      return out(
        factLines(block.rows.map(([purpose, text]) => [purpose, commandAsCalled(text, io)])),
      );
    case 'evaluations':
      return out(evaluationLines(block, io));
    case 'drawn':
      return out(block.lines(painter(io, io.stdout)));
    case 'section': {
      const title = headline(block, io);
      await out([title]);
      if (block.evaluation !== null) {
        await writeOut(io.stdout, linesOf(block.evaluation, '  ', io).join('\n').concat('\n'));
      }
      for (const one of block.blocks) await printBlock(io, one, true, '  ');
      return true;
    }
    case 'table': {
      if (block.rows.length === 0) return false;
      if (!isFirst) await writeOut(io.stdout, '\n');
      const columns = block.columns.map((column, i) => ({
        ...column,
        value: (row: readonly Value[]) => calledValue(row[i] ?? null, io),
      }));
      await printTable(io.stdout, columns, block.rows);
      return true;
    }
  }
}

function calledValue(value: Value, io: Terminal): Value {
  const isCode = value !== null && typeof value === 'object' && 'code' in value;
  return isCode ? { code: commandAsCalled(value.code, io) } : value;
}

function painted(text: string, level: Level | undefined, io: Terminal): string {
  return level === undefined ? text : painter(io, io.stdout)(levelLooks[level].style, text);
}

function factLines(rows: readonly (readonly [string, Value])[]): string[] {
  const known = rows.filter(([, value]) => value !== null);
  const width = Math.max(0, ...known.map(([name]) => name.length));
  return known.map(([name, value]) => `${name.padEnd(width)}  ${printable(valueText(value))}`);
}

function headline({ title, evaluation }: Block & { kind: 'section' }, io: Terminal): string {
  if (evaluation === null) return printable(title);
  const paint = painter(io, io.stdout);
  return paint(levelLooks[evaluation.level].style, `${evaluation.level}: ${printable(title)}`);
}

/** Each with its mark and name; the text is wrapped next to the names. */
function evaluationLines({ rows, all }: Block & { kind: 'evaluations' }, io: Terminal): string[] {
  const paint = painter(io, io.stdout);
  const shown = rows.filter(([, one]) => all || isProblem(one));
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  const indent = ' '.repeat('!! '.length + width + 2);
  return shown.flatMap(([name, evaluation]) => {
    const { mark, style } = levelLooks[evaluation.level];
    const shownPart = all ? { ...evaluation, evidence: [] } : evaluation;
    const [first = '', ...more] = linesOf(shownPart, indent, io);
    const label = paint(style, `${mark} ${printable(name).padEnd(width)}`);
    return [`${label}  ${first.slice(indent.length)}`, ...more];
  });
}

function linesOf({ text, evidence, nextStep }: Evaluation, indent: string, io: Terminal): string[] {
  const lines = [text, ...evidence.map((line) => `- ${line}`)];
  if (nextStep !== null) lines.push(`Next: ${nextStep}`);
  return lines.flatMap((line) => wrapped(line, indent, io));
}

function wrapped(text: string, indent: string, io: Terminal, output = io.stdout): string[] {
  const { isTTY, columns = columnsMax } = output;
  const width = { isTTY, columns: Math.min(columns, columnsMax) };
  // A text about a filter has further lines that mark a position.
  return text
    .split('\n')
    .flatMap((line, i) =>
      i === 0
        ? wrapText(asCalled(printable(line), io), indent, width)
        : [`${indent}${printable(line)}`],
    );
}

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

/** Leaves out columns while there is too little width, and shortens those that grow if there is too little. */
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
  const rankOf = ({ column }: (typeof measured)[0]) => column.drop ?? 0;
  const neededFor = (all: typeof measured) =>
    all.reduce((sum, { needed }) => sum + needed, -gap.length);
  let shown = measured;
  for (const one of measured.toSorted((a, b) => rankOf(a) - rankOf(b)).toReversed()) {
    if (one.column.drop === undefined || neededFor(shown) <= available) break;
    shown = shown.filter((other) => other !== one);
  }
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
