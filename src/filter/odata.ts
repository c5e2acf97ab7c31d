/** OData queries of Products and DeletedProducts: query options, and refusals and responses in the catalogue's form. */
import { z } from 'zod';
import { listSchema } from '../core/terms/json-rows.ts';
import { jsonOf, nearestName } from '../core/terms/text.ts';
import { checkFilter } from './check.ts';
import {
  type Expandable,
  expandable,
  expandables,
  type OrderableField,
  orderableFields,
  selectable,
} from './fields.ts';
import {
  type Direction,
  type Entity,
  entities,
  type FilterTree,
  type InNode,
} from './filter-tree.ts';

/** The catalogue's limits (facts, filters 1). */
const topMax = 1_000;
const topDefault = 20;
export const skipMax = 10_000;

export interface QueryOptions {
  /** Null matches everything. */
  readonly filter: FilterTree | null;
  readonly orderby: { readonly field: OrderableField; readonly direction: Direction } | null;
  readonly top: number;
  readonly skip: number;
  readonly count: boolean;
  readonly expand: ReadonlySet<Expandable>;
  /** In the spelling of records; null for all. */
  readonly select: readonly string[] | null;
  /** Opaque end of a page of our own; not checked here. */
  readonly skiptoken: string | null;
}

const single = ['$filter', '$orderby', '$top', '$skip', '$count', '$skiptoken'] as const;
const known = [...single, '$expand', '$select'] as const;

/** Options of OData that change the result: a service without them must refuse them (OData 4.01, part 1, 11.2.1). */
const unsupported = /^\$?(?:search|apply|compute|deltatoken|index)$/i;

/**
 * Ignores unknown options, as the catalogue does, but refuses a misspelled one: ignoring it would return everything.
 * `$expand` and `$select` may be lists and be repeated; any other repeated option is refused (OData 4.01, part 1,
 * 11.2.1). Throws `ODataRefusal`: first for unsupported options (501), then for invalid numbers and Booleans, all together
 * (422), then for the rest, one at a time (400).
 */
export function readQueryOptions(
  params: URLSearchParams,
  entity: Entity,
  topByDefault = topDefault,
): QueryOptions {
  const unknown = [...params.keys()].find((name) => unsupported.test(name));
  if (unknown !== undefined) {
    throw new ODataRefusal(501, `The option ${unknown} is not supported. Use $filter.`);
  }
  const items: ValidationItem[] = [];
  const top = readWhole(params, '$top', topByDefault, topMax, items);
  const skip = readWhole(params, '$skip', 0, skipMax, items);
  const count = readCount(params, items);
  if (items.length > 0) throw new ODataRefusal(422, 'Invalid numbers or Booleans.', items);
  refuseMisspelled(params);
  const twice = single.find((name) => params.getAll(name).length > 1);
  if (twice !== undefined) throw invalid(`Invalid value: ${twice} is given more than once.`);
  const expand = readExpand(listOf(params, '$expand'), expandable[entity]);
  const orderby = readOrder(params.get('$orderby') ?? '', entity);
  const select = readSelect(listOf(params, '$select'), selectable[entity]);
  const filter = readFilter(params.get('$filter') ?? '', entity);
  return { filter, orderby, top, skip, count, expand, select, skiptoken: params.get('$skiptoken') };
}

const invalid = (message: string) => new ODataRefusal(400, message);

function refuseMisspelled(params: URLSearchParams): void {
  for (const name of params.keys()) {
    if (known.some((one) => one === name)) continue;
    const meant = known.find((one) => one === `$${name}`) ?? nearestName(name, known);
    if (meant !== null) throw invalid(`Invalid option: ${name}. Did you mean ${meant}?`);
  }
}

function listOf(params: URLSearchParams, name: string): string[] {
  const entries = params.getAll(name).flatMap((text) => text.split(','));
  return entries.map((entry) => entry.trim()).filter((entry) => entry !== '');
}

function readExpand(names: readonly string[], accepted: readonly Expandable[]) {
  if (names.some((name) => !accepted.some((one) => one === name))) {
    const list = accepted.toSorted().join(', ');
    throw invalid(`Expand parameter only accepts following values: ${list}.`);
  }
  return new Set(accepted.filter((one) => names.includes(one)));
}

const directions: readonly Direction[] = ['asc', 'desc'];

/** Reads one property: it is unknown whether the catalogue accepts several. The server orders ties. */
function readOrder(text: string, entity: Entity) {
  if (text.trim() === '') return null;
  const [name = '', word = 'asc', ...rest] = text.trim().split(/\s+/);
  const field = orderableFields[entity].find((one) => one.toLowerCase() === name.toLowerCase());
  const direction = directions.find((one) => one === word.toLowerCase());
  if (field !== undefined && direction !== undefined && rest.length === 0) {
    return { field, direction };
  }
  throw invalid(
    "Invalid value: Invalid field name in the order by clause. Please use only 'asc' or 'desc' for sorting.",
  );
}

function readSelect(names: readonly string[], accepted: readonly string[]) {
  const selected = names
    .filter((name) => name !== '*')
    .map((name) => {
      const found = accepted.find((one) => one.toLowerCase() === name.toLowerCase());
      if (found === undefined) throw invalid(`Invalid field in select: ${name}`);
      return found;
    });
  return names.length === 0 || names.includes('*') ? null : selected;
}

function readFilter(text: string, entity: Entity): FilterTree | null {
  const {
    tree,
    errors: [error],
  } = checkFilter(text, entity);
  if (error === undefined) return tree;
  const { code, message, start, hint } = error;
  // The catalogue reports an unknown property as "Invalid field"; its complete text was never recorded.
  const isField = code === 'unknown-field' || code === 'field-of-other-entity';
  const kind = isField ? 'Invalid field' : 'Invalid value';
  const advice = hint === undefined ? '' : ` ${hint}`;
  throw invalid(`${kind}: ${message} (at character ${start + 1} of $filter)${advice}`);
}

/** Reads `$top` or `$skip`; adds a fault to `items` and returns the default. */
function readWhole(
  params: URLSearchParams,
  name: '$top' | '$skip',
  fallback: number,
  max: number,
  items: ValidationItem[],
): number {
  const input = params.get(name);
  if (input === null) return fallback;
  const refuse = (type: string, should: string, rest: Pick<ValidationItem, 'ctx'> = {}) => {
    items.push({ type, loc: ['query', name], msg: `Input should be ${should}`, input, ...rest });
    return fallback;
  };
  if (!/^\s*[+-]?\d+\s*$/.test(input)) {
    return refuse('int_parsing', 'a valid integer, unable to parse string as an integer');
  }
  const value = Number(input);
  const ctx = { error: {} };
  if (value < 0) return refuse('greater_than_equal', 'greater than or equal to 0', { ctx });
  return value <= max ? value : refuse('less_than_equal', `less than or equal to ${max}`, { ctx });
}

/** Reads `$count`: True, true, 1, False, false or 0, as documented by the vendor. */
function readCount(params: URLSearchParams, items: ValidationItem[]): boolean {
  const input = params.get('$count') ?? 'false';
  if (!/^(?:true|1|false|0)$/i.test(input)) {
    const msg = 'Input should be a valid boolean, unable to interpret input';
    items.push({ type: 'bool_parsing', loc: ['query', '$count'], msg, input });
  }
  return /^(?:true|1)$/i.test(input);
}

/** A value with the wrong type or out of range. */
interface ValidationItem {
  readonly type: string;
  /** `query` and the option, or `body` and the path in the body. */
  readonly loc: readonly PropertyKey[];
  readonly msg: string;
  readonly input: string | null;
  readonly ctx?: { readonly error: object };
}

/** A refusal of a request; the message is for the client. */
export class ODataRefusal extends Error {
  readonly status: number;
  /** The faults, with 422. */
  readonly items: readonly ValidationItem[];

  constructor(status: number, message: string, items: readonly ValidationItem[] = []) {
    super(message);
    this.status = status;
    this.items = items;
  }
}

/** Response body of a refusal; the response's header `request-id` must have the same id. */
export function refusalBody({ message, items }: ODataRefusal, requestId: string) {
  return { detail: items.length > 0 ? items : { message, request_id: requestId } };
}

/** Detail for an unknown path below `/odata/v1`; its status was not recorded. */
export const invalidPath = 'Invalid odata path';

/** Path below `/odata/v1`. */
export const filterListPath = '/Products/OData.CSC.FilterList';

/** Maximum number of names; equal to the maximum page size. */
export const filterListNamesMax = 1_000;

/** Maximum size of a body; 1,000 names of the catalogue take about 100 kB. */
export const filterListBytesMax = 128 * 1024;

/** Names have up to 99 characters (facts, catalogue 2). */
const nameLengthMax = 1_000;

/** Maximum number of faults in a refusal. */
const faultsShownMax = 20;

const schema = z.object({
  FilterProducts: listSchema(z.object({ Name: z.string().min(1).max(nameLengthMax) }), {
    min: 1,
    max: filterListNamesMax,
  }),
});

/** Converts the body to a condition on the name; ignores unknown members. Throws `ODataRefusal`. */
export function readFilterList(text: string): InNode {
  const read = schema.safeParse(jsonOf(text));
  if (!read.success) {
    const items = read.error.issues.slice(0, faultsShownMax).map(({ code, path, message }) => ({
      type: code,
      loc: ['body', ...path],
      msg: message,
      input: null,
    }));
    throw new ODataRefusal(422, 'Invalid list of products.', items);
  }
  const names = [...new Set(read.data.FilterProducts.map(({ Name }) => Name))];
  const literals = names.map((value) => ({ type: 'text', value }) as const);
  return { node: 'in', field: 'Name', literals };
}

const form = /^\/(\w+)(?:(?:\(|%28)([\w-]{1,100})(?:\)|%29))?$/;

/** Parses the path after `/odata/v1`: a list, or one record by its id without quotes. Null for other paths. */
export function readProductPath(resource: string) {
  const [, name, id = null] = form.exec(resource) ?? [];
  const entity = entities.find((one) => one === name);
  return entity === undefined ? null : { entity, id };
}

/** Returns the collection of `/Attributes(<collection>)`; null for other paths. */
export function readAttributesPath(resource: string): string | null {
  return /^\/Attributes(?:\(|%28)([\w-]{1,100})(?:\)|%29)$/.exec(resource)?.[1] ?? null;
}

/** Message for an unknown id, in the catalogue's form for subscriptions (facts, catalogue 1.4). */
export function unknownProduct(id: string): string {
  return `Product with id ${id} not found.`;
}

type Json = Readonly<Record<string, unknown>>;

type Shape = Pick<QueryOptions, 'expand' | 'select'>;

/** A page of records, with the parts of its response. */
interface Page {
  readonly entity: Entity;
  readonly options: QueryOptions;
  /** In the catalogue's form, as received or published. */
  readonly records: readonly Json[];
  /** Total number of matches, with `$count`; else null. */
  readonly count: number | null;
  /** Null on the last page. */
  readonly nextLink: string | null;
}

/** Response body of a list, with properties in the recorded order. */
export function listAnswer({ entity, options, records, count, nextLink }: Page): Json {
  return {
    '@odata.context': contextOf(entity, options),
    ...(count === null ? {} : { '@odata.count': count }),
    value: records.map((record) => shaped(record, options)),
    ...(nextLink === null ? {} : { '@odata.nextLink': nextLink }),
  };
}

/** Response body of one record. */
export function recordAnswer(entity: Entity, options: Shape, record: Json): Json {
  return {
    '@odata.context': `${contextOf(entity, options)}/$entity`,
    ...shaped(record, options),
  };
}

/** OData JSON format 4.01, 10.7 to 10.9: `$metadata#Products(Name,Attributes())`. */
function contextOf(entity: Entity, { expand, select }: Shape): string {
  const expanded = expandables.filter((name) => expand.has(name)).map((name) => `${name}()`);
  const parts = [...new Set(select ?? []), ...expanded];
  return parts.length === 0 ? `$metadata#${entity}` : `$metadata#${entity}(${parts.join(',')})`;
}

/** Selects the requested properties, in the record's order; an expanded part is always a list. */
function shaped(record: Json, { expand, select }: Shape): Json {
  const own = Object.entries(record).filter(([name]) => {
    if (expandables.some((one) => one === name)) return false;
    if (name.startsWith('@odata.')) return name !== '@odata.context';
    return select === null || select.includes(name);
  });
  const parts = expandables.filter((name) => expand.has(name));
  return Object.fromEntries([...own, ...parts.map((name) => [name, record[name] ?? []] as const)]);
}

/**
 * Link to the next page: repeats the parameters in their order, encoded as HTML forms are (a space is `+`), with
 * `$skip` or `$skiptoken` replaced, or added at the end (fixtures, lists).
 */
export function nextLink(
  requestUrl: URL,
  from: { readonly skip: number } | { readonly skiptoken: string },
): string {
  const [name, value] =
    'skip' in from ? ['$skip', String(from.skip)] : ['$skiptoken', from.skiptoken];
  const params = new URLSearchParams(requestUrl.search);
  // A token includes the skipped records.
  if (name === '$skiptoken') params.delete('$skip');
  params.set(name, value);
  const query = [...params].map(([key, text]) => `${encode(key)}=${encode(text)}`).join('&');
  return `${requestUrl.origin}${requestUrl.pathname}?${query}`;
}

/** Encodes as Python's `quote_plus`, which the catalogue seems to use. */
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed())
    .replaceAll(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+');
}
