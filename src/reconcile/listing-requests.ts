/** Asks for one page until it comes: waits as it is told, tries again, logs in when it must. */

import type { AccessTokens } from '../domain/account.ts';
import { AppError, isAppError } from '../domain/app-error.ts';
import { retryAfterMs } from '../http/bounded-fetch.ts';
import { foreignText, hintCharactersMax, hintOf } from '../http/foreign-text.ts';
import type { OutboundAnswer, OutboundClient, OutboundRequest } from '../http/outbound-client.ts';
import { readServiceMessage, type ServiceMessage, serviceError } from '../http/service-error.ts';
import type { ReadPage } from './listing-pages.ts';

/** How long things may take. */
export interface ListingTiming {
  /** One try, answer included. */
  attemptTimeoutMs: number;
  /** The wait after a first failure, before jitter; it doubles each time, up to the longest. */
  retryDelayMs: number;
  retryDelayMsMax: number;
  /** Failures in a row, after which a page is given up. */
  attemptsMax: number;
  /** The longest wait that the catalogue may ask for, and all such waits of one listing. */
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

/** A try that brought no page; another one follows. */
export interface ListingRetry {
  /** A sentence without its end, the same for the same cause: "The catalogue does not answer (ECONNREFUSED)". */
  cause: string;
  /** Until the next try. */
  waitMs: number;
  /** How long it is waited for further tries in all, at most; null where the catalogue says when to come back. */
  remainingWaitMs: number | null;
}

/** The first token may be one that the catalogue no longer takes. */
const loginsMax = 2;

export interface PageQuestion {
  /** Completes "could not …": "list the created products". */
  purpose: string;
  /** `tries` is how often it failed before. */
  url: (top: number, tries: number) => string;
  read: (json: unknown) => ReadPage | { broken: string };
}

/** What listings of one catalogue share. */
interface PageRequestsOptions {
  requests: PacedRequests;
  size: PageSize;
  login: ListLogin;
  random: () => number;
  timing: ListingTiming;
  onRetry?: ((trouble: ListingRetry) => void) | undefined;
}

/** For one listing: the budget of waits is its own. */
export function createPageRequests(options: PageRequestsOptions) {
  const { requests, size, login, random, timing, onRetry } = options;
  let toldMs = 0;

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

  async function obey(
    { toldMs: ms, error, status }: { toldMs: number; error: AppError; status: number | null },
    signal: AbortSignal,
  ) {
    // Not exactly then, when others come back, too; and never at once.
    const waitMs = Math.max(ms, timing.retryDelayMs) + timing.retryDelayMs * random();
    toldMs += waitMs;
    if (ms > timing.retryAfterMsMax || toldMs > timing.retryAfterTotalMsMax) throw error;
    const cause = `The catalogue asks us to wait (${status})`;
    onRetry?.({ cause, waitMs, remainingWaitMs: null });
    await requests.wait(waitMs, signal);
  }

  /** Rejects as `ProductListing` does; with `invalid` when the catalogue refuses the question. */
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
      if ('toldMs' in outcome) {
        await obey(outcome, signal);
      } else if ('refusedStatus' in outcome) {
        logins += 1;
        if (logins > loginsMax) throw outcome.error;
        const { refusedStatus: status, said } = outcome;
        await login.demanded({ purpose: question.purpose, status, said });
      } else {
        failures += 1;
        if (outcome.failed.code === 'unavailable') size.failed();
        if (failures >= timing.attemptsMax) throw givenUp(failures, outcome.failed);
        const waitMs = longestDelayMs(failures, timing) * (0.5 + random() / 2);
        const cause = causeOf(outcome.failed, outcome.status);
        onRetry?.({ cause, waitMs, remainingWaitMs: remainingWaitMs(failures, timing) });
        await requests.wait(waitMs, signal);
      }
    }
  }

  return { ask };
}

/** The wait after so many failures in a row, before jitter, which only makes it shorter. */
function longestDelayMs(failures: number, timing: ListingTiming): number {
  return Math.min(timing.retryDelayMs * 2 ** (failures - 1), timing.retryDelayMsMax);
}

/** All waits that are to come after so many failures in a row. */
function remainingWaitMs(failures: number, timing: ListingTiming): number {
  const toCome = Array.from({ length: timing.attemptsMax - failures }, (_, i) => failures + i);
  return toCome.reduce((sum, failure) => sum + longestDelayMs(failure, timing), 0);
}

/** `status` is null where no answer came; the client's facts then say why. */
function causeOf({ facts: { reason, networkCode } }: AppError, status: number | null): string {
  if (status === 200) return "The catalogue's answer cannot be used";
  if (status !== null) return `The catalogue does not answer as it should (${status})`;
  if (typeof networkCode === 'string') return `The catalogue does not answer (${networkCode})`;
  return `The catalogue cannot be asked${reason === undefined ? '' : `: ${reason}`}`;
}

function givenUp(tries: number, error: AppError): AppError {
  const message = `${error.message} That was the last of ${tries} tries in a row.`;
  return error.with({ message });
}

/** What came of one try. */
type Outcome =
  | { page: ReadPage }
  | { failed: AppError }
  /** The catalogue says how long to wait; the error is for when that is too long. */
  | { toldMs: number; error: AppError }
  /** It wants another token, or one at all; `said` is for the end of an error, with its words. */
  | { refusedStatus: number; said: string; error: AppError };

type AskedQuestion = Omit<PageQuestion, 'url'> & { url: string; token: string | null };

/** From about here on firewalls have their limits; servers take more, and answer otherwise than with 403. */
const longAddressCharacters = 2_000;

/**
 * Throws what a repetition would not change, or make worse: `invalid`, `unavailable` for a redirect and for a
 * firewall that keeps us out, and `unauthorized` where the account is not allowed to.
 */
function outcomeOf(answer: OutboundAnswer, question: AskedQuestion): Outcome {
  const { purpose, read, token } = question;
  const { status } = answer;
  const secrets = token === null ? [] : [token];
  if (status === 200) {
    const page = read(answer.json);
    return 'broken' in page ? { failed: brokenPage(answer, page.broken, question) } : { page };
  }
  const words = readServiceMessage(answer, secrets);
  if (status === 403 && !isOwnRefusal(answer)) throw refusedOnTheWay(question, words);
  if (status === 403 && token !== null) throw notAllowed(question, words);
  if (status === 401 || status === 403) {
    const error = serviceError(answer, words, purpose, 'unauthorized');
    return { refusedStatus: status, said: saidBy(words), error };
  }
  const error = serviceError(answer, words, purpose);
  const toldMs = status === 429 || status === 503 ? retryAfterMs(answer.headers) : null;
  if (toldMs !== null) return { toldMs, error };
  if (status === 408 || status === 429 || status >= 500 || status < 300) return { failed: error };
  throw error;
}

/** Whether the catalogue itself refuses: all its refusals have a `detail` (facts, catalogue 1.4). */
function isOwnRefusal({ json }: OutboundAnswer): boolean {
  return typeof json === 'object' && json !== null && 'detail' in json;
}

/** No login changes that. `invalid` where the address is long: the same question without the filter may pass. */
function refusedOnTheWay({ purpose, url }: AskedQuestion, words: ServiceMessage): AppError {
  const isLong = url.length > longAddressCharacters;
  const [why, advice] = isLong
    ? [
        `the address has ${url.length.toLocaleString('en-US')} characters, which some do not let through.`,
        'Give the subscription a shorter filter, such as a polygon of fewer corners.',
      ]
    : [
        'it may keep this host out for a while.',
        'Try again later, or check EARSHOT_CATALOGUE_URL and what stands between.',
      ];
  return new AppError(
    isLong ? 'invalid' : 'unavailable',
    `Could not ${purpose}: the answer ${factsOf(words)} is not one of the catalogue's own, but of a firewall or proxy before it: ${why}`,
    { advice: `${advice}${saidBy(words)}` },
  );
}

/** A token that is over is answered with 401 (RFC 9110, 15.5.4): this one was understood. */
function notAllowed({ purpose }: AskedQuestion, words: ServiceMessage): AppError {
  return new AppError(
    'unauthorized',
    `The catalogue refused to ${purpose} though it was told who asks ${factsOf(words)}: the account may not.`,
    {
      advice: `Log in on its web site, where something may have to be agreed to, or ask its support.${saidBy(words)}`,
    },
  );
}

function factsOf({ requestId }: ServiceMessage): string {
  return requestId === null ? '(403)' : `(403, request id ${requestId})`;
}

function saidBy({ text, lines }: ServiceMessage): string {
  const said = text ?? lines.join('; ');
  return said === '' ? '' : ` It says: ${said}`;
}

function brokenPage(
  { json, text }: OutboundAnswer,
  why: string,
  { purpose, token }: AskedQuestion,
): AppError {
  const options = { secrets: token === null ? [] : [token], charactersMax: hintCharactersMax };
  const begins = json === undefined ? ` It begins: ${foreignText(hintOf(text), options)}` : '';
  return new AppError(
    'unavailable',
    `Could not ${purpose}: the catalogue's answer cannot be used, as ${why}.`,
    { advice: `Try again later, or check EARSHOT_CATALOGUE_URL.${begins}` },
  );
}

/** `$top` (facts, filters 1: 1,000 at most). At least two each: a page repeats a record of the last. */
export const pageSizes: readonly number[] = [1_000, 250, 50];

/** Failures in a row at one size until the next is tried. */
const failuresMax = 2;

/** Good pages in a row until the size before is tried again. */
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

type ListLogin = ReturnType<typeof createListLogin>;

export function createListLogin(tokens: AccessTokens | null) {
  let isNeeded = false;
  let sent: string | null = null;
  return {
    /** Null as long as nobody has asked for one. Rejects as `AccessTokens` does. */
    token: async (): Promise<string | null> => {
      sent = isNeeded && tokens !== null ? await tokens.get() : null;
      return sent;
    },
    /**
     * The catalogue has refused the last request. Rejects with `unauthorized` when there is no account.
     * `purpose` completes "refuses to …"; `said` has its words, for the end.
     */
    demanded: async (refusal: { purpose: string; status: number; said: string }) => {
      const { purpose, status, said } = refusal;
      if (tokens === null) {
        // 401 says so (RFC 9110, 15.5.2); what 403 is for, only its words do.
        const [refuses, words] =
          status === 401
            ? [`without a login (${status})`, '']
            : [`(${status}), perhaps as it wants a login`, said];
        throw new AppError('unauthorized', `The catalogue refuses to ${purpose} ${refuses}.`, {
          advice: `Set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD, or EARSHOT_ACCESS_TOKEN.${words}`,
        });
      }
      if (sent !== null) await tokens.refused(sent);
      isNeeded = true;
    },
  };
}

/** How time passes. */
export interface Time {
  nowMs: () => number;
  /** Ends early, without an error, when the signal is aborted. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
}

type PacedRequests = ReturnType<typeof createPacedRequests>;

/** Sends one request at a time, their starts well apart, and counts what that takes. */
export function createPacedRequests(options: {
  client: OutboundClient;
  requestsPerMinute: number;
  time: Time;
}) {
  const { client, time } = options;
  const intervalMs = 60_000 / options.requestsPerMinute;
  /** `answersMs` is the wait for answers, `waitedMs` that between requests. */
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
    // No longer than that when the clock was put back.
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
    /** Waits for its turn. Rejects as the client does, and with the signal's reason. */
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
