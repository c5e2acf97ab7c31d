/** Checks a filter for an entity: errors, and warnings of what may not mean what it seems to. */
import { AppError } from '../domain/app-error.ts';
import type { Entity, FilterTree } from '../domain/filter-tree.ts';
import { checkTree } from './checks/tree.ts';
import { type FilterFinding, FilterSyntaxError } from './finding.ts';
import { filterLengthMax } from './limits.ts';
import { type ParsedFilter, parseFilter } from './parse.ts';
import { showFinding } from './show-finding.ts';

interface CheckedFilter {
  /** Null when there is an error, and for a blank text, which is every product. */
  readonly tree: FilterTree | null;
  /** By their place in the text. */
  readonly findings: readonly FilterFinding[];
}

/** How many errors a refusal shows. */
const shownMax = 20;

/**
 * Finds everything that is wrong with a filter of an entity's products. Never throws. When the text
 * cannot be read, the first place where it cannot is the only finding. A blank text is no error: it
 * stands for every product (facts, filters), and is warned about.
 */
export function checkFilter(text: string, entity: Entity): CheckedFilter {
  if (isBlankFilter(text)) return { tree: null, findings: [emptyFinding(text)] };
  let parsed: ParsedFilter;
  try {
    parsed = parseFilter(text);
  } catch (error) {
    if (!(error instanceof FilterSyntaxError)) throw error;
    return { tree: null, findings: [error.finding] };
  }
  const findings = withoutRepeats([
    ...parsed.findings,
    ...checkTree(text, parsed, entity),
  ]).toSorted((a, b) => a.start - b.start || a.end - b.end);
  const refused = findings.some(({ severity }) => severity === 'error');
  return { tree: refused ? null : parsed.tree, findings };
}

/**
 * The tree of a filter without errors; null for a blank text, which is every product.
 * Throws AppError `invalid`, whose details show each error with its place.
 */
export function requireFilter(text: string, entity: Entity): FilterTree | null {
  const { tree, findings } = checkFilter(text, entity);
  const errors = findings.filter(({ severity }) => severity === 'error');
  if (errors.length === 0) return tree;
  const count = errors.length === 1 ? 'One error' : `${errors.length} errors`;
  const details = errors.slice(0, shownMax).map((finding) => showFinding(text, finding));
  if (errors.length > shownMax) details.push(`And ${errors.length - shownMax} more.`);
  throw new AppError('invalid', `${count} in the filter for ${entity}.`, { details });
}

/**
 * True for a text that says nothing, and so stands for every product: blanks as the filter language
 * knows them, which other white space is not; more than a filter may hold are an error.
 */
export function isBlankFilter(text: string): boolean {
  return text.length <= filterLengthMax && /^[ \t\r\n]*$/.test(text);
}

/** The terms of `in` share all parts but their values. */
function withoutRepeats(findings: readonly FilterFinding[]): FilterFinding[] {
  const seen = new Set<string>();
  return findings.filter(({ code, start, end }) => {
    const key = `${code} ${start} ${end}`;
    return !seen.has(key) && seen.add(key);
  });
}

function emptyFinding(text: string): FilterFinding {
  const place = { start: text.length, end: text.length };
  const message = 'An empty filter is every product.';
  return { severity: 'warning', code: 'empty', message, ...place };
}
