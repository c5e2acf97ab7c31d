/** A notification as the catalogue sends it, and the proof that the receiver still takes one. */
import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { exchange } from './raw-client.ts';
import { collect, type TestReceiver } from './running-receiver.ts';

export interface GoodNotification {
  ackId: string;
  productId: string;
  body: string;
}

/** Each call makes another one; `paddingBytes` makes it larger. */
export function goodNotification({ paddingBytes = 0 } = {}): GoodNotification {
  const ackId = Buffer.from(`1726152772322-0:${randomUUID()}`).toString('base64');
  const productId = randomUUID();
  const name = 'S2A_MSIL2A_20240129T062121_N0510_R034_T44VMN_20240129T093752.SAFE';
  const body = JSON.stringify({
    '@odata.context': '$metadata#Notification/$entity',
    SubscriptionEvent: 'created',
    ProductId: productId,
    ProductName: name,
    SubscriptionId: 'c06f2e68-fb9e-4e22-ac57-49566e8621fb',
    NotificationDate: '2024-01-29T10:59:08.698Z',
    AckId: ackId,
    value: { Id: productId, Name: name, Padding: 'x'.repeat(paddingBytes) },
  });
  return { ackId, productId, body };
}

/** Sends a notification and expects the usual answer and exactly one row of it. */
export async function expectStillTakesNotifications(receiver: TestReceiver): Promise<void> {
  const { ackId, body } = goodNotification();
  const answer = await exchange(receiver, { path: '/notifications/still', body });
  expect(answer).toMatchObject({ status: 200, body: '{"status":"stored"}' });
  expect(await collect(receiver.store.find({ ackId }))).toHaveLength(1);
}
