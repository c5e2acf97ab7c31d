/** Checks the filters of subscriptions before the catalogue is asked to take them. */
import type { Entity } from '../../domain/filter-tree.ts';
import type { DesiredSubscription } from '../../domain/subscription.ts';
import { checkFilter, isBlankFilter } from '../../filter/check.ts';
import type { FilterFinding } from '../../filter/finding.ts';
import type { Plan } from './plan.ts';

/** A filter with something to tell about it. */
export interface FilterReport {
  name: string;
  entity: Entity;
  filter: string;
  /** At least one; in the order of their places. */
  findings: readonly FilterFinding[];
}

/** What a filter for these events speaks of: deletions are asked of their own list (facts, filters). */
export function entitiesOf(events: readonly string[]): Entity[] {
  const entities: Entity[] = events.some((event) => event !== 'deleted') ? ['Products'] : [];
  return events.includes('deleted') ? [...entities, 'DeletedProducts'] : entities;
}

/** What is to be told about a subscription's filter, for each entity; nothing about a blank one. */
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

/** True for a filter with errors. */
export function hasErrors({ findings }: Pick<FilterReport, 'findings'>): boolean {
  return findings.some(({ severity }) => severity === 'error');
}

/** The names of those that a plan has the catalogue make, so that it would look at their filters. */
export function namesToBeMade({ steps }: Pick<Plan, 'steps'>): ReadonlySet<string> {
  return new Set(
    steps.flatMap((step) =>
      step.kind === 'create' || step.kind === 'replace' ? [step.desired.name] : [],
    ),
  );
}
