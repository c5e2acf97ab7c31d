/** Parameters of STAC searches (STAC API 1.0.0), and their query of the product index. */
import { z } from 'zod';
import { AppError, errorText } from '../../core/terms/app-error.ts';
import { listSchema } from '../../core/terms/json-rows.ts';
import { jsonOf } from '../../core/terms/text.ts';
import { and, type Expression, expression, or } from '../../filter/builder.ts';
import { filterTermsMax } from '../../filter/cursor.ts';
import type { FilterTree } from '../../filter/filter-tree.ts';
import { type OrderTerm, type ProductQuery, readKey } from '../../filter/products.ts';
import { isRecord } from '../../filter/values.ts';
import { intersecting, readBbox, sensedDuring } from './areas.ts';
import { parseCql2Text, readCql2 } from './cql2.ts';
import { collectionProperty, noProduct } from './properties.ts';

/** A larger limit counts as this one (OGC API Features 1.0, requirement 22). */
export const limitMax = 1_000;
export const limitDefault = 10;
const listMax = 1_000;

/** Coordinates of filters: longitude, latitude. */
const crs84 = 'http://www.opengis.net/def/crs/OGC/1.3/CRS84';

/** Maximum number of fields: one, and another for its ties. */
const sortFieldsMax = 2;

const sortable: Readonly<Record<string, OrderTerm['by']>> = {
  id: 'Id',
  title: 'Name',
  datetime: 'datetime',
  start_datetime: 'ContentDate/Start',
  end_datetime: 'ContentDate/End',
  created: 'PublicationDate',
  updated: 'ModificationDate',
  'eo:cloud_cover': 'cloudCover',
};

const names = listSchema(z.string().max(1_000), { max: listMax });
const paths = listSchema(z.string().max(200), { max: 100 }).optional();

/** Accepts objects with null members, which count as absent: some clients send all members that they know. */
const nullable = <Schema extends z.ZodObject>(schema: Schema) =>
  z.preprocess((value) => {
    if (!isRecord(value)) return value;
    return Object.fromEntries(Object.entries(value).filter(([, member]) => member !== null));
  }, schema);

const wholeNumber = 'must be a whole number, 1 or more';

/** Body of a POST; the parameters of a GET are converted to it. */
const search = z
  .strictObject({
    collections: names.optional().describe('Only items of these collections.'),
    ids: names.optional().describe('Only items with these ids.'),
    bbox: listSchema(z.number('must be a number'), { max: 6, tooLong: 'must have 4 or 6 numbers' })
      .refine(({ length }) => length === 4 || length === 6, 'must have 4 or 6 numbers')
      .optional()
      .describe('Only items in this box: west,south,east,north. Heights are ignored.'),
    datetime: z
      .string()
      .max(100)
      .optional()
      .describe(
        'Only items whose sensing time intersects this time or interval: 2026-11-20T06:00:00Z, A/B, A/.. or ../B. A date is the whole day.',
      ),
    intersects: z
      .looseObject({ type: z.string() })
      .optional()
      .describe('Only items that intersect this GeoJSON geometry. Not together with bbox.'),
    limit: z
      .int(wholeNumber)
      .min(1, wholeNumber)
      .optional()
      .describe(`Items per page, at most ${limitMax}.`),
    token: z.string().max(10_000).optional().describe('Place of the page, as in the link next.'),
    filter: z
      .union([z.string(), z.boolean(), z.looseObject({})])
      .optional()
      .describe('CQL2 filter.'),
    'filter-lang': z.enum(['cql2-text', 'cql2-json', 'cql-text']).optional(),
    'filter-crs': z.literal(crs84).optional(),
    sortby: listSchema(
      nullable(
        z.strictObject({ field: z.string(), direction: z.enum(['asc', 'desc']).default('asc') }),
      ),
      { max: sortFieldsMax, tooLong: `must have at most ${sortFieldsMax} fields` },
    )
      .optional()
      .describe(
        `One or two of ${Object.keys(sortable).join(', ')}; with - before it, descending. Items without a value count as those with the smallest.`,
      ),
    fields: nullable(z.strictObject({ include: paths, exclude: paths }))
      .optional()
      .describe('Fields to include, or with - before them to exclude, such as properties.title.'),
    f: z.enum(['json', 'geojson']).optional().describe('Format; both are GeoJSON.'),
  })
  .refine(({ bbox, intersects }) => !bbox || !intersects, 'bbox and intersects exclude each other');

export type StacSearch = z.output<typeof search>;

/** Parameters with their descriptions. */
export const searchParameters: Readonly<Record<string, { description?: string | undefined }>> =
  search.shape;

/** Reads the JSON body of a POST. Throws `invalid`. */
export function readSearchBody(text: string): StacSearch {
  const body = jsonOf(text === '' ? '{}' : text);
  if (body === undefined) throw new AppError('invalid', 'The body is not JSON.');
  return parsed(body);
}

/** Reads the parameters of a GET. Throws `invalid`. */
export function readSearchParameters(parameters: URLSearchParams): StacSearch {
  const repeated = [...new Set(parameters.keys())].find((one) => parameters.getAll(one).length > 1);
  if (repeated !== undefined) {
    throw new AppError('invalid', `The parameter ${repeated} occurs more than once.`);
  }
  const members = [...parameters].map(([name, text]) => {
    const read = readers.get(name);
    return [name, read === undefined ? text : read(text)] as const;
  });
  return parsed(Object.fromEntries(members));
}

const asList = (text: string): unknown => text.split(',').filter((one) => one !== '');
const asJson = (text: string): unknown => jsonOf(text) ?? text;

const readers: ReadonlyMap<string, (text: string) => unknown> = new Map(
  Object.entries({
    collections: asList,
    ids: asList,
    bbox: (text) => text.split(',').map((one) => (one.trim() === '' ? one : Number(one))),
    limit: Number,
    intersects: asJson,
    filter: (text) => (text.trimStart().startsWith('{') ? asJson(text) : text),
    sortby: (text) =>
      signed(text).map(([sign, field]) => ({ field, direction: sign === '-' ? 'desc' : 'asc' })),
    fields: (text) => {
      const names = (side: '+' | '-') =>
        signed(text).flatMap(([sign, name]) => (sign === side ? [name] : []));
      return { include: names('+'), exclude: names('-') };
    },
  }),
);

/** Splits `+one,-other`. A plus sign in a URL may arrive as a space. */
function signed(text: string): [sign: '+' | '-', name: string][] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map((part) => [part.startsWith('-') ? '-' : '+', part.replace(/^[+-]/, '')]);
}

/** A large body can have a thousand faults. */
const issuesMax = 100;
const detailsMax = 10;
const detailLengthMax = 200;

function parsed(body: unknown): StacSearch {
  const read = nullable(search).safeParse(body);
  if (read.success) return read.data;
  throw new AppError('invalid', 'A parameter is invalid.', {
    advice: 'GET /stac/api describes the parameters.',
    // Other faults of a value of the wrong type would follow from the first.
    details: read.error.issues
      .slice(0, issuesMax)
      .filter(({ path }, i, all) => all.findIndex((one) => isSamePath(one.path, path)) === i)
      .slice(0, detailsMax)
      .map(({ path, message }) => [...path, message].join(': ').slice(0, detailLengthMax)),
  });
}

const isSamePath = (one: readonly PropertyKey[], other: readonly PropertyKey[]) =>
  one.join('/') === other.join('/');

/** Returns the query of a search. Reports all faults at once. Throws `invalid`. */
export function queryOf(search: StacSearch, within?: Expression): ProductQuery & { limit: number } {
  const faults: string[] = [];
  const attempt = <Result>(read: () => Result): Result | undefined => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      faults.push(errorText(error), ...error.details);
      return undefined;
    }
  };
  const { collections, ids, bbox, datetime, intersects } = search;
  const conditions = [
    within,
    attempt(() => collections && anyOf(collections, (id) => collectionProperty.compare('eq', id))),
    attempt(() => (ids?.length === 0 ? noProduct : ids && withIds(ids))),
    attempt(() => bbox && readBbox(bbox).matching),
    attempt(() => intersects && intersecting(intersects)),
    attempt(() => (datetime === undefined ? undefined : sensedDuring(datetime))),
    attempt(() => filterOf(search)),
  ].filter((one) => one !== undefined);
  if (conditions.reduce((sum, { tree }) => sum + termsIn(tree), 0) > filterTermsMax) {
    faults.push(`The search has more than ${filterTermsMax} conditions.`);
  }
  const order = attempt(() => orderOf(search));
  const after = order && attempt(() => keyOf(search, order));
  if (faults.length > 0) {
    const [only = ''] = faults;
    throw faults.length === 1
      ? new AppError('invalid', only)
      : new AppError('invalid', 'The search cannot be answered.', { details: faults });
  }
  return {
    entity: 'Products',
    filter: conditions.length === 0 ? null : and(...conditions).tree,
    order,
    after,
    limit: Math.min(search.limit ?? limitDefault, limitMax),
  };
}

/** Conditions and literals of `in`, as in filters of OData. An area takes as long as ten others. */
function termsIn(tree: FilterTree): number {
  if (tree.node === 'and' || tree.node === 'or') {
    return tree.terms.reduce((sum, term) => sum + termsIn(term), 0);
  }
  if (tree.node === 'not') return termsIn(tree.term);
  if (tree.node === 'in') return tree.literals.length;
  return tree.node === 'intersects' ? 10 : 1;
}

function anyOf(values: readonly string[], condition: (value: string) => Expression): Expression {
  return values.length === 0 ? noProduct : or(...values.map(condition));
}

function withIds(ids: readonly string[]): Expression {
  const literals = ids.map((value) => ({ type: 'text', value }) as const);
  return expression({ node: 'in', field: 'Id', literals });
}

function filterOf(search: StacSearch): Expression | undefined {
  const { filter, 'filter-lang': language } = search;
  if (filter === undefined) return undefined;
  const isText = typeof filter === 'string';
  if (isText && language !== 'cql2-json') return readCql2(parseCql2Text(filter));
  if (!isText && language !== undefined && language !== 'cql2-json') {
    throw new AppError('invalid', `filter is JSON, but filter-lang is ${language}.`);
  }
  const json = isText ? jsonOf(filter) : filter;
  if (json !== undefined) return readCql2(json);
  throw new AppError('invalid', 'filter is not JSON, but filter-lang is cql2-json.');
}

function orderOf({ sortby = [] }: StacSearch): readonly OrderTerm[] {
  return sortby.map(({ field, direction }) => {
    const name = field.replace(/^properties\./, '');
    const by = Object.hasOwn(sortable, name) ? sortable[name] : undefined;
    if (by !== undefined) return { by, direction };
    throw new AppError(
      'invalid',
      `Items cannot be sorted by ${JSON.stringify(field.slice(0, 60))}.`,
      { advice: `Sort by one or two of ${Object.keys(sortable).join(', ')}.` },
    );
  });
}

function keyOf({ token }: StacSearch, order: readonly OrderTerm[]): ProductQuery['after'] {
  if (token === undefined) return undefined;
  const key = readKey(token, { entity: 'Products', order });
  if (key !== null) return key;
  const advice = 'Use the link next of a page.';
  throw new AppError('invalid', 'The token is invalid.', { advice });
}

/** Fields of an item without `properties`, which a search with `fields` returns in any case. */
const usualFields = [
  'type',
  'stac_version',
  'id',
  'collection',
  'geometry',
  'bbox',
  'links',
  'assets',
];

/**
 * Returns the requested fields of an item (STAC API fields 1.0.0, "Include/Exclude Semantics"). Paths are split at the
 * first dot: members of objects are one level deep.
 */
export function withFields(item: object, { fields }: StacSearch): object {
  if (fields === undefined) return item;
  const chosen = new Map<string, unknown>();
  for (const path of [...usualFields, 'properties.datetime', ...(fields.include ?? [])]) {
    const [name = '', member] = path.split(/\.(.*)/s);
    const value: unknown = Object.hasOwn(item, name) ? Object(item)[name] : undefined;
    if (member === undefined) chosen.set(name, value);
    else if (isRecord(value) && Object.hasOwn(value, member)) {
      chosen.set(name, { ...Object(chosen.get(name)), [member]: Object(value)[member] });
    }
  }
  for (const path of fields.exclude ?? []) {
    const [name = '', member] = path.split(/\.(.*)/s);
    const value = chosen.get(name);
    if (member === undefined) chosen.delete(name);
    else if (isRecord(value)) {
      const rest = Object.entries(value).filter(([key]) => key !== member);
      chosen.set(name, Object.fromEntries(rest));
    }
  }
  return Object.fromEntries(chosen);
}
