/** HTTP client for external services: limited time, size and attempts; follows no redirects. */
import ky, { type HTTPError, isHTTPError, type KyInstance } from 'ky';
import { AppError, isAppError } from '../terms/app-error.ts';
import { jsonOf } from '../terms/text.ts';
import { causesOf, createBoundedFetch, networkFacts, retryAfterMs } from './bounded-fetch.ts';

const defaultTiming = {
  /** Maximum time of one attempt, including the response. */
  attemptTimeoutMs: 20_000,
  /** Maximum time of all attempts and delays. */
  totalTimeoutMs: 90_000,
  /** Delay before the first retry, without jitter; it doubles each time. */
  retryDelayMs: 1_000,
  /** With a longer Retry-After, the request is not retried. */
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
  /** Completes "could not …": "list the subscriptions". */
  purpose: string;
  /** Maximum size of the response; by default, that of the client. */
  answerBytesMax?: number;
  /** Aborts the request and all retries. */
  signal?: AbortSignal;
}

/** A response with any status from 200 to 599. */
export interface OutboundAnswer {
  status: number;
  headers: Headers;
  /** The body without its Content-Encoding. */
  bytes: Uint8Array;
  /** The body as text. Decoded when it is first read, as is `json`. */
  readonly text: string;
  /** Undefined if the text is not JSON. */
  readonly json: unknown;
}

/**
 * Sends a request. Retries GET, PATCH and DELETE after 408, 429, 5xx, timeouts and lost connections, but never
 * POST. Rejects with `unavailable` without a response, and with the signal's reason if it is aborted. Neither
 * the error nor its cause contains parts of the request.
 */
export type OutboundClient = (request: OutboundRequest) => Promise<OutboundAnswer>;

/** `service` is the name for messages: "the catalogue"; `variable` contains its address. `retries` replaces the default. */
export function createOutboundClient(
  options: KyOptions & { service: string; variable: string },
): OutboundClient {
  const timing = { ...defaultTiming, ...options.timing };
  const client = createKy(options, timing);

  return async ({ method, url, headers, body, purpose, answerBytesMax, signal }) => {
    let latest: HTTPError | undefined;
    const shouldRetry = ({ error }: { error: Error }) => {
      if (cancellationIn(error) !== null) return false;
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
        fetch: createBoundedFetch(options.fetch, {
          asBytes: true,
          ...(answerBytesMax === undefined ? {} : { bytesMax: answerBytesMax }),
        }),
      };
      const retry = { shouldRetry };
      const response = await client(url, { method, headers: { ...headers }, retry, ...own });
      return answerOf(response, await response.bytes());
    } catch (error) {
      signal?.throwIfAborted();
      const cancelled = cancellationIn(error);
      if (cancelled !== null) throw cancelled;
      // A response to an earlier attempt has more information than a timeout of the last one.
      const answered = isHTTPError(error) ? error : latest;
      if (answered !== undefined) {
        const { data, response } = answered;
        return answerOf(response, Buffer.from(typeof data === 'string' ? data : ''));
      }
      const facts = networkFacts(error);
      throw new AppError(
        'unavailable',
        `Could not ${purpose}: ${options.service} (${new URL(url).host}) cannot be reached: ${facts.reason}.`,
        { advice: `Retry later. If this happens again, check ${options.variable}.`, facts },
      );
    }
  };
}

/** Finds an error with the code `cancelled` among the causes. */
const cancellationIn = (error: unknown) =>
  causesOf(error).find((one) => isAppError(one, 'cancelled')) ?? null;

interface KyOptions {
  fetch: typeof fetch;
  random: () => number;
  timing?: Partial<OutboundTiming> | undefined;
  retries?: number;
}

function createKy(options: KyOptions, timing: OutboundTiming): KyInstance {
  const { random, retries = retriesMax } = options;
  return ky.create({
    timeout: timing.attemptTimeoutMs,
    totalTimeout: timing.totalTimeoutMs,
    // Keeps bodies of errors unchanged: `readServiceMessage` parses them.
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

function answerOf({ status, headers }: Response, bytes: Uint8Array): OutboundAnswer {
  let text: string | undefined;
  let json: { value: unknown } | undefined;
  return {
    ...{ status, headers, bytes },
    get text() {
      text ??= new TextDecoder().decode(bytes);
      return text;
    },
    get json() {
      json ??= { value: jsonOf(this.text) };
      return json.value;
    },
  };
}
