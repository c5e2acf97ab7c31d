/** The filter of the page `/products`: the box with its findings, presets, and counted values that write the filter. */
import { html } from 'hono/html';
import type { FilterTree } from '../../domain/filter-tree.ts';
import { defaultOrderOf, type Facets, facetFields, productOrders } from '../../domain/products.ts';
import { printable } from '../../domain/text.ts';
import { parseBoundingBox } from '../../filter/bounding-box.ts';
import { cloudCover, deleted, intersects, published } from '../../filter/builder.ts';
import { orderableFields } from '../../filter/fields.ts';
import { excerptOf, type FilterFinding } from '../../filter/finding.ts';
import {
  facetCondition,
  hasCondition,
  withCondition,
  withoutCondition,
} from '../../filter/product-conditions.ts';
import { choice } from './layout.ts';
import { badge, count, type Html, panel, withCommands } from './markup.ts';
import { sharedState } from './page-state.ts';
import { linkWith, type ProductSearch, withArea } from './product-search.ts';

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
  const { entity, text, order, badBox, state } = search;
  const usual = defaultOrderOf(entity).by;
  const others = ['received', ...orderableFields[entity]].filter((name) => name !== usual);
  const orders = productOrders
    .filter((name) => others.includes(name))
    .map((name) => [name, orderNames[name]] as const);
  const hidden = Object.entries(sharedState(state)).filter(([, value]) => value !== undefined);
  const form = html`<form class="search" method="get" action="/products" data-filter-form>
${hidden.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)}
<div class="filter-field"><label for="filter">Filter (<code>$filter</code>); empty for all</label>
<textarea id="filter" name="filter" rows="3" data-search spellcheck="false" autocomplete="off" autocapitalize="off"
  placeholder="Collection/Name eq 'SENTINEL-2' and ContentDate/Start ge 2026-05-01" aria-describedby="filter-keys">${text}</textarea>
<div id="filter-completions"></div></div>
<p class="note" id="filter-keys" hidden>Ctrl+Enter runs. Tab accepts the chosen completion, Escape closes the list.</p>
<div id="filter-findings">${findingsList(text, search.findings)}</div>
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
<label>box to add: west,south,east,north<input name="bbox" value="${badBox?.text ?? ''}" size="22" inputmode="text" placeholder="5,43.5,16.5,48.5" autocomplete="off" ${badBox === null ? '' : html`aria-invalid="true" aria-describedby="box-reason"`}></label>
<label class="check"><input type="checkbox" name="deleted" value="true" ${entity === 'DeletedProducts' ? html`checked` : ''}> deleted products</label>
<button type="submit" class="primary">Run</button>
</div>
${badBox === null ? '' : html`<p class="note" id="box-reason">${badge('bad', 'error')} The box cannot be used. ${badBox.reason}</p>`}
${search.boxWarning === null ? '' : html`<p class="note">${badge('warn', 'warning')} ${search.boxWarning}</p>`}
</form>`;
  return panel('Search', html`${form}${search.isValid ? presets(search, nowUs) : ''}`);
}

/** The script shows the same (browser/filter-field.ts). */
function findingsList(text: string, findings: readonly FilterFinding[]): Html | string {
  if (findings.length === 0) return '';
  const items = findings.slice(0, findingsShown).map((one) => {
    const { before, marked, after } = excerptOf(text, one);
    const { severity, message, expected, hint } = one;
    return html`<li>${badge(severity === 'error' ? 'bad' : 'warn', severity)} ${withCommands(printable(message))}
<code class="excerpt">${before}<mark>${marked === '' ? ' ' : marked}</mark>${after}</code>
${expected === undefined ? '' : html`<span>Expected: ${withCommands(printable(expected))}</span>`}
${hint === undefined ? '' : html`<span>${withCommands(printable(hint))}</span>`}</li>`;
  });
  return html`<ul class="plain findings">${items}</ul>`;
}

const findingsShown = 20;

const dayUs = 86_400_000_000;

/** Example areas; the link names the box, because it is not the exact outline. */
const places = [
  ['Alps', '5,43.5,16.5,48.5'],
  ['Iberian Peninsula', '-9.6,35.9,3.4,43.9'],
  ['Iceland', '-24.6,63.2,-13.4,66.6'],
  ['Fiji', '176.5,-20.8,-178,-15.7'],
] as const;

function presets(search: ProductSearch, nowUs: number): Html {
  const { filter, entity } = search;
  const minuteUs = 60_000_000;
  const since = new Date(Math.floor((nowUs - dayUs) / minuteUs) * (minuteUs / 1000));
  const date = entity === 'Products' ? published : deleted;
  const dated = entity === 'Products' ? 'PublicationDate' : 'DeletionDate';
  const isCloud = (term: FilterTree) => term.node === 'attribute' && term.name === 'cloudCover';
  const isSince = (term: FilterTree) =>
    term.node === 'comparison' && term.field === dated && term.operator === 'ge';
  const clouds = [10, 20].map((percent) =>
    toggle(search, `cloud below ${percent} %`, {
      condition: cloudCover.lt(percent).tree,
      replaces: isCloud,
    }),
  );
  const day = toggle(search, `${entity === 'Products' ? 'published' : 'deleted'} in the last day`, {
    condition: date.from(since).tree,
    replaces: isSince,
  });
  const areas = places.map(([name, box]) => {
    const { tree } = intersects(parseBoundingBox(box).geometry);
    const isOn = hasCondition(filter, tree);
    const href = linkWith(search, isOn ? withoutCondition(filter, tree) : withArea(filter, tree));
    return presetLink(name, { href, isOn, title: `box ${box}` });
  });
  return html`<nav class="presets" aria-label="Conditions to add">
<span class="dim">Add:</span>${clouds}${day}<span class="dim">footprint in a box around:</span>${areas}</nav>`;
}

/** Renders a link that adds a condition, or removes it when the filter has it. */
function toggle(
  search: ProductSearch,
  text: string,
  { condition, replaces }: { condition: FilterTree; replaces: (term: FilterTree) => boolean },
): Html {
  const { filter } = search;
  const isOn = hasCondition(filter, condition);
  const next = isOn
    ? withoutCondition(filter, condition)
    : withCondition(filter, condition, replaces);
  return presetLink(text, { href: linkWith(search, next), isOn });
}

function presetLink(
  text: string,
  { href, isOn, title = '' }: { href: string; isOn: boolean; title?: string },
): Html {
  return html`<a class="preset" href="${href}" title="${title}" ${isOn ? html`aria-current="true"` : ''}>${text}${isOn ? html` <span aria-hidden="true">✕</span><span class="visually-hidden"> (remove)</span>` : ''}</a>`;
}

const facetNames: Readonly<Record<(typeof facetFields)[number], string>> = {
  collection: 'Collection',
  platform: 'Platform',
  productType: 'Type',
  processingLevel: 'Level',
  orbitDirection: 'Orbit direction',
  tile: 'Tile',
};

/** Values of one property; each link contains the whole filter, so there are few. */
const valuesShown = 6;

/** Renders the counted values. Each is a link that adds its condition to the filter, or removes it. */
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
    ? `of ${count(facets.counted)} ${facets.counted === 1 ? 'product' : 'products'}`
    : `counts of the newest ${count(facets.counted)} only`;
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
    const next = isOn ? withoutCondition(filter, condition) : withCondition(filter, condition);
    const share = Math.round((own / counted) * 1000) / 10;
    return html`<li><a class="facet" href="${linkWith(search, next)}" ${isOn ? html`aria-current="true"` : ''}
><span>${printable(value)}${isOn ? html`<span aria-hidden="true"> ✕</span><span class="visually-hidden"> (remove)</span>` : ''}</span><span class="num">${count(own)}</span
><svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect width="${share}" height="4"/></svg></a></li>`;
  });
  const more = values[field].length > shown.length;
  return html`<section><h3>${facetNames[field]}</h3><ul>${items}</ul>${more ? html`<p class="note">and others</p>` : ''}</section>`;
}
