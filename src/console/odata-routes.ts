/** `/odata/v1/Products` and `/odata/v1/DeletedProducts`, answered from the index as the catalogue does. */
import type { Context } from 'hono';
import type { Entity, FilterTree } from '../domain/filter-tree.ts';
import { formatDateUs } from '../domain/notification-date.ts';
import type { FoundProduct, ProductQuery, Products } from '../domain/products.ts';
import { listAnswer, recordAnswer } from '../filter/odata/answer.ts';
import { nextLink } from '../filter/odata/next-link.ts';
import { type QueryOptions, readQueryOptions, skipMax } from '../filter/odata/query-options.ts';
import { invalidPathBody } from '../filter/odata/refusal.ts';
import { askedUrl } from './asked-url.ts';
import { odataRefusal } from './console-errors.ts';
import { jsonAnswer } from './json-answer.ts';
import { cursorText, readCursor } from './page-cursor.ts';
import { readProductPage } from './product-page.ts';
import type { QueryLine } from './query-line.ts';

export const odataPath = '/odata/v1';

export interface ODataOptions {
  products: Products;
  line: QueryLine;
  newRequestId: () => string;
}

/** What a path asks for; an id stands bare, without quotes. */
const resource = /^\/(Products|DeletedProducts)(?:(?:\(|%28)([\w-]{1,100})(?:\)|%29))?$/;

/** Answers a GET of any path below `odataPath`. */
export async function answerOData(context: Context, options: ODataOptions): Promise<Response> {
  const requestId = options.newRequestId();
  const [, name, id] = resource.exec(context.req.path.slice(odataPath.length)) ?? [];
  if (name !== 'Products' && name !== 'DeletedProducts') {
    return Response.json(invalidPathBody, { status: 404, headers: { 'request-id': requestId } });
  }
  const url = askedUrl(context);
  const read = readQueryOptions(url.searchParams, name);
  if (read.refusal !== undefined) return odataRefusal(read.refusal, requestId);
  const asked: Asked = { entity: name, options: read.options, url, requestId };
  return id === undefined ? answerList(asked, options) : answerOne(id, asked, options);
}

interface Asked {
  entity: Entity;
  options: QueryOptions;
  url: URL;
  requestId: string;
}

async function answerList(
  { entity, options, url, requestId }: Asked,
  source: ODataOptions,
): Promise<Response> {
  const { filter, orderby, top, skip, skiptoken } = options;
  const after = skiptoken === null ? undefined : readCursor(skiptoken);
  if (after === null) {
    const message = 'Invalid value: $skiptoken is not one that a link of ours had.';
    return odataRefusal({ status: 400, message }, requestId);
  }
  const order =
    orderby === null ? {} : { order: { by: orderby.field, direction: orderby.direction } };
  const query = { entity, filter, ...order, after, skip, limit: top } satisfies ProductQuery;
  const page = await readProductPage(source, query, options.count);
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

async function answerOne(
  id: string,
  { entity, options, requestId }: Asked,
  source: ODataOptions,
): Promise<Response> {
  const byId: FilterTree = {
    node: 'comparison',
    field: 'Id',
    operator: 'eq',
    literal: { type: 'text', value: id },
  };
  const page = await readProductPage(source, { entity, filter: byId, limit: 1 }, false);
  const [found] = page.found;
  if (found === undefined) {
    const message = `Product with id ${id} not found.`;
    return odataRefusal({ status: 404, message }, requestId, page.headers);
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
