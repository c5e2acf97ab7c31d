/** Parser of push notifications: strict about the identifying fields, tolerant about all others. */
import { z } from 'zod';
import { parseDate, type ReadDate } from './dates.ts';
import { bodyBytesMax, nestingMax } from './ports.ts';

/** Events of the specification. Another name is accepted and counted as drift. */
const knownEvents = ['created', 'modified', 'deleted'] as const;

const text = z.union([z.string(), z.int().transform(String)]).transform((t) => t.toWellFormed());

const identifier = text.transform((t) => t.trim()).refine((t) => t !== '');

const optionalIdentifier = identifier.nullable().catch(null);

/** Product of a notification. Id or Name may be missing. */
const productSchema = z
  .object({ Id: optionalIdentifier, Name: optionalIdentifier })
  .nullable()
  .catch(null);

/**
 * A notification as received (specification, "Push notification"; facts, catalogue 1.1). Fields that are missing or
 * of the wrong type become null; only the event is required. Other fields are dropped. The schema is compiled because
 * it parses every notification: 1 instead of 5 µs.
 */
const notificationFields = z.object({
  SubscriptionEvent: z.union([identifier, z.tuple([identifier]).transform((events) => events[0])]),
  ProductId: optionalIdentifier,
  ProductName: optionalIdentifier,
  SubscriptionId: optionalIdentifier,
  NotificationDate: z.string().nullable().catch(null),
  // Opaque and not trimmed: two ids may differ in any character.
  AckId: text
    .refine((t) => t !== '')
    .nullable()
    .catch(null),
  value: productSchema,
  Value: productSchema,
});

const notificationSchema = z.compile(notificationFields);

type NotificationFields = z.infer<typeof notificationSchema>;

/** A parsed notification. */
export interface Notification {
  /** Index in the array of the body; 0 when the body is a single object. */
  index: number;
  ackId: string | null;
  productId: string;
  productName: string | null;
  /** Lower case: created, modified, deleted, or an unknown name. */
  event: string;
  subscriptionId: string | null;
  notificationDateUs: number | null;
}

/**
 * Returns true for an entry of a queue that has lost its record and its name, as after three days (facts, catalogue
 * 1.3). It proves that there was an event, but not which state of the product it reports.
 */
export function lacksRecord(
  source: string,
  { productName }: Pick<Notification, 'productName'>,
): boolean {
  return source === 'pull' && productName === null;
}

/** Known drift shapes. An undocumented field adds `unknown-field:<name>`. */
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

/** Top-level fields named in the specification or found in recorded bodies. */
const knownFields = new Set(['@odata.context', ...Object.keys(notificationFields.shape)]);

/** Returns the drift shapes of an accepted notification, given as received and as parsed. */
function driftOf(item: object, fields: NotificationFields, date: ReadDate | null): DriftShape[] {
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

/** Returns the shape of an undocumented field; unusual names share one shape. */
function unknownField(name: string): DriftShape {
  return `unknown-field:${/^[\w.@-]{1,64}$/.test(name) ? name : '(odd name)'}`;
}

/** Reasons for quarantining a body; docs/operations.md explains each. */
export const faultCodes = [
  'empty-body',
  'too-large',
  'not-json',
  'too-deep',
  'not-an-object',
  'empty-array',
  'event-missing',
  'product-id-missing',
  'unsupported-encoding',
  'ack-id-reused',
  'not-storable',
] as const;

export type FaultCode = (typeof faultCodes)[number];

/** Reason why a body, or an item of its array, is not a notification. */
export interface Fault {
  code: FaultCode;
  /** Index in the array of the body; null for the whole body. */
  index: number | null;
  /** Message in one sentence, safe to return to the sender. */
  message: string;
}

/** Parsed content of a body. The body is valid when `faults` is empty; the notifications are valid in any case. */
export interface Reading {
  notifications: Notification[];
  faults: Fault[];
  /** Shapes, one entry per occurrence. */
  drift: DriftShape[];
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true });

const lenientUtf8 = new TextDecoder('utf-8');

/** Maximum number of listed faults, so that a megabyte of `[{},{},…]` does not produce a larger result. */
const faultsMax = 50;

/**
 * Parses one notification or an array of them. Never throws. Required are a product id (`ProductId`, or `value.Id`)
 * and an event; anything else that is absent or unusual is recorded as drift.
 */
export function readNotifications(body: Uint8Array): Reading {
  const reading: Reading = { notifications: [], faults: [], drift: [] };
  const refuse = (code: FaultCode, message: string) => {
    reading.faults.push({ code, index: null, message });
    return reading;
  };
  if (body.byteLength > bodyBytesMax) {
    return refuse('too-large', `The body is larger than ${bodyBytesMax} bytes.`);
  }
  const bodyText = decode(body, reading.drift);
  if (bodyText.trim() === '') return refuse('empty-body', 'The body is empty.');
  let document: unknown;
  try {
    document = JSON.parse(bodyText);
  } catch (error) {
    return refuse('not-json', `The body is not JSON: ${shortReason(error)}`);
  }
  // Must come before any other traversal of the document: thousands of levels would overflow the stack.
  if (isTooDeep(document)) {
    return refuse('too-deep', `The body is nested deeper than ${nestingMax} levels.`);
  }
  if (!Array.isArray(document)) return addItem(document, 0, reading);
  reading.drift.push('body-array');
  if (document.length === 0) return refuse('empty-array', 'The body is an empty array.');
  document.forEach((item, index) => {
    addItem(item, index, reading);
  });
  return reading;
}

function addItem(item: unknown, index: number, reading: Reading): Reading {
  const refuse = (code: FaultCode, message: string) => {
    if (reading.faults.length < faultsMax) reading.faults.push({ code, index, message });
    return reading;
  };
  if (typeof item !== 'object' || item === null || Array.isArray(item)) {
    return refuse('not-an-object', 'A notification must be a JSON object.');
  }
  // Checked first because a failing parse is slow, and a megabyte may contain 300,000 of them.
  const parsed = 'SubscriptionEvent' in item ? notificationSchema.safeParse(item) : null;
  if (!parsed?.success) {
    return refuse('event-missing', 'SubscriptionEvent is missing or not a string.');
  }
  const fields = parsed.data;
  const product = fields.value ?? fields.Value;
  const productId = fields.ProductId ?? product?.Id ?? null;
  if (productId === null) {
    return refuse('product-id-missing', 'ProductId and value.Id are both missing.');
  }
  const date = fields.NotificationDate === null ? null : parseDate(fields.NotificationDate);
  reading.notifications.push({
    index,
    ackId: fields.AckId,
    productId,
    productName: fields.ProductName ?? product?.Name ?? null,
    event: fields.SubscriptionEvent.toLowerCase(),
    subscriptionId: fields.SubscriptionId,
    notificationDateUs: date?.us ?? null,
  });
  for (const shape of driftOf(item, fields, date)) reading.drift.push(shape);
  return reading;
}

/** Decodes a body, even with invalid UTF-8; the bytes are stored as received. */
function decode(body: Uint8Array, drift: DriftShape[]): string {
  try {
    return strictUtf8.decode(body);
  } catch {
    drift.push('utf8-invalid');
    return lenientUtf8.decode(body);
  }
}

function shortReason(error: unknown): string {
  const reason = error instanceof Error ? error.message : 'unreadable';
  return `${reason.replaceAll(/[^\x20-\x7e]+/g, '?').slice(0, 200)}`;
}

/** Returns true for parsed JSON with more than `levelsMax` levels of arrays and objects. Runs for every notification. */
export function isTooDeep(value: unknown, levelsMax = nestingMax): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levelsMax === 0) return true;
  if (Array.isArray(value)) return value.some((one) => isTooDeep(one, levelsMax - 1));
  // A list of the values would double the time.
  for (const name in value) {
    if (isTooDeep(value[name as keyof typeof value], levelsMax - 1)) return true;
  }
  return false;
}
