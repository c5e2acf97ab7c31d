/** Descriptions of the STAC API: landing page, conformance, collections, queryables, OpenAPI. */
import type { StacCatalog, StacCollection, StacLink } from 'stac-ts';
import { security, securitySchemes } from '../../core/api/api-route.ts';
import { formatDateUs } from '../../core/terms/dates.ts';
import type { Box } from '../../filter/filter-tree.ts';
import type { CollectionSummary } from '../../filter/products.ts';
import { collectionId } from './collections.ts';
import { stacVersion } from './item.ts';
import { isUpperCase, queryableProperties } from './properties.ts';
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
const globe: Box = { west: -180, south: -90, east: 180, north: 90 };

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

const list = (items: 'string' | 'number') => ({
  schema: { type: 'array', items: { type: items } },
  ...{ style: 'form', explode: false },
});

/** Schemas of parameters that are lists or numbers; the others are texts. */
const parameterForms: Readonly<Record<string, object>> = {
  limit: { schema: { type: 'integer', minimum: 1, maximum: limitMax, default: limitDefault } },
  bbox: list('number'),
  // GDAL sends filters only if it finds cql-text here.
  'filter-lang': { schema: { type: 'string', enum: ['cql2-text', 'cql2-json', 'cql-text'] } },
  ...{ collections: list('string'), ids: list('string') },
  ...{ sortby: list('string'), fields: list('string') },
};

const searchQuery = Object.entries(searchParameters).map(([name, { description = '' }]) => ({
  ...{ name, in: 'query', required: false, description, schema: { type: 'string' } },
  ...parameterForms[name],
}));

interface Resource {
  /** Below `/stac`; `:` starts a parameter. GDAL searches for the path of items with `collectionId`. */
  path: string;
  summary: string;
  type: string;
  /** Has the parameters of a search. */
  isSearch?: true;
}

export const resources = [
  { path: '', summary: 'landing page', ...json },
  { path: '/conformance', summary: 'conformance classes', ...json },
  { path: '/api', summary: 'description (OpenAPI 3.0)', type: openApiType },
  { path: '/queryables', summary: 'properties of filters', type: schemaType },
  { path: '/collections', summary: 'collections', ...json },
  { path: '/collections/:collectionId', summary: 'one collection', ...json },
  {
    path: '/collections/:collectionId/queryables',
    summary: 'properties of filters in a collection',
    type: schemaType,
  },
  {
    path: '/collections/:collectionId/items',
    summary: 'items of a collection',
    ...geoJson,
    isSearch: true,
  },
  { path: '/collections/:collectionId/items/:featureId', summary: 'one item', ...geoJson },
  { path: '/search', summary: 'search', ...geoJson, isSearch: true },
] as const satisfies readonly Resource[];

/** Returns the description in OpenAPI 3.0, which clients of OGC API Features read. */
export function stacOpenApi(root: string, passwordNeeded: boolean): object {
  const answers = (description: string, type: string) => ({
    200: { description, content: { [type]: { schema: { type: 'object' } } } },
    default: {
      description: 'Problem (RFC 9457)',
      content: { 'application/problem+json': { schema: { type: 'object' } } },
    },
  });
  const entries = resources.map(({ path, summary, type, ...rest }: Resource) => {
    const names = Array.from(path.matchAll(/:(\w+)/g), ([, name]) => name);
    const parameters = [
      ...names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
      ...(rest.isSearch ? searchQuery : []),
    ];
    const get = { summary, parameters, responses: answers(summary, type) };
    return [path.replaceAll(/:(\w+)/g, '{$1}') || '/', { get }] as const;
  });
  const paths = Object.fromEntries(entries);
  const post = {
    summary: 'search',
    requestBody: { content: { [json.type]: { schema: { type: 'object' } } } },
    responses: answers('search', geoJson.type),
  };
  return {
    openapi: '3.0.3',
    info: { title: 'earshot STAC API', version: '1.0.0' },
    servers: [{ url: root }],
    ...(passwordNeeded ? { components: { securitySchemes }, security } : {}),
    paths: { ...paths, '/search': { ...paths['/search'], post } },
  };
}
