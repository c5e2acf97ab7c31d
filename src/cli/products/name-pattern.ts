/** Turns a name with `*` into conditions of the filter language. */
import { InvalidArgumentError } from 'commander';
import type { FilterTree } from '../../domain/filter-tree.ts';
import { textField } from '../../filter/builder.ts';

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
  const name = textField('Name');
  if (last === undefined) return [name.eq(text).tree];
  const conditions = [
    ...(first === '' ? [] : [name.startsWith(first)]),
    ...rest.filter((part) => part !== '').map(name.contains),
    ...(last === '' ? [] : [name.endsWith(last)]),
  ];
  return conditions.map(({ tree }) => tree);
}
