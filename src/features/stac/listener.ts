/** The paths below `/stac`: a STAC API 1.0.0, which is also an OGC API – Features, over the product index. */

import type { Context, Hono } from 'hono';
import { withParameter } from '../../core/api/api-route.ts';
import type { ConsoleParts, PathRow, Protocol } from '../../core/api/listener-slot.ts';
import { createQueryBodyReader, type Environment, sent } from '../../core/api/query-line.ts';
import { apiProblem } from '../../core/http/problem.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { formatDateUs } from '../../core/terms/dates.ts';
import { and, type Expression, textField } from '../../filter/builder.ts';
import type { Entity } from '../../filter/filter-tree.ts';
import { type CollectionSummary, type FoundProduct, writeKey } from '../../filter/products.ts';
import { readProductPage, warningHeader } from '../products/route.ts';
import { readBbox } from './areas.ts';
import {
  type CollectionList,
  collectionId,
  createCollectionList,
  inCollection,
  readCollectionId,
} from './collections.ts';
import {
  collectionUrl,
  conformsTo,
  landingPage,
  openApiType,
  queryablesDraft,
  queryablesSchema,
  resources,
  schemaType,
  stacOpenApi,
  toStacCollection,
} from './description.ts';
import { toStacItem } from './item.ts';
import {
  queryOf,
  readSearchBody,
  readSearchParameters,
  type StacSearch,
  withFields,
} from './search.ts';

const stacPath = '/stac';

/** Entries of the list of paths. */
const paths: readonly PathRow[] = [
  ...resources.map(({ path, summary }) => ({ method: 'GET', path, summary })),
  { method: 'POST', path: '/search', summary: 'search' },
].map(({ path, summary, ...one }) => ({
  ...{ ...one, summary: `STAC API: ${summary}` },
  path: `${stacPath}${path.replaceAll(/:\w+/g, '<id>')}`,
}));

/** Maximum size of the body of a search: an area of about 3,500 positions with four decimals. */
const searchBytesMax = 64 * 1024;

/** Answers an error: problem JSON, with the members of OGC API Features (1.0, 7.5.1) in addition. */
async function problemOf(error: unknown, requestId: string): Promise<Response> {
  const answer = apiProblem(error, requestId);
  const problem = Object(await answer.json());
  const { title, detail, errors = [] } = problem;
  const body = { code: title, description: [detail, ...errors].join(' '), ...problem };
  return new Response(JSON.stringify(body), answer);
}

/** The STAC API. */
const stacProtocol: Protocol = {
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
  const answer = (
    c: Context<Environment>,
    rows: unknown,
    respond: (request: StacRequest) => Promise<Response>,
  ) => {
    const { base, url } = c.var.address;
    const { collectionId: id = '', featureId: item = '' }: Record<string, string> = c.req.param();
    const accept = c.req.header('accept') ?? '';
    const request = { ...source, collections, base, url, root: `${base}${stacPath}`, accept };
    return lineFor(rows)(
      (signal) => respond({ ...request, signal, id, item }),
      c.req.raw.signal,
      sent(c),
    );
  };
  for (const { path, ...rest } of resources) {
    app.get(`${stacPath}${path}`, (c) =>
      answer(c, c.req.query('limit'), (request) => {
        if (!('isSearch' in rest)) requireKnown(request.url);
        return responses[path](request);
      }),
    );
  }
  app.get(`${stacPath}/*`, (c) => {
    const url = new URL(c.var.address.url);
    // Clients add a slash to the address of a catalogue.
    if (url.pathname.endsWith('/')) {
      url.pathname = url.pathname.slice(0, -1);
      return c.redirect(url.href, 308);
    }
    const advice = `GET ${stacPath} has links to all paths.`;
    throw new AppError('not_found', 'Unknown path.', { advice });
  });
  const readBody = createQueryBodyReader(searchBytesMax);
  app.post(`${stacPath}/search`, async (c) => {
    const search = await readBody(c.env.incoming, readSearchBody);
    return answer(c, search.limit, (request) => {
      const { href } = request.url;
      return answerPage(search, request, {
        page: (token) => ({ href, method: 'POST', body: { ...search, token } }),
      });
    });
  });
}

/** Answers of the resources. They reject with `invalid` and `not_found`. */
const responses: Record<
  (typeof resources)[number]['path'],
  (request: StacRequest) => Promise<Response>
> = {
  '': async ({ root, collections }) => answerJson(landingPage(root, await collections())),
  '/conformance': () => answerJson({ conformsTo }),
  '/api': ({ root, passwordNeeded }) => answerJson(stacOpenApi(root, passwordNeeded), openApiType),
  '/queryables': answerQueryables,
  '/collections': async ({ root, url, collections }) => {
    const all = await collections();
    return answerJson({
      collections: all.map((one) => toStacCollection(root, one)),
      ...{ numberMatched: all.length, numberReturned: all.length },
      links: [
        { rel: 'self', href: url.href, type: 'application/json' },
        { rel: 'root', href: root, type: 'application/json' },
      ],
    });
  },
  '/collections/:collectionId': async (request) =>
    answerJson(toStacCollection(request.root, await requireCollection(request))),
  '/collections/:collectionId/queryables': async (request) => {
    await requireCollection(request);
    return answerQueryables(request);
  },
  '/collections/:collectionId/items': async (request) => {
    const { url, root, id } = request;
    const search = readSearchParameters(url.searchParams);
    const key = readCollectionId(id);
    if (key === null) await requireCollection(request);
    return answerPage(search, request, {
      ...(key === null ? {} : { within: inCollection(key) }),
      collection: { rel: 'collection', href: collectionUrl(root, id), type: 'application/json' },
      // The list of collections may be older than the newest product.
      onEmpty: () => requireCollection(request),
    });
  },
  '/collections/:collectionId/items/:featureId': answerItem,
  '/search': async (request) => answerPage(readSearchParameters(request.url.searchParams), request),
};

interface StacRequest
  extends Pick<ConsoleParts, 'products' | 'catalogueUrl' | 'passwordNeeded' | 'newRequestId'> {
  collections: CollectionList;
  /** Aborts the query. */
  signal: AbortSignal;
  base: string;
  url: URL;
  root: string;
  /** Header of the request. */
  accept: string;
  /** Parts of the path; empty if it has none. */
  id: string;
  item: string;
}

async function answerQueryables({ url, accept }: StacRequest): Promise<Response> {
  const isDraft = accept.includes('application/json') && !accept.includes(schemaType);
  // An id has no parameters (OGC API Features, part 3, requirement 5).
  const id = `${url.origin}${url.pathname}`;
  const [body, type] = isDraft
    ? [queryablesDraft(id), 'application/json']
    : [queryablesSchema(id), schemaType];
  return Response.json(body, { headers: { 'Content-Type': type, Vary: 'Accept' } });
}

async function answerJson(body: object, type = 'application/json'): Promise<Response> {
  return Response.json(body, { headers: { 'Content-Type': type } });
}

async function requireCollection({ id, collections }: StacRequest): Promise<CollectionSummary> {
  const found = (await collections()).find((one) => collectionId(one) === id);
  if (found !== undefined) return found;
  throw new AppError('not_found', `There is no collection ${JSON.stringify(id.slice(0, 100))}.`, {
    advice: `GET ${stacPath}/collections lists the collections.`,
  });
}

/** Refuses parameters other than `f` (OGC API Features 1.0, requirement 8). */
function requireKnown({ searchParams }: URL): void {
  const unknown = [...searchParams.keys()].find((name) => name !== 'f');
  if (unknown === undefined) return;
  throw new AppError('invalid', `Unknown parameter ${JSON.stringify(unknown.slice(0, 60))}.`);
}

const geoJsonType = 'application/geo+json';

async function answerPage(
  search: StacSearch,
  { products, catalogueUrl, signal, base, url, root }: StacRequest,
  options: {
    within?: Expression;
    collection?: object;
    /** Returns a link to another page; by default, the same URL with a token. */
    page?: (token: string) => object;
    onEmpty?: () => Promise<unknown>;
  } = {},
): Promise<Response> {
  const query = queryOf(search, options.within);
  // A client knows the number after the first page.
  const page = await readProductPage({ products, signal }, query, search.token === undefined);
  if (page.found.length === 0) await options.onEmpty?.();
  const items = page.found.map((one) => {
    return withFields(toStacItem(one, { catalogueUrl, base }), search);
  });
  const linkTo =
    options.page ?? ((token: string) => ({ href: withParameter(url, 'token', token) }));
  const next = page.next && linkTo(writeKey(page.next, query));
  const body = {
    type: 'FeatureCollection',
    features: items,
    ...(page.count === null || page.count.isMinimum ? {} : { numberMatched: page.count.count }),
    numberReturned: items.length,
    links: [
      { rel: 'self', href: url.href, type: geoJsonType },
      { rel: 'root', href: root, type: 'application/json' },
      ...(options.collection === undefined ? [] : [options.collection]),
      ...(next === null ? [] : [{ rel: 'next', type: geoJsonType, ...next }]),
    ],
  };
  const warning = search.bbox && readBbox(search.bbox).warning;
  const warnings = warning ? { [warningHeader]: warning } : {};
  const headers = { 'Content-Type': geoJsonType, ...page.headers, ...warnings };
  return Response.json(body, { headers });
}

async function answerItem(request: StacRequest): Promise<Response> {
  const { products, signal, catalogueUrl, base, id, item } = request;
  const key = readCollectionId(id);
  const one = async (entity: Entity): Promise<FoundProduct | undefined> => {
    if (key === null) return undefined;
    const filter = and(textField('Id').eq(item), inCollection(key)).tree;
    const page = await readProductPage({ products, signal }, { entity, filter, limit: 1 }, false);
    return page.found[0];
  };
  const found = await one('Products');
  if (found !== undefined) {
    return answerJson(toStacItem(found, { catalogueUrl, base }), geoJsonType);
  }
  const deleted = await one('DeletedProducts');
  if (deleted !== undefined) return tombstoneAnswer(id, deleted, request.newRequestId());
  const shown = JSON.stringify(item.slice(0, 100));
  throw new AppError('not_found', `The collection has no item ${shown}.`);
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
