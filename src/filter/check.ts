/** Checks a filter for an entity. Reports errors, and warns about expressions that are probably a mistake. */
import { AppError } from '../core/terms/app-error.ts';
import {
  checkAttribute,
  checkComparison,
  checkTextFunction,
  Findings,
} from './check-conditions.ts';
import { filterLengthMax } from './cursor.ts';
import type { Entity, FilterTree, IntersectsNode, Ring } from './filter-tree.ts';
import { type FilterFinding, FilterSyntaxError, findingAt, showFinding } from './finding.ts';
import { polygonsOf } from './geometry/ring.ts';
import { geometryFaults } from './geometry/validity.ts';
import { type ParsedFilter, parseFilter } from './parse.ts';

interface CheckedFilter {
  /** Null for a filter with an error, and for an empty filter, which matches every product. */
  readonly tree: FilterTree | null;
  /** Sorted by position in the text. */
  readonly findings: readonly FilterFinding[];
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
    return { tree: null, findings: [findingAt('warning', span, fault)] };
  }
  let parsed: ParsedFilter;
  try {
    parsed = parseFilter(text);
  } catch (error) {
    if (!(error instanceof FilterSyntaxError)) throw error;
    return { tree: null, findings: [error.finding] };
  }
  const checked = new Findings(text, parsed, entity);
  checkTree(checked, parsed.tree, { hasCollection: false, isNegated: false });
  // Terms made from one `in` differ only in their literals, so findings repeat.
  const seen = new Set<string>();
  const findings = [...parsed.findings, ...checked.found]
    .filter(({ code, start, end }) => {
      const key = `${code} ${start} ${end}`;
      return !seen.has(key) && seen.add(key);
    })
    .sort((a, b) => a.start - b.start || a.end - b.end);
  const isRefused = findings.some(({ severity }) => severity === 'error');
  return { tree: isRefused ? null : parsed.tree, findings };
}

/**
 * Returns the tree of a filter; null for an empty filter, which matches every product.
 * Throws AppError `invalid` for a filter with errors; its details show each error with its position.
 */
export function requireFilter(text: string, entity: Entity): FilterTree | null {
  const { tree, findings } = checkFilter(text, entity);
  const errors = findings.filter(({ severity }) => severity === 'error');
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

/** Conditions around a part of a filter. */
interface Surroundings {
  /** The part, or one around it, is joined by `and` with a condition on the collection. */
  hasCollection: boolean;
  isNegated: boolean;
}

/** Checks each condition of a tree, whose depth is at most twice that of parentheses. */
function checkTree(findings: Findings, tree: FilterTree, around: Surroundings): void {
  switch (tree.node) {
    case 'and':
    case 'or': {
      const isNarrowed = tree.node === 'and' && tree.terms.some(isCollectionCondition);
      const here = isNarrowed ? { ...around, hasCollection: true } : around;
      for (const term of tree.terms) checkTree(findings, term, here);
      break;
    }
    case 'not':
      checkTree(findings, tree.term, { ...around, isNegated: !around.isNegated });
      break;
    case 'comparison':
    case 'in':
      checkComparison(findings, tree);
      break;
    case 'text':
      checkTextFunction(findings, tree, around.hasCollection);
      break;
    case 'attribute':
      checkAttribute(findings, tree, around.isNegated);
      break;
    case 'intersects':
      checkIntersects(findings, tree);
      break;
  }
}

function isCollectionCondition(tree: FilterTree): boolean {
  return (tree.node === 'comparison' || tree.node === 'in') && tree.field === 'Collection/Name';
}

function checkIntersects(findings: Findings, node: IntersectsNode): void {
  const { srid, geometry } = node;
  if (srid !== 4326) {
    const message = `Reference system ${srid} is not supported; the catalogue accepts only EPSG:4326.`;
    const hint = 'Convert to longitude and latitude in degrees (WGS 84), and write SRID=4326.';
    const fault = { code: 'unknown-reference-system', message, hint } as const;
    findings.error(findings.spanOf(node, 'srid'), fault);
    // Coordinates of another system cannot be validated.
    return;
  }
  for (const { code, message, at } of geometryFaults(geometry, findings.effort)) {
    const [longitude, latitude] = at ?? [0, 0];
    // The latitude is out of range, but swapped with the longitude it would be valid.
    const isSwapped =
      Math.abs(latitude) > 90 && Math.abs(latitude) <= 180 && Math.abs(longitude) <= 90;
    findings.error(findings.spanOf(at ?? geometry), {
      code: code === 'too-intricate' ? code : 'invalid-geometry',
      message,
      hint: isSwapped ? 'Longitude comes first, then latitude.' : null,
    });
  }
  for (const ring of polygonsOf(geometry).flat()) warnWideEdges(findings, ring);
}

/** Warns about edges of more than 180 degrees. One of 360 degrees is read as written. */
function warnWideEdges(findings: Findings, ring: Ring): void {
  for (const [i, to] of ring.entries()) {
    const from = ring[i - 1];
    if (from === undefined) continue;
    const width = Math.abs(to[0] - from[0]);
    if (width <= 180 || width >= 360) continue;
    const span = { start: findings.spanOf(from).start, end: findings.spanOf(to).end };
    const degrees = Number(width.toFixed(4));
    const message = `This edge spans ${degrees} degrees. The shorter path, across the antimeridian, is used.`;
    const hint = 'For the longer path, add a point between the two positions.';
    findings.warn(span, { code: 'wide-edge', message, hint });
  }
}
