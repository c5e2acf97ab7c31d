/** Parses filters and prints the findings in the style of a compiler. */

import type { DesiredSubscription } from '../../core/terms/subscription.ts';
import { checkFilter, isBlankFilter } from '../../filter/check.ts';
import type { Entity } from '../../filter/filter-tree.ts';
import type { FilterFinding } from '../../filter/finding.ts';

/** A filter with its findings. */
export interface FilterReport {
  name: string;
  entity: Entity;
  filter: string;
  /** At least one, in order of position in the text. */
  findings: readonly FilterFinding[];
}

/** Entities that a filter for these events applies to: deletions have an entity of their own (facts, filters). */
export function entitiesOf(events: readonly string[]): Entity[] {
  const entities: Entity[] = events.some((event) => event !== 'deleted') ? ['Products'] : [];
  return events.includes('deleted') ? [...entities, 'DeletedProducts'] : entities;
}

/** Returns the findings about a subscription's filter, by entity; none for a blank filter. */
export function checkSubscriptionFilter({
  name,
  events,
  filter,
}: Pick<DesiredSubscription, 'name' | 'events' | 'filter'>): FilterReport[] {
  if (isBlankFilter(filter)) return [];
  return entitiesOf(events)
    .map((entity) => ({ name, entity, filter, findings: checkFilter(filter, entity).findings }))
    .filter(({ findings }) => findings.length > 0);
}
