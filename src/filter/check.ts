/** Checks a filter for an entity: errors, and warnings of what may not mean what it seems to. */
import { AppError } from '../domain/app-error.ts';
import type { Entity, FilterTree, IntersectsNode } from '../domain/filter-tree.ts';
import type { Geometry, Position, Ring } from '../domain/geometry.ts';
import {
  checkAttribute,
  checkCollections,
  checkComparison,
  checkTextFunction,
  createFindings,
  type Findings,
} from './check-conditions.ts';
import { filterLengthMax } from './cursor.ts';
import { type FilterFinding, FilterSyntaxError, type Span, showFinding } from './finding.ts';
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

/** All that is found in a tree, in no order. Trees are at most twice as deep as parentheses may be. */
function checkTree(text: string, parsed: ParsedFilter, entity: Entity): FilterFinding[] {
  const findings = createFindings(text, parsed, entity);
  visit(findings, parsed.tree, false);
  return findings.found;
}

/** `collected`: a collection is named beside this part, or beside one that it stands in. */
function visit(findings: Findings, tree: FilterTree, collected: boolean): void {
  switch (tree.node) {
    case 'and':
    case 'or': {
      const here = collected || (tree.node === 'and' && tree.terms.some(namesCollection));
      for (const term of tree.terms) visit(findings, term, here);
      break;
    }
    case 'not':
      visit(findings, tree.term, collected);
      break;
    case 'comparison':
    case 'in':
      checkComparison(findings, tree);
      checkCollections(findings, tree);
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

const earth = 4326;

function checkIntersects(findings: Findings, node: IntersectsNode): void {
  const { srid, geometry } = node;
  if (srid !== earth) {
    const message = `The reference system is ${srid}; the catalogue takes EPSG:4326 alone.`;
    const hint = 'Give longitude and latitude in degrees of WGS 84, and write SRID=4326.';
    const fault = { code: 'unknown-reference-system', message, hint } as const;
    findings.error(findings.spanOf(node, 'srid'), fault);
    // Whether numbers of another system lie on the globe cannot be said.
    return;
  }
  const faults = geometryFaults(geometry, findings.effort);
  for (const { code: fault, message, at } of faults) {
    const swapped = at !== undefined && looksSwapped(at);
    const hint = swapped ? { hint: 'Longitude comes first, then latitude.' } : {};
    const code = fault === 'too-intricate' ? fault : 'invalid-geometry';
    findings.error(spanOf(findings, geometry, at), { code, message, ...hint });
  }
  for (const ring of ringsOf(geometry)) warnWideEdges(findings, ring);
}

/** The place of a position; of the whole geometry when none is named. */
function spanOf(findings: Findings, geometry: Geometry, at: Position | undefined): Span {
  return findings.spanOfObject(at ?? geometry);
}

/** A latitude beyond the poles beside a longitude that could be one. */
function looksSwapped([longitude, latitude]: Position): boolean {
  return Math.abs(latitude) > 90 && Math.abs(latitude) <= 180 && Math.abs(longitude) <= 90;
}

function ringsOf(geometry: Geometry): readonly Ring[] {
  if (geometry.type === 'Polygon') return geometry.coordinates;
  return geometry.type === 'MultiPolygon' ? geometry.coordinates.flat() : [];
}

/** An edge round half the globe or more is taken the short way; one all round stays as written. */
function warnWideEdges(findings: Findings, ring: Ring): void {
  for (const [i, to] of ring.entries()) {
    const from = ring[i - 1];
    if (from === undefined) continue;
    const width = Math.abs(to[0] - from[0]);
    if (width <= 180 || width >= 360) continue;
    const span = {
      start: findings.spanOfObject(from).start,
      end: findings.spanOfObject(to).end,
    };
    const degrees = Number(width.toFixed(4));
    const message = `This edge spans ${degrees} degrees and is taken the short way, across the antimeridian.`;
    const hint = 'Put a point between, if you mean the long way.';
    findings.warn(span, { code: 'wide-edge', message, hint });
  }
}
