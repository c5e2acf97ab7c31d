/** The paths below `/stac`: a STAC API 1.0.0, which is also an OGC API – Features, over the product index. */

import type { Context, Hono } from 'hono';
import { z } from 'zod';
import { withParameter } from '../../core/api/api-route.ts';
import type { PathRow, Protocol } from '../../core/api/listener-slot.ts';
import { createQueryBodyReader, type Environment, sent } from '../../core/api/query-line.ts';
import { apiProblem, jsonAnswer } from '../../core/http/problem.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { formatDateUs } from '../../core/terms/dates.ts';
import { warningOf } from '../../filter/bounding-box.ts';
import { and, type Expression, textField } from '../../filter/builder.ts';
import type { Entity } from '../../filter/filter-tree.ts';
import type { CollectionSummary, FoundProduct, Products } from '../../filter/products.ts';
import { readProductPage, warningHeader } from '../products/route.ts';
import { boxOf } from './areas.ts';
import {
  type CollectionList,
  createCollectionList,
  pageOfCollections,
} from './collection-documents.ts';
import { collectionId, inCollection, readCollectionId } from './collections.ts';
import {
  collectionParameters,
  collectionUrl,
  conformsTo,
  landingPage,
  openApiType,
  queryablesDraft,
  queryablesSchema,
  schemaType,
  stacOpenApi,
  toStacCollection,
} from './description.ts';
import { toStacItem } from './item.ts';
import {
  isBackwards,
  queryOf,
  readSearchBody,
  readSearchParameters,
  type StacSearch,
  tokenOf,
  withFields,
} from './search.ts';

const stacPath = '/stac';

/** Entries of the list of paths. */
const paths: readonly PathRow[] = [
  { method: 'GET', path: '', summary: 'STAC API: landing page' },
  { method: 'GET', path: '/conformance', summary: 'STAC API: conformance classes' },
  { method: 'GET', path: '/api', summary: 'STAC API: description (OpenAPI 3.0)' },
  { method: 'GET', path: '/queryables', summary: 'STAC API: properties of filters' },
  { method: 'GET', path: '/collections', summary: 'STAC API: collections' },
  { method: 'GET', path: '/collections/<id>', summary: 'STAC API: one collection' },
  {
    method: 'GET',
    path: '/collections/<id>/queryables',
    summary: 'STAC API: properties of filters in a collection',
  },
  { method: 'GET', path: '/collections/<id>/items', summary: 'STAC API: items of a collection' },
  { method: 'GET', path: '/collections/<id>/items/<id>', summary: 'STAC API: one item' },
  { method: 'GET', path: '/search', summary: 'STAC API: search' },
  { method: 'POST', path: '/search', summary: 'STAC API: search' },
].map((one) => ({ ...one, path: `${stacPath}${one.path}` }));

interface StacSource {
  products: Products;
  collections: CollectionList;
  catalogueUrl: string;
  /** True if requests need the password of the private listener. */
  passwordNeeded: boolean;
  newRequestId: () => string;
  /** Aborts the query. */
  signal: AbortSignal;
}

/** Maximum size of the body of a search: an area of about 3,500 positions with four decimals. */
const searchBytesMax = 64 * 1024;

/** Members that problem JSON always has. */
const problemSchema = z.looseObject({
  title: z.string(),
  detail: z.string(),
  errors: z.array(z.string()).default([]),
});

/** Answers an error: problem JSON, with the members of OGC API Features (1.0, 7.5.1) in addition. */
async function problemOf(error: unknown, requestId: string): Promise<Response> {
  const answer = apiProblem(error, requestId);
  const problem = problemSchema.parse(await answer.json());
  const { title, detail, errors } = problem;
  const body = { code: title, description: [detail, ...errors].join(' '), ...problem };
  return new Response(JSON.stringify(body), answer);
}

/** The STAC API. */
export const stacProtocol: Protocol = {
  root: stacPath,
  paths,
  methods: { [`${stacPath}/search`]: ['GET', 'HEAD', 'POST'] },
  isShared: true,
  add: addRoutes,
  failure: problemOf,
};

/** Adds the paths: GET, and the POST that searches. */
function addRoutes(
  app: Hono<Environment>,
  { nowUs, lineFor, ...source }: Parameters<Protocol['add']>[1],
): void {
  const collections = createCollectionList(source.products, nowUs);
  const answer = (c: Context<Environment>, rows: unknown, search?: StacSearch) =>
    lineFor(rows)(
      (signal) => answerStac(c, { ...source, collections, signal }, search),
      c.req.raw.signal,
      sent(c),
    );
  app.get(stacPath, (c) => answer(c, undefined));
  app.get(`${stacPath}/*`, (c) => answer(c, c.req.query('limit')));
  const readBody = createQueryBodyReader(searchBytesMax);
  app.post(`${stacPath}/search`, async (c) => {
    const search = await readBody(c.env.incoming, readSearchBody);
    return answer(c, search.limit, search);
  });
}

/** Answers a request below `stacPath`; `search` is that of a POST. Rejects with `invalid` and `not_found`. */
async function answerStac(
  context: Context<Environment>,
  source: StacSource,
  search?: StacSearch,
): Promise<Response> {
  const { base, url } = context.var.address;
  const root = `${base}${stacPath}`;
  const accept = context.req.header('accept') ?? '';
  const request: StacRequest = { ...source, base, url, root, accept };
  const [resource, ...parts] = partsOf(context.req.path);
  if (resource === 'collections') return answerCollections(parts, request);
  if (parts.length > 0) throw unknownPath();
  if (resource === 'search') {
    return search === undefined ? answerSearch(request) : answerPost(request, search);
  }
  requireKnown(url, ['f']);
  if (resource === undefined) return answerJson(landingPage(root, await source.collections()));
  return answerDescription(resource, request);
}

/** Answers a request with these parts of the path after `/stac/collections`. */
async function answerCollections(parts: string[], request: StacRequest): Promise<Response> {
  const { url, root } = request;
  const [id, member, item, ...more] = parts;
  if (member === 'items' && id !== undefined && parts.length === 2) return answerItems(id, request);
  if (id === undefined) return answerCollectionList(request);
  requireKnown(url, ['f']);
  if (member === 'items' && item !== undefined && more.length === 0) {
    return answerItem(id, item, request);
  }
  if (parts.length > 2 || (member !== undefined && member !== 'queryables')) throw unknownPath();
  const summary = await requireCollection(id, request);
  if (member !== undefined) return answerQueryables(request);
  return answerJson(toStacCollection(root, summary));
}

interface StacRequest extends StacSource {
  base: string;
  url: URL;
  root: string;
  /** Header of the request. */
  accept: string;
}

/** Returns the decoded parts of the path after `/stac`. A slash at the end makes no difference. */
function partsOf(path: string): string[] {
  try {
    const rest = path.slice(stacPath.length).replace(/\/$/, '');
    return rest.split('/').slice(1).map(decodeURIComponent);
  } catch {
    throw unknownPath();
  }
}

const unknownPath = () =>
  new AppError('not_found', 'Unknown path.', { advice: `GET ${stacPath} has links to all paths.` });

async function answerDescription(name: string, request: StacRequest): Promise<Response> {
  const { root, passwordNeeded } = request;
  if (name === 'conformance') return answerJson({ conformsTo });
  if (name === 'api') return answerJson(stacOpenApi(root, passwordNeeded), openApiType);
  if (name === 'queryables') return answerQueryables(request);
  throw unknownPath();
}

async function answerCollectionList(request: StacRequest): Promise<Response> {
  const { root, url } = request;
  requireKnown(url, Object.keys(collectionParameters));
  const search = readSearchParameters(url.searchParams);
  const { collections, matched, tokens } = pageOfCollections(await request.collections(), search);
  const type = 'application/json';
  return answerJson({
    collections: collections.map((one) => toStacCollection(root, one)),
    numberMatched: matched,
    numberReturned: collections.length,
    links: [
      { rel: 'self', href: url.href, type },
      { rel: 'root', href: root, type },
      { rel: 'parent', href: root, type },
      ...tokens.map(({ rel, token }) => ({
        ...{ rel, href: withParameter(url, 'token', token), type },
      })),
    ],
  });
}

function answerQueryables({ url, accept }: StacRequest): Promise<Response> {
  const isDraft = accept.includes('application/json') && !accept.includes(schemaType);
  // An id has no parameters (OGC API Features, part 3, requirement 5).
  const id = `${url.origin}${url.pathname}`;
  const [body, type] = isDraft
    ? [queryablesDraft(id), 'application/json']
    : [queryablesSchema(id), schemaType];
  return jsonAnswer(body, { 'Content-Type': type, Vary: 'Accept' });
}

function answerJson(body: object, type = 'application/json'): Promise<Response> {
  return jsonAnswer(body, { 'Content-Type': type });
}

async function requireCollection(id: string, source: StacSource): Promise<CollectionSummary> {
  const found = (await source.collections()).find((one) => collectionId(one) === id);
  if (found !== undefined) return found;
  throw new AppError('not_found', `There is no collection ${JSON.stringify(id.slice(0, 100))}.`, {
    advice: `GET ${stacPath}/collections lists the collections.`,
  });
}

/** Refuses other parameters (OGC API Features 1.0, requirement 8). */
function requireKnown({ searchParams }: URL, known: readonly string[]): void {
  const unknown = [...searchParams.keys()].find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new AppError('invalid', `Unknown parameter ${JSON.stringify(unknown.slice(0, 60))}.`, {
    advice: known.length === 0 ? undefined : `Parameters: ${known.join(', ')}.`,
  });
}

function answerSearch(request: StacRequest): Promise<Response> {
  const search = readSearchParameters(request.url.searchParams);
  return answerPage(search, request, {
    page: (token) => ({ href: withParameter(request.url, 'token', token) }),
  });
}

function answerPost(request: StacRequest, search: StacSearch): Promise<Response> {
  const href = request.url.href;
  return answerPage(search, request, {
    page: (token) => ({ href, method: 'POST', body: { ...search, token } }),
  });
}

async function answerItems(id: string, request: StacRequest): Promise<Response> {
  const { url, root } = request;
  const search = readSearchParameters(url.searchParams);
  const key = readCollectionId(id);
  if (key === null) await requireCollection(id, request);
  return answerPage(search, request, {
    ...(key === null ? {} : { within: inCollection(key) }),
    collection: { rel: 'collection', href: collectionUrl(root, id), type: 'application/json' },
    page: (token) => ({ href: withParameter(url, 'token', token) }),
    // The list of collections may be older than the newest product.
    onEmpty: () => requireCollection(id, request),
  });
}

const geoJsonType = 'application/geo+json';

async function answerPage(
  search: StacSearch,
  { products, catalogueUrl, signal, base, url, root }: StacRequest,
  options: {
    within?: Expression;
    collection?: object;
    /** Returns a link to another page. */
    page: (token: string) => object;
    onEmpty?: () => Promise<unknown>;
  },
): Promise<Response> {
  const query = queryOf(search, options.within);
  // A client knows the number after the first page.
  const page = await readProductPage({ products, signal }, query, search.token === undefined);
  if (page.found.length === 0) await options.onEmpty?.();
  const backwards = isBackwards(search);
  const found = backwards ? page.found.toReversed() : page.found;
  const items = found.map((one) => {
    return withFields(toStacItem(one, { catalogueUrl, base }), search);
  });
  const hasMore = page.next !== null;
  const ends = [
    { rel: 'prev', end: found[0], exists: backwards ? hasMore : search.token !== undefined },
    { rel: 'next', end: found.at(-1), exists: backwards || hasMore },
  ] as const;
  const pages = ends.flatMap(({ rel, end, exists }) => {
    if (end === undefined || !exists) return [];
    const { token } = tokenOf(search, rel, products.keyOf(end.row, query));
    return [{ rel, type: geoJsonType, ...options.page(token) }];
  });
  const body = {
    type: 'FeatureCollection',
    features: items,
    ...(page.count === null || page.count.isMinimum ? {} : { numberMatched: page.count.count }),
    numberReturned: items.length,
    links: [
      { rel: 'self', href: url.href, type: geoJsonType },
      { rel: 'root', href: root, type: 'application/json' },
      ...(options.collection === undefined ? [] : [options.collection]),
      ...pages,
    ],
  };
  const warning = search.bbox && warningOf(boxOf(search.bbox));
  const warnings = warning ? { [warningHeader]: warning } : {};
  return jsonAnswer(body, { 'Content-Type': geoJsonType, ...page.headers, ...warnings });
}

async function answerItem(collection: string, id: string, request: StacRequest): Promise<Response> {
  const { products, signal, catalogueUrl, base } = request;
  const key = readCollectionId(collection);
  const one = async (entity: Entity): Promise<FoundProduct | undefined> => {
    if (key === null) return undefined;
    const filter = and(textField('Id').eq(id), inCollection(key)).tree;
    const page = await readProductPage({ products, signal }, { entity, filter, limit: 1 }, false);
    return page.found[0];
  };
  const found = await one('Products');
  if (found !== undefined) {
    const item = toStacItem(found, { catalogueUrl, base });
    return answerJson(item, geoJsonType);
  }
  const deleted = await one('DeletedProducts');
  if (deleted !== undefined) return tombstoneAnswer(collection, deleted, request.newRequestId());
  throw new AppError(
    'not_found',
    `The collection has no item ${JSON.stringify(id.slice(0, 100))}.`,
  );
}

/** Answers 410 with what is known of the deletion. */
function tombstoneAnswer(collection: string, { row }: FoundProduct, requestId: string): Response {
  const { productId, productName, deletionDateUs, deletionCause } = row;
  const detail = 'The product was deleted from the catalogue.';
  const tombstone = {
    id: productId,
    collection,
    title: productName,
    deleted: deletionDateUs === null ? null : formatDateUs(deletionDateUs),
    deletionCause,
  };
  const problem = { type: 'about:blank', title: 'Gone', status: 410, detail, requestId };
  const body = { ...problem, code: 'Gone', description: detail, tombstone };
  const headers = { 'Content-Type': 'application/problem+json' };
  return Response.json(body, { status: 410, headers });
}

export const protocols = [stacProtocol];
