/** Finds the ranges of dates that a filter asks for, so that they can be answered from an index. */

import type { compileFilter } from '../../filter/evaluate.ts';
import { findOrderableField, type OrderableField } from '../../filter/fields.ts';
import { literalDate } from '../../filter/values.ts';
import type { DateRange } from '../publishing/date-index.ts';

/** A filter that was read. */
export type DatedFilter = Parameters<typeof compileFilter>[0];

interface FieldRange extends DateRange {
  readonly field: OrderableField;
}

const allTime: DateRange = { fromUs: Number.NEGATIVE_INFINITY, toUs: Number.POSITIVE_INFINITY };

/** The ranges in which the dates of everything lie that the filter lets through, as far as its `and` tells. */
export function dateRangesOf(filter: DatedFilter | null): Map<OrderableField, DateRange> {
  const ranges = new Map<OrderableField, DateRange>();
  for (const range of termsOf(filter).map(rangeOf)) {
    if (range === null) continue;
    const { fromUs, toUs } = ranges.get(range.field) ?? allTime;
    ranges.set(range.field, {
      fromUs: Math.max(fromUs, range.fromUs),
      toUs: Math.min(toUs, range.toUs),
    });
  }
  return ranges;
}

/** What is left of a filter for products whose date is in its range of this field; null: nothing. */
export function withoutRange(
  filter: DatedFilter | null,
  field: OrderableField | null,
): DatedFilter | null {
  if (field === null) return filter;
  const terms = termsOf(filter).filter((term) => rangeOf(term)?.field !== field);
  const [first, second] = terms;
  if (first === undefined || second === undefined) return first ?? null;
  return { node: 'and', terms };
}

function termsOf(filter: DatedFilter | null): readonly DatedFilter[] {
  if (filter === null) return [];
  return filter.node === 'and' ? filter.terms : [filter];
}

/** The range that one condition stands for; null when it is no range of a date. */
function rangeOf(term: DatedFilter): FieldRange | null {
  if (term.node !== 'comparison') return null;
  const field =
    findOrderableField('Products', term.field) ?? findOrderableField('DeletedProducts', term.field);
  const us = literalDate(term.literal);
  if (field === undefined || us === null) return null;
  switch (term.operator) {
    case 'eq':
      return { field, fromUs: us, toUs: us + 1 };
    case 'ge':
      return { ...allTime, field, fromUs: us };
    case 'gt':
      return { ...allTime, field, fromUs: us + 1 };
    case 'lt':
      return { ...allTime, field, toUs: us };
    case 'le':
      return { ...allTime, field, toUs: us + 1 };
    case 'ne':
      return null;
  }
}
