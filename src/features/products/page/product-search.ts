/** A search of products in the URL of the page, and the same search as links and as a command. */
import { z } from 'zod';
import { shellText } from '../../../core/page/browser/texts.ts';
import { linkTo, type PageState, sharedState } from '../../../core/page/page-state.ts';
import { AppError, errorText, isAppError } from '../../../core/terms/app-error.ts';
import { parseBoundingBox } from '../../../filter/bounding-box.ts';
import { intersects, name as nameField } from '../../../filter/builder.ts';
import { checkFilter } from '../../../filter/check.ts';
import { orderableFields } from '../../../filter/fields.ts';
import type { Direction, Entity, FilterTree } from '../../../filter/filter-tree.ts';
import type { FilterFinding } from '../../../filter/finding.ts';
import { printFilter } from '../../../filter/print.ts';
import {
  hasCondition,
  termsOf,
  withCondition,
  withoutCondition,
} from '../../../filter/product-conditions.ts';
import {
  defaultOrderOf,
  type ProductKey,
  type ProductOrder,
  type ProductQuery,
  type ProductSelection,
  productOrders,
  readKey,
} from '../../../filter/products.ts';

/** Products of one page. */
export const pageRows = 50;

/** Products of one file that the page links to. */
export const fileRows = 1_000;

const parameters = z.object({
  deleted: z.enum(['true', 'false']).optional().catch(undefined),
  orderby: z.enum(productOrders).optional().catch(undefined),
  direction: z.enum(['asc', 'desc']).optional().catch(undefined),
  cursor: z.string().optional().catch(undefined),
  bbox: z.string().trim().optional().catch(undefined),
  /** Part of the name. */
  name: z.string().trim().optional().catch(undefined),
  /** Conditions that a link adds to the filter, or removes from it. */
  add: z.string().optional().catch(undefined),
  remove: z.string().optional().catch(undefined),
});

export interface ProductSearch {
  state: PageState;
  entity: Entity;
  /** Filter as text, with the changes of the URL: box, name, conditions added and removed. */
  text: string;
  /** Null for all products, and for a filter with errors. */
  filter: FilterTree | null;
  findings: readonly FilterFinding[];
  /** Box of the URL that cannot be used, with the reason; null for none. */
  badBox: { text: string; reason: string } | null;
  /** Probable mistake in the box. */
  boxWarning: string | null;
  /** False if the filter or the box cannot be used. */
  isValid: boolean;
  order: { by: ProductOrder; direction: Direction };
  after: ProductKey | undefined;
}

/** Reads the search. A bad filter or box is part of the result. Throws `invalid` for a bad cursor. */
export function readSearch(url: URL, state: PageState): ProductSearch {
  const given = Object.fromEntries([...url.searchParams].filter(([, value]) => value !== ''));
  const { deleted, orderby, direction, cursor, bbox = '', ...changes } = parameters.parse(given);
  const entity = deleted === 'true' ? 'DeletedProducts' : 'Products';
  const box = bbox === '' ? null : readBox(bbox);
  const { name, add, remove } = changes;
  const added = [
    box?.tree ?? null,
    name === undefined ? null : nameField.contains(name).tree,
    readCondition(add, entity),
  ].filter((one) => one !== null);
  const text = changedFilter(state.filter, entity, {
    added,
    removed: readCondition(remove, entity),
  });
  const { tree, findings } = checkFilter(text, entity);
  const isBad = findings.some(({ severity }) => severity === 'error');
  const allowed: readonly ProductOrder[] = ['received', ...orderableFields[entity]];
  const by = allowed.find((one) => one === orderby) ?? defaultOrderOf(entity).by;
  const order = { by, direction: direction ?? 'desc' };
  const after = cursor === undefined ? undefined : readKey(cursor, { entity, order });
  if (after === null) {
    const advice = 'Open the first page, and follow its links.';
    throw new AppError('invalid', 'The cursor in the address is invalid.', { advice });
  }
  return {
    ...{ state, entity, after, text },
    filter: isBad ? null : tree,
    findings: findings.filter(({ code }) => code !== 'empty'),
    badBox: box !== null && box.reason !== null ? { text: bbox, reason: box.reason } : null,
    boxWarning: box?.warning ?? null,
    isValid: !isBad && (box?.reason ?? null) === null,
    order,
  };
}

function readBox(text: string) {
  try {
    const { geometry, warning } = parseBoundingBox(text);
    return { tree: intersects(geometry).tree, warning, reason: null };
  } catch (error) {
    if (!isAppError(error, 'invalid')) throw error;
    return { tree: null, warning: null, reason: errorText(error) };
  }
}

/** Returns null for no condition, and for one that cannot be used. */
function readCondition(text: string | undefined, entity: Entity): FilterTree | null {
  return text === undefined ? null : checkFilter(text, entity).tree;
}

/** Changes a filter. One with errors keeps its text: conditions are added at its end. */
function changedFilter(
  text: string,
  entity: Entity,
  { added, removed }: { added: readonly FilterTree[]; removed: FilterTree | null },
): string {
  if (added.length === 0 && removed === null) return text;
  const { tree, findings } = checkFilter(text, entity);
  if (findings.some(({ severity }) => severity === 'error')) {
    return [text, ...added.map(printFilter)].join(' and ');
  }
  const kept = removed === null ? tree : withoutCondition(tree, removed);
  const changed = added.reduce(withAdded, kept);
  return changed === null ? '' : printFilter(changed);
}

/** Adds a condition, in place of those that it contradicts: another area, another limit of the same property. */
export function withAdded(filter: FilterTree | null, condition: FilterTree): FilterTree {
  if (filter !== null && hasCondition(filter, condition)) return filter;
  return withCondition(filter, condition, (term) => isReplacedBy(term, condition));
}

function isReplacedBy(term: FilterTree, condition: FilterTree): boolean {
  if (isArea(condition)) return isArea(term);
  if (condition.node === 'attribute' && condition.operator === 'lt') {
    return (
      term.node === 'attribute' &&
      term.name === condition.name &&
      ['lt', 'le'].includes(term.operator)
    );
  }
  return (
    condition.node === 'comparison' &&
    condition.operator === 'ge' &&
    term.node === 'comparison' &&
    term.field === condition.field &&
    term.operator === 'ge'
  );
}

/** Adds an area to a filter, in place of its former areas. */
export function withArea(filter: FilterTree | null, area: FilterTree): FilterTree {
  return withCondition(filter, area, isArea);
}

/** An area may be one condition, or several joined by `or`. */
export function isArea(tree: FilterTree): boolean {
  return tree.node === 'intersects' || (tree.node === 'or' && tree.terms.every(isArea));
}

/** Returns the conditions of the search. Products have no default period. */
export function selectionOf({ entity, filter, state }: ProductSearch) {
  const { since, until, sinceUs, untilUs, subscription } = state;
  const received = {
    fromUs: since === undefined ? undefined : sinceUs,
    untilUs: until === undefined ? undefined : untilUs,
  };
  return { entity, filter, received, subscription } satisfies ProductSelection;
}

/** Returns the query of a page; `limit` is the number of its products. */
export function queryOf(search: ProductSearch) {
  const { order, after } = search;
  return { ...selectionOf(search), order, after, limit: pageRows } satisfies ProductQuery;
}

/** Parameters of the page and of `/api/products`, without those that have their default. */
function searchParameters({ entity, text, order }: ProductSearch) {
  const isDefault = order.by === defaultOrderOf(entity).by;
  return {
    filter: text,
    deleted: entity === 'DeletedProducts' ? 'true' : undefined,
    orderby: isDefault ? undefined : order.by,
    direction: order.direction === 'desc' ? undefined : order.direction,
  };
}

/** Returns the link to the page without some of its shared state. */
export function linkWithout(
  search: ProductSearch,
  names: readonly (keyof ReturnType<typeof sharedState>)[],
): string {
  const dropped = Object.fromEntries(names.map((name) => [name, undefined]));
  return linkTo('/products', {
    ...sharedState(search.state),
    ...dropped,
    ...searchParameters(search),
  });
}

/** Returns the areas of a filter, and the conditions on a part of the name. */
export function namedTerms({ filter }: ProductSearch): FilterTree[] {
  return termsOf(filter).filter((term) => isArea(term) || isNamePart(term));
}

export function isNamePart(term: FilterTree): term is Extract<FilterTree, { node: 'text' }> {
  return term.node === 'text' && term.field === 'Name' && term.function === 'contains';
}

/** Returns the link to the page of the search that begins at a cursor; to the first page without one. */
export function pageLink(search: ProductSearch, cursor?: string): string {
  return linkTo('/products', {
    ...sharedState(search.state),
    ...searchParameters(search),
    cursor,
  });
}

/** Returns the links to the products of the search in other formats. */
export function formatLinks(search: ProductSearch) {
  const { entity, text, order } = search;
  const { received, subscription } = selectionOf(search);
  const iso = (us: number | undefined) =>
    us === undefined ? undefined : new Date(us / 1_000).toISOString();
  const more = { since: iso(received.fromUs), until: iso(received.untilUs), subscription };
  const file = (format: string) =>
    linkTo('/api/products', { ...searchParameters(search), ...more, format, limit: fileRows });
  const { by, direction } = order;
  // The catalogue has no order by receipt; without $orderby, the same order applies.
  const orderby = by === defaultOrderOf(entity).by ? undefined : `${by} ${direction}`;
  return {
    json: file('json'),
    geojson: file('geojson'),
    csv: file('csv'),
    // The catalogue has no parameter for the time of receipt, or for the subscription.
    odata: Object.values(more).some((value) => value !== undefined)
      ? null
      : linkTo(`/odata/v1/${entity}`, { $filter: text, $orderby: orderby, $top: fileRows }),
    map: linkTo('/map', { ...sharedState(search.state), filter: text }),
  };
}

/** Returns the command that prints the same products. */
export function commandOf({ entity, filter, order, state }: ProductSearch): string {
  const { by, direction } = order;
  const isDefault = by === defaultOrderOf(entity).by && direction === 'desc';
  const flags = [
    ...(filter === null ? [] : [`--filter ${shellText(printFilter(filter))}`]),
    ...(entity === 'DeletedProducts' ? ['--deleted'] : []),
    ...(state.since === undefined ? [] : [`--since ${shellText(state.since)}`]),
    ...(state.until === undefined ? [] : [`--until ${shellText(state.until)}`]),
    ...(isDefault ? [] : [`--orderby ${shellText(`${by} ${direction}`)}`]),
  ];
  return `earshot query products ${flags.join(' ')}`.trim();
}
