/** A `fetch` for external services: complete responses of limited size, without redirects. */

import { once } from 'node:events';
import { connect as connectPlain, isIP } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { clauseOf, knownFault } from '../terms/faults.ts';
import { contextTrusting } from './tls-settings.ts';

/** Default maximum size of a response; responses to earshot are much smaller. */
export const answerBytesMax = 2 ** 20;

/** A response that cannot be used. */
export class UnusableAnswer extends Error {
  readonly isTooLarge: boolean;

  /** `reason` completes "… cannot be reached: " and contains nothing of the response. */
  constructor(reason: string, { isTooLarge = false } = {}) {
    super(reason);
    this.name = 'UnusableAnswer';
    this.isTooLarge = isTooLarge;
  }
}

/**
 * Reads each response completely, so that a timeout of the request includes the body. Returns redirects without
 * following them: passwords and tokens must not be sent to another service. Rejects as `fetch` does, and with
 * UnusableAnswer for more than `bytesMax`; a failure has at most 1 MiB, too. With `asBytes`, the body of a success can
 * only be read by `bytes()`, because a Response copies a large body twice.
 */
export function createBoundedFetch(
  send: typeof fetch,
  { bytesMax = answerBytesMax, asBytes = false } = {},
): typeof fetch {
  return async (input, options) => {
    const request = new Request(input, { ...options, redirect: 'manual' });
    request.headers.set('user-agent', 'earshot');
    const response = await send(request);
    const { ok, status, statusText } = response;
    // A copy, because the headers of a response are immutable.
    const headers = new Headers(response.headers);
    const content = await readBounded(response, ok ? bytesMax : Math.min(bytesMax, answerBytesMax));
    if (status < 200 || status > 599) {
      throw new UnusableAnswer(`the response has an invalid status (${status})`);
    }
    // The class that fetch uses: a Hono server in this process replaces the global one by a class whose
    // methods cannot be changed, which ky does.
    const OwnResponse = response.constructor as typeof Response;
    const init = { status, statusText, headers };
    if (ok && asBytes) {
      const value = async () => content;
      return Object.defineProperty(new OwnResponse(null, init), 'bytes', { value });
    }
    return new OwnResponse(content.byteLength === 0 ? null : content, init);
  };
}

async function readBounded({ body }: Response, bytesMax: number): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    // Leaving the loop closes the connection.
    if (bytes > bytesMax) {
      const reason = `the response is larger than ${bytesMax} bytes`;
      throw new UnusableAnswer(reason, { isTooLarge: true });
    }
    chunks.push(chunk);
  }
  // With a buffer of its own, which another thread can take over.
  const content = new Uint8Array(bytes);
  let at = 0;
  for (const chunk of chunks) {
    content.set(chunk, at);
    at += chunk.byteLength;
  }
  return content;
}

/**
 * Returns the chunks of a body that arrive within the timeout (by default, until the request is aborted), up to the
 * number of bytes and the rest of the last chunk. Discards the rest, which closes the connection. Never rejects: if the body breaks,
 * returns the chunks before.
 */
export async function readBeginning(
  body: ReadableStream<Uint8Array> | null,
  { timeoutMs, bytesMax = 64 * 1024 }: { timeoutMs?: number; bytesMax?: number } = {},
): Promise<Uint8Array[]> {
  if (body === null) return [];
  const reader = body.getReader();
  // Ends a pending read, as the end of the body does.
  const cancel = () => void reader.cancel().catch(() => undefined);
  const timer = timeoutMs === undefined ? undefined : setTimeout(cancel, timeoutMs);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    while (bytes < bytesMax) {
      const { done, value } = await reader.read();
      if (done) break;
      bytes += value.byteLength;
      chunks.push(value);
    }
  } catch {
    // The body broke; the status is still valid.
  } finally {
    clearTimeout(timer);
    cancel();
  }
  return chunks;
}

/** Facts of an error about an unreachable service. */
interface NetworkFacts extends Record<string, unknown> {
  /** As returned by `networkFault`. */
  reason: string;
  /** For example `ECONNREFUSED`; null if Node has no code. */
  networkCode: string | null;
  /** True for a response that is larger than the limit. */
  isTooLarge?: boolean;
}

/**
 * Returns a clause such as "the connection was refused (ECONNREFUSED)". Never contains the error's own
 * text, which may quote a header with a token.
 */
export function networkFault(error: unknown): string {
  return networkFacts(error).reason;
}

export function networkFacts(error: unknown): NetworkFacts {
  for (const cause of causesOf(error)) {
    if (cause instanceof UnusableAnswer) {
      const { message: reason, isTooLarge } = cause;
      return { reason, networkCode: null, isTooLarge };
    }
    // Errors without a code in Node.
    const named = knownFault(cause.name);
    if (named !== null) return { reason: named.clause, networkCode: null };
    const code = 'code' in cause ? String(cause.code) : '';
    if (!/^[A-Z][A-Z0-9_]{1,60}$/.test(code)) continue;
    return { reason: clauseOf(code), networkCode: code };
  }
  return { reason: 'the connection failed', networkCode: null };
}

export function causesOf(error: unknown): Error[] {
  const causes: Error[] = [];
  for (let next = error; next instanceof Error && causes.length < 8; next = next.cause) {
    causes.push(next);
  }
  return causes;
}

const timeoutMs = 10_000;

/**
 * Connects to the host of a URL. Returns null if it accepts connections and, for https, has a trusted certificate; else
 * the reason, as `networkFault` does. `ca` is trusted in addition to the public and the system's authorities.
 */
export async function reachHost(
  url: string,
  { ca, signal }: { ca: string | null; signal: AbortSignal },
): Promise<string | null> {
  if (signal.aborted) return cancelled;
  const { protocol, hostname, port } = new URL(url);
  const isTls = protocol === 'https:';
  const host = hostname.replace(/^\[|\]$/g, '');
  const address = { host, port: Number(port) || (isTls ? 443 : 80) };
  const secure = {
    ...(isIP(host) === 0 ? { servername: host } : {}),
    // The same authorities as for requests.
    ...(ca === null ? {} : { secureContext: contextTrusting([ca]) }),
  };
  const timeout = AbortSignal.timeout(timeoutMs);
  const socket = isTls ? connectTls({ ...address, ...secure }) : connectPlain(address);
  try {
    const ended = AbortSignal.any([signal, timeout]);
    await once(socket, isTls ? 'secureConnect' : 'connect', { signal: ended });
    return null;
  } catch (error) {
    if (signal.aborted) return cancelled;
    return networkFault(timeout.aborted ? timeout.reason : error);
  } finally {
    socket.on('error', () => undefined).destroy();
  }
}

const cancelled = 'the check was cancelled';

/**
 * Reads the delay in Retry-After (RFC 9110, 10.2.3); null without one. A date is relative to the
 * service's own clock.
 */
export function retryAfterMs(headers: Pick<Headers, 'get'>): number | null {
  const text = headers.get('retry-after')?.trim() ?? '';
  if (/^\d{1,15}$/.test(text)) return Number(text) * 1000;
  if (!text.endsWith('GMT')) return null;
  const ms = Date.parse(text) - Date.parse(headers.get('date') ?? '');
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}
