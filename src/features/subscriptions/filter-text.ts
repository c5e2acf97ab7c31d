/** Parses filters and prints the findings in the style of a compiler. */

import type { Io, Output } from '../../core/cli/io.ts';
import { painter } from '../../core/cli/output.ts';
import { AppError } from '../../core/terms/app-error.ts';
import type { DesiredSubscription } from '../../core/terms/subscription.ts';
import { checkFilter, isBlankFilter } from '../../filter/check.ts';
import type { Entity, FilterTree } from '../../filter/filter-tree.ts';
import { type FilterFinding, showFinding } from '../../filter/finding.ts';

/** Parses a filter to a tree; null for a blank one, which matches everything. Throws `usage`; warns on stderr. */
export function readFilter(
  text: string,
  entity: Entity,
  io: Pick<Io, 'stderr' | 'env'>,
): FilterTree | null {
  const { tree, findings } = checkFilter(text, entity);
  const errors = findings.filter(({ severity }) => severity === 'error');
  if (errors.length > 0) {
    const details = errors.map((finding) => showFinding(text, finding));
    throw new AppError('usage', `The filter is not valid for ${entity}.`, { details });
  }
  // Such a filter is slow at the catalogue, but not in the product index.
  const shown = findings.filter(({ code }) => code !== 'name-without-collection');
  for (const finding of shown) io.stderr.write(findingText(text, finding, io, io.stderr));
  return tree;
}

/** Formats a finding as several lines, the first word in colour if the output supports it. */
export function findingText(
  text: string,
  finding: FilterFinding,
  io: Pick<Io, 'env'>,
  output: Output,
): string {
  const { severity } = finding;
  const label = painter(io, output)(severity === 'error' ? 'red' : 'yellow', severity);
  return `${label}${showFinding(text, finding).slice(severity.length)}\n`;
}

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
