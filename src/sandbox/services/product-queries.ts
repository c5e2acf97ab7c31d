/** Queries of `Products` and `DeletedProducts`, public by default. */
import { compileFilter } from '../../filter/evaluate.ts';
import {
  listAnswer,
  nextLink,
  type QueryOptions,
  readProductPath,
  readQueryOptions,
  recordAnswer,
  refusalBody,
  skipMax,
  unknownProduct,
} from '../../filter/odata.ts';
import type { Ledger } from '../publishing/ledger.ts';
import { type ErrorForm, formedError, type ServiceAnswer } from './service-answer.ts';

type Filter = NonNullable<QueryOptions['filter']>;

/**
 * Returns the operation of a path below `/odata/v1`, with the catalogue's limits, order and errors; null for an
 * unknown path.
 */
export function productOperation(
  path: string,
  url: URL,
  ledger: Pick<Ledger, 'select' | 'find'>,
  form: ErrorForm,
): { readonly isList: boolean; readonly answer: () => ServiceAnswer } | null {
  const target = readProductPath(path);
  if (target === null) return null;
  const { entity, id } = target;
  const answer = (): ServiceAnswer => {
    const { options, refusal } = readQueryOptions(url.searchParams, entity);
    if (refusal) return { status: refusal.status, body: refusalBody(refusal, form.requestId) };
    if (id !== null) {
      const product = ledger.find(entity, id);
      if (product === undefined) return formedError(404, unknownProduct(id), form);
      return { status: 200, body: recordAnswer(entity, options, product.record) };
    }
    const { filter, orderby, top, skip, count } = options;
    const matches = filter === null ? () => true : compileFilter(datesFirst(filter));
    const found = ledger.select(entity, { matches, orderby });
    const end = skip + top;
    // No link to a page that would be refused; the real service's behaviour there is not known.
    const isLinked = found.length > end && top > 0 && end <= skipMax;
    const body = listAnswer({
      ...{ entity, options },
      records: found.slice(skip, end).map(({ record }) => record),
      count: count ? found.length : null,
      nextLink: isLinked ? nextLink(url, { skip: end }) : null,
    });
    return { status: 200, body };
  };
  return { isList: id === null, answer };
}

/** Moves conditions on dates to the front: the other values of old products must be decompressed first. */
function datesFirst(filter: Filter): Filter {
  if (filter.node !== 'and') return filter;
  const isDate = (term: Filter) => term.node === 'comparison' && /Date/.test(term.field);
  const others = filter.terms.filter((term) => !isDate(term));
  return { ...filter, terms: [...filter.terms.filter(isDate), ...others] };
}
