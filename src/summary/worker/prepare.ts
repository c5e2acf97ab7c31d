/** Prepares the fact sheet and the template text of a job. */

import { setImmediate } from 'node:timers/promises';
import type { FilterTree } from '../../domain/filter-tree.ts';
import type { NotificationRow } from '../../domain/ports.ts';
import type { FoundProduct, Products } from '../../domain/products.ts';
import { batches } from '../../domain/streams.ts';
import { type DigestScope, noCollection, type SummaryJob } from '../../domain/summaries.ts';
import { requireFilter } from '../../filter/check.ts';
import { compileFilter, type ProductTest } from '../../filter/evaluate.ts';
import { collectionOf } from '../../filter/product-record.ts';
import { productView } from '../../filter/product-view.ts';
import { createDigestCount, type DigestEvent } from '../digest/digest-facts.ts';
import { digestSheet } from '../digest/digest-sheet.ts';
import { digestText } from '../digest/digest-text.ts';
import type { FactSheet } from '../facts/phrases.ts';
import { productFacts } from '../facts/product-facts.ts';
import { productSheet } from '../facts/product-sheet.ts';
import { productText } from '../facts/product-text.ts';
import { type OtherVersion, sceneOf } from '../facts/versions.ts';
import type { Place } from '../places/globe.ts';
import type { Places } from '../places/places.ts';
import type { SummaryContext } from './summary-context.ts';

export interface Prepared {
  sheet: FactSheet;
  template: string;
}

type PrepareDeps = Pick<SummaryContext, 'notifications' | 'products' | 'places'>;

/**
 * Resolves with null if the product is not in the index, or if nothing arrived in the window. Rejects with the
 * signal's reason: a digest of a long window takes a while.
 */
export async function prepare(
  job: Pick<SummaryJob, 'productId' | 'scope'>,
  deps: PrepareDeps,
  signal?: AbortSignal,
): Promise<Prepared | null> {
  if (job.scope !== null) return prepareDigest(job.scope, deps, signal);
  const [found] = job.productId === null ? [] : await productsById(deps.products, [job.productId]);
  return found === undefined ? null : prepareProduct(found, deps);
}

/** Prepares a product from its indexed state. */
export async function prepareProduct(
  found: FoundProduct,
  { products, places }: Pick<PrepareDeps, 'products' | 'places'>,
): Promise<Prepared> {
  const others = await otherVersions(products, found);
  const facts = productFacts(found, { place: placeOf(found, places()), others });
  return { sheet: productSheet(facts), template: productText(facts) };
}

async function prepareDigest(
  scope: DigestScope,
  deps: PrepareDeps,
  signal: AbortSignal | undefined,
): Promise<Prepared | null> {
  const count = createDigestCount();
  let added = 0;
  for await (const event of digestEvents(scope, deps, signal)) {
    count.add(event);
    added += 1;
  }
  if (added === 0) return null;
  const facts = count.facts(scope);
  return { sheet: digestSheet(facts), template: digestText(facts) };
}

/** Maximum length of a footprint, far above the limit on corners; reading the largest possible one takes 50 ms. */
const textMax = 100_000;

/** Null without a footprint, or if it is unreadable or has too many corners. */
export function placeOf({ record }: FoundProduct, places: Places): Place | null {
  const text = record.Footprint;
  if (typeof text === 'string' && text.length > textMax) return null;
  const geometry = productView(record).geometry();
  return geometry === null ? null : places.placeOf(geometry);
}

/** Maximum number of versions read; a scene has only a few. */
const versionsMax = 20;

/** Returns the indexed products with these ids, deleted ones included, in any order. */
export async function productsById(
  products: Pick<Products, 'find'>,
  productIds: readonly string[],
): Promise<FoundProduct[]> {
  if (productIds.length === 0) return [];
  const literals = productIds.map((value) => ({ type: 'text', value }) as const);
  const filter = { node: 'in', field: 'Id', literals } as const;
  const found: FoundProduct[] = [];
  for await (const one of both(products, filter, productIds.length)) found.push(one);
  return found;
}

/** Returns other versions of the scene: newer and older ones. */
async function otherVersions(
  products: Pick<Products, 'find'>,
  { row }: FoundProduct,
): Promise<OtherVersion[]> {
  const scene = row.productName === null ? null : sceneOf(row.productName);
  if (scene === null) return [];
  // `startswith` as a range uses the index on names, and takes a fraction of a millisecond.
  const terms: FilterTree[] = [
    nameCondition('ge', scene.prefix),
    nameCondition('lt', `${scene.prefix}\uffff`),
  ];
  if (scene.contains !== null) {
    terms.push({ node: 'text', function: 'contains', field: 'Name', text: scene.contains });
  }
  const filter: FilterTree = { node: 'and', terms };
  const others: OtherVersion[] = [];
  for await (const { row: other } of both(products, filter, versionsMax, false)) {
    const { productId, productName, processingBaseline, publicationUs, deletionUs } = other;
    if (productId === row.productId || productName === null) continue;
    if (!scene.matches(productName)) continue;
    others.push({ productName, processingBaseline, publicationUs, deletionUs });
  }
  return others;
}

function nameCondition(operator: 'ge' | 'lt', value: string): FilterTree {
  return { node: 'comparison', field: 'Name', operator, literal: { type: 'text', value } };
}

async function* both(
  products: Pick<Products, 'find'>,
  filter: FilterTree,
  limit: number,
  records = true,
): AsyncGenerator<FoundProduct> {
  for (const entity of ['Products', 'DeletedProducts'] as const) {
    yield* products.find({ entity, filter, limit, records });
  }
}

/** The parts of a product that a digest needs. */
type Known = Pick<DigestEvent, 'product' | 'place'> & { matches: boolean };

/** Number of rows whose products are read together. */
const rowsMax = 32;

/** Maximum number of products whose records are counted; for others only the name is, even with a filter. */
const describedMax = 2_000;

/** Maximum number of products cached for later notifications about them. */
const keptMax = 4_000;

/** Yields the events that match the scope, in the order of the log. Throws the signal's reason. */
export async function* digestEvents(
  scope: DigestScope,
  deps: PrepareDeps,
  signal: AbortSignal | undefined,
): AsyncGenerator<DigestEvent> {
  const tree = scope.filter === null ? null : requireFilter(scope.filter, 'Products');
  const matches = tree === null ? null : compileFilter(tree);
  const kept = new Map<string, Known>();
  let described = 0;
  for await (const rows of batches(rowsOf(scope, deps), rowsMax)) {
    signal?.throwIfAborted();
    const ids = new Set(rows.map(({ productId }) => productId));
    const isFull = described >= describedMax;
    const missing = isFull && matches === null ? [] : [...ids].filter((id) => !kept.has(id));
    const found = await lookUp(missing, matches, { ...deps, isFull });
    for (const { product } of found.values()) if (product !== null) described += 1;
    for (const [id, known] of found) if (kept.size < keptMax) kept.set(id, known);
    for (const { event, productId, productName, receivedAtUs } of rows) {
      const known = found.get(productId) ?? kept.get(productId) ?? null;
      const { product = null, place = null } = known ?? {};
      const isMatch = known?.matches ?? matches?.(nameAlone({ productId, productName })) ?? true;
      if (isMatch) yield { event, product, productId, productName, receivedAtUs, place };
    }
  }
}

async function* rowsOf(
  { fromUs: sinceUs, untilUs, subscription, collection }: DigestScope,
  { notifications }: PrepareDeps,
): AsyncGenerator<NotificationRow> {
  const span = { sinceUs, untilUs, time: 'received', order: 'oldest' } as const;
  // '' stands for notifications without a subscription name, which no query can select.
  const named = subscription === null || subscription === '' ? {} : { subscription };
  for await (const row of notifications.find({ ...span, ...named })) {
    if (subscription === '' && row.subscription !== null) continue;
    const own = collectionOf({ Name: row.productName }) ?? noCollection;
    if (collection !== null && own !== collection) continue;
    yield row;
  }
}

async function lookUp(
  ids: readonly string[],
  matches: ProductTest | null,
  { products, places, isFull }: PrepareDeps & { isFull: boolean },
): Promise<Map<string, Known>> {
  const known = new Map<string, Known>();
  for (const found of await productsById(products, ids)) {
    const { row, record } = found;
    const isMatch = matches?.(productView(record)) ?? true;
    const isDescribed = isMatch && !isFull;
    known.set(row.productId, {
      matches: isMatch,
      place: isDescribed ? placeOf(found, places()) : null,
      // Drops the record, which is large and no longer needed.
      product: isDescribed ? { row, record: {} } : null,
    });
    // A footprint may block the main thread for 10 ms: lets the intake run.
    await setImmediate();
  }
  return known;
}

function nameAlone({
  productId: Id,
  productName: Name,
}: Pick<NotificationRow, 'productId' | 'productName'>) {
  return productView({ Id, Name });
}
