/** Prints reports on the terminal: aligned, wrapped, and coloured only on a terminal. */
import { type Evaluation, isProblem, type Level } from '../terms/evaluation.ts';
import type { Block, Report, Value } from '../terms/report.ts';
import { printable } from '../terms/text.ts';
import type { Io } from './io.ts';
import { asCalled, painter, wrapText, writeOut } from './output.ts';
import { printTable, valueText } from './print-table.ts';

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
      return out(factLines(block.rows.map(([purpose, text]) => [purpose, asCalled(text, io)])));
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
        value: (row: readonly Value[]) => row[i] ?? null,
      }));
      await printTable(io.stdout, columns, block.rows);
      return true;
    }
  }
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
