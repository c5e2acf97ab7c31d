/** Requests one page: rate, retries and page sizes. Queries of the catalogue need no login (facts, catalogue 5). */

import type {
  OutboundAnswer,
  OutboundClient,
  OutboundRequest,
} from '../core/http/outbound-client.ts';
import {
  foreignText,
  hintCharactersMax,
  hintOf,
  readServiceMessage,
  serviceError,
} from '../core/http/service-error.ts';
import { AppError, type ErrorCode, isAppError } from '../core/terms/app-error.ts';
import { minuteUs } from '../core/terms/dates.ts';
import type { createReadPage, ListingReading, ReadPage } from './page-readers.ts';

/** Timeouts and retries. */
export const listingTiming = {
  /** Timeout of one attempt, response included. */
  attemptTimeoutMs: 120_000,
  /** Delay after the first failure, before jitter; doubles with each failure, up to the maximum. */
  retryDelayMs: 1_000,
  retryDelayMsMax: 60_000,
  /** Consecutive failures after which a page fails. */
  attemptsMax: 8,
  /** Maximum `Retry-After` that is accepted, and the maximum sum of such waits in one listing. */
  retryAfterMsMax: 600_000,
  retryAfterTotalMsMax: 1_800_000,
};
export type ListingTiming = typeof listingTiming;

/** A failed attempt that will be retried. */
export interface ListingRetry {
  /** A sentence, identical for identical causes. */
  cause: string;
  /** Delay before the next attempt. */
  waitMs: number;
}

export interface PageQuestion {
  /** Completes "could not …": "list the created products". */
  purpose: string;
  url: (top: number, failures: number) => string;
  reading: ListingReading;
  /** Sum of the waits that the catalogue requested in this listing. */
  asked: { totalMs: number };
  /** Called before the next request after a page that was too large. */
  onTooLarge?: () => void;
}

/** A page of 1,000 products has 3 to 7 MB (facts, catalogue 1.1). */
const pageBytesMax = 8 * 2 ** 20;

/** Maximum size of the smallest page, and of one product: its Id and date continue the listing. */
const smallestPageBytesMax = 64 * 2 ** 20;

/** Values of `$top` (facts, filters 1: maximum 1,000). Minimum 2: a page repeats a record of the one before. */
export const listingSizes: readonly number[] = [1_000, 250, 50, 10, 2];

/** Consecutive successes before the previous size is used again. */
const goodPagesMin = 5;

type PageSize = ReturnType<typeof createPageSize>;

/** Number of records or entries of a page: fewer after failures, and for pages that are too large; largest first. */
export function createPageSize(sizes: readonly number[]) {
  let index = 0;
  let goodPages = 0;
  const isSmallest = () => index >= sizes.length - 1;
  return {
    current: () => sizes[index] ?? 1,
    isSmallest,
    /** Selects the next size; returns false if there is none. */
    shrink: (): boolean => {
      goodPages = 0;
      if (isSmallest()) return false;
      index += 1;
      return true;
    },
    succeeded: () => {
      goodPages += 1;
      if (goodPages < goodPagesMin) return;
      index = Math.max(0, index - 1);
      goodPages = 0;
    },
  };
}

/** Dependencies of the requests to one catalogue. */
interface PageRequestsOptions {
  requests: PacedRequests;
  size: PageSize;
  random: () => number;
  timing: ListingTiming;
  readPage: ReturnType<typeof createReadPage>;
  onRetry?: ((trouble: ListingRetry) => void) | undefined;
}

/**
 * Returns the function that requests a page. It rejects as `ProductListing` does; with `invalid` when the catalogue rejects
 * the query.
 */
export function createPageRequests(options: PageRequestsOptions) {
  const { requests, size, timing, onRetry } = options;
  return async (question: PageQuestion, signal: AbortSignal) => {
    for (let failures = 0; ; ) {
      const top = size.current();
      const url = question.url(top, failures);
      try {
        const read = await attempt({ ...question, url }, options, signal);
        size.succeeded();
        return { ...read, top };
      } catch (error) {
        if (!isAppError(error)) throw error;
        const { code, facts } = error;
        if (facts.isTooLarge === true) {
          question.onTooLarge?.();
          if (!size.shrink()) throw error;
          continue;
        }
        const waitMs = retryDelayMs(failures + 1, error, options);
        if (waitMs === null) throw error;
        if (typeof facts.retryAfterMs === 'number') question.asked.totalMs += waitMs;
        if (question.asked.totalMs > timing.retryAfterTotalMsMax) throw error;
        failures += 1;
        if (failures % failuresPerSize === 0 && code === 'unavailable') size.shrink();
        if (failures >= timing.attemptsMax) {
          throw error.with({ message: `${error.message} ${failures} attempts in a row failed.` });
        }
        onRetry?.({ cause: error.message, waitMs });
        await requests.wait(waitMs, signal);
      }
    }
  };
}

/** Consecutive failures after which the next page size is used. */
const failuresPerSize = 2;

/** Returns the delay after this number of failures: the requested one if it is longer. Null for an error that stays. */
function retryDelayMs(
  failures: number,
  { code, facts }: AppError,
  { timing, random }: Pick<PageRequestsOptions, 'timing' | 'random'>,
): number | null {
  const { status, isFinal, retryAfterMs } = facts as Record<string, unknown>;
  const isRedirect = typeof status === 'number' && status >= 300 && status < 400;
  const isPassing = code === 'too_many' || (code === 'unavailable' && !isRedirect && !isFinal);
  if (!isPassing) return null;
  const askedMs = typeof retryAfterMs === 'number' ? retryAfterMs : null;
  if (askedMs !== null && askedMs > timing.retryAfterMsMax) return null;
  const range = { min: timing.retryDelayMs, max: timing.retryDelayMsMax };
  return backoffMs(failures, range, askedMs, random);
}

/** Returns the delay after failures in sequence: doubled by each one up to `max`, or a longer one that was requested. */
export function backoffMs(
  failures: number,
  { min, max }: { min: number; max: number },
  requestedMs: number | null,
  random: () => number,
): number {
  const ownMs = Math.min(max, min * 2 ** (failures - 1)) * (0.5 + random() / 2);
  // Jitter, because other clients retry at the same time.
  return requestedMs === null ? ownMs : Math.max(ownMs, requestedMs + min * random());
}

type SentQuestion = Omit<PageQuestion, 'url'> & { url: string };

/** Sends one request for a page, and reads the response. */
async function attempt(
  question: SentQuestion,
  { requests, size, readPage }: PageRequestsOptions,
  signal: AbortSignal,
): Promise<{ page: ReadPage; bytes: Uint8Array }> {
  const { purpose, reading, url } = question;
  const answerBytesMax = size.isSmallest() ? smallestPageBytesMax : pageBytesMax;
  const request = { method: 'GET', url, headers: {}, purpose, answerBytesMax } as const;
  const answer = await requests.send(request, signal);
  if (answer.status !== 200) throw refusalOf(answer, question);
  const { result, bytes } = await readPage('readListing', answer.bytes, reading);
  if (!('broken' in result)) return { page: result, bytes };
  const bounds = { secrets: [], charactersMax: hintCharactersMax };
  const begin = new TextDecoder().decode(bytes.subarray(0, hintBytesMax));
  const advice = `Retry later. If this happens again, check EARSHOT_CATALOGUE_URL. Response: ${foreignText(hintOf(begin), bounds)}`;
  const message = `Could not ${purpose}: the catalogue's response is unusable: ${result.broken}.`;
  throw new AppError('unavailable', message, { advice });
}

/** Number of bytes of an unusable page that are read for an error. */
const hintBytesMax = 16_384;

/** Firewalls may reject longer URLs with 403; servers accept more, and use another status. */
const longAddressCharacters = 2_000;

/** Returns the error of a response without a page. */
function refusalOf(answer: OutboundAnswer, { purpose, url }: SentQuestion): AppError {
  const { status, json } = answer;
  const said = readServiceMessage(answer, []);
  const refusal = (code: ErrorCode, reason: string, advice: string) => {
    const id = said.requestId === null ? '' : `, request id ${said.requestId}`;
    const quote = said.text ?? said.lines.join('; ');
    return new AppError(code, `The catalogue refused to ${purpose} (${status}${id}): ${reason}.`, {
      advice: `${advice}${quote === '' ? '' : ` Response: ${quote}`}`,
      facts: { status, isFinal: true },
    });
  };
  // Refusals of the catalogue itself have a `detail` (facts, catalogue 1.4).
  const isOwn = typeof json === 'object' && json !== null && 'detail' in json;
  if (status === 403 && !isOwn) {
    const reason = 'the response comes from a firewall or proxy';
    if (url.length <= longAddressCharacters)
      return refusal('unavailable', reason, 'Retry later. Check EARSHOT_CATALOGUE_URL.');
    // The same query without the filter may pass.
    const advice =
      'Shorten the filter of the subscription, for example with a polygon of fewer points.';
    return refusal('invalid', `${reason}, and the URL is long`, advice);
  }
  if (status === 401 || status === 403) {
    const advice = `The catalogue answered ${status}, but its queries need no login, and earshot sends none. Check EARSHOT_CATALOGUE_URL.`;
    return refusal('unauthorized', 'it requires a login or a permission', advice);
  }
  return serviceError(answer, said, purpose);
}

/** Clock and timer. */
export interface Time {
  nowUs: () => number;
  /** Resolves early when the signal is aborted. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

type PacedRequests = ReturnType<typeof createPacedRequests>;

/** Sends one request at a time at a limited rate, and counts the requests. */
export function createPacedRequests(options: {
  client: OutboundClient;
  requestsPerMinute: number;
  time: Time;
}) {
  const { client, time } = options;
  const intervalUs = minuteUs / options.requestsPerMinute;
  let requestCount = 0;
  let startedUs: number | null = null;
  let turn = Promise.resolve();

  /** Rejects with the signal's reason. */
  async function wait(ms: number, signal: AbortSignal) {
    signal.throwIfAborted();
    if (ms <= 0) return;
    await time.pause(ms, signal);
    signal.throwIfAborted();
  }

  async function sendNow(request: OutboundRequest, signal: AbortSignal) {
    const restUs = startedUs === null ? 0 : startedUs + intervalUs - time.nowUs();
    // Limited, in case the clock was set back.
    await wait(Math.ceil(Math.min(restUs, intervalUs) / 1_000), signal);
    startedUs = time.nowUs();
    requestCount += 1;
    return client({ ...request, signal });
  }

  return {
    /** Waits for the requests before it. Rejects as the client does, and with the signal's reason. */
    send: (request: OutboundRequest, signal: AbortSignal) => {
      const answer = turn.then(() => sendNow(request, signal));
      turn = answer.then(nothing, nothing);
      return answer;
    },
    wait,
    count: () => requestCount,
  };
}

const nothing = () => undefined;
