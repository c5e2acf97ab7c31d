/** A `fetch` for external services: complete responses of limited size, without redirects. */

import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { clauseOf, knownFault } from '../terms/faults.ts';
import { contextTrusting } from './tls-settings.ts';

/** Default maximum size of a response; responses to earshot are much smaller. */
export const answerBytesMax = 2 ** 20;

/** Maximum time to read a body that is only needed for the reason of a failure. */
const reasonTimeoutMs = 2_000;

/**
 * Bodies to read: of all responses; of all, but only for `bytes()`, because a Response copies a large body twice; or
 * only of failures, if the status is sufficient. In the last case, a large, slow or incomplete body never changes the
 * result.
 */
export type BodiesRead = 'all' | 'as-bytes' | 'of-failures';

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
 * UnusableAnswer for more than `bytesMax`; a failure has at most 1 MiB, too. With the bodies `of-failures`, resolves when
 * the status arrives: a success without its body, a failure with the part of the body that can be read at once.
 */
export function createBoundedFetch(
  send: typeof fetch,
  bytesMax: number = answerBytesMax,
  bodies: BodiesRead = 'all',
): typeof fetch {
  return async (input, options) => {
    const request = new Request(input, { ...options, redirect: 'manual' });
    request.headers.set('user-agent', 'earshot');
    const response = await send(request);
    const { ok, status, statusText } = response;
    // A copy, because the headers of a response are immutable.
    const headers = new Headers(response.headers);
    const content =
      bodies === 'of-failures'
        ? await readReason(response)
        : await readBounded(response, ok ? bytesMax : Math.min(bytesMax, answerBytesMax));
    if (status < 200 || status > 599) {
      throw new UnusableAnswer(`the response has an invalid status (${status})`);
    }
    // The class that fetch uses: a Hono server in this process replaces the global one by a class whose
    // methods cannot be changed, which ky does.
    const OwnResponse = response.constructor as typeof Response;
    const init = { status, statusText, headers };
    if (ok && bodies === 'as-bytes') {
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
  return joined(chunks);
}

/** Returns bytes with a buffer of their own, which another thread can take over. */
function joined(chunks: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(chunks.reduce((sum, { byteLength }) => sum + byteLength, 0));
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.byteLength;
  }
  return bytes;
}

async function readReason({ ok, body }: Response): Promise<Uint8Array<ArrayBuffer>> {
  if (!ok) return joined(await readBeginning(body, { timeoutMs: reasonTimeoutMs }));
  // Closes the connection.
  body?.cancel().catch(() => undefined);
  return new Uint8Array();
}

/** Maximum number of bytes that are read. */
const bytesMax = 64 * 1024;

/**
 * Returns the chunks of a body that arrive within the timeout (by default, until the request is aborted), up to 64 KiB
 * and the rest of the last chunk. Discards the rest, which closes the connection. Never rejects: if the body breaks,
 * returns the chunks before.
 */
export async function readBeginning(
  body: ReadableStream<Uint8Array> | null,
  { timeoutMs }: { timeoutMs?: number } = {},
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
export function reachHost(
  url: string,
  { ca, signal }: { ca: string | null; signal: AbortSignal },
): Promise<string | null> {
  const { protocol, hostname, port } = new URL(url);
  const isTls = protocol === 'https:';
  const host = hostname.replace(/^\[|\]$/g, '');
  const address = { host, port: Number(port) || (isTls ? 443 : 80) };
  return new Promise((resolve) => {
    const socket = isTls ? openTls(address, ca) : connectPlain(address);
    const end = (fault: string | null) => {
      signal.removeEventListener('abort', cancel);
      socket.destroy();
      resolve(fault);
    };
    const cancel = () => end('the check was cancelled');
    socket.setTimeout(timeoutMs, () => end('it did not answer in time'));
    socket.once(isTls ? 'secureConnect' : 'connect', () => end(null));
    socket.on('error', (error) => end(networkFault(error)));
    signal.addEventListener('abort', cancel);
    if (signal.aborted) cancel();
  });
}

function openTls(address: { host: string; port: number }, ca: string | null): Socket {
  return connectTls({
    ...address,
    ...(isIP(address.host) === 0 ? { servername: address.host } : {}),
    // The same authorities as for requests.
    ...(ca === null ? {} : { secureContext: contextTrusting([ca]) }),
    rejectUnauthorized: true,
  });
}

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
