/** Checks a filter for an entity: errors, and warnings of what may not mean what it seems to. */
import { AppError } from '../domain/app-error.ts';
import type { Entity, FilterTree, IntersectsNode, Ring } from '../domain/filter-tree.ts';
import {
  checkAttribute,
  checkComparison,
  checkTextFunction,
  Findings,
} from './check-conditions.ts';
import { filterLengthMax } from './cursor.ts';
import { type FilterFinding, FilterSyntaxError, findingAt, showFinding } from './finding.ts';
import { polygonsOf } from './geometry/ring.ts';
import { geometryFaults } from './geometry/validity.ts';
import { type ParsedFilter, parseFilter } from './parse.ts';

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
  if (isBlankFilter(text)) {
    const fault = { code: 'empty', message: 'An empty filter is every product.' } as const;
    const place = { start: text.length, end: text.length };
    return { tree: null, findings: [findingAt('warning', place, fault)] };
  }
  let parsed: ParsedFilter;
  try {
    parsed = parseFilter(text);
  } catch (error) {
    if (!(error instanceof FilterSyntaxError)) throw error;
    return { tree: null, findings: [error.finding] };
  }
  const checked = new Findings(text, parsed, entity);
  checkTree(checked, parsed.tree, false);
  // The terms of `in` share all parts but their values.
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

/**
 * Checks each condition of a tree, at most twice as deep as parentheses may be. `collected`: a collection is named
 * beside this part, or beside one that it stands in.
 */
function checkTree(findings: Findings, tree: FilterTree, collected: boolean): void {
  switch (tree.node) {
    case 'and':
    case 'or': {
      const here = collected || (tree.node === 'and' && tree.terms.some(namesCollection));
      for (const term of tree.terms) checkTree(findings, term, here);
      break;
    }
    case 'not':
      checkTree(findings, tree.term, collected);
      break;
    case 'comparison':
    case 'in':
      checkComparison(findings, tree);
      break;
    case 'text':
      checkTextFunction(findings, tree, collected);
      break;
    case 'attribute':
      checkAttribute(findings, tree);
      break;
    case 'intersects':
      checkIntersects(findings, tree);
      break;
  }
}

function namesCollection(tree: FilterTree): boolean {
  return (tree.node === 'comparison' || tree.node === 'in') && tree.field === 'Collection/Name';
}

function checkIntersects(findings: Findings, node: IntersectsNode): void {
  const { srid, geometry } = node;
  if (srid !== 4326) {
    const message = `The reference system is ${srid}; the catalogue takes EPSG:4326 alone.`;
    const hint = 'Give longitude and latitude in degrees of WGS 84, and write SRID=4326.';
    const fault = { code: 'unknown-reference-system', message, hint } as const;
    findings.error(findings.spanOf(node, 'srid'), fault);
    // Whether numbers of another system lie on the globe cannot be said.
    return;
  }
  for (const { code, message, at } of geometryFaults(geometry, findings.effort)) {
    const [longitude, latitude] = at ?? [0, 0];
    // A latitude beyond the poles beside a longitude that could be one.
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

/** An edge round half the globe or more is taken the short way; one all round stays as written. */
function warnWideEdges(findings: Findings, ring: Ring): void {
  for (const [i, to] of ring.entries()) {
    const from = ring[i - 1];
    if (from === undefined) continue;
    const width = Math.abs(to[0] - from[0]);
    if (width <= 180 || width >= 360) continue;
    const span = { start: findings.spanOf(from).start, end: findings.spanOf(to).end };
    const degrees = Number(width.toFixed(4));
    const message = `This edge spans ${degrees} degrees and is taken the short way, across the antimeridian.`;
    const hint = 'Put a point between, if you mean the long way.';
    findings.warn(span, { code: 'wide-edge', message, hint });
  }
}
