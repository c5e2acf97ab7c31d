/** The paths below `/odata/v1`, answered from the index as the catalogue does. */

import type { Context } from 'hono';
import { formatDateUs } from '../domain/dates.ts';
import type { Entity, FilterTree } from '../domain/filter-tree.ts';
import type { FoundProduct, ProductQuery, Products } from '../domain/products.ts';
import { attributesOf } from '../filter/fields.ts';
import {
  filterListNamesMax,
  filterListPath,
  listAnswer,
  nextLink,
  type QueryOptions,
  readAttributesPath,
  readFilterList,
  readProductPath,
  readQueryOptions,
  recordAnswer,
  skipMax,
  unknownAttributes,
  unknownProduct,
  withinList,
} from '../filter/odata.ts';
import { askedUrl, jsonAnswer, nothingThere, odataPath, odataRefusal } from './errors.ts';
import { cursorText, readCursor, readProductPage } from './products-route.ts';

/** For the list of paths. */
export const odataPaths = [
  { method: 'GET', path: '/Products', summary: 'Products, as the catalogue lists them' },
  { method: 'GET', path: '/Products(<Id>)', summary: 'One product' },
  { method: 'GET', path: '/Products/$count', summary: 'Number of products, as text' },
  { method: 'POST', path: filterListPath, summary: 'Products by a list of names' },
  { method: 'GET', path: '/DeletedProducts', summary: 'Deleted products' },
  { method: 'GET', path: '/DeletedProducts(<Id>)', summary: 'One deleted product' },
  {
    method: 'GET',
    path: '/DeletedProducts/$count',
    summary: 'Number of deleted products, as text',
  },
  { method: 'GET', path: '/Attributes(<collection>)', summary: 'Attributes of a collection' },
].map((one) => ({ ...one, path: `${odataPath}${one.path}` }));

const countSuffix = /\/(?:\$|%24)count$/;

export interface ODataSource {
  products: Products;
  requestId: string;
  /** Ends the search for an answer. */
  signal: AbortSignal;
}

/** A query that was read, with what it is answered from. */
interface Asked extends ODataSource {
  entity: Entity;
  options: QueryOptions;
  url: URL;
}

/** Answers a GET of any path below `odataPath`. */
export async function answerOData(context: Context, source: ODataSource): Promise<Response> {
  const { requestId } = source;
  const { path } = context.req;
  const resource = path.slice(odataPath.length);
  const collection = readAttributesPath(resource);
  if (collection !== null) return answerAttributes(collection, requestId);
  const listed = resource.replace(countSuffix, '');
  const target = readProductPath(listed);
  const isCount = listed !== resource;
  if (target === null || (isCount && target.id !== null)) return nothingThere(path, requestId);
  const { entity, id } = target;
  const url = askedUrl(context);
  const { options, refusal } = readQueryOptions(url.searchParams, entity);
  if (refusal !== undefined) return odataRefusal(refusal, requestId);
  const asked: Asked = { ...source, entity, options, url };
  if (isCount) return answerCount(asked);
  return id === null ? answerList(asked) : answerOne(id, asked);
}

/** Answers a query by list, whose body is `text`. All named products fit on its first page. */
export async function answerFilterList(
  context: Context,
  text: string,
  source: ODataSource,
): Promise<Response> {
  const { requestId } = source;
  const list = readFilterList(text);
  if (list.refusal !== undefined) return odataRefusal(list.refusal, requestId);
  const url = askedUrl(context);
  const entity = 'Products';
  const read = readQueryOptions(url.searchParams, entity, { top: filterListNamesMax });
  if (read.refusal !== undefined) return odataRefusal(read.refusal, requestId);
  const options = { ...read.options, filter: withinList(list.filter, read.options.filter) };
  return answerList({ ...source, entity, options, url });
}

function answerAttributes(collection: string, requestId: string): Response {
  const attributes = attributesOf(collection);
  if (attributes === null) {
    return odataRefusal({ status: 404, message: unknownAttributes(collection) }, requestId);
  }
  return Response.json(attributes, { headers: { 'request-id': requestId } });
}

/** As OData 4.01 has it (part 2, 4.8); the catalogue does not document it, but clients call it. */
async function answerCount(asked: Asked): Promise<Response> {
  const { entity, options, requestId } = asked;
  const query = { entity, filter: options.filter, limit: 0 };
  const { count, headers } = await readProductPage(asked, query, true);
  return new Response(String(count), { headers: { 'request-id': requestId, ...headers } });
}

async function answerList(asked: Asked): Promise<Response> {
  const { entity, options, url, requestId } = asked;
  const { filter, orderby, top, skip, skiptoken } = options;
  const after = skiptoken === null ? undefined : readCursor(skiptoken);
  if (after === null) {
    const message = 'Invalid value: $skiptoken is not one that a link of ours had.';
    return odataRefusal({ status: 400, message }, requestId);
  }
  const order =
    orderby === null ? {} : { order: { by: orderby.field, direction: orderby.direction } };
  const query = { entity, filter, ...order, after, skip, limit: top } satisfies ProductQuery;
  const page = await readProductPage(asked, query, options.count);
  const body = listAnswer({
    entity,
    options,
    records: page.found.map((found) => recordOf(found, entity)),
    count: page.count,
    nextLink: page.next === null ? null : linkAfter(cursorText(page.next), options, url),
  });
  return jsonAnswer(body, { 'request-id': requestId, ...page.headers });
}

/** `$skip` as long as it may be that large; from there on a key, so that no link ends in silence. */
function linkAfter(skiptoken: string, { top, skip, skiptoken: former }: QueryOptions, url: URL) {
  const isWithinSkip = former === null && skip + top <= skipMax;
  return nextLink(url, isWithinSkip ? { skip: skip + top } : { skiptoken });
}

async function answerOne(id: string, asked: Asked): Promise<Response> {
  const { entity, options, requestId } = asked;
  const byId: FilterTree = {
    node: 'comparison',
    field: 'Id',
    operator: 'eq',
    literal: { type: 'text', value: id },
  };
  const page = await readProductPage(asked, { entity, filter: byId, limit: 1 }, false);
  const [found] = page.found;
  if (found === undefined) {
    return odataRefusal({ status: 404, message: unknownProduct(id) }, requestId, page.headers);
  }
  const body = recordAnswer(entity, options, recordOf(found, entity));
  return jsonAnswer(body, { 'request-id': requestId, ...page.headers });
}

/** A notification of a deletion may come without a record; what it told stands in the row. */
function recordOf({ record, row }: FoundProduct, entity: Entity): FoundProduct['record'] {
  if (entity === 'Products') return record;
  const { deletionUs, deletionCause } = row;
  return {
    ...record,
    DeletionDate: record.DeletionDate ?? (deletionUs === null ? null : formatDateUs(deletionUs)),
    DeletionCause: record.DeletionCause ?? deletionCause,
  };
}
