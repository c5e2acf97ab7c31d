/** A finding is shown as a compiler would show it. */
import { describe, expect, it } from 'vitest';
import { checkFilter } from '../../src/filter/check.ts';
import { showFinding } from '../../src/filter/finding.ts';

function shown(text: string): string[] {
  const [finding] = checkFilter(text, 'Products').findings;
  if (finding === undefined) throw new Error(`nothing was found: ${text}`);
  return showFinding(text, finding).split('\n');
}

describe('a finding', () => {
  it('is shown with the filter, a caret under the place, what was expected and what to write', () => {
    expect(shown('Collection/Name eq SENTINEL-2')).toEqual([
      'error: `SENTINEL-2` is not a value.',
      '  Collection/Name eq SENTINEL-2',
      '                     ^^^^^^^^^^',
      'expected: a text in single quotes, a number, a date, true or false',
      "hint: Put texts in single quotes: `'SENTINEL-2'`",
    ]);
  });

  it('at the end has its caret behind the text', () => {
    const [, filter, caret] = shown("Name eq 'a' and");
    expect(filter).toBe("  Name eq 'a' and");
    expect(caret).toBe('                 ^');
  });

  it('of a warning says so', () => {
    expect(shown("Name ne 'a'")[0]).toMatch(/^warning: /);
  });

  it('in a long filter is shown with some seventy characters around it', () => {
    const long = Array(200).fill("Name eq 'a'").join(' or ');
    for (const text of [
      `${long} or foo eq 1 or ${long}`,
      `foo eq 1 or ${long}`,
      `${long} or foo eq 1`,
    ]) {
      const [, filter = '', caret = ''] = shown(text);
      expect(filter.length).toBeLessThanOrEqual(75);
      expect(caret.trim()).toBe('^^^');
      expect(filter.slice(caret.indexOf('^'), caret.indexOf('^') + 3)).toBe('foo');
    }
  });

  it('of a place that is longer than what is shown ends with it', () => {
    const [, filter = '', caret = ''] = shown(`Name eq ${'b'.repeat(5000)}`);
    expect(caret.length).toBeLessThanOrEqual(filter.length);
    expect(caret).toMatch(/^ +\^+$/);
  });

  it('stands under its place behind tabs, line breaks and signs of any kind', () => {
    const [, filter = '', caret = ''] = shown("Name eq '\u001b[31m\u202eé'\r\n\tand foo eq 1");
    expect(filter).toBe("  Name eq '\ufffd[31m\ufffdé'   and foo eq 1");
    expect(filter.slice(caret.indexOf('^'), caret.lastIndexOf('^') + 1)).toBe('foo');
  });

  it.each([
    ['Chinese and Japanese signs', '哨兵二号データ', 14],
    ['Korean signs and full-width letters', '위성Ａ１', 8],
    ['emoji', '🚀😀', 4],
    ['a flag', '🇪🇺', 2],
    ['narrow signs of other alphabets', 'Ωжｱ½', 4],
    ['accents of their own, and signs without width', 'e\u0301\u200b\ufeff', 1],
  ])('stands under its place behind %s', (_name, name, cells) => {
    const [, , caret = ''] = shown(`Name eq '${name}' and foo eq 1`);
    expect(caret).toBe(`${' '.repeat(2 + "Name eq ''".length + cells + ' and '.length)}^^^`);
    const [, , wide = ''] = shown(`Id eq '${name}'`);
    expect(wide.trim().length).toBe(cells + 2);
  });

  it('holds printable characters only, also in its words', () => {
    const lines = shown('Name eq "a\u001b\ud83d"');
    for (const line of lines) expect(line).not.toMatch(/[\p{Cc}\p{Cs}]/u);
    expect(lines.at(-1)).toBe("hint: Write `'a\ufffd\ufffd'`.");
  });
});
