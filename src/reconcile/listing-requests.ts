/** Requests one page: retries, waits as the catalogue asks, and logs in if required. */

import type { AccessTokens } from '../domain/account.ts';
import { AppError, isAppError } from '../domain/app-error.ts';
import { retryAfterMs } from '../http/bounded-fetch.ts';
import { foreignText, hintCharactersMax, hintOf } from '../http/foreign-text.ts';
import type { OutboundAnswer, OutboundClient, OutboundRequest } from '../http/outbound-client.ts';
import { readServiceMessage, type ServiceMessage, serviceError } from '../http/service-error.ts';
import type { ReadPage } from './listing-pages.ts';

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
  read: (json: unknown) => ReadPage | { broken: string };
}

/** Dependencies shared by the listings of one catalogue. */
interface PageRequestsOptions {
  requests: PacedRequests;
  size: PageSize;
  login: ListingLogin;
  random: () => number;
  timing: ListingTiming;
  onRetry?: ((trouble: ListingRetry) => void) | undefined;
}

/** Creates the requests of one listing, with its own budget for `Retry-After` waits. */
export function createPageRequests(options: PageRequestsOptions) {
  const { requests, size, login, random, timing, onRetry } = options;
  let askedTotalMs = 0;

  async function attempt(
    { purpose, read }: PageQuestion,
    url: string,
    signal: AbortSignal,
  ): Promise<Outcome & { status: number | null }> {
    const token = await login.token();
    const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
    let answer: OutboundAnswer;
    try {
      answer = await requests.send({ method: 'GET', url, headers, purpose }, signal);
    } catch (error) {
      if (isAppError(error, 'unavailable')) return { failed: error, status: null };
      throw error;
    }
    return { ...outcomeOf(answer, { purpose, url, read, token }), status: answer.status };
  }

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
        return { page: outcome.page, top };
      }
      if ('askedMs' in outcome) {
        await waitAsAsked(outcome, signal);
      } else if ('refusedStatus' in outcome) {
        logins += 1;
        if (logins > loginsMax) throw outcome.error;
        const { refusedStatus: status, quote } = outcome;
        await login.refused({ purpose: question.purpose, status, quote });
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
  | { page: ReadPage }
  | { failed: AppError }
  /** `Retry-After` of the catalogue; the error is thrown if that is too long. */
  | { askedMs: number; error: AppError }
  /** A token is required, or the one sent was rejected; `quote` is the message of the catalogue, to end an error. */
  | { refusedStatus: number; quote: string; error: AppError };

type SentQuestion = Omit<PageQuestion, 'url'> & { url: string; token: string | null };

/** Firewalls may reject longer URLs with 403; servers accept more, and use another status. */
const longAddressCharacters = 2_000;

/**
 * Throws errors that a retry cannot fix: `invalid`, `unavailable` for a redirect or a blocking firewall, and
 * `unauthorized` if the account lacks the permission.
 */
function outcomeOf(answer: OutboundAnswer, question: SentQuestion): Outcome {
  const { purpose, read, token } = question;
  const { status } = answer;
  const secrets = token === null ? [] : [token];
  if (status === 200) {
    const page = read(answer.json);
    return 'broken' in page ? { failed: brokenPage(answer, page.broken, question) } : { page };
  }
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

function brokenPage(
  { json, text }: OutboundAnswer,
  why: string,
  { purpose, token }: SentQuestion,
): AppError {
  const options = { secrets: token === null ? [] : [token], charactersMax: hintCharactersMax };
  const begins = json === undefined ? ` Response: ${foreignText(hintOf(text), options)}` : '';
  return new AppError(
    'unavailable',
    `Could not ${purpose}: the catalogue's response is unusable: ${why}.`,
    { advice: `Retry later. If this happens again, check EARSHOT_CATALOGUE_URL.${begins}` },
  );
}

/** Values of `$top` (facts, filters 1: maximum 1,000). Minimum 2: a page repeats a record of the one before. */
export const pageSizes: readonly number[] = [1_000, 250, 50];

/** Consecutive failures at one size before the next size is used. */
const failuresMax = 2;

/** Consecutive successes before the previous size is used again. */
const goodPagesMin = 5;

type PageSize = ReturnType<typeof createPageSize>;

export function createPageSize(sizes: readonly number[]) {
  let index = 0;
  let failures = 0;
  let goodPages = 0;

  function change(by: 1 | -1) {
    index = Math.max(0, Math.min(sizes.length - 1, index + by));
    failures = 0;
    goodPages = 0;
  }

  return {
    current: () => sizes[index] ?? 1_000,
    failed: () => {
      goodPages = 0;
      failures += 1;
      if (failures >= failuresMax) change(1);
    },
    succeeded: () => {
      failures = 0;
      goodPages += 1;
      if (goodPages >= goodPagesMin) change(-1);
    },
  };
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
