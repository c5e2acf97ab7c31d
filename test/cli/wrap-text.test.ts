/** Texts broken between words, on a terminal only. */
import { describe, expect, it } from 'vitest';
import { wrapText } from '../../src/cli/output.ts';
import { cellWidth } from '../../src/filter/cell-width.ts';

const text = `This product of Sentinel-2A holds ${'x'.repeat(50)} over parts of Italy and Slovenia.`;

describe('a text on a terminal', () => {
  it('is broken between words, with its indent, and no line is longer than the terminal', () => {
    expect(wrapText(text, '  ', { isTTY: true, columns: 40 })).toEqual([
      '  This product of Sentinel-2A holds',
      `  ${'x'.repeat(50)}`,
      '  over parts of Italy and Slovenia.',
    ]);
    const words = Array.from({ length: 100 }, (_, i) => 'w'.repeat(1 + (i % 9)));
    const lines = wrapText(words.join(' '), '    ', { isTTY: true, columns: 37 });
    expect(lines.flatMap((line) => line.trim().split(' '))).toEqual(words);
    expect(Math.max(...lines.map((line) => line.length))).toBe(37);
  });

  it('is measured in cells, in which wide characters count twice', () => {
    const lines = wrapText('京都 '.repeat(30).trim(), '', { isTTY: true, columns: 36 });
    expect(lines.map(cellWidth)).toEqual([34, 34, 34, 34, 9]);
  });
});

it.each([
  ['off a terminal', { isTTY: false, columns: 40 }],
  ['where the width is not known', { isTTY: true, columns: undefined }],
  ['where hardly any width is left', { isTTY: true, columns: 24 }],
])('%s a text is one line', (_where, output) => {
  expect(wrapText(text, '  ', output)).toEqual([`  ${text}`]);
});
