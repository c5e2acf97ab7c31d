/** One page of products, with all that an answer needs. */
import type { FoundProduct, ProductKey, ProductQuery, Products } from '../domain/products.ts';
import { collect } from './notifications-route.ts';

interface ProductPage {
  found: FoundProduct[];
  /** Where the next page begins; null when there is none. */
  next: ProductKey | null;
  /** Null when nobody asked. */
  count: number | null;
  headers: Record<string, string>;
}

/** Tells how many notifications the index has yet to read; absent when it has read all. */
export const lagHeader = 'earshot-index-lag';

/**
 * Reads at most `limit` products, and counts all that match where `count` is true. Rejects with
 * `cancelled` soon after the signal is aborted.
 */
export async function readProductPage(
  { products, signal }: { products: Products; signal: AbortSignal },
  { limit, ...query }: ProductQuery & { limit: number },
  count: boolean,
): Promise<ProductPage> {
  // First: should the index catch up meanwhile, the answer is better than its header says.
  const headers = await lagHeaders(products);
  const rows = products.find({ ...query, limit: limit + 1 }, signal);
  const [found, matching] = await Promise.all([
    limit === 0 ? [] : collect(rows, signal),
    count ? products.count(query, signal) : null,
  ]);
  const last = found.length > limit ? found.at(limit - 1) : undefined;
  const next = last === undefined ? null : products.keyOf(last.row, query);
  return { found: found.slice(0, limit), next, count: matching, headers };
}

async function lagHeaders(products: Products): Promise<Record<string, string>> {
  const { indexedPosition, lastPosition } = await products.indexState();
  const lag = lastPosition - indexedPosition;
  return lag > 0 ? { [lagHeader]: String(lag) } : {};
}

/** Letters that stand for themselves in a URL; good for the order that it was made with. */
export function cursorText({ value, position }: ProductKey): string {
  return `${value ?? 'null'}_${position}`;
}

/** Null for a text that no page of ours ever gave. */
export function readCursor(text: string): ProductKey | null {
  const [, value, position] = /^(null|-?\d{1,16})_(\d{1,16})$/.exec(text) ?? [];
  if (value === undefined || position === undefined) return null;
  const key = { value: value === 'null' ? null : Number(value), position: Number(position) };
  const isSafe = Number.isSafeInteger(key.position) && Number.isSafeInteger(key.value ?? 0);
  return isSafe ? key : null;
}
