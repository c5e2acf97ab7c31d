/** Shows a finding as a compiler would: the message, the filter, a caret under the place, a hint. */
import { printable } from '../domain/text.ts';
import { cellWidth } from './cell-width.ts';
import type { FilterFinding } from './finding.ts';

/** How much of a long filter is shown, in characters. */
const shownMax = 70;
const cut = '…';

/**
 * Several lines: severity and message, the part of the filter around the place, carets under it, what
 * was expected, what to write. Holds printable characters only.
 */
export function showFinding(text: string, finding: FilterFinding): string {
  const { severity, message, expected, hint } = finding;
  const lines = [`${severity}: ${message}`, ...showPlace(text, finding)];
  if (expected !== undefined) lines.push(`expected: ${expected}`);
  if (hint !== undefined) lines.push(`hint: ${hint}`);
  return lines.map((line) => printable(line.toWellFormed())).join('\n');
}

/** The filter in one line, and the carets under the place. */
function showPlace(text: string, { start, end }: FilterFinding): string[] {
  const from = clipFrom(text, start);
  const to = Math.min(text.length, from + shownMax);
  const before = from > 0 ? cut : '';
  const after = to < text.length ? cut : '';
  const shown = `${before}${oneLine(text.slice(from, to))}${after}`;
  const widthOf = (first: number, last: number) => cellWidth(oneLine(text.slice(first, last)));
  const indent = ' '.repeat(before.length + widthOf(from, start));
  const carets = '^'.repeat(Math.max(1, widthOf(start, Math.min(end, to))));
  return [`  ${shown}`, `  ${indent}${carets}`];
}

/** Where the part that is shown begins: some way before the place, unless all of it fits. */
function clipFrom(text: string, start: number): number {
  if (text.length <= shownMax) return 0;
  const from = Math.max(0, Math.min(start - shownMax / 2, text.length - shownMax));
  // Not in the middle of a character.
  return /[\udc00-\udfff]/.test(text[from] ?? '') ? from + 1 : from;
}

/** Printable, with line breaks and tabs as blanks, so that the carets stand under their place. */
function oneLine(text: string): string {
  return printable(text.toWellFormed().replaceAll(/[\t\r\n]/g, ' '));
}
