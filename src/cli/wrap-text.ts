/** Breaks texts into lines of a terminal's width, between words. */
import { cellWidth } from '../filter/cell-width.ts';
import type { Output } from './io.ts';

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
