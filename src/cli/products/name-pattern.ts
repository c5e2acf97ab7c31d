/** Turns a name with `*` into conditions of the filter language. */
import { InvalidArgumentError } from 'commander';
import type { FilterTree, TextFunction } from '../../domain/filter-tree.ts';

/**
 * Conditions that must all be met: `Name eq` without a `*`; else startswith for what stands before the
 * first one, endswith for what stands after the last, contains for what stands between, which may
 * come in any order. Throws commander's InvalidArgumentError.
 */
export function parseNamePattern(text: string): FilterTree[] {
  if (text.includes('?')) {
    throw new InvalidArgumentError(
      `The filter language has no "?". Use * for any text: '${text.replaceAll(/[?*]+/g, '*')}'.`,
    );
  }
  const parts = text.split('*');
  if (parts.every((part) => part === '')) {
    throw new InvalidArgumentError('Say part of the name, or leave --name out for any.');
  }
  const [first = '', ...rest] = parts;
  const last = rest.pop();
  if (last === undefined) {
    const literal = { type: 'text', value: text } as const;
    return [{ node: 'comparison', field: 'Name', operator: 'eq', literal }];
  }
  const conditions: [TextFunction, string][] = [
    ['startswith', first],
    ...rest.map((part): [TextFunction, string] => ['contains', part]),
    ['endswith', last],
  ];
  return conditions
    .filter(([, part]) => part !== '')
    .map(([name, part]) => ({ node: 'text', function: name, field: 'Name', text: part }));
}
