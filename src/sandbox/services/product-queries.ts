/** The catalogue's queries of what it holds: `Products` and `DeletedProducts`, open to everybody. */
import { compileFilter } from '../../filter/evaluate.ts';
import { listAnswer, recordAnswer } from '../../filter/odata/answer.ts';
import { nextLink } from '../../filter/odata/next-link.ts';
import { readProductPath, unknownProduct } from '../../filter/odata/product-path.ts';
import { type QueryOptions, readQueryOptions, skipMax } from '../../filter/odata/query-options.ts';
import { refusalBody } from '../../filter/odata/refusal.ts';
import type { HeldProduct, Holdings } from '../publishing/holdings.ts';
import { type CatalogueAnswer, formedError } from './catalogue-errors.ts';
import type { ServiceSettings } from './service-settings.ts';

/** What is asked for: a list, or one record by its id. */
export interface ProductTarget {
  readonly kind: 'Products' | 'DeletedProducts';
  readonly id: string | null;
}

export interface ProductQuery {
  readonly url: URL;
  readonly target: ProductTarget;
  readonly holdings: Omit<Holdings, 'note'>;
  readonly settings: ServiceSettings;
  readonly requestId: string;
}

/** Reads a path below `/odata/v1`; null when it is none of these. */
export function productTargetOf(resource: string): ProductTarget | null {
  const path = readProductPath(resource);
  return path === null ? null : { kind: path.entity, id: path.id };
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
  const { orderby, top, skip, count } = options;
  const end = skip + top;
  // Whoever wants neither a count nor an order is served without a look at the rest.
  const wanted = count || orderby ? Number.POSITIVE_INFINITY : end + 1;
  const found = inOrder(matching(holdings.list(entity), options, wanted), orderby);
  const isMore = found.length > end && top > 0;
  const body = listAnswer({
    entity,
    options,
    records: found.slice(skip, end).map(({ record }) => record),
    count: count ? found.length : null,
    // No link leads to a page that would be refused; what the real service does there is not known.
    nextLink: isMore && end <= skipMax ? nextLink(url, { skip: end }) : null,
  });
  return { status: 200, body };
}

function matching(
  products: Iterable<HeldProduct>,
  { filter }: QueryOptions,
  wanted: number,
): HeldProduct[] {
  const matches = filter === null ? () => true : compileFilter(filter);
  const found: HeldProduct[] = [];
  for (const product of products) {
    if (found.length >= wanted) break;
    if (matches(product.view)) found.push(product);
  }
  return found;
}

/** Equal ones by Id, as the catalogue does; without a date comes before all dates. */
function inOrder(products: HeldProduct[], orderby: QueryOptions['orderby']): HeldProduct[] {
  if (orderby === null) return products;
  const sign = orderby.direction === 'asc' ? 1 : -1;
  return products
    .map((product) => ({
      product,
      dateUs: product.view.dateUs(orderby.field) ?? Number.NEGATIVE_INFINITY,
      id: product.record.Id.toLowerCase(),
    }))
    .sort((one, other) => {
      if (one.dateUs !== other.dateUs) return one.dateUs < other.dateUs ? -sign : sign;
      return one.id < other.id ? -1 : 1;
    })
    .map(({ product }) => product);
}
