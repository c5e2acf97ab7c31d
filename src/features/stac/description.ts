/** Descriptions of the STAC API: landing page, conformance, collections, queryables, OpenAPI. */
import type { StacCatalog, StacCollection, StacLink } from 'stac-ts';
import { security, securitySchemes } from '../../core/api/api-route.ts';
import { formatDateUs } from '../../core/terms/dates.ts';
import type { Box } from '../../filter/filter-tree.ts';
import type { CollectionSummary } from '../../filter/products.ts';
import { collectionId } from './collections.ts';
import { isUpperCase } from './conditions.ts';
import { stacVersion } from './item.ts';
import { queryableProperties } from './properties.ts';
import { limitDefault, limitMax, searchParameters } from './search.ts';

const json = { type: 'application/json' };
const geoJson = { type: 'application/geo+json' };
export const openApiType = 'application/vnd.oai.openapi+json;version=3.0';
export const schemaType = 'application/schema+json';
const queryablesRel = 'http://www.opengis.net/def/rel/ogc/1.0/queryables';

const stacApi = 'https://api.stacspec.org/v1.0.0';
const ogc = 'http://www.opengis.net/spec';

/** Conformance classes. docs/stac.md lists the limits. */
export const conformsTo: readonly string[] = [
  `${stacApi}/core`,
  `${stacApi}/collections`,
  `${stacApi}/ogcapi-features`,
  `${stacApi}/item-search`,
  `${stacApi}-rc.1/collection-search`,
  `${ogc}/ogcapi-common-2/1.0/conf/simple-query`,
  ...['fields', 'sort', 'filter'].map((one) => `${stacApi}/item-search#${one}`),
  ...['fields', 'sort'].map((one) => `${stacApi}/ogcapi-features#${one}`),
  ...['core', 'oas30', 'geojson'].map((one) => `${ogc}/ogcapi-features-1/1.0/conf/${one}`),
  ...['filter', 'features-filter', 'queryables'].map(
    (one) => `${ogc}/ogcapi-features-3/1.0/conf/${one}`,
  ),
  ...[
    'cql2-text',
    'cql2-json',
    'basic-cql2',
    'basic-spatial-functions',
    'basic-spatial-functions-plus',
  ].map((one) => `${ogc}/cql2/1.0/conf/${one}`),
];

/** Returns the landing page, which is also the root catalogue. */
export function landingPage(
  root: string,
  collections: readonly CollectionSummary[],
): StacCatalog & { conformsTo: readonly string[] } {
  return {
    type: 'Catalog',
    stac_version: stacVersion,
    id: 'earshot',
    title: 'earshot',
    description: 'Products of the received notifications, each in its newest state.',
    conformsTo,
    links: [
      { rel: 'self', href: root, ...json },
      { rel: 'root', href: root, ...json },
      { rel: 'conformance', href: `${root}/conformance`, ...json },
      { rel: 'service-desc', href: `${root}/api`, type: openApiType, title: 'OpenAPI 3.0' },
      { rel: 'data', href: `${root}/collections`, ...json },
      { rel: 'search', href: `${root}/search`, ...geoJson, method: 'GET' },
      { rel: 'search', href: `${root}/search`, ...geoJson, method: 'POST' },
      { rel: queryablesRel, href: `${root}/queryables`, type: schemaType },
      ...collections.map(
        (one): StacLink => ({
          rel: 'child',
          href: collectionUrl(root, collectionId(one)),
          ...json,
          title: titleOf(one),
        }),
      ),
    ],
  };
}

export function collectionUrl(root: string, id: string): string {
  return `${root}/collections/${encodeURIComponent(id)}`;
}

function titleOf({ mission, productType }: CollectionSummary): string {
  return `${mission ?? 'Unknown mission'}, ${productType ?? 'without product type'}`;
}

/** Terms of the Copernicus Sentinel data (sentinels.copernicus.eu). */
const sentinelTerms =
  'https://sentinels.copernicus.eu/documents/247904/690755/Sentinel_Data_Legal_Notice';

/** Box of an unknown extent. */
export const globe: Box = { west: -180, south: -90, east: 180, north: 90 };

/** Returns a collection. */
export function toStacCollection(root: string, summary: CollectionSummary): StacCollection {
  const id = collectionId(summary);
  const { box, sensingStartUs, sensingEndUs, products } = summary;
  const { west, south, east, north } = box ?? globe;
  const time = (us: number | null) => (us === null ? null : formatDateUs(us));
  const self = collectionUrl(root, id);
  const isSentinel = summary.mission?.startsWith('SENTINEL-') === true;
  const links: StacLink[] = [
    { rel: 'self', href: self, ...json },
    { rel: 'root', href: root, ...json },
    { rel: 'parent', href: root, ...json },
    { rel: 'items', href: `${self}/items`, ...geoJson },
    // Drafts of the standard had the short name, which GDAL 3.6 reads.
    ...[queryablesRel, 'queryables'].map((rel) => ({
      rel,
      href: `${self}/queryables`,
      type: schemaType,
    })),
    ...(isSentinel ? [{ rel: 'license', href: sentinelTerms, title: 'Terms of use' }] : []),
  ];
  return {
    type: 'Collection',
    stac_version: stacVersion,
    stac_extensions: [],
    id,
    title: titleOf(summary),
    description: `Products of ${titleOf(summary)}, of which notifications were received: ${products} when this list was made.`,
    // OGC API Features; some of its clients list no other collections.
    itemType: 'feature',
    license: isSentinel ? 'proprietary' : 'various',
    extent: {
      spatial: { bbox: [[west, south, east, north]] },
      temporal: { interval: [[time(sensingStartUs), time(sensingEndUs)]] },
    },
    summaries: summariesOf(summary),
    links,
  };
}

function summariesOf(summary: CollectionSummary): NonNullable<StacCollection['summaries']> {
  const { constellations, platforms, orbitDirections, levels, cloudCoverMin, cloudCoverMax } =
    summary;
  const lower = (values: readonly string[]) =>
    values.filter(isUpperCase).map((value) => value.toLowerCase());
  const lists = {
    constellation: lower(constellations),
    platform: lower(platforms),
    'sat:orbit_state': lower(orbitDirections),
    'processing:level': levels,
  };
  const known = Object.entries(lists).filter(([, values]) => values.length > 0);
  return {
    ...Object.fromEntries(known),
    ...(cloudCoverMin === null || cloudCoverMax === null
      ? {}
      : { 'eo:cloud_cover': { minimum: cloudCoverMin, maximum: cloudCoverMax } }),
  };
}

/** Returns the properties that a filter can name, as JSON Schema (OGC API Features, part 3). */
export function queryablesSchema(url: string): object {
  const typeOf = (type: string) =>
    type === 'date-time' ? { type: 'string', format: 'date-time' } : { type };
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    $id: url,
    type: 'object',
    title: 'Queryables',
    properties: {
      geometry: { title: 'Footprint', $ref: 'https://geojson.org/schema/Geometry.json' },
      ...Object.fromEntries(
        queryableProperties.map(({ name, title, type, values }) => [
          name,
          { title, ...typeOf(type), ...(values === undefined ? {} : { enum: values }) },
        ]),
      ),
    },
    additionalProperties: false,
  };
}

/** Returns the list of a draft of the standard, which GDAL 3.6 reads to send filters. */
export function queryablesDraft(url: string): object {
  const list = queryableProperties.map(({ name, type }) => ({ id: name, type }));
  return { ...queryablesSchema(url), queryables: list };
}

interface Operation {
  summary: string;
  parameters?: readonly { name: string; in: string; description?: string }[];
  requestBody?: object;
  responses: object;
}

interface OpenApi {
  openapi: string;
  info: { title: string; version: string };
  servers: { url: string }[];
  paths: Record<string, Record<string, Operation>>;
  components?: object;
  security?: object;
}

const pathParameters = (names: readonly string[]) =>
  names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } }));

const limitSchema = { type: 'integer', minimum: 1, maximum: limitMax };

/** Schemas of parameters that are lists or numbers; the others are texts. */
const parameterForms: Readonly<Record<string, object>> = {
  limit: { schema: { ...limitSchema, default: limitDefault } },
  'filter-lang': { schema: { type: 'string', enum: ['cql2-text', 'cql2-json', 'cql-text'] } },
  ...Object.fromEntries(
    ['collections', 'ids', 'sortby', 'fields'].map((name) => [
      name,
      { schema: { type: 'array', items: { type: 'string' } }, style: 'form', explode: false },
    ]),
  ),
  bbox: {
    schema: { type: 'array', minItems: 4, maxItems: 6, items: { type: 'number' } },
    style: 'form',
    explode: false,
  },
};

/** Parameters of the list of collections. */
export const collectionParameters: typeof searchParameters = {
  bbox: { description: 'Only collections whose box intersects this box: west,south,east,north.' },
  datetime: {
    description: 'Only collections whose sensing times intersect this time or interval.',
  },
  limit: { description: `Collections per page, at most ${limitMax}, which is the default.` },
  token: { description: 'Place of the page, as in the links next and prev.' },
  f: { description: 'Format; the list is JSON.' },
};

function queryParameters(parameters: typeof searchParameters, forms = parameterForms) {
  return Object.entries(parameters).map(([name, { description = '' }]) => ({
    name,
    in: 'query',
    required: false,
    description,
    schema: { type: 'string' },
    ...forms[name],
  }));
}

/** Returns the description in OpenAPI 3.0, which clients of OGC API Features read. */
export function stacOpenApi(root: string, passwordNeeded: boolean): OpenApi {
  const get = (summary: string, parameters: Operation['parameters'] = [], type = json.type) => ({
    get: { summary, parameters, responses: answers(summary, type) },
  });
  const collection = pathParameters(['collectionId']);
  const searchQuery = queryParameters(searchParameters);
  return {
    openapi: '3.0.3',
    info: { title: 'earshot STAC API', version: '1.0.0' },
    servers: [{ url: root }],
    ...(passwordNeeded ? { components: { securitySchemes }, security } : {}),
    paths: {
      '/': get('Landing page'),
      '/conformance': get('Conformance classes'),
      '/collections': get(
        'Collections',
        queryParameters(collectionParameters, {
          ...parameterForms,
          limit: { schema: limitSchema },
        }),
      ),
      '/collections/{collectionId}': get('A collection', collection),
      '/collections/{collectionId}/queryables': get('Queryables', collection, schemaType),
      '/collections/{collectionId}/items': get(
        'Items of a collection',
        [...collection, ...searchQuery],
        geoJson.type,
      ),
      '/collections/{collectionId}/items/{featureId}': get(
        'An item',
        pathParameters(['collectionId', 'featureId']),
        geoJson.type,
      ),
      '/queryables': get('Queryables', [], schemaType),
      '/search': {
        ...get('Search', searchQuery, geoJson.type),
        post: {
          summary: 'Search',
          requestBody: { content: { [json.type]: { schema: { type: 'object' } } } },
          responses: answers('Search', geoJson.type),
        },
      },
    },
  };
}

function answers(description: string, type: string): object {
  const content = { [type]: { schema: { type: 'object' } } };
  const problem = { 'application/problem+json': { schema: { type: 'object' } } };
  return {
    200: { description, content },
    ...Object.fromEntries(
      Object.entries(problems).map(([status, text]) => [
        status,
        { description: text, content: problem },
      ]),
    ),
  };
}

/** Problems (RFC 9457) of every path. */
const problems = {
  400: 'Invalid parameter',
  401: 'Wrong or missing password',
  404: 'Not found',
  410: 'The item was deleted; tombstone has date and cause',
  413: 'The body of the search is too large',
  503: 'Too many queries, or no index; Retry-After has the seconds to wait',
};
