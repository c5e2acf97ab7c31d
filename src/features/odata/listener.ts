/** The paths below `/odata/v1`, answered from the product index in the format of the catalogue. */
import { readFile } from 'node:fs/promises';
import type { Context, Hono } from 'hono';
import type { PathRow, Protocol, Refusal } from '../../core/api/listener-slot.ts';
import { createQueryBodyReader, type Environment, sent } from '../../core/api/query-line.ts';
import {
  exceedsLimit,
  retryAfterSeconds,
  statusOf,
  unavailableDetail,
} from '../../core/http/problem.ts';
import { errorText, isAppError } from '../../core/terms/app-error.ts';
import { formatDateUs } from '../../core/terms/dates.ts';
import { fieldOf } from '../../filter/builder.ts';
import { attributesOf } from '../../filter/fields.ts';
import { type Entity, entities, joined } from '../../filter/filter-tree.ts';
import {
  filterListBytesMax,
  filterListNamesMax,
  filterListPath,
  invalidPath,
  listAnswer,
  nextLink,
  ODataRefusal,
  type QueryOptions,
  readAttributesPath,
  readFilterList,
  readProductPath,
  readQueryOptions,
  recordAnswer,
  refusalBody,
  skipMax,
  unknownProduct,
} from '../../filter/odata.ts';
import {
  type FoundProduct,
  type ProductQuery,
  type Products,
  readKey,
  writeKey,
} from '../../filter/products.ts';
import { readProductPage } from '../products/route.ts';

const odataPath = '/odata/v1';

/** Entries of the list of paths. */
const paths: readonly PathRow[] = [
  { method: 'GET', path: '/', summary: 'OData service document' },
  { method: 'GET', path: '/$metadata', summary: 'OData description of the service (CSDL XML)' },
  { method: 'GET', path: '/Products', summary: 'Products, in the format of the catalogue' },
  { method: 'GET', path: '/Products(<Id>)', summary: 'One product' },
  { method: 'GET', path: '/Products/$count', summary: 'Number of products, as text' },
  { method: 'POST', path: filterListPath, summary: 'Products with the names in the request body' },
  { method: 'GET', path: '/DeletedProducts', summary: 'Deleted products' },
  { method: 'GET', path: '/DeletedProducts(<Id>)', summary: 'One deleted product' },
  {
    method: 'GET',
    path: '/DeletedProducts/$count',
    summary: 'Number of deleted products, as text',
  },
  { method: 'GET', path: '/Attributes(<collection>)', summary: 'Attributes of a collection' },
].map((one) => ({ ...one, path: `${odataPath}${one.path}` }));

const metadataPath = /^\/(?:\$|%24)metadata$/;
const countSuffix = /\/(?:\$|%24)count$/;

interface ODataSource {
  products: Products;
  requestId: string;
  /** Aborts the query. */
  signal: AbortSignal;
  url: URL;
  /** URL of the service, with a slash at the end. */
  root: string;
}

/** A parsed query with its source. */
interface ParsedQuery extends ODataSource {
  entity: Entity;
  options: QueryOptions;
}

/** Answers a refusal. Its header `request-id` repeats the id in the body. */
function answerRefusal(
  refusal: ODataRefusal,
  requestId: string,
  further: Readonly<Record<string, string>> = {},
): Response {
  const { status } = refusal;
  const retry = status === 503 ? { 'Retry-After': String(retryAfterSeconds) } : {};
  const headers = { 'request-id': requestId, ...further, ...retry };
  return Response.json(refusalBody(refusal, requestId), { status, headers });
}

/** Answers a failure: the refusal of a body, 503 if a retry may succeed, otherwise 500. */
function odataFailure(error: unknown, requestId: string): Response {
  const status = statusOf(error);
  const isRefused = status === 400 || status === 413 || status === 415 || exceedsLimit(error);
  if (isRefused) return answerRefusal(new ODataRefusal(status, errorText(error)), requestId);
  const failure = isAppError(error, 'unavailable')
    ? new ODataRefusal(503, unavailableDetail)
    : new ODataRefusal(500, `Internal error; see the log for request ${requestId}.`);
  return answerRefusal(failure, requestId);
}

/** Refuses a request before it is routed, as the catalogue does. */
function refused(
  { status, detail, requestId }: Refusal,
  headers: Record<string, string>,
): Response {
  const body = { detail: status === 404 ? invalidPath : detail };
  return Response.json(body, { status, headers: { 'request-id': requestId, ...headers } });
}

/** The query service of the catalogue. */
const odataProtocol: Protocol = {
  root: '/odata',
  paths,
  methods: { [`${odataPath}${filterListPath}`]: ['POST'] },
  isShared: true,
  add: addRoutes,
  failure: odataFailure,
  refusal: refused,
};

/** Adds the query service of the catalogue: GET, and the POST that queries by list. */
function addRoutes(
  app: Hono<Environment>,
  { products, lineFor, newRequestId }: Parameters<Protocol['add']>[1],
): void {
  const answer = (
    c: Context<Environment>,
    rows: unknown,
    respond: (source: ODataSource) => Promise<Response>,
  ) => {
    const { base, url } = c.var.address;
    const requestId = newRequestId();
    const answered = async (signal: AbortSignal) => {
      try {
        const root = `${base}${odataPath}/`;
        const response = await respond({ products, requestId, signal, url, root });
        response.headers.set('request-id', requestId);
        return response;
      } catch (error) {
        if (error instanceof ODataRefusal) return answerRefusal(error, requestId);
        throw error;
      }
    };
    return lineFor(rows)(answered, c.req.raw.signal, sent(c));
  };
  app.use(`${odataPath}/*`, async (c, next) => {
    await next();
    c.header('OData-Version', '4.0');
  });
  app.get(`${odataPath}/*`, (c) =>
    answer(c, c.req.query('$top'), (source) =>
      answerOData(c.req.path.slice(odataPath.length), source),
    ),
  );

  const readBody = createQueryBodyReader(filterListBytesMax);
  app.post(`${odataPath}${filterListPath}`, async (c) => {
    const text = await readBody(c.env.incoming, String);
    return answer(c, filterListNamesMax, (source) => answerFilterList(text, source));
  });
}

/** Answers a GET of any path below `odataPath`. */
async function answerOData(resource: string, source: ODataSource): Promise<Response> {
  const collection = readAttributesPath(resource);
  if (collection !== null) return answerAttributes(collection);
  if (/^\/?$/.test(resource)) return Response.json(serviceDocument(source.root));
  if (metadataPath.test(resource)) return answerMetadata();
  const listed = resource.replace(countSuffix, '');
  const target = readProductPath(listed);
  const isCount = listed !== resource;
  if (target === null || (isCount && target.id !== null)) {
    return Response.json({ detail: invalidPath }, { status: 404 });
  }
  const { entity, id } = target;
  const options = readQueryOptions(source.url.searchParams, entity);
  const parsed: ParsedQuery = { ...source, entity, options };
  if (isCount) return answerCount(parsed);
  return id === null ? answerList(parsed) : answerOne(id, parsed);
}

/** Answers a query by list. All listed products fit on its first page. */
async function answerFilterList(text: string, source: ODataSource): Promise<Response> {
  const list = readFilterList(text);
  const entity = 'Products';
  const read = readQueryOptions(source.url.searchParams, entity, filterListNamesMax);
  const options = { ...read, filter: joined('and', [list, read.filter]) };
  return answerList({ ...source, entity, options });
}

async function answerMetadata(): Promise<Response> {
  const text = await readFile(new URL('./metadata.xml', import.meta.url), 'utf8');
  return new Response(text, { headers: { 'Content-Type': 'application/xml' } });
}

/** Makes the context of a body absolute, as clients of Microsoft require. */
function withContext(body: FoundProduct['record'], root: string): object {
  return { ...body, '@odata.context': `${root}${body['@odata.context']}` };
}

function answerAttributes(collection: string): Response {
  const attributes = attributesOf(collection);
  if (attributes === null) {
    throw new ODataRefusal(404, `No attributes of the collection ${collection} are known.`);
  }
  return Response.json(attributes);
}

/** Answers `$count` as in OData 4.01 (part 2, 4.8). The catalogue does not document it, but clients use it. */
async function answerCount(parsed: ParsedQuery): Promise<Response> {
  const { entity, options } = parsed;
  const query = { entity, filter: options.filter, limit: 0 };
  const { count, headers } = await readProductPage(parsed, query, true);
  return new Response(String(count?.count), { headers });
}

async function answerList(parsed: ParsedQuery): Promise<Response> {
  const { entity, options, url, root } = parsed;
  const { filter, orderby, top, skip, skiptoken } = options;
  const order = orderby === null ? undefined : { by: orderby.field, direction: orderby.direction };
  const after = skiptoken === null ? undefined : readKey(skiptoken, { entity, order });
  if (after === null) {
    throw new ODataRefusal(400, 'Invalid value: $skiptoken must come from a next link.');
  }
  const query = { entity, filter, order, after, skip, limit: top } satisfies ProductQuery;
  const page = await readProductPage(parsed, query, options.count);
  const body = listAnswer({
    entity,
    options,
    records: page.found.map((found) => recordOf(found, entity)),
    count: page.count?.count ?? null,
    nextLink: page.next === null ? null : linkAfter(writeKey(page.next, query), options, url),
  });
  // OData allows annotations of other vocabularies (OData JSON 4.01, 4.5).
  const mark = page.count?.isMinimum ? { '@earshot.countIsMinimum': true } : {};
  return Response.json({ ...withContext(body, root), ...mark }, { headers: page.headers });
}

/** Returns the next link: with `$skip` up to its maximum, then with a key, so that the list never ends early. */
function linkAfter(skiptoken: string, { top, skip, skiptoken: former }: QueryOptions, url: URL) {
  const isWithinSkip = former === null && skip + top <= skipMax;
  return nextLink(url, isWithinSkip ? { skip: skip + top } : { skiptoken });
}

async function answerOne(id: string, parsed: ParsedQuery): Promise<Response> {
  const { entity, options, root, requestId } = parsed;
  const byId = fieldOf('Id', 'String').eq(id).tree;
  const page = await readProductPage(parsed, { entity, filter: byId, limit: 1 }, false);
  const [found] = page.found;
  if (found === undefined) {
    return answerRefusal(new ODataRefusal(404, unknownProduct(id)), requestId, page.headers);
  }
  const body = recordAnswer(entity, options, recordOf(found, entity));
  return Response.json(withContext(body, root), { headers: page.headers });
}

/** Adds values to a record: a notification may have no record and no name, but the row has what is known. */
function recordOf({ record: sent, row }: FoundProduct, entity: Entity): FoundProduct['record'] {
  const record: FoundProduct['record'] = { ...sent, Name: sent.Name ?? null };
  if (entity === 'Products') return record;
  const { deletionDateUs, deletionCause } = row;
  return {
    ...record,
    DeletionDate:
      record.DeletionDate ?? (deletionDateUs === null ? null : formatDateUs(deletionDateUs)),
    DeletionCause: record.DeletionCause ?? deletionCause,
  };
}

/** Returns the service document of a service whose URL ends with a slash. */
function serviceDocument(root: string): object {
  return {
    '@odata.context': `${root}$metadata`,
    value: entities.map((name) => ({ name, kind: 'EntitySet', url: name })),
  };
}

export const protocols = [odataProtocol];
