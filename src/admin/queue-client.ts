/** Client of the queues of pull subscriptions (facts, catalogue 1.3, row "Pull"). */
import { z } from 'zod';
import { itemsIn, membersIn, type Span, smallValue, wholeOf } from '../core/http/json-parts.ts';
import type { OutboundClient } from '../core/http/outbound-client.ts';
import { AppError } from '../core/terms/app-error.ts';
import { readDateUs } from '../core/terms/dates.ts';
import type { AccessTokens } from './account.ts';
import { createAuthorizedCall, named, subscriptionUrl } from './authorized-call.ts';
import type { Acknowledgement, PullQueue, QueueEntry } from './pull-queue.ts';

/** Twenty records with long footprints have well below 1 MB (facts, catalogue 1.1). */
const pageBytesMax = 8 * 2 ** 20;

/** Maximum size of a page of one entry: without its AckId, which comes last, no later entry could be read. */
const singleEntryBytesMax = 64 * 2 ** 20;

/** Far above `readEntriesMax`: entries of a service that ignores `$top` are accepted. */
const itemsMax = 10_000;

/** `send` sends each request once. `readPage` calls `readEntries`. */
export function createPullQueue(options: {
  catalogueUrl: string;
  tokens: AccessTokens;
  send: OutboundClient;
  readPage: (
    name: 'readEntries',
    page: Uint8Array,
    options: undefined,
  ) => Promise<{ result: EntryPart[] | null; bytes: Uint8Array }>;
}): PullQueue {
  const call = createAuthorizedCall(options.send, options.tokens);
  const urlOf = (id: string) => subscriptionUrl(options.catalogueUrl, id);
  return {
    read: async ({ id, entriesMax, signal }) => {
      const purpose = `read the queue of ${named(id)}`;
      const url = `${urlOf(id)}/Read?$top=${entriesMax}`;
      const answerBytesMax = entriesMax === 1 ? singleEntryBytesMax : pageBytesMax;
      const own = signal === undefined ? {} : { signal };
      const answer = await call({ method: 'GET', url, purpose, id, answerBytesMax, ...own });
      const { result: parts, bytes } = await options.readPage(
        'readEntries',
        answer.bytes,
        undefined,
      );
      if (parts === null) throw notEntries(purpose);
      return {
        entries: parts.map((part) => entryOf(bytes, part)),
        headers: [...answer.headers].flat(),
      };
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

function notEntries(purpose: string): AppError {
  const message = `Could not ${purpose}: the response is not a page of entries.`;
  return new AppError('unavailable', message, {
    advice: 'Retry later. If this happens again, check EARSHOT_CATALOGUE_URL.',
  });
}

/** Cuts an entry that the log cannot store, so that the quarantine gets no more than usual pages have. */
function entryOf(page: Uint8Array, { start, end, ackId, notificationUs }: EntryPart): QueueEntry {
  const bytes = page.subarray(start, Math.min(end, start + pageBytesMax));
  return { bytes, ackId, notificationUs };
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
const ackIdSchema = z
  .union([z.string().min(1), z.int().transform(String)])
  .nullable()
  .catch(null);

const entryNames = ['AckId', 'SubscriptionEvent', 'ProductId'];

/** An entry within its page. */
type EntryPart = Span & Omit<QueueEntry, 'bytes'>;

/**
 * Returns the entries of a page; null for an answer that is neither an array of entries nor one entry. What an entry
 * contains is checked when it is stored.
 */
export function readEntries(page: Uint8Array, _options: undefined): EntryPart[] | null {
  const whole = wholeOf(page);
  const items = itemsIn(page, whole, itemsMax);
  if (items !== null) return items.map((item) => entryPartOf(page, item));
  // One entry may come without an array; another object is not an entry.
  const isEntry = (membersIn(page, whole, entryNames)?.size ?? 0) > 0;
  return isEntry ? [entryPartOf(page, whole)] : null;
}

function entryPartOf(page: Uint8Array, item: Span): EntryPart {
  const members = membersIn(page, item, ['AckId', 'NotificationDate']);
  const value = (name: string) => smallValue(page, members?.get(name));
  const notificationUs = readDateUs(value('NotificationDate'));
  return { ...item, ackId: ackIdSchema.parse(value('AckId')), notificationUs };
}
