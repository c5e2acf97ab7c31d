/** Terminal output: wrapped and coloured text, progress lines, and safe writing of untrusted text. */

import { relative, resolve } from 'node:path';
import { styleText } from 'node:util';
import { shellText } from '../page/browser/texts.ts';
import { formatDateUs } from '../terms/dates.ts';
import { printable } from '../terms/text.ts';
import type { Io, Output } from './io.ts';

/** Width of a terminal in characters; no limit in a pipe. */
export function widthOf({ isTTY, columns }: Output): number {
  return isTTY === true && columns !== undefined ? columns : Number.POSITIVE_INFINITY;
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
  for (const word of text.split(/ (?=(?:[^`]*`[^`]*`)*[^`]*$)/)) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(line);
      line = '';
    }
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

/** Prints a warning on standard error. */
export function warn(io: Pick<Io, 'stderr' | 'env'>, text: string): void {
  io.stderr.write(`${painter(io, io.stderr)('yellow', 'warning')}: ${printable(text)}\n`);
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

/**
 * Matches commands in backticks, in the usage line and in examples. The name alone is not a command. A container has its
 * own command.
 */
const commands = /(?<=`|^Usage: |^ {0,2}\$ (?!docker )(?:.* )?)earshot(?= [a-z<[-])/gm;

/** Rewrites the commands in a text. For texts for people only: data keeps the plain name. */
export function asCalled(text: string, { env }: Pick<Io, 'env'>): string {
  const name = nameCalled(env);
  return name === 'earshot' ? text : text.replaceAll(commands, () => name);
}

/** Rewrites a command. */
export function commandAsCalled(command: string, { env }: Pick<Io, 'env'>): string {
  return command.replace(/^earshot(?= )/, () => nameCalled(env));
}

/** Wraps a stream so that the commands in its texts are rewritten. */
export function namingCommands(output: Output, io: Pick<Io, 'env'>): Output {
  return {
    write: (chunk) => output.write(typeof chunk === 'string' ? asCalled(chunk, io) : chunk),
    once: (event, listener) => output.once(event, listener),
    get isTTY() {
      return output.isTTY;
    },
    get columns() {
      return output.columns;
    },
  };
}

/** Returns the program's name for a shell in another folder, such as `../earshot`. */
export function nameCalledIn(folder: string, { env, workingDir }: Pick<Io, 'env' | 'workingDir'>) {
  const { earshot_called_as: path } = env;
  if (!path) return 'earshot';
  const program = resolve(workingDir, path);
  const near = relative(folder, program);
  if (near.startsWith('../../')) return shellText(program);
  return shellText(near.includes('/') ? near : `./${near}`);
}

/** Returns how the program was called: the executable of a checkout sets a variable, otherwise it is on the path. */
export function nameCalled({ earshot_called_as: path }: Io['env']): string {
  return path ? shellText(path) : 'earshot';
}
