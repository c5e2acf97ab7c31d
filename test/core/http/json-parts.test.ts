/** Parts of JSON, found in its bytes: the same values as JSON.parse, and only in complete arrays and objects. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { itemsIn, membersIn, textIn, wholeOf } from '../../../src/core/http/json-parts.ts';
import { times } from '../../helpers/thorough.ts';

function itemsOf(input: Buffer): Buffer[] {
  const parts = itemsIn(input, wholeOf(input), 1_000);
  if (parts === null) throw new Error('This is not an array.');
  return parts.map(({ start, end }) => input.subarray(start, end));
}

const space = fc.string({ unit: fc.constantFrom(' ', '\t', '\n', '\r'), maxLength: 3 });

/** Characters that a splitter could take for structure, and characters of several bytes. */
const text = fc.string({
  unit: fc.constantFrom(...'[]{},:"\\ \n\u0000', '\\"', '\\\\', 'é', '€', '😀', '\u2028', 'a'),
  maxLength: 8,
});

const item = fc.jsonValue({ maxDepth: 3, stringUnit: text });

/** Writes JSON with the given white space between its tokens, used in order and repeated. */
function spaced(value: unknown, spaces: readonly string[]): string {
  let used = 0;
  const gap = () => spaces[used++ % spaces.length] ?? '';
  const written = (one: unknown): string => {
    if (typeof one !== 'object' || one === null) return `${gap()}${JSON.stringify(one)}${gap()}`;
    const members = Array.isArray(one)
      ? one.map(written)
      : Object.entries(one).map(([key, own]) => `${written(key)}:${written(own)}`);
    const [open, close] = Array.isArray(one) ? '[]' : '{}';
    return `${gap()}${open}${gap()}${members.join(',')}${close}${gap()}`;
  };
  return written(value);
}

const spacedArray = fc
  .tuple(fc.array(item, { maxLength: 6 }), fc.array(space, { minLength: 1, maxLength: 9 }))
  .map(([items, spaces]) => spaced(items, spaces));

describe('the parts of JSON', () => {
  it('parse to the values of the array, for any JSON and any white space', () => {
    fc.assert(
      fc.property(spacedArray, (json) => {
        const parts = itemsOf(Buffer.from(json)).map((part) => part.toString());
        expect(parts.map((part) => JSON.parse(part))).toEqual(JSON.parse(json));
      }),
      { numRuns: times(300, 1_000) },
    );
  });

  it('are those of JSON.parse also for objects; a repeated name has its last value', () => {
    // Without escapes: V8 of Node 24 confuses two such names that follow the same one.
    const names = ['a', 'b', 'é', '€'];
    const member = fc.tuple(fc.constantFrom(...names, 'c'), item);
    fc.assert(
      fc.property(fc.array(member), fc.array(space, { minLength: 1 }), (members, [gap = '']) => {
        const texts = members.map(
          ([name, own]) => `${JSON.stringify(name)}${gap}:${gap}${spaced(own, [gap])}`,
        );
        const json = `${gap}{${gap}${texts.join(`${gap},${gap}`)}${gap}}`;
        const input = Buffer.from(json);
        const found = membersIn(input, wholeOf(input), names) ?? new Map();
        const parsed = [...found].map(([name, part]) => [name, JSON.parse(textIn(input, part))]);
        const { c: _, ...expected } = JSON.parse(json);
        expect(Object.fromEntries(parsed)).toEqual(expected);
      }),
    );
  });

  it.each([
    '',
    '[',
    '[1',
    '[1,',
    '[1,]',
    '[,1]',
    '[1 2]',
    '["a]',
    '[[1]',
    '[1}',
    '{"a":1}',
    '[1] x',
    '"[]"',
  ])('are not found in %s', (json) => {
    const input = Buffer.from(json);
    expect(itemsIn(input, wholeOf(input), 9)).toBe(null);
  });

  it('are not found in an array with too many', () => {
    const input = Buffer.from('[1,2,3]');
    expect(itemsIn(input, wholeOf(input), 3)).toHaveLength(3);
    expect(itemsIn(input, wholeOf(input), 2)).toBe(null);
  });
});
