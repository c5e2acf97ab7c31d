/** Notifications and deliveries for tests. */
import type { Delivery } from '../../src/core/terms/ports.ts';

/** Fields of a notification. */
type Fields = Readonly<Record<string, unknown>>;

/** A complete notification; the number makes it unique. */
export function notification(number: number, fields: Fields = {}) {
  return {
    '@odata.context': '$metadata#Notification/$entity',
    SubscriptionEvent: 'created',
    ProductId: `product-${number}`,
    ProductName: `S2A_MSIL2A_${String(number).padStart(6, '0')}.SAFE`,
    SubscriptionId: 'c06f2e68-fb9e-4e22-ac57-49566e8621fb',
    NotificationDate: '2026-11-20T06:00:00.123Z',
    AckId: `ack-${number}`,
    value: { Id: `product-${number}`, Name: `S2A_MSIL2A_${String(number).padStart(6, '0')}.SAFE` },
    ...fields,
  };
}

/** A delivery of a body: an object or array to be written as JSON, or a text or bytes as given. */
export function delivery(body: unknown, fields: Partial<Delivery> = {}): Delivery {
  const bytes =
    typeof body === 'string' || body instanceof Uint8Array
      ? Buffer.from(body)
      : Buffer.from(JSON.stringify(body));
  return {
    body: bytes,
    subscription: 'default',
    receivedAtUs: 1_795_000_000_000_000,
    source: 'push',
    headers: ['Content-Type', 'application/json', 'Authorization', 'Basic c2VjcmV0OnNlY3JldA=='],
    ...fields,
  };
}

/** Returns all rows of a stream. */
export async function collect<Row>(rows: AsyncIterable<Row>): Promise<Row[]> {
  const all: Row[] = [];
  for await (const row of rows) all.push(row);
  return all;
}
