/** A `fetch` for services of others: whole answers within bounds, and no redirects. */

import { connect as connectPlain, isIP, type Socket } from 'node:net';
import { buffer, text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { contextTrusting } from './tls-settings.ts';

/** What a client takes unless told otherwise: hardly an answer that earshot asks for comes near this. */
export const answerBytesMax = 2 ** 20;

/** A body that is read for the reason of a failure alone is waited for no longer. */
const reasonTimeoutMs = 2_000;

/**
 * Whose bodies are read, and how: of all answers; of all, for `text()` alone, since a Response would copy a large
 * one twice; or of failures alone, where the status says all there is to know. Then a body that is large, slow
 * or cut makes no failure of a success, and no other failure of one.
 */
export type BodiesRead = 'all' | 'as-text' | 'of-failures';

/** An answer that cannot be taken, though it came. */
export class UnusableAnswer extends Error {
  /** `reason` completes "… could not be asked: " and holds nothing of the answer. */
  constructor(reason: string) {
    super(reason);
    this.name = 'UnusableAnswer';
  }
}

/**
 * Reads each answer to its end before it is handed out, so that a timeout of the request covers the
 * body too. Redirects come back as they are: passwords and tokens must not travel to where another
 * service points. Rejects as `fetch` does, and with UnusableAnswer for more than `bytesMax`. With the bodies
 * `of-failures`, it resolves once the status is there: a success without its body, a failure with what could
 * be read of it at once.
 */
export function createBoundedFetch(
  send: typeof fetch,
  bytesMax: number = answerBytesMax,
  bodies: BodiesRead = 'all',
): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, { ...init, redirect: 'manual' });
    request.headers.set('user-agent', 'earshot');
    const response = await send(request);
    const { status, statusText } = response;
    // A copy, as those of an answer cannot be changed.
    const headers = new Headers(response.headers);
    const content = await contentOf(response, bytesMax, bodies);
    if (status < 200 || status > 599) {
      throw new UnusableAnswer(`it answered with a status that does not exist (${status})`);
    }
    // Of the class of fetch's own answers: a Hono server in this process replaces the global one by
    // another, whose methods cannot be changed, as ky does.
    const Answer = response.constructor as typeof Response;
    const about = { status, statusText, headers };
    if (typeof content === 'string') {
      return Object.defineProperty(new Answer(null, about), 'text', { value: async () => content });
    }
    return new Answer(content.byteLength === 0 ? null : content, about);
  };
}

async function contentOf(response: Response, bytesMax: number, bodies: BodiesRead) {
  if (bodies === 'of-failures') return readReason(response);
  const chunks = bounded(response, bytesMax);
  return bodies === 'as-text' ? text(chunks) : buffer(chunks);
}

async function* bounded({ body }: Response, bytesMax: number): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.byteLength;
    // Leaving the loop closes the connection.
    if (bytes > bytesMax) {
      throw new UnusableAnswer(`its answer is larger than ${bytesMax} bytes`);
    }
    yield chunk;
  }
}

async function readReason({ ok, body }: Response): Promise<Buffer<ArrayBuffer>> {
  if (!ok) return Buffer.concat(await readBeginning(body, { timeoutMs: reasonTimeoutMs }));
  // Closes the connection.
  body?.cancel().catch(() => undefined);
  return Buffer.alloc(0);
}

/** Nothing more is read after so many. */
const bytesMax = 64 * 1024;

/**
 * The pieces of a body that came within the time (unless told, until the request is given up), up to 64 KiB and the
 * rest of the last piece. Leaves what follows, which closes the connection. Never rejects: of a body that breaks, it
 * is what came before.
 */
export async function readBeginning(
  body: ReadableStream<Uint8Array> | null,
  { timeoutMs }: { timeoutMs?: number } = {},
): Promise<Uint8Array[]> {
  if (body === null) return [];
  const reader = body.getReader();
  // What is waited for then ends, as if the body did.
  const leave = () => void reader.cancel().catch(() => undefined);
  const timer = timeoutMs === undefined ? undefined : setTimeout(leave, timeoutMs);
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
    // It broke: the status stands.
  } finally {
    clearTimeout(timer);
    leave();
  }
  return chunks;
}

const reasons: readonly [codes: RegExp, reason: string][] = [
  [/^(ENOTFOUND|EAI_AGAIN|EAI_NODATA|EAI_NONAME)$/, 'its name cannot be resolved'],
  [/^ECONNREFUSED$/, 'the connection was refused'],
  [/^(ECONNRESET|EPIPE|UND_ERR_SOCKET|ECONNABORTED)$/, 'the connection broke'],
  [/^(EHOSTUNREACH|ENETUNREACH|ENETDOWN|EADDRNOTAVAIL)$/, 'there is no way to it in the network'],
  [/^(ETIMEDOUT|UND_ERR_\w*TIMEOUT)$/, 'it did not answer in time'],
  [
    // Node's and OpenSSL's names for certificates and handshakes.
    /^(CERT_|ERR_TLS_|ERR_SSL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_|INVALID_CA|EPROTO)/,
    'no trusted HTTPS connection could be made, perhaps for a proxy on the way or a wrong clock here',
  ],
  [/^UND_ERR_/, 'it does not speak HTTP as it should'],
];

/** Errors that Node gives no code. */
const namedReasons: Readonly<Record<string, string>> = {
  TimeoutError: 'it did not answer in time',
  HTTPParserError: 'it does not speak HTTP as it should',
};

/** Why a service could not be asked, as facts of an error. */
interface NetworkFacts extends Record<string, unknown> {
  /** As `networkFault` gives it. */
  reason: string;
  /** Such as `ECONNREFUSED`; null where Node gives none. */
  networkCode: string | null;
}

/**
 * One sentence without its end, such as "the connection was refused (ECONNREFUSED)". It never holds
 * the error's own text, which may quote a header and the token in it.
 */
export function networkFault(error: unknown): string {
  return networkFacts(error).reason;
}

export function networkFacts(error: unknown): NetworkFacts {
  for (const cause of causesOf(error)) {
    if (cause instanceof UnusableAnswer) return { reason: cause.message, networkCode: null };
    const named = namedReasons[cause.name];
    if (named !== undefined) return { reason: named, networkCode: null };
    const code = 'code' in cause ? String(cause.code) : '';
    if (!/^[A-Z][A-Z0-9_]{1,60}$/.test(code)) continue;
    const known = reasons.find(([codes]) => codes.test(code));
    return { reason: `${known?.[1] ?? 'the connection failed'} (${code})`, networkCode: code };
  }
  return { reason: 'the connection failed', networkCode: null };
}

function causesOf(error: unknown): Error[] {
  const causes: Error[] = [];
  for (let next = error; next instanceof Error && causes.length < 8; next = next.cause) {
    causes.push(next);
  }
  return causes;
}

const timeoutMs = 10_000;

/**
 * Null when the host of the URL takes connections and, for https, shows a certificate that is trusted; else why
 * not, as `networkFault` says it. `ca` is trusted besides the public authorities and the system's.
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
      signal.removeEventListener('abort', giveUp);
      socket.destroy();
      resolve(fault);
    };
    const giveUp = () => end('the look at it was ended');
    socket.setTimeout(timeoutMs, () => end('it did not answer in time'));
    socket.once(isTls ? 'secureConnect' : 'connect', () => end(null));
    socket.on('error', (error) => end(networkFault(error)));
    signal.addEventListener('abort', giveUp);
    if (signal.aborted) giveUp();
  });
}

function openTls(address: { host: string; port: number }, ca: string | null): Socket {
  return connectTls({
    ...address,
    ...(isIP(address.host) === 0 ? { servername: address.host } : {}),
    // As it is trusted where something is sent.
    ...(ca === null ? {} : { secureContext: contextTrusting([ca]) }),
    rejectUnauthorized: true,
  });
}

/**
 * The wait that a service asks for (RFC 9110, 10.2.3); null when it asks for none. A date is read
 * against the service's own clock.
 */
export function retryAfterMs(headers: Pick<Headers, 'get'>): number | null {
  const text = headers.get('retry-after')?.trim() ?? '';
  if (/^\d{1,15}$/.test(text)) return Number(text) * 1000;
  if (!text.endsWith('GMT')) return null;
  const ms = Date.parse(text) - Date.parse(headers.get('date') ?? '');
  return Number.isNaN(ms) ? null : Math.max(0, ms);
}
