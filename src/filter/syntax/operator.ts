/** Reads the operator of a comparison. */
import type { ComparisonOperator } from '../../domain/filter-tree.ts';
import type { Cursor } from './cursor.ts';

const operators: readonly ComparisonOperator[] = ['eq', 'ne', 'lt', 'le', 'gt', 'ge'];

const wanted = {
  code: 'missing-operator',
  message: 'A comparison is missing here.',
  expected: '`eq`, `ne`, `lt`, `le`, `gt` or `ge`',
} as const;

/** Words that people write for an operator. */
const slips: Readonly<Record<string, string>> = {
  is: 'Write `eq`.',
  equals: 'Write `eq`.',
  equal: 'Write `eq`.',
  neq: 'Write `ne`.',
  lte: 'Write `le`.',
  gte: 'Write `ge`.',
  not: "Put `not` before the whole condition: not (Name eq '…').",
  like: "Write contains(Name,'…'), startswith(Name,'…') or endswith(Name,'…').",
  contains: "Write contains(Name,'…').",
  startswith: "Write startswith(Name,'…').",
  endswith: "Write endswith(Name,'…').",
  between: 'Write two conditions, with `ge` and `le`, joined by `and`.',
  has: 'Write `eq`.',
};

export function parseOperator(cursor: Cursor): ComparisonOperator {
  for (const operator of operators) {
    if (!cursor.isKeyword(operator)) continue;
    cursor.takeKeyword(operator);
    return operator;
  }
  const { kind, raw } = cursor.peek();
  const hint = kind === 'word' ? slips[raw.toLowerCase()] : undefined;
  return cursor.failUnexpected(hint === undefined ? wanted : { ...wanted, hint });
}
