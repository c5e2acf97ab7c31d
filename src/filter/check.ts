/** Checks a filter for an entity. Reports errors, and warns about expressions that are probably a mistake. */
import { AppError } from '../core/terms/app-error.ts';
import { filterLengthMax } from './cursor.ts';
import type { Entity, FilterTree } from './filter-tree.ts';
import { type FilterFinding, FilterSyntaxError, findingAt, showFinding } from './finding.ts';
import { parseFilter } from './parse.ts';

interface CheckedFilter {
  /** Null for a filter with an error, and for an empty filter, which matches every product. */
  readonly tree: FilterTree | null;
  /** Sorted by position in the text. */
  readonly findings: readonly FilterFinding[];
  readonly errors: readonly FilterFinding[];
}

/** Maximum number of errors that an AppError lists. */
const shownMax = 20;

/**
 * Reports all errors and warnings. Never throws. A syntax error is the only finding, at the first position
 * that cannot be parsed. An empty filter is valid and causes a warning: it matches every product (facts, filters).
 */
export function checkFilter(text: string, entity: Entity): CheckedFilter {
  if (isBlankFilter(text)) {
    const fault = { code: 'empty', message: 'An empty filter matches every product.' } as const;
    const span = { start: text.length, end: text.length };
    return { tree: null, findings: [findingAt('warning', span, fault)], errors: [] };
  }
  try {
    const { tree, findings } = parseFilter(text, entity);
    const errors = findings.filter(({ severity }) => severity === 'error');
    return { tree: errors.length > 0 ? null : tree, findings, errors };
  } catch (error) {
    if (!(error instanceof FilterSyntaxError)) throw error;
    return { tree: null, findings: [error.finding], errors: [error.finding] };
  }
}

/**
 * Returns the tree of a filter; null for an empty filter, which matches every product.
 * Throws AppError `invalid` for a filter with errors; its details show each error with its position.
 */
export function requireFilter(text: string, entity: Entity): FilterTree | null {
  const { tree, errors } = checkFilter(text, entity);
  if (errors.length === 0) return tree;
  const count = errors.length === 1 ? 'One error' : `${errors.length} errors`;
  const details = errors.slice(0, shownMax).map((finding) => showFinding(text, finding));
  if (errors.length > shownMax)
    details.push(`${errors.length - shownMax} more errors are not shown.`);
  throw new AppError('invalid', `${count} in the filter for ${entity}.`, { details });
}

/**
 * Checks for an empty filter, which matches every product. It may contain the white space of the filter
 * language, but no other, and at most the maximum length of a filter.
 */
export function isBlankFilter(text: string): boolean {
  return text.length <= filterLengthMax && /^[ \t\r\n]*$/.test(text);
}
