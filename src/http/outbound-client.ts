/** The HTTP client for services of others: bounded in time, size and tries; follows no redirect. */
import ky, { type HTTPError, isHTTPError, type KyInstance } from 'ky';
import { AppError, isAppError } from '../domain/app-error.ts';
import { jsonOf } from '../domain/text.ts';
import {
  type BodiesRead,
  createBoundedFetch,
  networkFacts,
  retryAfterMs,
} from './bounded-fetch.ts';

const defaultTiming = {
  /** One attempt, answer included. */
  attemptTimeoutMs: 20_000,
  /** All attempts and the waits between them. */
  totalTimeoutMs: 90_000,
  /** The wait before the first repetition, before jitter; it doubles each time. */
  retryDelayMs: 1_000,
  /** A service that asks for a longer wait than this is not asked again. */
  retryAfterMsMax: 60_000,
};
export type OutboundTiming = typeof defaultTiming;

const retriesMax = 3;
const repeatableMethods = ['get', 'patch', 'delete'] as const;
const repeatableStatuses = [408, 429, ...Array.from({ length: 100 }, (_, i) => 500 + i)];

export interface OutboundRequest {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE';
  url: string;
  headers: Readonly<Record<string, string>>;
  /** Sent as JSON. */
  body?: unknown;
  /** What is wanted, in words that complete "could not …": "list the subscriptions". */
  purpose: string;
  /** Ends the request, and all tries that would follow. */
  signal?: AbortSignal;
}

/** Any answer, of any status from 200 to 599. */
export interface OutboundAnswer {
  status: number;
  headers: Headers;
  text: string;
  /** Undefined when the text is not JSON. */
  json: unknown;
}

/**
 * Sends a request. GET, PATCH and DELETE are repeated after 408, 429, 5xx, timeouts and broken
 * connections; POST never. Rejects with `unavailable` when no answer came, and with the signal's
 * reason. Neither the error nor its cause holds anything of the request.
 */
export type OutboundClient = (request: OutboundRequest) => Promise<OutboundAnswer>;

/**
 * `service` is what messages call the other side: "the catalogue"; `variable` has its address. `retries` is
 * how often a request is repeated, and `answerBytesMax` bounds an answer, where the usual does not fit. With the
 * `bodies` of failures alone, a success has no text.
 */
export function createOutboundClient(
  options: KyOptions & { service: string; variable: string },
): OutboundClient {
  const timing = { ...defaultTiming, ...options.timing };
  const client = createKy(options, timing);

  return async ({ method, url, headers, body, purpose, signal }) => {
    let latest: HTTPError | undefined;
    const shouldRetry = ({ error }: { error: Error }) => {
      if (givenUp(error) !== null) return false;
      if (!isHTTPError(error)) return undefined;
      latest = error;
      return (retryAfterMs(error.response.headers) ?? 0) > timing.retryAfterMsMax
        ? false
        : undefined;
    };
    try {
      const own = {
        ...(body === undefined ? {} : { json: body }),
        ...(signal === undefined ? {} : { signal }),
      };
      const retry = { shouldRetry };
      const response = await client(url, { method, headers: { ...headers }, retry, ...own });
      return answerOf(response, await response.text());
    } catch (error) {
      signal?.throwIfAborted();
      const cancelled = givenUp(error);
      if (cancelled !== null) throw cancelled;
      // An answer to an earlier try says more than that the time was up during the next one.
      const answered = isHTTPError(error) ? error : latest;
      if (answered !== undefined) return answerOf(answered.response, answered.data);
      const facts = networkFacts(error);
      throw new AppError(
        'unavailable',
        `Could not ${purpose}: ${options.service} (${new URL(url).host}) cannot be asked: ${facts.reason}.`,
        { advice: `Try again later, or check ${options.variable}.`, facts },
      );
    }
  };
}

/** The program's own wish to stop, from under whatever it came wrapped in. */
function givenUp(error: unknown): AppError | null {
  for (let next = error; next instanceof Error; next = next.cause) {
    if (isAppError(next, 'cancelled')) return next;
  }
  return null;
}

interface KyOptions {
  fetch: typeof fetch;
  random: () => number;
  timing?: Partial<OutboundTiming> | undefined;
  retries?: number;
  answerBytesMax?: number;
  bodies?: BodiesRead;
}

function createKy(options: KyOptions, timing: OutboundTiming): KyInstance {
  const { fetch: send, random, retries = retriesMax, answerBytesMax, bodies = 'as-text' } = options;
  return ky.create({
    fetch: createBoundedFetch(send, answerBytesMax, bodies),
    timeout: timing.attemptTimeoutMs,
    totalTimeout: timing.totalTimeoutMs,
    // Error bodies are kept as they came: the service's words are read elsewhere.
    parseJson: (text: string) => text,
    retry: {
      limit: retries,
      methods: [...repeatableMethods],
      statusCodes: repeatableStatuses,
      afterStatusCodes: repeatableStatuses,
      maxRetryAfter: timing.retryAfterMsMax,
      retryOnTimeout: true,
      delay: (attempt) => timing.retryDelayMs * 2 ** (attempt - 1),
      jitter: (delayMs) => delayMs * (0.5 + random() / 2),
    },
  });
}

function answerOf({ status, headers }: Response, body: unknown): OutboundAnswer {
  const text = typeof body === 'string' ? body : '';
  return { status, headers, text, json: jsonOf(text) };
}
