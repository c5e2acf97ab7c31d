/** Reads the options of a query of Products or DeletedProducts, and refuses as the catalogue does. */

import { z } from 'zod';
import {
  type Direction,
  type Entity,
  entities,
  type FilterTree,
  type InNode,
} from '../../domain/filter-tree.ts';
import { checkFilter, isBlankFilter } from '../check.ts';
import {
  type EntityProperties,
  type Expandable,
  entityProperties,
  findOrderableField,
  type OrderableField,
} from '../fields.ts';
import type { FilterFinding } from '../finding.ts';
import { nearestName } from '../nearest-name.ts';

/** The catalogue's limits (facts, filters 1). */
const topMax = 1_000;

const topDefault = 20;

export const skipMax = 10_000;

export interface QueryOptions {
  /** Null for everything. */
  readonly filter: FilterTree | null;
  readonly orderby: { readonly field: OrderableField; readonly direction: Direction } | null;
  readonly top: number;
  readonly skip: number;
  readonly count: boolean;
  readonly expand: ReadonlySet<Expandable>;
  /** As the records spell them; null for all. */
  readonly select: readonly string[] | null;
  /** Where a page of our own ended; opaque, and not checked here. */
  readonly skiptoken: string | null;
}

/** What was asked for, or why it is refused. */
type ReadOptions =
  | { readonly options: QueryOptions; readonly refusal?: never }
  | { readonly options?: never; readonly refusal: ODataRefusal };

const single = ['$filter', '$orderby', '$top', '$skip', '$count', '$skiptoken'] as const;

const known = [...single, '$expand', '$select'] as const;

/**
 * Unknown options are ignored, as by the catalogue; but one that is a slip of a known one is refused, as
 * everything would be answered instead of what was meant. `$expand` and `$select` may come as a list and
 * several times; any other twice is refused (OData 4.01, part 1, 11.2.1), as one would be lost.
 * Numbers and truth values come first and together (422), then the rest, one at a time (400).
 */
export function readQueryOptions(
  params: URLSearchParams,
  entity: Entity,
  defaults: { readonly top: number } = { top: topDefault },
): ReadOptions {
  const items: ValidationItem[] = [];
  const option = (name: (typeof single)[number]) => params.get(name) ?? undefined;
  const number = (name: '$top' | '$skip', fallback: number, max: number) =>
    readWhole(option(name), { name, fallback, max, items });
  const top = number('$top', defaults.top, topMax);
  const skip = number('$skip', 0, skipMax);
  const count = readTruth(option('$count'), { name: '$count', items });
  if (items.length > 0) return { refusal: { status: 422, items } };
  try {
    refuseSlips(params);
    const twice = single.find((name) => params.getAll(name).length > 1);
    if (twice !== undefined) throw new Refused(`Invalid value: ${twice} is given more than once.`);
    const properties = entityProperties[entity];
    const expand = readExpand(listOf(params, '$expand'), properties);
    const orderby = readOrder(option('$orderby') ?? '', entity);
    const select = readSelect(listOf(params, '$select'), properties);
    const filter = readFilter(option('$filter') ?? '', entity);
    const skiptoken = option('$skiptoken') ?? null;
    return { options: { filter, orderby, top, skip, count, expand, select, skiptoken } };
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    return { refusal: { status: 400, message: error.message } };
  }
}

/** Ends the reading of an option with the message for the one who asked. */
class Refused extends Error {}

function refuseSlips(params: URLSearchParams): void {
  for (const name of params.keys()) {
    if (known.some((one) => one === name)) continue;
    const meant = known.find((one) => one === `$${name}`) ?? nearestName(name, known);
    if (meant !== null) throw new Refused(`Invalid option: ${name}. Did you mean ${meant}?`);
  }
}

function listOf(params: URLSearchParams, name: string): string[] {
  const entries = params.getAll(name).flatMap((text) => text.split(','));
  return entries.map((entry) => entry.trim()).filter((entry) => entry !== '');
}

function readExpand(
  names: readonly string[],
  { expandable }: EntityProperties,
): ReadonlySet<Expandable> {
  const known = names.map((name) => expandable.find((one) => one === name));
  if (known.includes(undefined)) {
    const accepted = expandable.toSorted().join(', ');
    throw new Refused(`Expand parameter only accepts following values: ${accepted}.`);
  }
  return new Set(known.filter((name) => name !== undefined));
}

const directions: readonly Direction[] = ['asc', 'desc'];

/** One field: nothing tells that the catalogue takes several. Ties are put in order by the server. */
function readOrder(text: string, entity: Entity) {
  if (text.trim() === '') return null;
  const [name = '', word = 'asc', ...rest] = text.trim().split(/\s+/);
  const field = findOrderableField(entity, name);
  const direction = directions.find((one) => one === word.toLowerCase());
  if (field === undefined || direction === undefined || rest.length > 0) {
    throw new Refused(
      "Invalid value: Invalid field name in the order by clause. Please use only 'asc' or 'desc' for sorting.",
    );
  }
  return { field, direction };
}

function readSelect(names: readonly string[], { selectable }: EntityProperties) {
  const wanted = names.filter((name) => name !== '*').map((name) => spelling(name, selectable));
  return names.length === 0 || names.includes('*') ? null : wanted;
}

function spelling(name: string, selectable: readonly string[]): string {
  const known = selectable.find((one) => one.toLowerCase() === name.toLowerCase());
  if (known === undefined) throw new Refused(`Invalid field in select: ${name}`);
  return known;
}

function readFilter(text: string, entity: Entity): FilterTree | null {
  if (isBlankFilter(text)) return null;
  const { tree, findings } = checkFilter(text, entity);
  const error = findings.find(({ severity }) => severity === 'error');
  if (error !== undefined) throw new Refused(filterRefusal(error));
  return tree;
}

/** The catalogue says "Invalid field" of an unknown one; its whole text was never recorded. */
function filterRefusal({ code, message, start, hint }: FilterFinding): string {
  const isField = code === 'unknown-field' || code === 'field-of-other-entity';
  const kind = isField ? 'Invalid field' : 'Invalid value';
  const advice = hint === undefined ? '' : ` ${hint}`;
  return `${kind}: ${message} (at character ${start + 1} of $filter)${advice}`;
}

/** Reads `$top` and `$skip`; notes what is wrong in `items` and goes on with the default. */
function readWhole(
  text: string | undefined,
  { name, fallback, max, items }: { name: string; fallback: number; max: number } & Noted,
): number {
  if (text === undefined) return fallback;
  const note = (type: string, msg: string, ctx = {}) => {
    items.push({ type, loc: ['query', name], msg, input: text, ...ctx });
    return fallback;
  };
  if (!/^\s*[+-]?\d+\s*$/.test(text)) {
    return note(
      'int_parsing',
      'Input should be a valid integer, unable to parse string as an integer',
    );
  }
  const value = Number(text);
  const ctx = { ctx: { error: {} } };
  if (value > max) {
    return note('less_than_equal', `Input should be less than or equal to ${max}`, ctx);
  }
  return value < 0
    ? note('greater_than_equal', 'Input should be greater than or equal to 0', ctx)
    : value;
}

/** Reads `$count`: True, true, 1, False, false, 0, as the vendor documents. */
function readTruth(text: string | undefined, { name, items }: { name: string } & Noted): boolean {
  if (text === undefined || /^(false|0)$/i.test(text)) return false;
  if (/^(true|1)$/i.test(text)) return true;
  items.push({
    type: 'bool_parsing',
    loc: ['query', name],
    msg: 'Input should be a valid boolean, unable to interpret input',
    input: text,
  });
  return false;
}

interface Noted {
  items: ValidationItem[];
}

/** One value that is not of its type or out of its bounds. */
interface ValidationItem {
  readonly type: string;
  /** `query` and the option, or `body` and the path within it. */
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly input: string | null;
  readonly ctx?: { readonly error: object };
}

/** A refusal before it is written: a message, or for 422 the list of what is wrong. */
export type ODataRefusal =
  | { readonly status: 400 | 404 | 413 | 500 | 503; readonly message: string }
  | { readonly status: 422; readonly items: readonly ValidationItem[] };

interface RefusalBody {
  detail: { message: string; request_id: string } | readonly ValidationItem[];
}

/** The body; the answer's header `request-id` must repeat the id. */
export function refusalBody(refusal: ODataRefusal, requestId: string): RefusalBody {
  if (refusal.status === 422) return { detail: refusal.items };
  return { detail: { message: refusal.message, request_id: requestId } };
}

/** The detail for a path below `/odata/v1` that leads nowhere; its status was not recorded. */
export const invalidPath = 'Invalid odata path';

/** Below `/odata/v1`. */
export const filterListPath = '/Products/OData.CSC.FilterList';

/** Maximum number of names: as many products as one page may have. */
export const filterListNamesMax = 1_000;

/** Maximum size of a body; 1,000 names of the catalogue take about 100 kB. */
export const filterListBytesMax = 256 * 1024;

/** Names have up to 99 characters (facts, catalogue 2). */
const nameLengthMax = 1_000;

/** Faults that a refusal lists. */
const faultsShownMax = 20;

const schema = z.object({
  FilterProducts: z
    .array(z.object({ Name: z.string().min(1).max(nameLengthMax) }))
    .min(1)
    .max(filterListNamesMax),
});

type ReadList =
  | { readonly filter: InNode; readonly refusal?: never }
  | { readonly filter?: never; readonly refusal: ODataRefusal };

/** Reads the body into a condition on the name; unknown members are ignored. */
export function readFilterList(text: string): ReadList {
  const read = schema.safeParse(jsonOrUndefined(text));
  if (!read.success) {
    const items = read.error.issues.slice(0, faultsShownMax).map(({ code, path, message }) => ({
      type: code,
      loc: ['body', ...path.map((part) => (typeof part === 'symbol' ? String(part) : part))],
      msg: message,
      input: null,
    }));
    return { refusal: { status: 422, items } };
  }
  const names = [...new Set(read.data.FilterProducts.map(({ Name }) => Name))];
  const literals = names.map((value) => ({ type: 'text', value }) as const);
  return { filter: { node: 'in', field: 'Name', literals } };
}

/** Joins the list with the filter of the query. */
export function withinList(list: InNode, filter: FilterTree | null): FilterTree {
  if (filter === null) return list;
  return { node: 'and', terms: [list, ...(filter.node === 'and' ? filter.terms : [filter])] };
}

/** The refusal of a body beyond the limit. */
export const listTooLarge: ODataRefusal = {
  status: 413,
  message: `The body is larger than ${filterListBytesMax} bytes. Send fewer names at a time.`,
};

function jsonOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

interface ProductPath {
  readonly entity: Entity;
  /** Null for the list. */
  readonly id: string | null;
}

const form = /^\/(\w+)(?:(?:\(|%28)([\w-]{1,100})(?:\)|%29))?$/;

/** Reads what follows `/odata/v1`; an id stands bare, without quotes. Null when it is none of these. */
export function readProductPath(resource: string): ProductPath | null {
  const [, name, id = null] = form.exec(resource) ?? [];
  const entity = entities.find((one) => one === name);
  return entity === undefined ? null : { entity, id };
}

/** The collection of `/Attributes(<collection>)`; null for any other path. */
export function readAttributesPath(resource: string): string | null {
  return /^\/Attributes(?:\(|%28)([\w-]{1,100})(?:\)|%29)$/.exec(resource)?.[1] ?? null;
}

/** The message of a collection without published attributes. */
export function unknownAttributes(collection: string): string {
  return `No attributes of the collection ${collection} are known.`;
}

/** What is said of an id that is none, as the catalogue does of subscriptions (facts, catalogue 1.4). */
export function unknownProduct(id: string): string {
  return `Product with id ${id} not found.`;
}
