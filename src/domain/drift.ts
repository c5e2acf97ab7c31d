/** The ways in which a notification can differ from the documented form and still be accepted. */

import { knownEvents, type NotificationFields } from './notification.ts';
import type { ReadDate } from './notification-date.ts';

/** The closed part of the list; a field nobody knows gives `unknown-field:<name>` besides. */
export const driftShapes = [
  'utf8-invalid',
  'body-array',
  'ack-id-absent',
  'ack-id-odd',
  'ack-id-reused',
  'event-case',
  'event-in-array',
  'event-unknown',
  'product-id-from-value',
  'product-id-differs-from-value',
  'product-name-absent',
  'subscription-id-absent',
  'notification-date-absent',
  'notification-date-odd',
  'notification-date-without-zone',
  'value-absent',
  'value-capitalised',
  'value-odd',
] as const;

export type DriftShape = (typeof driftShapes)[number] | `unknown-field:${string}`;

/** The top-level fields of a notification that the specification or the recorded bodies name. */
const knownFields = new Set([
  '@odata.context',
  'SubscriptionEvent',
  'ProductId',
  'ProductName',
  'SubscriptionId',
  'NotificationDate',
  'AckId',
  'value',
  'Value',
]);

/** Names what is absent or odd in one accepted notification, given as it came and as it was read. */
export function driftOf(
  item: object,
  fields: NotificationFields,
  date: ReadDate | null,
): DriftShape[] {
  const raw = item as Record<string, unknown>;
  const missing = (name: string) => raw[name] === undefined || raw[name] === null;
  const product = fields.value ?? fields.Value;
  const valueMissing = missing('value') && missing('Value');
  const event = fields.SubscriptionEvent.toLowerCase();
  const found: DriftShape[] = [];
  const note = (shape: DriftShape, isFound: boolean) => {
    if (isFound) found.push(shape);
  };
  note('ack-id-absent', missing('AckId'));
  note('ack-id-odd', !missing('AckId') && (typeof raw.AckId !== 'string' || raw.AckId === ''));
  note('event-case', event !== fields.SubscriptionEvent);
  note('event-in-array', Array.isArray(raw.SubscriptionEvent));
  note('event-unknown', !(knownEvents as readonly string[]).includes(event));
  note('product-id-from-value', fields.ProductId === null);
  note('product-id-differs-from-value', differs(fields.ProductId, product?.Id));
  note('product-name-absent', fields.ProductName === null && (product?.Name ?? null) === null);
  note('subscription-id-absent', fields.SubscriptionId === null);
  note('notification-date-absent', missing('NotificationDate'));
  note('notification-date-odd', !missing('NotificationDate') && date === null);
  note('notification-date-without-zone', date?.zoned === false);
  note('value-capitalised', fields.value === null && fields.Value !== null);
  note('value-absent', valueMissing);
  note('value-odd', product === null && !valueMissing);
  for (const name of Object.keys(item)) {
    if (!knownFields.has(name)) found.push(unknownField(name));
  }
  return found;
}

function differs(a: string | null, b: string | null | undefined): boolean {
  return a !== null && b != null && a !== b;
}

/** Names a field that nobody documented; odd names share one shape. */
function unknownField(name: string): DriftShape {
  return `unknown-field:${/^[\w.@-]{1,64}$/.test(name) ? name : '(odd name)'}`;
}
