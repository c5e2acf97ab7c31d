/** Reads a filter that the user has written, and tells what is wrong with it as a compiler does. */
import { AppError } from '../domain/app-error.ts';
import type { Entity, FilterTree } from '../domain/filter-tree.ts';
import type { DesiredSubscription } from '../domain/subscription.ts';
import { checkFilter, isBlankFilter } from '../filter/check.ts';
import { type FilterFinding, showFinding } from '../filter/finding.ts';
import type { Io, Output } from './io.ts';
import { painter } from './output.ts';

/** The tree of a filter; null for a blank one, which everything matches. Throws `usage`; warns on stderr. */
export function readFilter(
  text: string,
  entity: Entity,
  io: Pick<Io, 'stderr' | 'env'>,
): FilterTree | null {
  const { tree, findings } = checkFilter(text, entity);
  const errors = findings.filter(({ severity }) => severity === 'error');
  if (errors.length > 0) {
    const details = errors.map((finding) => showFinding(text, finding));
    throw new AppError('usage', `The filter cannot be used for ${entity}.`, { details });
  }
  // What would be slow at the catalogue is not so here.
  const told = findings.filter(({ code }) => code !== 'name-without-collection');
  for (const finding of told) io.stderr.write(findingText(text, finding, io, io.stderr));
  return tree;
}

/** A finding in several lines, its first word in colour, for the stream it goes to. */
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
