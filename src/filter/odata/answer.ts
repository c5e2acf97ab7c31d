/** The catalogue's answers to a query: a page of records, or one of them. */
import type { Entity } from '../../domain/filter-tree.ts';
import { expandables } from '../fields.ts';
import type { QueryOptions } from './request.ts';

type Json = Readonly<Record<string, unknown>>;

type Shape = Pick<QueryOptions, 'expand' | 'select'>;

/** What stands around a page of records. */
interface Page {
  readonly entity: Entity;
  readonly options: QueryOptions;
  /** In the catalogue's own form, as they were received or published. */
  readonly records: readonly Json[];
  /** How many match in all, where `$count` asked for it; else null. */
  readonly count: number | null;
  /** Null at the end. */
  readonly nextLink: string | null;
}

/** The body of a list, its properties in the recorded order. */
export function listAnswer({ entity, options, records, count, nextLink }: Page): Json {
  return {
    '@odata.context': contextOf(entity, options),
    ...(count === null ? {} : { '@odata.count': count }),
    value: records.map((record) => shaped(record, options)),
    ...(nextLink === null ? {} : { '@odata.nextLink': nextLink }),
  };
}

/** The body of one record, asked for by its id. */
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

/** Keeps what was asked for, in the record's order; an expanded part is always a list. */
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
 * The link to the next page: repeats the parameters in the order in which they came, in the form of HTML forms (a blank is `+`),
 * with `$skip` or `$skiptoken` in its place or at the end (fixtures, lists).
 */
export function nextLink(
  asked: URL,
  from: { readonly skip: number } | { readonly skiptoken: string },
): string {
  const [name, value] =
    'skip' in from ? ['$skip', String(from.skip)] : ['$skiptoken', from.skiptoken];
  const params = new URLSearchParams(asked.search);
  // A token stands for all that was passed over before it.
  if (name === '$skiptoken') params.delete('$skip');
  params.set(name, value);
  const query = [...params].map(([key, text]) => `${encode(key)}=${encode(text)}`).join('&');
  return `${asked.origin}${asked.pathname}?${query}`;
}

/** As Python's `quote_plus`, which the catalogue seems to use. */
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed())
    .replaceAll(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+');
}
