/** A search of products: its URL, its form, the same search as links and as a command. */

import { shellText } from '../../../core/page/browser/texts.ts';
import { choice, findingsList, periodChoice } from '../../../core/page/layout.ts';
import { type Html, html, panel } from '../../../core/page/markup.ts';
import { linkTo, type PageState, sharedState } from '../../../core/page/page-state.ts';
import { AppError } from '../../../core/terms/app-error.ts';
import { countText } from '../../../core/terms/text.ts';
import { name as nameField } from '../../../filter/builder.ts';
import { checkFilter } from '../../../filter/check.ts';
import type { Direction, Entity, FilterTree } from '../../../filter/filter-tree.ts';
import type { FilterFinding } from '../../../filter/finding.ts';
import { printFilter } from '../../../filter/print.ts';
import {
  facetCondition,
  hasCondition,
  withCondition,
  withoutCondition,
} from '../../../filter/product-conditions.ts';
import {
  defaultOrderOf,
  type Facets,
  facetFields,
  ordersOf,
  type ProductKey,
  type ProductOrder,
  type ProductQuery,
  type ProductSelection,
  readKey,
} from '../../../filter/products.ts';

/** Products of one page. */
export const pageRows = 50;

/** Products of one file that the page links to. */
export const fileRows = 1_000;

/** Changes of the filter in a URL. */
interface FilterChanges {
  /** Part of the name. */
  name: string | undefined;
  /** Conditions that a link adds to the filter, or removes from it. */
  add: string | undefined;
  remove: string | undefined;
}

export interface ProductSearch {
  state: PageState;
  entity: Entity;
  /** Filter as text, with the changes of the URL: name, conditions added and removed. */
  text: string;
  /** Null for all products, and for a filter with errors. */
  filter: FilterTree | null;
  findings: readonly FilterFinding[];
  isValid: boolean;
  order: { by: ProductOrder; direction: Direction };
  after: ProductKey | undefined;
}

/** Reads the search. A bad filter is part of the result. Throws `invalid` for a bad cursor. */
export function readSearch(url: URL, state: PageState): ProductSearch {
  const given = (name: string) => url.searchParams.getAll(name).findLast((one) => one !== '');
  const entity = given('deleted') === 'true' ? 'DeletedProducts' : 'Products';
  const text = changedFilter(state.filter, entity, {
    name: given('name')?.trim(),
    add: given('add'),
    remove: given('remove'),
  });
  const { tree: filter, findings, errors } = checkFilter(text, entity);
  const by = ordersOf(entity).find((one) => one === given('orderby'));
  const direction: Direction = given('direction') === 'asc' ? 'asc' : 'desc';
  const order = { by: by ?? defaultOrderOf(entity).by, direction };
  const cursor = given('cursor');
  const after = cursor === undefined ? undefined : readKey(cursor, { entity, order });
  if (after === null) {
    const advice = 'Open the first page, and follow its links.';
    throw new AppError('invalid', 'The cursor in the address is invalid.', { advice });
  }
  return {
    ...{ state, entity, after, text, filter, order },
    findings: findings.filter(({ code }) => code !== 'empty'),
    isValid: errors.length === 0,
  };
}

/** Changes a filter. One with errors keeps its text, and so do conditions that cannot be used. */
function changedFilter(text: string, entity: Entity, { name, add, remove }: FilterChanges): string {
  const { tree, errors } = checkFilter(text, entity);
  if ((name ?? add ?? remove) === undefined || errors.length > 0) return text;
  const conditionOf = (one = '') => checkFilter(one, entity).tree;
  const removed = conditionOf(remove);
  let changed = removed === null ? tree : withoutCondition(tree, removed);
  for (const one of [name === undefined ? null : nameField.contains(name).tree, conditionOf(add)]) {
    if (one !== null && !hasCondition(changed, one)) changed = withCondition(changed, one);
  }
  return changed === null ? '' : printFilter(changed);
}

/** Adds an area to a filter, in place of its former areas. */
export function withArea(filter: FilterTree | null, area: FilterTree): FilterTree {
  return withCondition(filter, area, isArea);
}

/** An area may be one condition, or several joined by `or`. */
function isArea(tree: FilterTree): boolean {
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

/** Returns the link to a page of this search; by default, to the first one. */
export function pageLink(search: ProductSearch, cursor?: string): string {
  return linkTo('/products', {
    ...sharedState(search.state),
    cursor,
    ...searchParameters(search),
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

const orderNames: Readonly<Record<ProductOrder, string>> = {
  received: 'received',
  'ContentDate/Start': 'sensing start',
  'ContentDate/End': 'sensing end',
  PublicationDate: 'published',
  ModificationDate: 'modified',
  DeletionDate: 'deleted',
};

const directions = [['', 'newest first'] as const, ['asc', 'oldest first'] as const];

/** Collections whose attributes the form links. */
const collections = ['SENTINEL-1', 'SENTINEL-2', 'SENTINEL-3', 'SENTINEL-5P', 'SENTINEL-6'];

/** Renders the form. Without JavaScript, it shows the findings of the filter that was sent. */
export function filterPanel(search: ProductSearch): Html {
  const { entity, text, order } = search;
  const usual = defaultOrderOf(entity).by;
  const others = ordersOf(entity).filter((name) => name !== usual);
  const orders = others.map((name) => [name, orderNames[name]] as const);
  const { subscription, since, until } = search.state;
  const isClear = text === '' && (subscription ?? since ?? until) === undefined;
  const form = html`<form class="search" method="get" action="/products" id="search" data-submit-on-change>
${subscription === undefined ? '' : html`<input type="hidden" name="subscription" value="${subscription}">`}
<div class="filter-field"><label for="filter">Filter (<code>$filter</code>); empty for all</label>
<textarea id="filter" name="filter" rows="2" data-search spellcheck="false" autocomplete="off" autocapitalize="off"
  placeholder="Collection/Name eq 'SENTINEL-2' and ContentDate/Start ge 2026-05-01" aria-describedby="filter-keys">${text}</textarea>
</div>
<p class="note" id="filter-keys">Ctrl+Enter runs the filter. Names of attributes: ${collections.map((name) => html`<a href="/odata/v1/Attributes(${name})">${name}</a> `)}</p>
<div id="filter-findings">${search.findings.length === 0 ? '' : findingsList(text, search.findings)}</div>
<div class="toolbar">
${choice('order', 'orderby', [['', orderNames[usual]], ...orders], order.by === usual ? undefined : order.by)}
${choice('direction', 'direction', directions, order.direction === 'asc' ? 'asc' : undefined)}
${periodChoice(search.state, null)}
<label>name contains<input name="name" size="10" placeholder="T31TDM" autocomplete="off" spellcheck="false"></label>
<label class="check"><input type="checkbox" name="deleted" value="true" ${entity === 'DeletedProducts' ? html`checked` : ''}> deleted products</label>
<button type="submit" class="primary">Run</button>
${isClear ? '' : html`<a class="button" href="/products">Clear</a>`}
</div>
</form>`;
  const body = panel('Search', form);
  return html`<details class="folded filters" ${search.findings.length > 0 ? html`open` : ''}><summary class="button">Filters</summary>${body}</details>`;
}

const facetNames: Readonly<Record<(typeof facetFields)[number], string>> = {
  collection: 'Collection',
  platform: 'Platform',
  productType: 'Type',
  processingLevel: 'Level',
  orbitDirection: 'Orbit direction',
  tile: 'Tile',
};

/** Values of one property. */
const valuesShown = 6;

/** Renders the counted values. Each is a button that adds its condition to the filter, or removes it. */
export function facetsPanel(search: ProductSearch, facets: Facets | null): Html {
  if (facets === null) {
    return panel(
      'Narrow',
      html`<p class="note">Counting takes too long for this filter. Use a more specific one.</p>`,
    );
  }
  if (facets.counted === 0) {
    return panel('Narrow', html`<p class="note">There is nothing to narrow.</p>`);
  }
  const remark = facets.complete
    ? `of ${countText(facets.counted)} ${facets.counted === 1 ? 'product' : 'products'}`
    : `counts of the newest ${countText(facets.counted)} only`;
  const groups = facetFields
    .filter((field) => facets.values[field].length > 0)
    .map((field) => facetGroup(search, field, facets));
  return panel('Narrow', html`<div class="facets">${groups}</div>`, remark);
}

function facetGroup(
  search: ProductSearch,
  field: (typeof facetFields)[number],
  { values, counted }: Facets,
): Html {
  const { filter } = search;
  const shown = values[field].slice(0, valuesShown);
  const items = shown.map(({ value, count: own }) => {
    const condition = facetCondition(field, value);
    const isOn = hasCondition(filter, condition);
    const share = Math.round((own / counted) * 1000) / 10;
    return html`<li><button form="search" class="facet" name="${isOn ? 'remove' : 'add'}" value="${printFilter(condition)}" ${isOn ? html`aria-pressed="true"` : ''}
><span>${value}${isOn ? html`<span aria-hidden="true"> ✕</span><span class="visually-hidden"> (remove)</span>` : ''}</span><span class="num">${countText(own)}</span
><svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect width="${share}" height="4"/></svg></button></li>`;
  });
  const more = values[field].length > shown.length;
  return html`<section><h3>${facetNames[field]}</h3><ul>${items}</ul>${more ? html`<p class="note">and others</p>` : ''}</section>`;
}
