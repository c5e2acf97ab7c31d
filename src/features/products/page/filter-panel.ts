/** The filter of the page `/products`: the field with its findings, presets, and counted values that write the filter. */

import { choice, findingsList } from '../../../core/page/layout.ts';
import { badge, type Html, html, panel } from '../../../core/page/markup.ts';
import { sharedState } from '../../../core/page/page-state.ts';
import { dayUs, minuteUs, shortDateUs } from '../../../core/terms/dates.ts';
import { countText } from '../../../core/terms/text.ts';
import { cloudCover, deleted, published } from '../../../filter/builder.ts';
import {
  type FieldType,
  fieldsOf,
  orderableFields,
  publishedAttributes,
} from '../../../filter/fields.ts';
import type { Box, Entity, FilterTree } from '../../../filter/filter-tree.ts';
import { boxesOf, toShape } from '../../../filter/geometry/shape.ts';
import { attributeForm, printFilter } from '../../../filter/print.ts';
import { facetCondition, hasCondition } from '../../../filter/product-conditions.ts';
import {
  defaultOrderOf,
  type Facets,
  facetFields,
  productOrders,
} from '../../../filter/products.ts';
import { isNamePart, linkWithout, namedTerms, type ProductSearch } from './product-search.ts';

const orderNames: Readonly<Record<(typeof productOrders)[number], string>> = {
  received: 'received',
  'ContentDate/Start': 'sensing start',
  'ContentDate/End': 'sensing end',
  PublicationDate: 'published',
  ModificationDate: 'modified',
  DeletionDate: 'deleted',
};

/** Renders the form. Without JavaScript, it shows the findings of the filter that was sent. */
export function filterPanel(search: ProductSearch, nowUs: number): Html {
  const { entity, text, order } = search;
  const usual = defaultOrderOf(entity).by;
  const others = ['received', ...orderableFields[entity]].filter((name) => name !== usual);
  const orders = productOrders
    .filter((name) => others.includes(name))
    .map((name) => [name, orderNames[name]] as const);
  const shared = Object.entries(sharedState(search.state));
  const hidden = shared.filter(([, value]) => value !== undefined);
  const isClear = text === '' && hidden.length === 0;
  const form = html`<form class="search" method="get" action="/products" id="search" data-submit-on-change>
${hidden.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
<div class="filter-field"><label for="filter">Filter (<code>$filter</code>); empty for all</label>
<textarea id="filter" name="filter" rows="2" data-search spellcheck="false" autocomplete="off" autocapitalize="off"
  placeholder="Collection/Name eq 'SENTINEL-2' and ContentDate/Start ge 2026-05-01" aria-describedby="filter-keys">${text}</textarea>
</div>
<p class="note" id="filter-keys">Ctrl+Enter runs the filter.</p>
${nameList(entity)}
<div id="filter-findings">${search.findings.length === 0 ? '' : findingsList(text, search.findings)}</div>
<div class="toolbar">
${choice('order', 'orderby', [['', orderNames[usual]], ...orders], order.by === usual ? undefined : order.by)}
${choice(
  'direction',
  'direction',
  [
    ['', 'newest first'],
    ['asc', 'oldest first'],
  ],
  order.direction === 'asc' ? 'asc' : undefined,
)}
<label>name contains<input name="name" size="10" placeholder="T31TDM" autocomplete="off" spellcheck="false"></label>
${boxField(search)}
<label class="check"><input type="checkbox" name="deleted" value="true" ${entity === 'DeletedProducts' ? html`checked` : ''}> deleted products</label>
<button type="submit" class="primary">Run</button>
${isClear ? '' : html`<a class="button" href="/products">Clear</a>`}
</div>
${boxReason(search)}
${search.boxWarning === null ? '' : html`<p class="note">${badge('warn', 'warning')} ${search.boxWarning}</p>`}
</form>`;
  const isOpen = search.findings.length > 0 || !search.isValid;
  const body = panel('Search', html`${form}${presets(search, nowUs)}`);
  return html`<details class="folded filters" ${isOpen ? html`open` : ''}><summary class="button">Filters</summary>${body}</details>
${chips(search, nowUs)}`;
}

/** Renders the names for conditions. A click on one inserts its condition at the cursor. */
function nameList(entity: Entity): Html {
  const fields = fieldsOf(entity).map(({ name, type }) => {
    const { operator, value } = fieldSamples[type];
    return insertButton(name, type, `${name} ${operator} ${value}`);
  });
  const attributes = publishedAttributes.map(({ name, kind, collections }) => {
    const value = kind === 'String' ? "'…'" : '…';
    const text = attributeForm(name, kind, value, kind === 'Double' ? 'lt' : 'eq');
    return insertButton(name, `${kind}: ${collections.join(', ')}`, text);
  });
  return html`<details><summary>Fields and attributes</summary>
<p class="note">A click inserts a condition at the cursor.</p>
<div class="presets" role="group" aria-label="Fields">${fields}</div>
<div class="presets" role="group" aria-label="Attributes">${attributes}</div></details>`;
}

const fieldSamples: Readonly<Record<FieldType, { operator: string; value: string }>> = {
  text: { operator: 'eq', value: "'…'" },
  guid: { operator: 'eq', value: "'…'" },
  date: { operator: 'ge', value: '…' },
  boolean: { operator: 'eq', value: '…' },
};

function insertButton(name: string, title: string, condition: string): Html {
  return html`<button type="button" class="preset" title="${title}" data-insert="${condition}">${name}</button>`;
}

function boxField({ badBox }: ProductSearch): Html {
  return html`<label>box: west,south,east,north<input name="bbox" value="${badBox?.text ?? ''}" size="18" placeholder="5,43.5,16.5,48.5" autocomplete="off" ${badBox === null ? '' : html`aria-invalid="true" aria-describedby="box-reason"`}></label>`;
}

function boxReason({ badBox }: ProductSearch): Html | string {
  if (badBox === null) return '';
  return html`<p class="note" id="box-reason">${badge('bad', 'error')} The box cannot be used. ${badBox.reason}</p>`;
}

/** Renders the conditions in use that the form does not show as such. Each is a link that removes it. */
function chips(search: ProductSearch, nowUs: number): Html | string {
  const { since, until, subscription } = search.state;
  const own = namedTerms(search);
  const all = [
    ...(since === undefined && until === undefined
      ? []
      : [dropLink(search, periodText(search, nowUs), ['since', 'until'])]),
    ...(subscription === undefined
      ? []
      : [dropLink(search, `subscription ${subscription}`, ['subscription'])]),
    ...own.map((term) => changeButton(termText(term), { condition: term, isOn: true })),
  ];
  if (all.length === 0) return '';
  return html`<div class="presets" role="group" aria-label="Conditions in use"><span class="dim">Only:</span>${all}</div>`;
}

function periodText({ state }: ProductSearch, nowUs: number): string {
  const { since, until, sinceUs, untilUs } = state;
  const [, amount, unit = ''] = /^0*(\d+)([mhd])$/.exec(since ?? '') ?? [];
  if (amount !== undefined && until === undefined) {
    const name = { m: 'minute', h: 'hour', d: 'day' }[unit];
    return `received in the last ${amount === '1' ? name : `${amount} ${name}s`}`;
  }
  const from = since === undefined ? '' : ` since ${shortDateUs(sinceUs)}`;
  return `received${from}${untilUs < nowUs ? ` before ${shortDateUs(untilUs)}` : ''} UTC`;
}

function termText(term: FilterTree): string {
  return isNamePart(term) ? `name contains ${term.text}` : areaText(term);
}

/** Returns the bounds of an area, which need not be a box. */
function areaText(term: FilterTree): string {
  const text = ({ west, south, east, north }: Box) =>
    [west, south, east, north].map((value) => Number(value.toFixed(4))).join(',');
  const [box, other, ...others] = boxesIn(term);
  if (box === undefined || others.length > 0) return 'several areas';
  if (other === undefined) return `area ${text(box)}`;
  const [western, eastern] = box.east === 180 ? [box, other] : [other, box];
  if (western.east !== 180 || eastern.west !== -180) return 'several areas';
  return `area ${text({ ...western, east: eastern.east })}`;
}

function boxesIn(term: FilterTree): Box[] {
  if (term.node === 'or') return term.terms.flatMap(boxesIn);
  return term.node === 'intersects' ? boxesOf(toShape(term.geometry)) : [];
}

function presets(search: ProductSearch, nowUs: number): Html {
  const { entity } = search;
  const since = new Date(Math.floor((nowUs - dayUs) / minuteUs) * (minuteUs / 1000));
  const date = entity === 'Products' ? published : deleted;
  const clouds = [10, 20, 50].map((percent) =>
    toggle(search, `cloud below ${percent} %`, cloudCover.lt(percent).tree),
  );
  const dayText = `${entity === 'Products' ? 'published' : 'deleted'} in the last day`;
  const day = toggle(search, dayText, date.from(since).tree);
  return html`<nav class="presets" aria-label="Conditions to add">
<span class="dim">Add:</span>${clouds}${day}</nav>`;
}

/** Renders a button that adds a condition, or removes it when the filter has it. */
function toggle(search: ProductSearch, text: string, condition: FilterTree): Html {
  return changeButton(text, { condition, isOn: hasCondition(search.filter, condition) });
}

/** The button sends the form, and so the text that is typed but not run. The server changes that filter. */
function changeButton(
  text: string,
  { condition, isOn }: { condition: FilterTree; isOn: boolean },
): Html {
  return html`<button form="search" class="preset" name="${isOn ? 'remove' : 'add'}" value="${printFilter(condition)}" ${isOn ? html`aria-pressed="true"` : ''}>${text}${isOn ? removeSign : ''}</button>`;
}

function dropLink(
  search: ProductSearch,
  text: string,
  names: readonly ('since' | 'until' | 'subscription')[],
): Html {
  return html`<a class="preset" href="${linkWithout(search, names)}" aria-current="true">${text}${removeSign}</a>`;
}

const removeSign = html` <span aria-hidden="true">✕</span><span class="visually-hidden"> (remove)</span>`;

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
