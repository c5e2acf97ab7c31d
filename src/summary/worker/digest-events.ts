/** Reads what a digest tells of: its notifications, each with what is known of its product. */
import { setImmediate } from 'node:timers/promises';
import { batches } from '../../domain/batches.ts';
import type { NotificationRow } from '../../domain/ports.ts';
import type { DigestScope } from '../../domain/summaries.ts';
import { requireFilter } from '../../filter/check.ts';
import { compileFilter, type ProductTest } from '../../filter/evaluate.ts';
import { collectionOf } from '../../filter/product-record.ts';
import { productView } from '../../filter/product-view.ts';
import type { DigestEvent } from '../digest/digest-event.ts';
import { productsById } from './known-products.ts';
import { placeOf } from './place-of.ts';
import { noCollection } from './summary-jobs.ts';
import type { SummaryWorld } from './summary-world.ts';

type Means = Pick<SummaryWorld, 'notifications' | 'products' | 'places'>;

/** A product of which no more is kept than a digest needs. */
type Known = Pick<DigestEvent, 'product' | 'place'> & { matches: boolean };

/** Rows whose products are looked up together. */
const rowsMax = 32;
/** Products that are described; the others are counted by name, also where a filter looks at their records. */
const describedMax = 2_000;
/** Products that are not looked up again when another notification tells of them. */
const keptMax = 4_000;

/** In the order of the log; those that the scope's filter leaves out are left out. Throws as the signal does. */
export async function* digestEvents(
  scope: DigestScope,
  means: Means,
  signal: AbortSignal | undefined,
): AsyncGenerator<DigestEvent> {
  const tree = scope.filter === null ? null : requireFilter(scope.filter, 'Products');
  const matches = tree === null ? null : compileFilter(tree);
  const kept = new Map<string, Known>();
  let described = 0;
  for await (const rows of batches(rowsOf(scope, means), rowsMax)) {
    signal?.throwIfAborted();
    const ids = new Set(rows.map(({ productId }) => productId));
    const isFull = described >= describedMax;
    const wanted = isFull && matches === null ? [] : [...ids].filter((id) => !kept.has(id));
    const found = await lookUp(wanted, matches, { ...means, isFull });
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
  { notifications }: Means,
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
  { products, places, isFull }: Means & { isFull: boolean },
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
