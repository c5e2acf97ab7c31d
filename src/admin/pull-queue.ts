/** Client of the queues of pull subscriptions (facts, catalogue 1.3, row "Pull"). */
import { z } from 'zod';
import type { AccessTokens } from '../domain/account.ts';
import { AppError } from '../domain/app-error.ts';
import { parseDate } from '../domain/dates.ts';
import type { Acknowledgement, PullQueue, QueueEntry } from '../domain/pull-queue.ts';
import type { OutboundAnswer, OutboundClient } from '../http/outbound-client.ts';
import { createAuthorizedCall, named, subscriptionUrl } from './authorized-call.ts';

/** Twenty records with long footprints have well below 1 MB (facts, catalogue 1.1). */
export const pageBytesMax = 8 * 2 ** 20;

/** Far above `readEntriesMax`: entries of a service that ignores `$top` are accepted. */
const itemsMax = 10_000;

/** `send` returns the bytes of each answer (`bodies: 'all'`), and sends each request once. */
export function createPullQueue(options: {
  catalogueUrl: string;
  tokens: AccessTokens;
  send: OutboundClient;
}): PullQueue {
  const call = createAuthorizedCall(options.send, options.tokens);
  const urlOf = (id: string) => subscriptionUrl(options.catalogueUrl, id);
  return {
    read: async ({ id, entriesMax, signal }) => {
      const purpose = `read the queue of ${named(id)}`;
      const url = `${urlOf(id)}/Read?$top=${entriesMax}`;
      const own = signal === undefined ? {} : { signal };
      const answer = await call({ method: 'GET', url, purpose, id, ...own });
      return { entries: entriesOf(answer, purpose), headers: [...answer.headers].flat() };
    },
    acknowledge: async ({ id, ackId }) => {
      const purpose = `acknowledge entries of the queue of ${named(id)}`;
      // Base64 may contain `=`, `+` and `/`.
      const url = `${urlOf(id)}/Ack?$ackid=${encodeURIComponent(ackId.toWellFormed())}`;
      const { json } = await call({ method: 'POST', url, purpose, id });
      return acknowledgementOf(json);
    },
  };
}

const count = z.int().min(0).nullable().catch(null);

const acknowledgementSchema = z
  .object({ AckMessagesNum: count, CurrentQueueLength: count, MaxQueueLength: count })
  .catch({ AckMessagesNum: null, CurrentQueueLength: null, MaxQueueLength: null });

function acknowledgementOf(json: unknown): Acknowledgement {
  const { AckMessagesNum, CurrentQueueLength, MaxQueueLength } = acknowledgementSchema.parse(json);
  return { acknowledged: AckMessagesNum, length: CurrentQueueLength, lengthMax: MaxQueueLength };
}

/** As in the parser of notifications, an AckId is opaque and not trimmed. */
const entrySchema = z
  .object({
    AckId: z
      .union([z.string().min(1), z.int().transform(String)])
      .nullable()
      .catch(null),
    NotificationDate: z.string().nullable().catch(null),
  })
  .catch({ AckId: null, NotificationDate: null });

const entryNames = ['AckId', 'SubscriptionEvent', 'ProductId'];

/** Throws `unavailable` for an answer that is neither an array of entries nor one entry. */
function entriesOf({ json, bytes = new Uint8Array() }: OutboundAnswer, purpose: string) {
  // One entry may come without an array; another object is not an entry.
  const isEntry = Array.isArray(json)
    ? json.length <= itemsMax
    : entryNames.some((name) => name in Object(json));
  if (!isEntry) {
    const message = `Could not ${purpose}: the response is not a page of entries.`;
    throw new AppError('unavailable', message, {
      advice: 'Retry later. If this happens again, check EARSHOT_CATALOGUE_URL.',
    });
  }
  if (!Array.isArray(json)) return [entryOf(json, bytes)];
  const parts = splitArray(bytes);
  return json.map((item, index) => entryOf(item, parts[index] ?? new Uint8Array()));
}

function entryOf(item: unknown, bytes: Uint8Array): QueueEntry {
  const { AckId: ackId, NotificationDate: date } = entrySchema.parse(item);
  return { bytes, ackId, notificationUs: date === null ? null : (parseDate(date)?.us ?? null) };
}

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c];

/** Returns the bytes of each item of a valid JSON array (UTF-8), without the white space around them. */
export function splitArray(json: Uint8Array): Uint8Array[] {
  const items: Uint8Array[] = [];
  let depth = 0;
  let start = 0;
  const end = (index: number) => {
    const item = trimmed(json, start, index);
    if (item.byteLength > 0) items.push(item);
    start = index + 1;
  };
  for (let i = 0; i < json.length; i += 1) {
    const byte = json[i];
    if (byte === quote) i = endOfString(json, i);
    else if (byte === comma && depth === 1) end(i);
    else if (byte === 0x5b || byte === 0x7b) {
      depth += 1;
      if (depth === 1) start = i + 1;
    } else if (byte === 0x5d || byte === 0x7d) {
      depth -= 1;
      if (depth === 0) end(i);
    }
  }
  return items;
}

function endOfString(json: Uint8Array, start: number): number {
  let i = start + 1;
  while (i < json.length && json[i] !== quote) i += json[i] === backslash ? 2 : 1;
  return i;
}

/** White space of JSON: space, tab, line feed, carriage return (RFC 8259, 2). */
const isSpace = (byte: number | undefined) =>
  byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d;

function trimmed(json: Uint8Array, from: number, to: number): Uint8Array {
  let [start, end] = [from, to];
  while (start < end && isSpace(json[start])) start += 1;
  while (end > start && isSpace(json[end - 1])) end -= 1;
  return json.slice(start, end);
}
