/** Requests one page: retries, waits as the catalogue asks, and logs in if required. */

import { retryAfterMs } from '../core/http/bounded-fetch.ts';
import { foreignText, hintCharactersMax, hintOf } from '../core/http/foreign-text.ts';
import type {
  OutboundAnswer,
  OutboundClient,
  OutboundRequest,
} from '../core/http/outbound-client.ts';
import {
  readServiceMessage,
  type ServiceMessage,
  serviceError,
} from '../core/http/service-error.ts';
import { AppError, isAppError } from '../core/terms/app-error.ts';
import type { AccessTokens } from './account.ts';
import type { PageSize } from './page-size.ts';
import type { ListingReading, ReadPage, readListing } from './read-listing.ts';

/** Timeouts and retries. */
export interface ListingTiming {
  /** Timeout of one attempt, response included. */
  attemptTimeoutMs: number;
  /** Delay after the first failure, before jitter; doubles with each failure, up to the maximum. */
  retryDelayMs: number;
  retryDelayMsMax: number;
  /** Consecutive failures after which a page fails. */
  attemptsMax: number;
  /** Maximum `Retry-After` that is accepted, and the maximum sum of such waits in one listing. */
  retryAfterMsMax: number;
  retryAfterTotalMsMax: number;
}

export const listingTiming: ListingTiming = {
  attemptTimeoutMs: 120_000,
  retryDelayMs: 1_000,
  retryDelayMsMax: 60_000,
  attemptsMax: 8,
  retryAfterMsMax: 600_000,
  retryAfterTotalMsMax: 1_800_000,
};

/** A failed attempt that will be retried. */
export interface ListingRetry {
  /** A sentence without its full stop, identical for identical causes: "The catalogue does not respond (ECONNREFUSED)". */
  cause: string;
  /** Delay before the next attempt. */
  waitMs: number;
  /** Maximum sum of all remaining delays; null where `Retry-After` sets the delay. */
  remainingWaitMs: number | null;
}

/** Maximum number of logins for one page: the catalogue may reject the first token as expired. */
const loginsMax = 2;

export interface PageQuestion {
  /** Completes "could not …": "list the created products". */
  purpose: string;
  url: (top: number, failures: number) => string;
  reading: ListingReading;
  /** Called before the next request after a page that was too large. */
  onTooLarge?: () => void;
}

/** Calls `readListing`. */
export type ReadListingPage = (
  name: 'readListing',
  bytes: Uint8Array,
  reading: ListingReading,
) => Promise<{ result: ReturnType<typeof readListing>; bytes: Uint8Array }>;

/** A page of 1,000 products has 3 to 7 MB (facts, catalogue 1.1). */
const pageBytesMax = 8 * 2 ** 20;

/** Maximum size of the smallest page, and of one product: its Id and date continue the listing. */
const smallestPageBytesMax = 64 * 2 ** 20;

/** Dependencies shared by the listings of one catalogue. */
interface PageRequestsOptions {
  requests: PacedRequests;
  size: PageSize;
  login: ListingLogin;
  random: () => number;
  timing: ListingTiming;
  readPage: ReadListingPage;
  onRetry?: ((trouble: ListingRetry) => void) | undefined;
}

/** Creates the requests of one listing, with its own budget for `Retry-After` waits. */
export function createPageRequests(options: PageRequestsOptions) {
  const { requests, size, login, random, timing, onRetry } = options;
  const attempt = createAttempts(options);
  let askedTotalMs = 0;

  async function waitAsAsked(
    { askedMs, error, status }: { askedMs: number; error: AppError; status: number | null },
    signal: AbortSignal,
  ) {
    // Jitter, because other clients retry at the same time; never zero.
    const waitMs = Math.max(askedMs, timing.retryDelayMs) + timing.retryDelayMs * random();
    askedTotalMs += waitMs;
    if (askedMs > timing.retryAfterMsMax || askedTotalMs > timing.retryAfterTotalMsMax) throw error;
    const cause = `The catalogue requests a delay (${status})`;
    onRetry?.({ cause, waitMs, remainingWaitMs: null });
    await requests.wait(waitMs, signal);
  }

  /** Rejects as `ProductListing` does; with `invalid` when the catalogue rejects the query. */
  async function ask(question: PageQuestion, signal: AbortSignal) {
    let failures = 0;
    let logins = 0;
    for (;;) {
      const top = size.current();
      const outcome = await attempt(question, question.url(top, failures), signal);
      if ('page' in outcome) {
        size.succeeded();
        const { page, bytes } = outcome;
        return { page, top, bytes };
      }
      if ('askedMs' in outcome) {
        await waitAsAsked(outcome, signal);
      } else if ('refusedStatus' in outcome) {
        logins += 1;
        if (logins > loginsMax) throw outcome.error;
        const { refusedStatus: status, quote } = outcome;
        await login.refused({ purpose: question.purpose, status, quote });
      } else if (outcome.failed.facts.isTooLarge === true) {
        question.onTooLarge?.();
        if (question.reading.sinceMs === null || !size.shrink()) throw outcome.failed;
      } else {
        failures += 1;
        if (outcome.failed.code === 'unavailable') size.failed();
        if (failures >= timing.attemptsMax) throw afterLastAttempt(failures, outcome.failed);
        const waitMs = longestDelayMs(failures, timing) * (0.5 + random() / 2);
        const cause = causeOf(outcome.failed, outcome.status);
        onRetry?.({ cause, waitMs, remainingWaitMs: remainingWaitMs(failures, timing) });
        await requests.wait(waitMs, signal);
      }
    }
  }

  return { ask };
}

/** Creates the function that sends one request for a page, and reads the response. */
function createAttempts({ requests, size, login, readPage }: PageRequestsOptions) {
  return async (
    { purpose, reading }: PageQuestion,
    url: string,
    signal: AbortSignal,
  ): Promise<Outcome & { status: number | null }> => {
    const token = await login.token();
    const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
    const isSmallest = reading.sinceMs === null || size.isSmallest();
    const answerBytesMax = isSmallest ? smallestPageBytesMax : pageBytesMax;
    const sent = { purpose, url, token };
    const request = { method: 'GET', url, headers, purpose, answerBytesMax } as const;
    const answer = await requests.send(request, signal).catch(unavailable);
    if (isAppError(answer)) return { failed: answer, status: null };
    const { status } = answer;
    if (status !== 200) return { ...outcomeOf(answer, sent), status };
    const read = await readPage('readListing', answer.bytes, reading).catch(unavailable);
    if (isAppError(read)) return { failed: read, status };
    const { result, bytes } = read;
    if ('broken' in result) return { failed: brokenPage(bytes, result, sent), status };
    return { page: result, bytes, status };
  };
}

/** Returns an error that a retry may fix, and throws all others. */
function unavailable(error: unknown): AppError {
  if (isAppError(error, 'unavailable')) return error;
  throw error;
}

/** Returns the delay after consecutive failures, before jitter, which only shortens it. */
function longestDelayMs(failures: number, timing: ListingTiming): number {
  return Math.min(timing.retryDelayMs * 2 ** (failures - 1), timing.retryDelayMsMax);
}

/** Returns the sum of the remaining delays after consecutive failures. */
function remainingWaitMs(failures: number, timing: ListingTiming): number {
  const toCome = Array.from({ length: timing.attemptsMax - failures }, (_, i) => failures + i);
  return toCome.reduce((sum, failure) => sum + longestDelayMs(failure, timing), 0);
}

/** `status` is null if no response arrived; the client's facts then name the reason. */
function causeOf({ facts: { reason, networkCode } }: AppError, status: number | null): string {
  if (status === 200) return "The catalogue's response is unusable";
  if (status !== null) return `The catalogue responds with an error (${status})`;
  if (typeof networkCode === 'string') return `The catalogue does not respond (${networkCode})`;
  return `The catalogue cannot be reached${reason === undefined ? '' : `: ${reason}`}`;
}

function afterLastAttempt(attempts: number, error: AppError): AppError {
  const message = `${error.message} ${attempts} attempts in a row failed.`;
  return error.with({ message });
}

/** Result of one attempt. */
type Outcome =
  | { page: ReadPage; bytes: Uint8Array }
  | { failed: AppError }
  /** `Retry-After` of the catalogue; the error is thrown if that is too long. */
  | { askedMs: number; error: AppError }
  /** A token is required, or the one sent was rejected; `quote` is the message of the catalogue, to end an error. */
  | { refusedStatus: number; quote: string; error: AppError };

type SentQuestion = { purpose: string; url: string; token: string | null };

/** Firewalls may reject longer URLs with 403; servers accept more, and use another status. */
const longAddressCharacters = 2_000;

/**
 * Throws errors that a retry cannot fix: `invalid`, `unavailable` for a redirect or a blocking firewall, and
 * `unauthorized` if the account lacks the permission.
 */
function outcomeOf(
  answer: OutboundAnswer,
  question: SentQuestion,
): Exclude<Outcome, { page: ReadPage }> {
  const { purpose, token } = question;
  const { status } = answer;
  const secrets = token === null ? [] : [token];
  const message = readServiceMessage(answer, secrets);
  if (status === 403 && !isOwnRefusal(answer)) throw refusedByFirewall(question, message);
  if (status === 403 && token !== null) throw notAllowed(question, message);
  if (status === 401 || status === 403) {
    const error = serviceError(answer, message, purpose, 'unauthorized');
    return { refusedStatus: status, quote: quoteOf(message), error };
  }
  const error = serviceError(answer, message, purpose);
  const askedMs = status === 429 || status === 503 ? retryAfterMs(answer.headers) : null;
  if (askedMs !== null) return { askedMs, error };
  if (status === 408 || status === 429 || status >= 500 || status < 300) return { failed: error };
  throw error;
}

/** Returns true if the catalogue itself refused: its refusals have a `detail` (facts, catalogue 1.4). */
function isOwnRefusal({ json }: OutboundAnswer): boolean {
  return typeof json === 'object' && json !== null && 'detail' in json;
}

/** A login cannot help. `invalid` if the URL is long: the same query without the filter may pass. */
function refusedByFirewall({ purpose, url }: SentQuestion, message: ServiceMessage): AppError {
  const isLong = url.length > longAddressCharacters;
  const [why, advice] = isLong
    ? [
        `the URL has ${url.length.toLocaleString('en-US')} characters, which may exceed the limit of the firewall or proxy.`,
        'Shorten the filter of the subscription, for example with a polygon of fewer points.',
      ]
    : [
        'the firewall or proxy may block this host temporarily.',
        'Retry later. If this happens again, check EARSHOT_CATALOGUE_URL and the firewalls and proxies between this host and the catalogue.',
      ];
  return new AppError(
    isLong ? 'invalid' : 'unavailable',
    `Could not ${purpose}: the response ${statusText(message)} comes from a firewall or proxy, not from the catalogue; ${why}`,
    { advice: `${advice}${quoteOf(message)}` },
  );
}

/** An expired token causes 401 (RFC 9110, 15.5.4), so this token was accepted. */
function notAllowed({ purpose }: SentQuestion, message: ServiceMessage): AppError {
  return new AppError(
    'unauthorized',
    `The catalogue refused to ${purpose} ${statusText(message)}: the account lacks the permission.`,
    {
      advice: `Log in on the catalogue's website and accept any pending terms. If there are no pending terms, ask the support of the catalogue.${quoteOf(message)}`,
    },
  );
}

function statusText({ requestId }: ServiceMessage): string {
  return requestId === null ? '(403)' : `(403, request id ${requestId})`;
}

function quoteOf({ text, lines }: ServiceMessage): string {
  const quote = text ?? lines.join('; ');
  return quote === '' ? '' : ` Response: ${quote}`;
}

/** Number of bytes of an unusable page that are read for an error. */
const hintBytesMax = 16_384;

function brokenPage(
  bytes: Uint8Array,
  { broken, isJson }: { broken: string; isJson: boolean },
  { purpose, token }: SentQuestion,
): AppError {
  const options = { secrets: token === null ? [] : [token], charactersMax: hintCharactersMax };
  const text = new TextDecoder().decode(bytes.subarray(0, hintBytesMax));
  const begins = isJson ? '' : ` Response: ${foreignText(hintOf(text), options)}`;
  return new AppError(
    'unavailable',
    `Could not ${purpose}: the catalogue's response is unusable: ${broken}.`,
    { advice: `Retry later. If this happens again, check EARSHOT_CATALOGUE_URL.${begins}` },
  );
}

type ListingLogin = ReturnType<typeof createListingLogin>;

export function createListingLogin(tokens: AccessTokens | null) {
  let isNeeded = false;
  let sent: string | null = null;
  return {
    /** Null until the catalogue requires one. Rejects as `AccessTokens` does. */
    token: async (): Promise<string | null> => {
      sent = isNeeded && tokens !== null ? await tokens.get() : null;
      return sent;
    },
    /**
     * Records that the catalogue refused the last request. Rejects with `unauthorized` without an account.
     * `purpose` completes "refused to …"; `quote` is the message of the catalogue, to end an error.
     */
    refused: async (refusal: { purpose: string; status: number; quote: string }) => {
      const { purpose, status, quote } = refusal;
      if (tokens === null) {
        // 401 requires a login (RFC 9110, 15.5.2); the reason for 403 is only in its message.
        const [reason, tail] =
          status === 401
            ? [`without a login (${status})`, '']
            : [`(${status}); a login may be required`, quote];
        throw new AppError('unauthorized', `The catalogue refused to ${purpose} ${reason}.`, {
          advice: `Set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD, or EARSHOT_ACCESS_TOKEN.${tail}`,
        });
      }
      if (sent !== null) await tokens.refused(sent);
      isNeeded = true;
    },
  };
}

/** Clock and timer. */
export interface Time {
  nowMs: () => number;
  /** Resolves early when the signal is aborted. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

type PacedRequests = ReturnType<typeof createPacedRequests>;

/** Sends one request at a time at a limited rate, and measures requests and waits. */
export function createPacedRequests(options: {
  client: OutboundClient;
  requestsPerMinute: number;
  time: Time;
}) {
  const { client, time } = options;
  const intervalMs = 60_000 / options.requestsPerMinute;
  /** `answersMs` is the wait for responses, `waitedMs` the wait between requests. */
  const spent = { requests: 0, answersMs: 0, waitedMs: 0 };
  let startedMs: number | null = null;
  let turn = Promise.resolve();

  /** Rejects with the signal's reason. */
  async function wait(ms: number, signal: AbortSignal) {
    signal.throwIfAborted();
    if (ms <= 0) return;
    const sinceMs = time.nowMs();
    await time.pause(ms, signal);
    spent.waitedMs += time.nowMs() - sinceMs;
    signal.throwIfAborted();
  }

  async function sendNow(request: OutboundRequest, signal: AbortSignal) {
    const restMs = startedMs === null ? 0 : startedMs + intervalMs - time.nowMs();
    // Limited, in case the clock was set back.
    await wait(Math.ceil(Math.min(restMs, intervalMs)), signal);
    const sinceMs = time.nowMs();
    startedMs = sinceMs;
    spent.requests += 1;
    try {
      return await client({ ...request, signal });
    } finally {
      spent.answersMs += time.nowMs() - sinceMs;
    }
  }

  return {
    /** Waits for the requests before it. Rejects as the client does, and with the signal's reason. */
    send: (request: OutboundRequest, signal: AbortSignal) => {
      const answer = turn.then(() => sendNow(request, signal));
      turn = answer.then(nothing, nothing);
      return answer;
    },
    wait,
    spent: () => ({ ...spent }),
  };
}

const nothing = () => undefined;
