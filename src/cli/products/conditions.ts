/** Joins conditions of the filter language, as the flags of commands need them. */
import type { FilterTree } from '../../domain/filter-tree.ts';
import type { TimeRange } from './time-range.ts';

/** All of these conditions; null for none. */
export function allOf(terms: readonly FilterTree[]): FilterTree | null {
  return group('and', terms);
}

/** At least one of these conditions; null for none. */
export function anyOf(terms: readonly FilterTree[]): FilterTree | null {
  return group('or', terms);
}

/** A date within a span: no condition, one or two. */
export function during(field: string, { fromUs, untilUs }: TimeRange = {}): FilterTree[] {
  return [
    ...(fromUs === undefined ? [] : [compared(field, 'ge', fromUs)]),
    ...(untilUs === undefined ? [] : [compared(field, 'lt', untilUs)]),
  ];
}

function compared(field: string, operator: 'ge' | 'lt', us: number): FilterTree {
  return { node: 'comparison', field, operator, literal: { type: 'date', us } };
}

// Not the builder's groups: with them comes all that geometries need, which other commands do not.

/** A group within one of its own kind is dissolved, as trees are written without. */
function group(node: 'and' | 'or', terms: readonly FilterTree[]): FilterTree | null {
  const flat = terms.flatMap((term) => (term.node === node ? term.terms : [term]));
  const [only, ...others] = flat;
  if (only === undefined) return null;
  return others.length === 0 ? only : { node, terms: flat };
}
