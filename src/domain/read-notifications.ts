/** The tolerant reader: from the raw bytes of a request to notifications, or to reasons why not. */
import { type DriftShape, driftOf } from './drift.ts';
import { isTooDeep, nestingMax } from './nesting.ts';
import { type Notification, notificationSchema } from './notification.ts';
import { parseDate } from './notification-date.ts';

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
