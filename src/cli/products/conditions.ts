/** Conditions of the filter language, as the flags of commands need them. */
import type { ComparisonOperator, FilterTree, Literal } from '../../domain/filter-tree.ts';
import type { Geometry } from '../../domain/geometry.ts';
import type { TimeRange } from './time-range.ts';

/** All of these conditions; null for none. */
export function allOf(terms: readonly FilterTree[]): FilterTree | null {
  return group('and', terms);
}

/** At least one of these conditions; null for none. */
export function anyOf(terms: readonly FilterTree[]): FilterTree | null {
  return group('or', terms);
}

export function textEquals(field: string, value: string): FilterTree {
  return comparison(field, 'eq', { type: 'text', value });
}

/** An attribute of the kind String. */
export function attributeEquals(name: string, value: string): FilterTree {
  const literal = { type: 'text', value } as const;
  return { node: 'attribute', kind: 'String', name, valueKind: 'String', operator: 'eq', literal };
}

/** An attribute of the kind Double. */
export function attributeBelow(name: string, value: number): FilterTree {
  const literal = { type: 'number', value } as const;
  return { node: 'attribute', kind: 'Double', name, valueKind: 'Double', operator: 'lt', literal };
}

export function intersectsArea(geometry: Geometry): FilterTree {
  return { node: 'intersects', argument: 'area', srid: 4326, geometry };
}

/** A date within a span: no condition, one or two. */
export function during(field: string, { fromUs, untilUs }: TimeRange = {}): FilterTree[] {
  return [
    ...(fromUs === undefined ? [] : [comparison(field, 'ge', { type: 'date', us: fromUs })]),
    ...(untilUs === undefined ? [] : [comparison(field, 'lt', { type: 'date', us: untilUs })]),
  ];
}

function comparison(field: string, operator: ComparisonOperator, literal: Literal): FilterTree {
  return { node: 'comparison', field, operator, literal };
}

/** A group within one of its own kind is dissolved, as trees are written without. */
function group(node: 'and' | 'or', terms: readonly FilterTree[]): FilterTree | null {
  const flat = terms.flatMap((term) => (term.node === node ? term.terms : [term]));
  const [only, ...others] = flat;
  if (only === undefined) return null;
  return others.length === 0 ? only : { node, terms: flat };
}
