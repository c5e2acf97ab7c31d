/** A search of products in the URL of the page, and the same search as links and as a command. */
import { z } from 'zod';
import { AppError, errorText, isAppError } from '../../domain/app-error.ts';
import type { Direction, Entity, FilterTree } from '../../domain/filter-tree.ts';
import {
  defaultOrderOf,
  type ProductKey,
  type ProductOrder,
  type ProductQuery,
  productOrders,
} from '../../domain/products.ts';
import { parseBoundingBox } from '../../filter/bounding-box.ts';
import { intersects } from '../../filter/builder.ts';
import { checkFilter } from '../../filter/check.ts';
import { orderableFields } from '../../filter/fields.ts';
import type { FilterFinding } from '../../filter/finding.ts';
import { printFilter } from '../../filter/print.ts';
import { withCondition } from '../../filter/product-conditions.ts';
import { readCursor } from '../products-route.ts';
import { shellText } from './markup.ts';
import { linkTo, type PageState, sharedState } from './page-state.ts';

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
});

export interface ProductSearch {
  state: PageState;
  entity: Entity;
  /** Filter as text, with the box of the URL. */
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
  const { deleted, orderby, direction, cursor, bbox = '' } = parameters.parse(given);
  const entity = deleted === 'true' ? 'DeletedProducts' : 'Products';
  const { tree, findings } = checkFilter(state.filter, entity);
  const isBad = findings.some(({ severity }) => severity === 'error');
  const box = bbox === '' ? null : readBox(bbox);
  const withBox = box?.tree && !isBad ? withArea(tree, box.tree) : null;
  const after = cursor === undefined ? undefined : readCursor(cursor);
  if (after === null) {
    const advice = 'Open the first page, and follow its links.';
    throw new AppError('invalid', 'The cursor in the address is invalid.', { advice });
  }
  const allowed: readonly ProductOrder[] = ['received', ...orderableFields[entity]];
  const by = allowed.find((one) => one === orderby) ?? defaultOrderOf(entity).by;
  return {
    ...{ state, entity, after },
    text: withBox === null ? state.filter : printFilter(withBox),
    filter: withBox ?? tree,
    findings: findings.filter(({ code }) => code !== 'empty'),
    badBox: box !== null && box.reason !== null ? { text: bbox, reason: box.reason } : null,
    boxWarning: box?.warning ?? null,
    isValid: !isBad && (box?.reason ?? null) === null,
    order: { by, direction: direction ?? 'desc' },
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

/** Adds an area to a filter, in place of its former areas. */
export function withArea(filter: FilterTree | null, area: FilterTree): FilterTree {
  return withCondition(filter, area, isArea);
}

/** An area may be one condition, or several joined by `or`. */
function isArea(tree: FilterTree): boolean {
  return tree.node === 'intersects' || (tree.node === 'or' && tree.terms.every(isArea));
}

/** Returns the query of a page; `limit` is the number of its products. */
export function queryOf({ entity, filter, order, after }: ProductSearch) {
  return { entity, filter, order, after, limit: pageRows } satisfies ProductQuery;
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

/** Returns the link to the page with another filter; null for no filter. */
export function linkWith(search: ProductSearch, filter: FilterTree | null): string {
  const text = filter === null ? '' : printFilter(filter);
  return linkTo('/products', {
    ...sharedState(search.state),
    ...searchParameters({ ...search, text }),
  });
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
  const file = (format: string) =>
    linkTo('/api/products', { ...searchParameters(search), format, limit: fileRows });
  const { by, direction } = order;
  // The catalogue has no order by receipt; without $orderby, the same order applies.
  const orderby = by === defaultOrderOf(entity).by ? undefined : `${by} ${direction}`;
  return {
    json: file('json'),
    geojson: file('geojson'),
    csv: file('csv'),
    odata: linkTo(`/odata/v1/${entity}`, { $filter: text, $orderby: orderby, $top: fileRows }),
    map: linkTo('/map', { ...sharedState(search.state), filter: text }),
  };
}

/** Returns the command that prints the same products. */
export function commandOf({ entity, filter, order }: ProductSearch): string {
  const { by, direction } = order;
  const isDefault = by === defaultOrderOf(entity).by && direction === 'desc';
  const flags = [
    ...(filter === null ? [] : [`--filter ${shellText(printFilter(filter))}`]),
    ...(entity === 'DeletedProducts' ? ['--deleted'] : []),
    ...(isDefault ? [] : [`--orderby ${shellText(`${by} ${direction}`)}`]),
  ];
  return `earshot query products ${flags.join(' ')}`.trim();
}
