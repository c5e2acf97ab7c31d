/** The schema of one push notification: strict about what identifies it, tolerant about the rest. */
import { z } from 'zod';
import { parseDate, type ReadDate } from './dates.ts';

/** The events of the specification; another name is accepted and counted as drift. */
const knownEvents = ['created', 'modified', 'deleted'] as const;

const text = z.union([z.string(), z.int().transform(String)]).transform((t) => t.toWellFormed());

const identifier = text.transform((t) => t.trim()).refine((t) => t !== '');

const optionalIdentifier = identifier.nullable().catch(null);

/** Where the product is: an object with at least an Id and a Name, of which either may be missing. */
const productSchema = z
  .object({ Id: optionalIdentifier, Name: optionalIdentifier })
  .nullable()
  .catch(null);

/**
 * One notification as it comes (specification, "Push notification"; facts, catalogue 1.1). Fields
 * that are missing or of the wrong type become null; only the event must be there. Other fields
 * are left out. Compiled, since every notification is read by it: 1 instead of 5 µs.
 */
const notificationSchema = z.compile(
  z.object({
    SubscriptionEvent: z.union([
      identifier,
      z.tuple([identifier]).transform((events) => events[0]),
    ]),
    ProductId: optionalIdentifier,
    ProductName: optionalIdentifier,
    SubscriptionId: optionalIdentifier,
    NotificationDate: z.string().nullable().catch(null),
    // Opaque: not trimmed, since two ids may differ in anything.
    AckId: text
      .refine((t) => t !== '')
      .nullable()
      .catch(null),
    value: productSchema,
    Value: productSchema,
  }),
);

type NotificationFields = z.infer<typeof notificationSchema>;

/** A notification as the rest of the program knows it. */
export interface Notification {
  /** Place in the body's array; 0 for a body that is one object. */
  index: number;
  ackId: string | null;
  productId: string;
  productName: string | null;
  /** Lower case: created, modified, deleted, or a name not known yet. */
  event: string;
  subscriptionId: string | null;
  notificationDateUs: number | null;
}

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

/** Names a field that nobody documented; odd names share one shape. */
function unknownField(name: string): DriftShape {
  return `unknown-field:${/^[\w.@-]{1,64}$/.test(name) ? name : '(odd name)'}`;
}

/** The reasons for which a body goes to quarantine; docs/operations.md explains each. */
export const faultCodes = [
  'empty-body',
  'not-json',
  'too-deep',
  'not-an-object',
  'empty-array',
  'event-missing',
  'product-id-missing',
  'unsupported-encoding',
  'undecodable-body',
  'ack-id-reused',
  'not-storable',
] as const;

export type FaultCode = (typeof faultCodes)[number];

/** Why a body, or one item of its array, is not a notification. */
export interface Fault {
  code: FaultCode;
  /** Place in the body's array; null when the body as a whole is meant. */
  index: number | null;
  /** One sentence, safe to send back. */
  message: string;
}

/** What a body holds. It is good when `faults` is empty; the notifications are good in any case. */
export interface Reading {
  notifications: Notification[];
  faults: Fault[];
  /** One entry per finding; the same shape may come several times. */
  drift: DriftShape[];
}

const strictUtf8 = new TextDecoder('utf-8', { fatal: true });

const lenientUtf8 = new TextDecoder('utf-8');

/** Faults beyond this number are not listed: a megabyte of `[{},{},…]` must not grow on its way. */
const faultsMax = 50;

/**
 * Reads one notification or an array of them. Never throws. Required are a product id (`ProductId`,
 * else `value.Id`) and an event; everything else that is absent or odd is noted as drift.
 */
export function readNotifications(body: Uint8Array): Reading {
  const reading: Reading = { notifications: [], faults: [], drift: [] };
  const refuse = (code: FaultCode, message: string) => {
    reading.faults.push({ code, index: null, message });
    return reading;
  };
  const bodyText = decode(body, reading.drift);
  if (bodyText.trim() === '') return refuse('empty-body', 'The body is empty.');
  let document: unknown;
  try {
    document = JSON.parse(bodyText);
  } catch (error) {
    return refuse('not-json', `The body is not JSON: ${shortReason(error)}`);
  }
  // Before anything walks through the document: a walk of many thousand levels overflows the stack.
  if (isTooDeep(body)) {
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
  // Asked first because a failing parse is slow, and a megabyte may hold 300,000 of them.
  const parsed = 'SubscriptionEvent' in item ? notificationSchema.safeParse(item) : null;
  if (!parsed?.success) {
    return refuse('event-missing', 'SubscriptionEvent is missing or is not a text.');
  }
  const fields = parsed.data;
  const product = fields.value ?? fields.Value;
  const productId = fields.ProductId ?? product?.Id ?? null;
  if (productId === null) {
    return refuse('product-id-missing', 'Neither ProductId nor value.Id names a product.');
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

/** Bodies with broken UTF-8 are read all the same: the bytes are kept as they came. */
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

/** Records of the catalogue have some ten levels. */
const nestingMax = 100;

const [quote, backslash, firstBracket] = [0x22, 0x5c, 0x5b];

/**
 * Checks JSON in UTF-8 for more levels of arrays and objects than `nestingMax`. Of bytes that are no JSON the result
 * means nothing. It runs for each notification: 9 µs for 5 kB, where parsing takes 33 µs.
 */
export function isTooDeep(json: Uint8Array): boolean {
  const { length } = json;
  let depth = 0;
  for (let i = 0; i < length; i += 1) {
    const byte = json[i] ?? 0;
    if (byte === quote) {
      i += 1;
      for (; i < length && json[i] !== quote; i += 1) if (json[i] === backslash) i += 1;
    } else if (byte >= firstBracket) {
      // `[` and `{` differ in one bit alone, as do `]` and `}`.
      const bracket = byte | 0x20;
      if (bracket === 0x7b) depth += 1;
      else if (bracket === 0x7d) depth -= 1;
      if (depth > nestingMax) return true;
    }
  }
  return false;
}
