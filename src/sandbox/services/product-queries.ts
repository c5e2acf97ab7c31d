/** Queries of `Products` and `DeletedProducts`, public by default, and the injected faults of lists. */

import { compileFilter } from '../../filter/evaluate.ts';
import { attributesOf, findOrderableField, type OrderableField } from '../../filter/fields.ts';
import {
  filterListNamesMax,
  filterListPath,
  listAnswer,
  nextLink,
  type ODataRefusal,
  type QueryOptions,
  readAttributesPath,
  readFilterList,
  readProductPath,
  readQueryOptions,
  recordAnswer,
  refusalBody,
  skipMax,
  unknownAttributes,
  unknownProduct,
  withinList,
} from '../../filter/odata.ts';
import { literalDate } from '../../filter/values.ts';
import type { Random } from '../clock.ts';
import {
  type LiveServiceSettings,
  type QueryFault,
  queryFaults,
  type ServiceSettings,
  takeNextFault,
} from '../live-settings.ts';
import type { DateRange, Holdings, Selection } from '../publishing/holdings.ts';
import type { StoredProduct } from '../publishing/record-archive.ts';
import { formedError, injectAnswerFault, type ServiceAnswer } from './service-answer.ts';

type Entity = 'Products' | 'DeletedProducts';

/** A parsed filter. */
type Filter = Parameters<typeof compileFilter>[0];

export interface ProductQuery {
  readonly url: URL;
  readonly holdings: Pick<Holdings, 'select' | 'find'>;
  readonly settings: ServiceSettings;
  readonly requestId: string;
}

/** The only method of a product resource. Faults are injected only into lists. */
export interface ProductOperation {
  readonly method: 'GET' | 'POST';
  readonly isList: boolean;
  readonly answer: (body: string) => ServiceAnswer;
}

/** Finds the operation of a path below `/odata/v1`; null if there is none. */
export function productOperation(path: string, query: ProductQuery): ProductOperation | null {
  if (path === filterListPath) {
    return { method: 'POST', isList: false, answer: (body) => answerFilterList(query, body) };
  }
  const collection = readAttributesPath(path);
  if (collection !== null) {
    return { method: 'GET', isList: false, answer: () => answerAttributes(query, collection) };
  }
  const target = readProductPath(path);
  if (target === null) return null;
  const { entity, id } = target;
  const answer = () => answerProductQuery(query, entity, id);
  return { method: 'GET', isList: id === null, answer };
}

function answerAttributes(
  { settings, requestId }: ProductQuery,
  collection: string,
): ServiceAnswer {
  const attributes = attributesOf(collection);
  if (attributes !== null) return { status: 200, body: attributes };
  return formedError(404, unknownAttributes(collection), settings, requestId);
}

function refused(refusal: ODataRefusal, { requestId }: ProductQuery): ServiceAnswer {
  return { status: refusal.status, body: refusalBody(refusal, requestId) };
}

function answerFilterList(query: ProductQuery, body: string): ServiceAnswer {
  const list = readFilterList(body);
  if (list.refusal) return refused(list.refusal, query);
  const top = filterListNamesMax;
  const { options, refusal } = readQueryOptions(query.url.searchParams, 'Products', { top });
  if (refusal) return refused(refusal, query);
  const filter = withinList(list.filter, options.filter);
  return answerList(query, 'Products', { ...options, filter });
}

/** Answers a query with the catalogue's limits, order and errors; returns a list if `id` is null. */
export function answerProductQuery(
  query: ProductQuery,
  entity: Entity,
  id: string | null,
): ServiceAnswer {
  const { options, refusal } = readQueryOptions(query.url.searchParams, entity);
  if (refusal) return refused(refusal, query);
  if (id === null) return answerList(query, entity, options);
  const stored = query.holdings.find(entity, id);
  if (stored) return { status: 200, body: recordAnswer(entity, options, stored.record) };
  return formedError(404, unknownProduct(id), query.settings, query.requestId);
}

function answerList({ url, holdings }: ProductQuery, entity: Entity, options: QueryOptions) {
  const { filter, orderby, top, skip, count } = options;
  const end = skip + top;
  const terms = termsOf(filter);
  const selection = holdings.select(entity, { ranges: dateRangesOf(terms), orderby });
  const page = readPage(selection, withoutRange(terms, selection.covered), options);
  const isMore = page.found > end && top > 0;
  const body = listAnswer({
    entity,
    options,
    records: page.products.map(({ record }) => record),
    count: count ? page.found : null,
    // No link to a page that would be refused; the real service's behaviour there is not known.
    nextLink: isMore && end <= skipMax ? nextLink(url, { skip: end }) : null,
  });
  return { status: 200, body };
}

/** Reads a page. `found` is the number of matches; without `count`, it may stop one after the page. */
function readPage(
  selection: Selection,
  filter: Filter | null,
  { skip, top, count }: QueryOptions,
): { products: readonly StoredProduct[]; found: number } {
  const products: StoredProduct[] = [];
  if (filter === null) {
    for (const product of selection.items(skip)) {
      if (products.length >= top) break;
      products.push(product);
    }
    return { products, found: selection.size };
  }
  const matches = compileFilter(filter);
  const end = skip + top;
  let found = 0;
  for (const product of selection.items(0)) {
    if (!matches(product.view)) continue;
    if (found >= skip && found < end) products.push(product);
    found += 1;
    // Without `count`, the rest is not needed.
    if (!count && found > end) break;
  }
  return { products, found };
}

const allTime: DateRange = { fromUs: Number.NEGATIVE_INFINITY, toUs: Number.POSITIVE_INFINITY };

/** Returns the date ranges that the terms require, for an index lookup. */
function dateRangesOf(terms: readonly Filter[]): Map<OrderableField, DateRange> {
  const ranges = new Map<OrderableField, DateRange>();
  for (const range of terms.map(rangeOf)) {
    if (range === null) continue;
    const { fromUs, toUs } = ranges.get(range.field) ?? allTime;
    ranges.set(range.field, {
      fromUs: Math.max(fromUs, range.fromUs),
      toUs: Math.min(toUs, range.toUs),
    });
  }
  return ranges;
}

/** Returns the filter without the terms that the range of `field` covers; null if nothing remains. */
function withoutRange(all: readonly Filter[], field: OrderableField | null): Filter | null {
  const terms = field === null ? all : all.filter((term) => rangeOf(term)?.field !== field);
  const [first, second] = terms;
  if (first === undefined || second === undefined) return first ?? null;
  return { node: 'and', terms };
}

function termsOf(filter: Filter | null): readonly Filter[] {
  if (filter === null) return [];
  return filter.node === 'and' ? filter.terms : [filter];
}

/** Returns the date range of a condition; null if it is not a date range. */
function rangeOf(term: Filter): (DateRange & { readonly field: OrderableField }) | null {
  if (term.node !== 'comparison' || term.operator === 'ne') return null;
  const field =
    findOrderableField('Products', term.field) ?? findOrderableField('DeletedProducts', term.field);
  const us = literalDate(term.literal);
  if (field === undefined || us === null) return null;
  const ranges = {
    eq: { fromUs: us, toUs: us + 1 },
    ge: { ...allTime, fromUs: us },
    gt: { ...allTime, fromUs: us + 1 },
    lt: { ...allTime, toUs: us },
    le: { ...allTime, toUs: us + 1 },
  };
  return { field, ...ranges[term.operator] };
}

/** Chooses the fault of a list: first from `nextQueries`, which counts down, otherwise by probability. */
export function chooseQueryFault(
  liveSettings: LiveServiceSettings,
  random: Random,
): QueryFault | null {
  const { nextQueries, queryFaults: shares } = liveSettings.current();
  const ordered = takeNextFault(queryFaults, nextQueries, (counts) =>
    liveSettings.change({ nextQueries: counts }),
  );
  if (ordered !== null) return ordered;
  // Draws every fault, so that no probability shifts the draws of another.
  const drawn = queryFaults.filter((fault) => random.chance(shares[fault]));
  return drawn[0] ?? null;
}

/** Injects a fault into an answer; most faults leave an error answer unchanged. */
export function injectQueryFault(
  fault: QueryFault,
  answer: ServiceAnswer,
  settings: ServiceSettings,
  requestId: string,
): ServiceAnswer {
  if (fault !== 'valueMissing' && fault !== 'outOfOrder') {
    const { queryRetryAfterSeconds: seconds } = settings;
    return injectAnswerFault(fault, () => answer, seconds, settings, requestId);
  }
  if (answer.status !== 200) return answer;
  const body = Object(answer.body);
  const records = 'value' in body && Array.isArray(body.value) ? body.value : [];
  const value = fault === 'valueMissing' ? undefined : records.toReversed();
  return { status: 200, body: { ...body, value } };
}
