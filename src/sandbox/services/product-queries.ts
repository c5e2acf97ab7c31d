/** The catalogue's queries of what it holds: `Products` and `DeletedProducts`, open to everybody. */

import { compileFilter } from '../../filter/evaluate.ts';
import { attributesOf } from '../../filter/fields.ts';
import { listAnswer, nextLink, recordAnswer } from '../../filter/odata/answer.ts';
import {
  filterListNamesMax,
  filterListPath,
  type ODataRefusal,
  type QueryOptions,
  readAttributesPath,
  readFilterList,
  readProductPath,
  readQueryOptions,
  refusalBody,
  skipMax,
  unknownAttributes,
  unknownProduct,
  withinList,
} from '../../filter/odata/request.ts';
import type { Selection } from '../publishing/held-entity.ts';
import type { Holdings } from '../publishing/holdings.ts';
import type { HeldProduct } from '../publishing/record-archive.ts';
import { type CatalogueAnswer, formedError } from './catalogue-errors.ts';
import { type DatedFilter, dateRangesOf, withoutRange } from './date-ranges.ts';
import type { ServiceSettings } from './service-settings.ts';

/** What is asked for: a list, one record by its id, a list by names, or the attributes of a collection. */
export type ProductTarget =
  | { readonly kind: 'Products' | 'DeletedProducts'; readonly id: string | null }
  | { readonly kind: 'FilterList' }
  | { readonly kind: 'Attributes'; readonly collection: string };

type RecordTarget = Extract<ProductTarget, { id: unknown }>;

export interface ProductQuery<Target = RecordTarget> {
  readonly url: URL;
  readonly target: Target;
  readonly holdings: Omit<Holdings, 'note'>;
  readonly settings: ServiceSettings;
  readonly requestId: string;
}

/** Reads a path below `/odata/v1`; null when it is none of these. */
export function productTargetOf(resource: string): ProductTarget | null {
  if (resource === filterListPath) return { kind: 'FilterList' };
  const collection = readAttributesPath(resource);
  if (collection !== null) return { kind: 'Attributes', collection };
  const path = readProductPath(resource);
  return path === null ? null : { kind: path.entity, id: path.id };
}

/** The method of each target, and the answer to it. */
export function productOperations(
  query: ProductQuery<ProductTarget>,
): Record<string, (id: string, body: string) => CatalogueAnswer> {
  const { target } = query;
  if (target.kind === 'FilterList') return { POST: (_, body) => answerFilterList(query, body) };
  if (target.kind === 'Attributes')
    return { GET: () => answerAttributes(query, target.collection) };
  return { GET: () => answerProductQuery({ ...query, target }) };
}

function answerAttributes(
  { settings, requestId }: ProductQuery<unknown>,
  collection: string,
): CatalogueAnswer {
  const attributes = attributesOf(collection);
  if (attributes !== null) return { status: 200, body: attributes };
  return formedError(404, unknownAttributes(collection), settings, requestId);
}

function answerFilterList(query: ProductQuery<unknown>, body: string): CatalogueAnswer {
  const refused = (refusal: ODataRefusal) => {
    return { status: refusal.status, body: refusalBody(refusal, query.requestId) };
  };
  const list = readFilterList(body);
  if (list.refusal) return refused(list.refusal);
  const top = filterListNamesMax;
  const { options, refusal } = readQueryOptions(query.url.searchParams, 'Products', { top });
  if (refusal) return refused(refusal);
  const target = { kind: 'Products', id: null } as const;
  const filter = withinList(list.filter, options.filter);
  return answerList({ ...query, target }, { ...options, filter });
}

/** Answers a query with the limits, orders and refusals of the catalogue. */
export function answerProductQuery(query: ProductQuery): CatalogueAnswer {
  const { url, target, requestId } = query;
  const { options, refusal } = readQueryOptions(url.searchParams, target.kind);
  if (refusal) return { status: refusal.status, body: refusalBody(refusal, requestId) };
  return target.id === null ? answerList(query, options) : answerOne(query, target.id, options);
}

function answerOne(
  { target: { kind }, holdings, settings, requestId }: ProductQuery,
  id: string,
  options: QueryOptions,
): CatalogueAnswer {
  const held = holdings.find(kind, id);
  if (held !== undefined) return { status: 200, body: recordAnswer(kind, options, held.record) };
  return formedError(404, unknownProduct(id), settings, requestId);
}

function answerList({ url, target, holdings }: ProductQuery, options: QueryOptions) {
  const { kind: entity } = target;
  const { filter, orderby, top, skip, count } = options;
  const end = skip + top;
  const selection = holdings.select(entity, { ranges: dateRangesOf(filter), orderby });
  const rest = withoutRange(filter, selection.covered);
  const page =
    rest === null ? wholePage(selection, options) : matchingPage(selection, rest, options);
  const isMore = page.found > end && top > 0;
  const body = listAnswer({
    entity,
    options,
    records: page.products.map(({ record }) => record),
    count: count ? page.found : null,
    // No link leads to a page that would be refused; what the real service does there is not known.
    nextLink: isMore && end <= skipMax ? nextLink(url, { skip: end }) : null,
  });
  return { status: 200, body };
}

interface FoundPage {
  readonly products: readonly HeldProduct[];
  /** How many match; without a count perhaps only one more than up to the end of the page. */
  readonly found: number;
}

/** A page of products all of which match: the others need not be looked at. */
function wholePage(selection: Selection, { skip, top }: QueryOptions): FoundPage {
  const products: HeldProduct[] = [];
  for (const product of selection.items(skip)) {
    if (products.length >= top) break;
    products.push(product);
  }
  return { products, found: selection.size };
}

function matchingPage(
  selection: Selection,
  filter: DatedFilter,
  { skip, top, count }: QueryOptions,
): FoundPage {
  const matches = compileFilter(filter);
  const end = skip + top;
  const products: HeldProduct[] = [];
  let found = 0;
  for (const product of selection.items(0)) {
    if (!matches(product.view)) continue;
    if (found >= skip && found < end) products.push(product);
    found += 1;
    // Whoever wants no count is served without a look at the rest.
    if (!count && found > end) break;
  }
  return { products, found };
}
