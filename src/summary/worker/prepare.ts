/** Makes ready what is to be said about a job's subject: the facts for a model, and the template. */

import { setImmediate } from 'node:timers/promises';
import type { FilterTree } from '../../domain/filter-tree.ts';
import type { NotificationRow } from '../../domain/ports.ts';
import type { FoundProduct, Products } from '../../domain/products.ts';
import { batches } from '../../domain/streams.ts';
import type { DigestScope, SummaryJob } from '../../domain/summaries.ts';
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
import { noCollection, type SummaryContext } from './summary-context.ts';

export interface Prepared {
  sheet: FactSheet;
  template: string;
}

type PrepareDeps = Pick<SummaryContext, 'notifications' | 'products' | 'places'>;

/**
 * Null when nothing is known of the subject: the index does not have it, or nothing arrived. Throws as the
 * signal does: a digest of a long window takes its time.
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

/** The facts of a product as the index has it. */
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

/** Far above the most corners that are looked at; to read what a notification can hold takes 50 ms. */
const textMax = 100_000;

/** Null without a footprint, or with one that cannot be read, or of too many corners. */
export function placeOf({ record }: FoundProduct, places: Places): Place | null {
  const text = record.Footprint;
  if (typeof text === 'string' && text.length > textMax) return null;
  const geometry = productView(record).geometry();
  return geometry === null ? null : places.placeOf(geometry);
}

/** A scene has a handful of versions; more than these say nothing new. */
const versionsMax = 20;

/** Those of them that are known, alive or tombstones, in any order. */
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

/** The same scene in another processing: what replaced it, or what it replaces. */
async function otherVersions(
  products: Pick<Products, 'find'>,
  { row }: FoundProduct,
): Promise<OtherVersion[]> {
  const scene = row.productName === null ? null : sceneOf(row.productName);
  if (scene === null) return [];
  // `startswith` as a range: by the index on names a look-up takes a fraction of a millisecond.
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

/** A product of which no more is kept than a digest needs. */
type Known = Pick<DigestEvent, 'product' | 'place'> & { matches: boolean };

/** Rows whose products are looked up together. */
const rowsMax = 32;

/** Products that are described; the others are counted by name, also where a filter looks at their records. */
const describedMax = 2_000;

/** Products that are not looked up again when another notification is about them. */
const keptMax = 4_000;

/** In the order of the log; those that the scope's filter leaves out are left out. Throws as the signal does. */
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
    const wanted = isFull && matches === null ? [] : [...ids].filter((id) => !kept.has(id));
    const found = await lookUp(wanted, matches, { ...deps, isFull });
    for (const { product } of found.values()) if (product !== null) described += 1;
    for (const [id, known] of found) if (kept.size < keptMax) kept.set(id, known);
    for (const { event, productId, productName, receivedAtUs } of rows) {
      const known = found.get(productId) ?? kept.get(productId) ?? null;
      const { product = null, place = null } = known ?? {};
      const isTold = known?.matches ?? matches?.(nameAlone({ productId, productName })) ?? true;
      if (isTold) yield { event, product, productId, productName, receivedAtUs, place };
    }
  }
}

async function* rowsOf(
  { fromUs: sinceUs, untilUs, subscription, collection }: DigestScope,
  { notifications }: PrepareDeps,
): AsyncGenerator<NotificationRow> {
  const span = { sinceUs, untilUs, time: 'received', order: 'oldest' } as const;
  // Notifications to no name cannot be asked for; '' stands for them.
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
    const isTold = matches?.(productView(record)) ?? true;
    const isDescribed = isTold && !isFull;
    known.set(row.productId, {
      matches: isTold,
      place: isDescribed ? placeOf(found, places()) : null,
      // The record has served its purpose, and is large.
      product: isDescribed ? { row, record: {} } : null,
    });
    // A footprint may take some 10 ms of the main thread: intake comes between.
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
