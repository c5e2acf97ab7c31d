/** Comparisons of mapped values, over texts with characters next to upper-case and lower-case letters. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  lowerCase,
  lowerCaseWithLetter,
  type MappedText,
  oneOfLowerCase,
  prefixed,
} from '../../../src/features/stac/conditions.ts';
import { compileFilter } from '../../../src/filter/evaluate.ts';
import { productView } from '../../../src/filter/product-view.ts';
import { times } from '../../helpers/thorough.ts';

const operators = {
  eq: (one: string, other: string) => one === other,
  ne: (one: string, other: string) => one !== other,
} as const;

const textOf = (characters: string) =>
  fc.string({ unit: fc.constantFrom(...characters), maxLength: 4 });

const cases: [name: string, mapped: MappedText, first: fc.Arbitrary<string>, literals: string[]][] =
  [
    ['lower case', lowerCase('first'), textOf('-9@AZ[_`{~'), []],
    ['with a letter', lowerCaseWithLetter('first', 'second'), textOf('-AZ_'), []],
    ['one of two', oneOfLowerCase('first', ['asc', 'desc']), fc.constantFrom('ASC', 'DESC'), []],
    [
      'a prefix',
      prefixed('first', 'MGRS-', /^\d\d[A-Z]$/),
      fc.constantFrom('31A', '31U', '32A', '99Z'),
      ['MGRS-', 'MGRS-31U', 'MGRS-32A', 'MGRS-31', 'MGRS', 'MGRS_', 'N', 'MGRS-31a'],
    ],
  ];

it.each(cases)('compares %s like the shown value', (_name, mapped, first, literals) => {
  const literal = fc.oneof(textOf('-9@AZ[_`az{~'), ...literals.map((one) => fc.constant(one)));
  const product = fc.record({ first, second: fc.option(fc.constantFrom('A', 'Z', 'AB', '_')) });
  let matched = 0;
  fc.assert(
    fc.property(
      product,
      literal,
      fc.boolean(),
      fc.constantFrom(...(Object.keys(operators) as (keyof typeof operators)[])),
      ({ first: one, second }, random, isOwn, operator) => {
        const view = productView({
          Attributes: Object.entries({ first: one, second }).flatMap(([Name, Value]) =>
            Value === null ? [] : [{ Name, Value, ValueType: 'String' }],
          ),
        });
        const shown = mapped.valueIn(view) ?? '';
        const text = isOwn ? shown : random;
        const found = compileFilter(mapped.compare(operator, text, 'x').tree)(view);
        if (found) matched += 1;
        expect({ shown, operator, text, found }).toEqual({
          shown,
          operator,
          text,
          found: operators[operator](shown, text),
        });
      },
    ),
    { numRuns: times(500, 30_000) },
  );
  expect(matched).toBeGreaterThan(times(100, 500));
});
