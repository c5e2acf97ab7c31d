/** Texts made to break a parser end in an error soon: no crash, no stall, no other kind of error. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkFilter } from '../../src/filter/check.ts';
import { filterDepthMax, filterLengthMax, filterTermsMax } from '../../src/filter/cursor.ts';
import { FilterSyntaxError, showFinding } from '../../src/filter/finding.ts';
import { parseFilter } from '../../src/filter/parse.ts';
import { printFilter } from '../../src/filter/print.ts';
import { arbitraryFilter } from './arbitrary-filter.ts';

/** As long as a filter may be. */
const full = (text: string, start = '', end = '') =>
  start + text.repeat((filterLengthMax - start.length - end.length) / text.length) + end;

const any = "Attributes/OData.CSC.StringAttribute/any(att:att/Name eq '";

const hostile: [string, string][] = [
  ['a megabyte of letters', 'a'.repeat(1_000_000)],
  ['a million blanks', ' '.repeat(1_000_000)],
  ['a megabyte of conditions', "Name eq 'a' and ".repeat(65_000)],
  ['nothing but blanks before a sign', full(' ', '', '!')],
  ['one long word', full('a')],
  ['one long word and a parenthesis', full('a', '', '(')],
  ['one long path', full('a/', 'Attributes/')],
  ['one long number', full('9', 'Name eq ')],
  ['one long fraction', full('9', 'Name eq 1.', 'x')],
  ['one long date', full('1', 'Name eq 2024-01-01T00:00:00.')],
  ['one long value without quotes', full('b', 'Name eq ')],
  ['parentheses that open', full('(')],
  ['parentheses that open and close', full('()')],
  ['parentheses that close', full(')')],
  ['not and nothing else', full('not ')],
  ['not with parentheses', full('not(')],
  ['an unclosed quote', full('a', "Name eq '")],
  ['quotes and nothing else', full("'")],
  ['doubled quotes that never close', full("''", "Name eq '")],
  ['double quotes and nothing else', full('"')],
  ['curly quotes that never close', full('“')],
  ['a long list that never closes', full("'a',", 'Name in (')],
  ['an attribute with a long name and no value', full('n', any, "')")],
  ['an attribute with a long variable', full('v', 'Attributes/OData.CSC.StringAttribute/any(')],
  [
    'positions that never end',
    full('1 2,', "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON(("),
  ],
  ['digits in a geometry', full('1', "OData.CSC.Intersects(area=geography'SRID=4326;POINT(")],
  [
    'digits in a geometry that ends',
    full('1', "OData.CSC.Intersects(area=geography'SRID=4326;POINT(", "x 2)')"),
  ],
  [
    'parentheses in a geometry',
    full('(', "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON", "'"),
  ],
  ['a long type', full('A', "OData.CSC.Intersects(area=geography'SRID=4326;", "'")],
  ['URL encoding', full('%20')],
  ['signs of the astral planes', full('😀')],
  ['halves of characters', full('\ud83d')],
  ['a zero byte', "Name eq 'a'\0"],
];

describe('a hostile text', () => {
  it.each(hostile)('is refused soon: %s', (_name, text) => {
    const startMs = performance.now();
    const { tree, findings } = checkFilter(text, 'Products');
    const shown = findings.map((finding) => showFinding(text, finding)).join('\n');
    expect(performance.now() - startMs).toBeLessThan(4_000);
    expect(tree).toBeNull();
    expect(findings.filter(({ severity }) => severity === 'error')).not.toEqual([]);
    expect(shown.length).toBeLessThan(5000);
  });

  it('with thousands of faults is checked soon', () => {
    const texts = [
      full("foo eq 'a' and ", '', "foo eq 'a'"),
      full(`${any}abcdefghij' and att/Value eq 1) and `, '', "Name eq 'a'"),
      full('1 2,', "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((1 2,", "1 2))')"),
      full('181 2,', "OData.CSC.Intersects(area=geography'SRID=4326;MULTIPOINT(", "1 2)')"),
    ];
    for (const text of texts) {
      const startMs = performance.now();
      const { findings } = checkFilter(text, 'Products');
      expect(performance.now() - startMs, text.slice(0, 30)).toBeLessThan(10_000);
      expect(findings.length).toBeGreaterThan(0);
    }
  });
});

describe('the limits', () => {
  const codeOf = (text: string) => checkFilter(text, 'Products').findings[0]?.code;
  const name = "Name eq 'a'";

  it('are exact for the length', () => {
    const text = full('a', "Name eq '", "'");
    expect(text.length).toBe(filterLengthMax);
    expect(parseFilter(text).tree.node).toBe('comparison');
    expect(codeOf(` ${text}`)).toBe('too-long');
  });

  it('are exact for parentheses', () => {
    const nested = (depth: number) => '('.repeat(depth) + name + ')'.repeat(depth);
    expect(codeOf(nested(filterDepthMax))).toBeUndefined();
    const finding = checkFilter(nested(filterDepthMax + 1), 'Products').findings[0];
    expect(finding).toMatchObject({
      code: 'too-deep',
      start: filterDepthMax,
      end: filterDepthMax + 1,
    });
  });

  it('are exact for the number of conditions', () => {
    const many = (count: number) => Array(count).fill(name).join(' or ');
    expect(codeOf(many(filterTermsMax))).toBeUndefined();
    expect(codeOf(many(filterTermsMax + 1))).toBe('too-many-conditions');
  });

  it('count each value of `in` as a condition', () => {
    const list = (count: number) => `Name in (${Array(count).fill("'a'").join(',')})`;
    expect(codeOf(list(filterTermsMax))).toBe('undocumented-operator');
    expect(codeOf(list(filterTermsMax + 1))).toBe('too-many-conditions');
    expect(codeOf(`${name} or ${list(filterTermsMax)}`)).toBe('too-many-conditions');
  });

  it('count the parentheses that printing adds, so that what is printed can be read', () => {
    const mixed = (depth: number): string =>
      depth === 0 ? name : `${name} or ${name} and (${mixed(depth - 1)})`;
    const negated = (depth: number) => `${'not ('.repeat(depth)}not ${name}${')'.repeat(depth)}`;
    for (const [text, longer] of [
      [mixed(filterDepthMax / 2), mixed(filterDepthMax / 2 + 1)],
      [negated(filterDepthMax - 1), negated(filterDepthMax)],
    ]) {
      const { tree } = parseFilter(text ?? '');
      expect(parseFilter(printFilter(tree)).tree).toEqual(tree);
      expect(() => parseFilter(longer ?? '')).toThrow(FilterSyntaxError);
    }
  });
});

describe('a filter that was damaged', () => {
  it('is read, or refused at a place within it', () => {
    const places = fc.array(fc.tuple(fc.nat(), fc.constantFrom('cut', 'double', 'insert')), {
      minLength: 1,
      maxLength: 3,
    });
    const sign = fc.constantFrom(
      "'",
      '(',
      ')',
      ',',
      ':',
      '=',
      ' ',
      '"',
      '/',
      '-',
      'e',
      '9',
      'é',
      '\0',
    );
    fc.assert(
      fc.property(arbitraryFilter('Products'), places, sign, (tree, damages, inserted) => {
        let text = printFilter(tree);
        for (const [place, damage] of damages) {
          const i = place % (text.length + 1);
          const middle = { cut: '', double: text.slice(i, i + 1).repeat(2), insert: inserted };
          const rest = text.slice(damage === 'insert' ? i : i + 1);
          text = text.slice(0, i) + middle[damage as keyof typeof middle] + rest;
        }
        const { tree: read, findings } = checkFilter(text, 'Products');
        for (const finding of findings) {
          expect(finding.start).toBeGreaterThanOrEqual(0);
          expect(finding.end).toBeGreaterThanOrEqual(finding.start);
          expect(finding.end).toBeLessThanOrEqual(text.length);
          expect(showFinding(text, finding)).toContain('^');
        }
        if (read !== null) expect(parseFilter(printFilter(read)).tree).toEqual(read);
      }),
      { numRuns: 1000 },
    );
  });
});
