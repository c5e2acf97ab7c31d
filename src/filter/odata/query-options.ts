/** Reads the options of a query of Products or DeletedProducts, and refuses as the catalogue does. */
import type { Direction, Entity, FilterTree } from '../../domain/filter-tree.ts';
import { checkFilter, isBlankFilter } from '../check.ts';
import { findOrderableField, type OrderableField } from '../fields.ts';
import type { FilterFinding } from '../finding.ts';
import { nearestName } from '../hints/nearest-name.ts';
import { type EntityProperties, type Expandable, entityProperties } from './entity-properties.ts';
import type { ODataRefusal, ValidationItem } from './refusal.ts';
import { readTruth, readWhole } from './validated-values.ts';

/** The catalogue's limits (facts, filters 1). */
const topMax = 1_000;
const topDefault = 20;
export const skipMax = 10_000;

export interface QueryOptions {
  /** Null for everything. */
  readonly filter: FilterTree | null;
  readonly orderby: { readonly field: OrderableField; readonly direction: Direction } | null;
  readonly top: number;
  readonly skip: number;
  readonly count: boolean;
  readonly expand: ReadonlySet<Expandable>;
  /** As the records spell them; null for all. */
  readonly select: readonly string[] | null;
  /** Where a page of our own ended; opaque, and not checked here. */
  readonly skiptoken: string | null;
}

/** What was asked for, or why it is refused. */
type ReadOptions =
  | { readonly options: QueryOptions; readonly refusal?: never }
  | { readonly options?: never; readonly refusal: ODataRefusal };

const single = ['$filter', '$orderby', '$top', '$skip', '$count', '$skiptoken'] as const;

const known = [...single, '$expand', '$select'] as const;

/**
 * Unknown options are ignored, as by the catalogue; but one that is a slip of a known one is refused, as
 * everything would be answered instead of what was meant. `$expand` and `$select` may come as a list and
 * several times; any other twice is refused (OData 4.01, part 1, 11.2.1), as one would be lost.
 * Numbers and truth values come first and together (422), then the rest, one at a time (400).
 */
export function readQueryOptions(
  params: URLSearchParams,
  entity: Entity,
  defaults: { readonly top: number } = { top: topDefault },
): ReadOptions {
  const items: ValidationItem[] = [];
  const option = (name: (typeof single)[number]) => params.get(name) ?? undefined;
  const number = (name: '$top' | '$skip', fallback: number, max: number) =>
    readWhole(option(name), { name, fallback, max, items });
  const top = number('$top', defaults.top, topMax);
  const skip = number('$skip', 0, skipMax);
  const count = readTruth(option('$count'), { name: '$count', items });
  if (items.length > 0) return { refusal: { status: 422, items } };
  try {
    refuseSlips(params);
    const twice = single.find((name) => params.getAll(name).length > 1);
    if (twice !== undefined) throw new Refused(`Invalid value: ${twice} is given more than once.`);
    const properties = entityProperties[entity];
    const expand = readExpand(listOf(params, '$expand'), properties);
    const orderby = readOrder(option('$orderby') ?? '', entity);
    const select = readSelect(listOf(params, '$select'), properties);
    const filter = readFilter(option('$filter') ?? '', entity);
    const skiptoken = option('$skiptoken') ?? null;
    return { options: { filter, orderby, top, skip, count, expand, select, skiptoken } };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { refusal: { status: 400, message: error.message } };
  }
}

/** Ends the reading of an option with the message for the one who asked. */
class Refused extends Error {}

function refuseSlips(params: URLSearchParams): void {
  for (const name of params.keys()) {
    if (known.some((one) => one === name)) continue;
    const meant = known.find((one) => one === `$${name}`) ?? nearestName(name, known);
    if (meant !== null) throw new Refused(`Invalid option: ${name}. Did you mean ${meant}?`);
  }
}

function listOf(params: URLSearchParams, name: string): string[] {
  const entries = params.getAll(name).flatMap((text) => text.split(','));
  return entries.map((entry) => entry.trim()).filter((entry) => entry !== '');
}

function readExpand(
  names: readonly string[],
  { expandable }: EntityProperties,
): ReadonlySet<Expandable> {
  const known = names.map((name) => expandable.find((one) => one === name));
  if (known.includes(undefined)) {
    const accepted = expandable.toSorted().join(', ');
    throw new Refused(`Expand parameter only accepts following values: ${accepted}.`);
  }
  return new Set(known.filter((name) => name !== undefined));
}

const directions: readonly Direction[] = ['asc', 'desc'];

/** One field: nothing tells that the catalogue takes several. Ties are put in order by the server. */
function readOrder(text: string, entity: Entity) {
  if (text.trim() === '') return null;
  const [name = '', word = 'asc', ...rest] = text.trim().split(/\s+/);
  const field = findOrderableField(entity, name);
  const direction = directions.find((one) => one === word.toLowerCase());
  if (field === undefined || direction === undefined || rest.length > 0) {
    throw new Refused(
      "Invalid value: Invalid field name in the order by clause. Please use only 'asc' or 'desc' for sorting.",
    );
  }
  return { field, direction };
}

function readSelect(names: readonly string[], { selectable }: EntityProperties) {
  const wanted = names.filter((name) => name !== '*').map((name) => spelling(name, selectable));
  return names.length === 0 || names.includes('*') ? null : wanted;
}

function spelling(name: string, selectable: readonly string[]): string {
  const known = selectable.find((one) => one.toLowerCase() === name.toLowerCase());
  if (known === undefined) throw new Refused(`Invalid field in select: ${name}`);
  return known;
}

function readFilter(text: string, entity: Entity): FilterTree | null {
  if (isBlankFilter(text)) return null;
  const { tree, findings } = checkFilter(text, entity);
  const error = findings.find(({ severity }) => severity === 'error');
  if (error !== undefined) throw new Refused(filterRefusal(error));
  return tree;
}

/** The catalogue says "Invalid field" of an unknown one; its whole text was never recorded. */
function filterRefusal({ code, message, start, hint }: FilterFinding): string {
  const isField = code === 'unknown-field' || code === 'field-of-other-entity';
  const kind = isField ? 'Invalid field' : 'Invalid value';
  const advice = hint === undefined ? '' : ` ${hint}`;
  return `${kind}: ${message} (at character ${start + 1} of $filter)${advice}`;
}
