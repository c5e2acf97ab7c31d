/** The query by list: `POST /Products/OData.CSC.FilterList` with the names of products. */
import { z } from 'zod';
import type { FilterTree, InNode } from '../../domain/filter-tree.ts';
import type { ODataRefusal } from './refusal.ts';

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
