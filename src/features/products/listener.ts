/** The page `/products`: a search with a filter, its results, and the same results for other programs. */

import type { ConsoleParts, ServedRoute } from '../../core/api/listener-slot.ts';
import type { PageRequest, PageRoute } from '../../core/page/layout.ts';
import {
  age,
  command,
  emptyState,
  type Html,
  html,
  panel,
  type TableColumn,
  table,
} from '../../core/page/markup.ts';
import { isAppError } from '../../core/terms/app-error.ts';
import { counted, countText } from '../../core/terms/text.ts';
import { whyEmpty } from '../../filter/describe.ts';
import { toMinute } from '../../filter/product-facts.ts';
import {
  type Facets,
  type FoundProduct,
  type ProductCount,
  type ProductOrder,
  type ProductSelection,
  writeKey,
} from '../../filter/products.ts';
import { productPage } from './page/product.ts';
import { productColumns, smallMap } from './page/product-list.ts';
import {
  commandOf,
  facetsPanel,
  fileRows,
  filterPanel,
  formatLinks,
  type ProductSearch,
  pageLink,
  queryOf,
  readSearch,
  selectionOf,
} from './page/product-search.ts';
import { lagHeader, productsRoute, readProductPage } from './route.ts';

/** Values are counted if that takes no longer. */
const facetsMsMax = 1_000;

const productsPage: PageRoute = {
  path: '/products',
  label: 'Products',
  group: 'data',
  scope: ['subscription'],
  back: '30d',
  list: async (parts, request) => {
    const search = readSearch(request.url, request.state);
    const form = filterPanel(search);
    const content = { title: 'Products', wide: true };
    const shown = search.isValid ? await results(parts, request, search) : notRun;
    return { ...content, body: html`${form}${shown}` };
  },
  item: productPage,
};

const notRun = panel(
  'Results',
  emptyState(
    'The search has errors, so it was not run.',
    'Correct the place marked above, and run it again.',
  ),
);

async function results(
  { products }: ConsoleParts,
  request: PageRequest,
  search: ProductSearch,
): Promise<Html> {
  const { signal, assets } = request;
  const query = queryOf(search);
  const [page, { facets, matches }] = await Promise.all([
    readProductPage({ products, signal }, { ...query, records: false, footprints: true }, false),
    counts({ products }, selectionOf(search), signal),
  ]);
  const { found } = page;
  const next = page.next === null ? null : pageLink(search, writeKey(page.next, query));
  const map = smallMap(found, { assets, fit: true, label: 'Footprints of the results' });
  const lag = Number(page.headers[lagHeader] ?? 0);
  const remark = html`${remarkOf(search, found.length, { matches, isLast: next === null })}${
    lag > 0 ? html` ${counted(lag, 'notification is', 'notifications are')} not indexed yet.` : ''
  }`;
  const list =
    found.length === 0
      ? emptyState(await nothing({ products }, search, signal))
      : resultTable(found, search, request.nowUs);
  return html`<div class="search-results"><div class="aside">${panel('Results', html`${list}${pager(search, next)}`, remark)}
${elsewhere(search)}</div>
<div class="aside">${found.length === 0 ? '' : panel('Footprints', map, html`<a href="${formatLinks(search).map}">Open the map</a>`)}${facetsPanel(search, facets)}</div></div>`;
}

/** Counts values and matches; null for values that take too long. */
async function counts(
  { products }: Pick<ConsoleParts, 'products'>,
  query: ProductSelection,
  signal: AbortSignal,
): Promise<{ facets: Facets | null; matches: ProductCount }> {
  const facets = await within(facetsMsMax, signal, (limit) => products.facets(query, limit));
  if (facets?.complete) return { facets, matches: { count: facets.counted, isMinimum: false } };
  return { facets, matches: await products.quickCount(query, signal) };
}

/** Resolves with null when the work takes longer. */
async function within<Result>(
  ms: number,
  signal: AbortSignal,
  work: (limit: AbortSignal) => Promise<Result>,
): Promise<Result | null> {
  const timeout = AbortSignal.timeout(ms);
  try {
    return await work(AbortSignal.any([signal, timeout]));
  } catch (error) {
    if (timeout.aborted && !signal.aborted && isAppError(error, 'cancelled')) return null;
    throw error;
  }
}

function remarkOf(
  { after }: ProductSearch,
  shown: number,
  { matches, isLast }: { matches: ProductCount; isLast: boolean },
): string {
  const atLeast = matches.isMinimum ? 'at least ' : '';
  const all = `${atLeast}${counted(matches.count, 'product')}`;
  return isLast && after === undefined ? `${all}.` : `${countText(shown)} shown of ${all}.`;
}

/** Explains why there are no products, if that takes no longer than the counted values. */
async function nothing(
  { products }: Pick<ConsoleParts, 'products'>,
  search: ProductSearch,
  signal: AbortSignal,
): Promise<string> {
  if (search.after !== undefined) return 'There are no more products.';
  const query = selectionOf(search);
  const why = await within(facetsMsMax, signal, (limit) => whyEmpty(products, query, limit));
  return why ?? 'No product matches.';
}

function resultTable(found: readonly FoundProduct[], search: ProductSearch, nowUs: number): Html {
  const caption = search.entity === 'Products' ? 'Products' : 'Deleted products';
  return table(columnsOf(search, nowUs), found, { caption, list: true });
}

/** The value of the order comes first, unless the table has it anyway. */
function columnsOf({ entity, order }: ProductSearch, nowUs: number): TableColumn<FoundProduct>[] {
  const columns: Partial<Record<ProductOrder, TableColumn<FoundProduct>>> = {
    PublicationDate: { title: 'published', value: ({ row }) => age(row.publicationDateUs, nowUs) },
    ModificationDate: { title: 'modified', value: ({ row }) => age(row.modificationDateUs, nowUs) },
    'ContentDate/End': {
      title: 'sensing end (UTC)',
      value: ({ row }) => toMinute(row.sensingEndUs),
    },
  };
  const deletion: TableColumn<FoundProduct>[] = [
    { title: 'deleted', value: ({ row }) => age(row.deletionDateUs, nowUs) },
    { title: 'cause', value: ({ row }) => row.deletionCause },
  ];
  const first = [columns[order.by] ?? [], entity === 'Products' ? [] : deletion].flat();
  return productColumns(nowUs, first);
}

function pager(search: ProductSearch, next: string | null): Html | string {
  if (search.after === undefined && next === null) return '';
  return html`<nav class="toolbar" aria-label="Pages of results">
${search.after === undefined ? '' : html`<a class="button" href="${pageLink(search)}">First page</a>`}
${next === null ? '' : html`<a class="button" href="${next}" rel="next">Next page</a>`}</nav>`;
}

/** Renders the same search for other programs. */
function elsewhere(search: ProductSearch): Html {
  const links = formatLinks(search);
  return panel(
    'Export',
    html`<p class="formats"><a class="button" href="${links.csv}">CSV</a> <a class="button" href="${links.geojson}">GeoJSON</a>
<a class="button" href="${links.json}">JSON</a> ${links.odata === null ? '' : html`<a class="button" href="${links.odata}">OData</a>`}</p>
${search.state.subscription === undefined ? '' : html`<p class="note">The command has no flag for the subscription: it prints the products of all.</p>`}${command(commandOf(search))}`,
    `Files have at most ${countText(fileRows)} products and a link to the next ones; the command has all.`,
  );
}

export const pages = [productsPage];

export const routes = (parts: ConsoleParts): ServedRoute[] => [
  {
    route: productsRoute({
      ...parts,
      textsOf: async (productIds) => {
        const source = parts.slots.find(({ productTexts }) => productTexts)?.productTexts;
        return (await source?.writtenTexts(parts, productIds)) ?? new Map();
      },
    }),
    line: 'products',
  },
];
