/** What the catalogue holds: the newest state of each published product, and of each deleted one. */
import { orderableFields } from '../../filter/fields.ts';
import type { NotificationEvent } from '../delivery/notification.ts';
import { createHeldEntity, type HeldEntity, type Selection, type Wanted } from './held-entity.ts';
import { createLateRecords } from './late-records.ts';
import { createRecordArchive, type HeldProduct } from './record-archive.ts';

type Entity = keyof typeof orderableFields;

/** How much there is. */
export interface HoldingsTotals {
  readonly products: number;
  readonly deletedProducts: number;
  /** Publications, changes and deletions so far, owed to a subscription or not. */
  readonly events: number;
}

export interface Holdings {
  /**
   * Takes in what an event says of a product. The lists show it from `shownFromMs` on, at once unless
   * told; until then the catalogue knows nothing of it, but a deletion always shows at once.
   */
  note(event: NotificationEvent, record: HeldProduct['record'], shownFromMs?: number): HeldProduct;
  select(entity: Entity, wanted: Wanted): Selection;
  /** Finds by id in any case; a product that did not change is the same object as `note` returned. */
  find(entity: Entity, id: string): HeldProduct | undefined;
  totals(): HoldingsTotals;
}

/**
 * How many of each are kept unless told; the oldest go first. `$skip` and `$top` reach 11,000. Beyond
 * the newest 4,000, a record takes some 1 kB of memory.
 */
export const heldMaxDefault = 12_000;

export interface HoldingsOptions {
  /** How many of each are kept. */
  readonly heldMax?: number;
  /** Ms since 1970: what decides when late records show. */
  readonly now?: () => number;
}

/** Creates empty holdings. */
export function createHoldings({
  heldMax = heldMaxDefault,
  now = () => Number.POSITIVE_INFINITY,
}: HoldingsOptions = {}): Holdings {
  const archive = createRecordArchive();
  const late = createLateRecords();
  const of: Record<Entity, HeldEntity> = {
    Products: createHeldEntity(orderableFields.Products, heldMax),
    DeletedProducts: createHeldEntity(orderableFields.DeletedProducts, heldMax),
  };
  let events = 0;
  const upToDate = () => {
    for (const [key, held] of late.takeDue(now())) of.Products.put(key, held);
    return of;
  };
  return {
    note: (event, record, shownFromMs = Number.NEGATIVE_INFINITY) => {
      events += 1;
      const held = archive.keep(record);
      const key = record.Id.toLowerCase();
      const { Products, DeletedProducts } = upToDate();
      DeletedProducts.remove(key);
      if (event === 'deleted') {
        Products.remove(key);
        late.remove(key);
        DeletedProducts.put(key, held);
      } else if (shownFromMs > now()) late.put(key, held, shownFromMs);
      else Products.put(key, held);
      return held;
    },
    select: (entity, wanted) => upToDate()[entity].select(wanted),
    find: (entity, id) => upToDate()[entity].find(id.toLowerCase()),
    totals: () => {
      const { Products, DeletedProducts } = upToDate();
      return { products: Products.size(), deletedProducts: DeletedProducts.size(), events };
    },
  };
}
