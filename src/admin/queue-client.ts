/** Client of the queues of pull subscriptions (facts, catalogue 1.3, row "Pull"). */
import { z } from 'zod';
import { type Io, pause } from '../core/cli/io.ts';
import { createOutboundClient, type OutboundClient } from '../core/http/outbound-client.ts';
import { AppError, isAppError } from '../core/terms/app-error.ts';
import type { AccessTokens, Account } from './account.ts';
import { createPacedRequests } from './listing-requests.ts';
import { createReadPage, type EntryPart } from './page-readers.ts';
import type { PullQueue, QueueEntry } from './pull-queue.ts';
import { createAccessTokens } from './session.ts';
import type { AccountConfig } from './settings.ts';
import { catalogue, createAuthorizedCall, named, subscriptionUrl } from './subscription-client.ts';

/** Shorter than the time in which a receiver stops. Requests are sent once: the reader retries. */
const attemptTimeoutMs = 15_000;

/** Settings of the queues. */
export type PullConfig = Pick<
  AccountConfig,
  'dataDir' | 'catalogueUrl' | 'pullRequestsPerMinute'
> & { account: Account };

/** Composes the client. The queues share one request budget. A shutdown does not abort acknowledgements. */
export function openPullQueue(
  { account, dataDir, catalogueUrl, pullRequestsPerMinute: requestsPerMinute }: PullConfig,
  { nowUs, random, fetch }: Pick<Io, 'nowUs' | 'random' | 'fetch'>,
): PullQueue {
  const tokens = createAccessTokens({ account, dataDir, nowUs, fetch });
  const client = createOutboundClient({
    ...{ ...catalogue, fetch, random, retries: 0 },
    timing: { attemptTimeoutMs, totalTimeoutMs: attemptTimeoutMs },
  });
  const requests = createPacedRequests({ client, requestsPerMinute, time: { nowUs, pause } });
  const unlimited = new AbortController().signal;
  return createPullQueue({
    ...{ catalogueUrl, tokens: pausedAfterRefusal(tokens, nowUs) },
    send: (request) => requests.send(request, request.signal ?? unlimited),
  });
}

/** Time without a login after a refused one: an identity provider may lock accounts with many wrong passwords. */
const refusedLoginUs = 600_000_000;

/** Returns the tokens of readers that retry for ever; all readers of the account share the pause. */
function pausedAfterRefusal(tokens: AccessTokens, nowUs: () => number): AccessTokens {
  let refused: { error: AppError; atUs: number } | null = null;
  return {
    ...tokens,
    get: async () => {
      if (refused !== null && Math.abs(nowUs() - refused.atUs) < refusedLoginUs) {
        throw refused.error;
      }
      refused = null;
      try {
        return await tokens.get();
      } catch (error) {
        // Refused tokens have their own, shorter pause.
        const isRefused =
          isAppError(error, 'unauthorized') && error.facts.retryAfterMs === undefined;
        if (isRefused) refused = { error, atUs: nowUs() };
        throw error;
      }
    },
  };
}

/** Twenty records with long footprints have well below 1 MB (facts, catalogue 1.1). */
const pageBytesMax = 8 * 2 ** 20;

/** Maximum size of a page of one entry: without its AckId, which comes last, no later entry could be read. */
const singleEntryBytesMax = 64 * 2 ** 20;

/** `send` sends each request once. */
export function createPullQueue(options: {
  catalogueUrl: string;
  tokens: AccessTokens;
  send: OutboundClient;
}): PullQueue {
  const readPage = createReadPage();
  const call = createAuthorizedCall(options.send, options.tokens);
  const urlOf = (id: string) => subscriptionUrl(options.catalogueUrl, id);
  return {
    read: async ({ id, entriesMax, signal }) => {
      const purpose = `read the queue of ${named(id)}`;
      const url = `${urlOf(id)}/Read?$top=${entriesMax}`;
      const answerBytesMax = entriesMax === 1 ? singleEntryBytesMax : pageBytesMax;
      const own = signal === undefined ? {} : { signal };
      const answer = await call({ method: 'GET', url, purpose, id, answerBytesMax, ...own });
      const { result: parts, bytes } = await readPage('readEntries', answer.bytes, undefined);
      if (parts === null) {
        const message = `Could not ${purpose}: the response is not a page of entries.`;
        throw new AppError('unavailable', message, {
          advice: 'Retry later. If this happens again, check EARSHOT_CATALOGUE_URL.',
        });
      }
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
      return acknowledgementSchema.parse(json);
    },
  };
}

/** Cuts an entry that the log cannot store, so that the quarantine gets no more than usual pages have. */
function entryOf(page: Uint8Array, { start, end, ackId, notificationUs }: EntryPart): QueueEntry {
  const bytes = page.subarray(start, Math.min(end, start + pageBytesMax));
  return { bytes, ackId, notificationUs };
}

const count = z.int().min(0).nullable().catch(null);

/** A number that the answer does not contain is null. */
const acknowledgementSchema = z
  .object({ CurrentQueueLength: count, MaxQueueLength: count })
  .catch({ CurrentQueueLength: null, MaxQueueLength: null })
  .transform((answer) => ({
    length: answer.CurrentQueueLength,
    lengthMax: answer.MaxQueueLength,
  }));
