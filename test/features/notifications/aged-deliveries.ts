/** Notifications of products of different ages. */
import { delivery } from '../../helpers/filled-store.ts';

/** A record of a product that was published this many days after the end of sensing. */
export const aged = (days: number) => ({
  ContentDate: { Start: '2025-12-31T23:00:00Z', End: '2026-01-01T00:00:00Z' },
  PublicationDate: new Date(Date.UTC(2026, 0, 1 + days)).toISOString(),
});

/** Six notifications: the second and the fifth are about old products, the fourth and the sixth have no dates. */
export const agedDeliveries = () =>
  [aged(1), aged(31), aged(30), null, aged(4_000), {}].map((value, i) =>
    delivery({ AckId: `ack-${i + 1}`, ProductId: `product-${i + 1}`, value }),
  );
