/** A notification in the documented form, varied by the tests of the reader. */
import { type Reading, readNotifications } from '../../../src/core/terms/notification.ts';

export const sample = {
  '@odata.context': '$metadata#Notification/$entity',
  SubscriptionEvent: 'created',
  ProductId: '0f2b6c1e-54a1-4a8d-9a57-0d3c7f3c5a01',
  ProductName: 'S2A_MSIL2A_20260501T101031_N0511_R022_T32TQM_20260501T141500.SAFE',
  SubscriptionId: '6f1f7f9a-1a0c-4a52-8c0a-5d6f0c1b2a3d',
  NotificationDate: '2026-05-01T14:20:00.123456Z',
  AckId: 'MTc3NzY0NTIwMDEyMy0wOjZmMWY3ZjlhLTFhMGMtNGE1Mi04YzBhLTVkNmYwYzFiMmEzZA==',
  value: {
    '@odata.context': '$metadata#Products(Attributes(),Assets(),Locations())/$entity',
    Id: '0f2b6c1e-54a1-4a8d-9a57-0d3c7f3c5a01',
    Name: 'S2A_MSIL2A_20260501T101031_N0511_R022_T32TQM_20260501T141500.SAFE',
    ContentLength: 8_200_000_000,
    Attributes: [{ '@odata.type': '#OData.CSC.DoubleAttribute', Name: 'cloudCover', Value: 12.5 }],
  },
};

/** The reader's result for the sample. */
export const sampleRead = {
  index: 0,
  ackId: sample.AckId,
  productId: sample.ProductId,
  productName: sample.ProductName,
  event: 'created',
  subscriptionId: sample.SubscriptionId,
  notificationDateUs: Date.UTC(2026, 4, 1, 14, 20) * 1000 + 123_456,
};

/** The sample with changed fields; undefined removes a field. */
export function varied(changes: Record<string, unknown>): Record<string, unknown> {
  return JSON.parse(JSON.stringify({ ...sample, ...changes }));
}

/** Reads a text, or bytes, or the JSON text of another value. */
export function read(body: unknown): Reading {
  if (body instanceof Uint8Array) return readNotifications(body);
  return readNotifications(
    new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body)),
  );
}

/** Reads a notification that must be valid. */
export function readOne(body: unknown) {
  const { notifications, faults, drift } = read(body);
  const [notification] = notifications;
  if (faults.length > 0 || notification === undefined || notifications.length > 1) {
    throw new Error(`Not exactly one notification: ${JSON.stringify({ notifications, faults })}`);
  }
  return { ...notification, drift };
}
