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
  const findings: [DriftShape, boolean][] = [
    ['ack-id-absent', missing('AckId')],
    ['ack-id-odd', !missing('AckId') && (typeof raw.AckId !== 'string' || raw.AckId === '')],
    ['event-case', event !== fields.SubscriptionEvent],
    ['event-in-array', Array.isArray(raw.SubscriptionEvent)],
    ['event-unknown', !(knownEvents as readonly string[]).includes(event)],
    ['product-id-from-value', fields.ProductId === null],
    ['product-id-differs-from-value', differs(fields.ProductId, product?.Id)],
    ['product-name-absent', fields.ProductName === null && (product?.Name ?? null) === null],
    ['subscription-id-absent', fields.SubscriptionId === null],
    ['notification-date-absent', missing('NotificationDate')],
    ['notification-date-odd', !missing('NotificationDate') && date === null],
    ['notification-date-without-zone', date?.zoned === false],
    ['value-capitalised', fields.value === null && fields.Value !== null],
    ['value-absent', valueMissing],
    ['value-odd', product === null && !valueMissing],
  ];
  const shapes = findings.filter(([, found]) => found).map(([shape]) => shape);
  return [...shapes, ...unknownFields(item)];
}

function differs(a: string | null, b: string | null | undefined): boolean {
  return a !== null && b != null && a !== b;
}

/** Names the fields that nobody documented; odd names share one shape. */
function unknownFields(item: object): DriftShape[] {
  return Object.keys(item)
    .filter((name) => !knownFields.has(name))
    .map((name) => `unknown-field:${/^[\w.@-]{1,64}$/.test(name) ? name : '(odd name)'}` as const);
}
