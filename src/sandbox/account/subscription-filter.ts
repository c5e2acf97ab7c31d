/** A FilterParam: checked for the products of its subscription's events, then ready to judge them. */

import { checkFilter, isBlankFilter } from '../../filter/check.ts';
import { compileFilter, type ProductTest } from '../../filter/evaluate.ts';
import type { FilterFinding } from '../../filter/finding.ts';
import type { NotificationEvent } from '../delivery/notification.ts';
import { SubscriptionRefusal } from './subscription-refusal.ts';

/**
 * Throws SubscriptionRefusal (`filter`) when the filter is not one of a query for the products that
 * the events are about: deleted ones for `deleted`, else those that are there (specification,
 * FilterParam). A blank filter is every product. `refusal` is what is said of all others; null: nothing.
 */
export function readFilter(
  filter: string,
  events: readonly NotificationEvent[],
  refusal: string | null,
): ProductTest {
  if (isBlankFilter(filter)) return () => true;
  if (refusal !== null) refuse(refusal);
  const isDeletion = (event: NotificationEvent) => event === 'deleted';
  const checked = [
    ...(events.every(isDeletion) ? [] : [checkFilter(filter, 'Products')]),
    ...(events.some(isDeletion) ? [checkFilter(filter, 'DeletedProducts')] : []),
  ];
  const findings = checked.flatMap((check) => check.findings);
  const error = findings.find(({ severity }) => severity === 'error');
  const tree = checked[0]?.tree;
  if (error !== undefined || tree == null) refuse(problemOf(filter, error));
  return compileFilter(tree);
}

function refuse(problem: string): never {
  throw new SubscriptionRefusal('filter', `Invalid filter: ${problem}`);
}

/** `Invalid field` is what the catalogue says of an unknown one; no other text of it is known. */
function problemOf(filter: string, error: FilterFinding | undefined): string {
  if (error === undefined) return 'It says nothing.';
  const { code, start, end, message } = error;
  const isField = code === 'unknown-field' || code === 'field-of-other-entity';
  if (isField) return `Invalid field: ${filter.slice(start, end)}`;
  return `${message} (at character ${start + 1})`;
}
