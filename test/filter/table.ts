/** Tables of test cases as text, for rows that are too long for a line of code; checks of filters in them. */
import { expect } from 'vitest';
import { checkFilter } from '../../src/filter/check.ts';
import type { Entity } from '../../src/filter/filter-tree.ts';
import type { FilterFinding } from '../../src/filter/finding.ts';

/** Rows of a table, one per line; `¦` separates the cells. */
export function rowsOf(table: string): string[][] {
  const lines = table.trim().split('\n');
  return lines.map((line) => line.trimStart().split(' ¦ '));
}

/**
 * Checks a filter whose only finding is at the marked place: `Name «==» 'a'`. Two adjacent marks are a place between
 * characters.
 */
export function expectFinding(
  marked: string,
  expected: { severity: FilterFinding['severity']; code: string; words: RegExp | string },
  entity: Entity = 'Products',
): void {
  const { words, ...fields } = expected;
  const [start, end] = [marked.indexOf('«'), marked.indexOf('»') - 1];
  const { tree, findings } = checkFilter(marked.replace('«', '').replace('»', ''), entity);
  expect(findings).toMatchObject([{ ...fields, start, end }]);
  const texts = findings.map(({ message, expected, hint }) => `${message} | ${expected} | ${hint}`);
  expect(texts.join()).toMatch(new RegExp(words));
  expect(tree === null).toBe(fields.severity === 'error');
}
