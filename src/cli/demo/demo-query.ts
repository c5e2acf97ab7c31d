/** Asks the product index for what the demo's filter is about, and compares the answer with all else. */
import { setTimeout as delay } from 'node:timers/promises';
import type { FilterTree } from '../../domain/filter-tree.ts';
import type { NotificationLog } from '../../domain/ports.ts';
import type { Products } from '../../domain/products.ts';
import { compileFilter } from '../../filter/evaluate.ts';
import { recordIn } from '../../filter/product-record.ts';
import { productView } from '../../filter/product-view.ts';
import { bodyDocument } from '../../store/products/product-record.ts';
import type { RunningReceiver } from '../serve.ts';
import { demoCollection, demoPlace, demoTree } from './demo-filter.ts';

/** How long the index may take for what the log has at the end. */
const indexTimeoutMs = 4_000;
const pollMs = 20;

/** Ids of products. */
type Ids = ReadonlySet<string>;

export interface PlaceResult {
  /** What the filter finds. */
  byFilter: Ids;
  /** What is of the collection, among all that the place alone finds. */
  byPlace: Ids;
  /** What does not agree, one sentence each. */
  mismatches: string[];
}

/** `owed`: the products of which the filtered subscription, by its name, was owed a notification. */
export async function queryDemo(
  { products, store }: Pick<RunningReceiver, 'products' | 'store'>,
  name: string,
  owed: Ids,
): Promise<PlaceResult> {
  const unread = await indexed(products);
  const byFilter = await idsOf(products, demoTree(), () => true);
  const byPlace = await idsOf(products, demoPlace, (collection) => collection === demoCollection);
  const { verdicts, strays } = await verdictsOf(store, demoTree(), name);
  const mismatches = [...strays, ...compare(byFilter, byPlace, owed, verdicts)];
  if (unread > 0) mismatches.push(`${unread} notifications are not indexed`);
  return { byFilter, byPlace, mismatches };
}

/** Gives the index time for what is in the log; resolves to how many notifications it has not read. */
export async function indexed(products: Pick<Products, 'indexState'>): Promise<number> {
  for (let waitedMs = 0; ; waitedMs += pollMs) {
    const { indexedPosition, lastPosition, skipped } = await products.indexState();
    const unread = lastPosition - indexedPosition + skipped;
    if (unread === 0 || waitedMs >= indexTimeoutMs) return unread;
    await delay(pollMs);
  }
}

async function idsOf(
  products: Products,
  filter: FilterTree,
  isMeant: (collection: string | null) => boolean,
): Promise<Ids> {
  const ids = new Set<string>();
  for await (const { row } of products.find({ entity: 'Products', filter, records: false })) {
    if (isMeant(row.collection)) ids.add(row.productId);
  }
  return ids;
}

/** What the filter says of each record in the log, by product; and what came to `name` against it. */
async function verdictsOf(
  log: Pick<NotificationLog, 'find' | 'body'>,
  filter: FilterTree,
  name: string,
) {
  const matches = compileFilter(filter);
  const verdicts = new Map<string, Set<boolean>>();
  const strays: string[] = [];
  for await (const { position, productId, subscription } of log.find({})) {
    const record = recordIn(bodyDocument(await log.body(position)), 0);
    if (record === null) continue;
    const verdict = verdicts.get(productId) ?? new Set();
    const isMatch = matches(productView(record));
    verdicts.set(productId, verdict.add(isMatch));
    if (!isMatch && subscription === name)
      strays.push(`${productId}: arrived, but it does not match`);
  }
  return { verdicts, strays };
}

/**
 * What was owed may be lost on its way, so the log says what must be found: each product whose record
 * matches. Records from a file may tell of one product twice; then either of them may count.
 */
function compare(
  byFilter: Ids,
  byPlace: Ids,
  owed: Ids,
  verdicts: ReadonlyMap<string, ReadonlySet<boolean>>,
): string[] {
  const matching = [...verdicts].flatMap(([id, verdict]) => (verdict.has(true) ? [id] : []));
  const certain = matching.filter((id) => verdicts.get(id)?.has(false) === false);
  const tell = (ids: Iterable<string>, within: Ids, what: string) =>
    [...ids].filter((id) => !within.has(id)).map((id) => `${id}: ${what}`);
  return [
    ...tell(byFilter, owed, 'found by the filter, but it was not owed'),
    ...tell(byFilter, new Set(matching), 'found by the filter, but its record does not match'),
    ...tell(certain, byFilter, 'its record matches, but the filter does not find it'),
    ...tell(byFilter, byPlace, 'found by the filter, but not by its place'),
    ...tell(byPlace, byFilter, 'found by its place, but not by the filter'),
  ];
}
