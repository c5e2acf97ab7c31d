/** Tells which recovered events of another log this one knows by a push: `earshot import` leaves them out. */
import type { CatalogueEvent } from '../domain/completeness.ts';
import type { Delivery } from '../domain/ports.ts';
import { readNotifications } from '../domain/read-notifications.ts';
import { tellsOf } from '../domain/tells-of.ts';
import type { DataPlace } from '../store/engine/disk-limit.ts';
import { createBodyDates } from '../store/log/body-dates.ts';
import { catchUpIndex } from '../store/products/index-maintenance.ts';
import { openProducts } from '../store/products/products.ts';

export interface PushedHere {
  /** Those of at most 1,000 deliveries that are recovered events which a push told of here. */
  among(deliveries: readonly Delivery[]): Promise<ReadonlySet<Delivery>>;
  close(): Promise<void>;
}

/**
 * What was pushed stands in the product index, which is brought up to date when the first recovered event comes.
 * `among` rejects with `unavailable` where that cannot be done, and early when the signal is aborted.
 */
export function openPushedHere(place: DataPlace, signal: AbortSignal): PushedHere {
  const state = createBodyDates();
  let opened: ReturnType<typeof openProducts> | undefined;

  const openIndex = async () => {
    await catchUpIndex({ ...place, signal });
    signal.throwIfAborted();
    return openProducts(place.dataDir);
  };

  /** Recovered events come one to a body. */
  const recoveredIn = (delivery: Delivery): CatalogueEvent | null => {
    if (delivery.source !== 'reconcile') return null;
    const [item] = readNotifications(delivery.body).notifications;
    return item === undefined ? null : state.recovered(delivery, item);
  };

  return {
    among: async (deliveries) => {
      const found = deliveries.flatMap((delivery) => {
        const event = recoveredIn(delivery);
        return event === null ? [] : [{ delivery, event }];
      });
      const known = new Set<Delivery>();
      for (const [subscription, some] of Map.groupBy(found, (one) => one.event.subscription)) {
        opened ??= await openIndex();
        const productIds = [...new Set(some.map(({ event }) => event.productId))];
        const pushes = await opened.pushedEvents({ subscription, productIds });
        const byProduct = Map.groupBy(pushes, ({ productId }) => productId.toLowerCase());
        for (const { delivery, event } of some) {
          const own = byProduct.get(event.productId.toLowerCase()) ?? [];
          if (own.some((push) => tellsOf(push, event))) known.add(delivery);
        }
      }
      return known;
    },
    close: async () => {
      await opened?.close();
    },
  };
}
