/** Reads and decodes request bodies of limited size, and discards unread ones. */
import type { IncomingMessage } from 'node:http';
import * as zlib from 'node:zlib';
import { AppError, errorCodeOf, isAppError } from '../terms/app-error.ts';
import type { Fault } from '../terms/notification.ts';
import { bodyBytesMax, type Delivery, type EncodedBody } from '../terms/ports.ts';

/** Maximum memory of all bodies that are being received. */
const allBodiesBytesMax = 64 * 2 ** 20;
/** A slower body may be refused to free memory. */
const slowAfterMs = 2_000;
/** Maximum size and time for discarding an unread body; then the connection is closed. */
const discardBytesMax = 64 * 2 ** 20;
const discardTimeoutMs = 10_000;

interface BodyLimits {
  bytesMax: number;
  /** Maximum memory of all bodies together. */
  allBytesMax: number;
}

/** A complete body. Its memory counts until it is released. */
interface ReceivedBody {
  bytes: Uint8Array;
  release(): void;
}

/**
 * Creates a function that resolves with the complete body of a request. Rejects with `too_large` beyond the limit,
 * `unavailable` if all bodies together use too much memory, `invalid` if the sender closes the connection early, and
 * with an `AppError` from the body's stream.
 */
export function createBodyReceiver({ bytesMax, allBytesMax }: BodyLimits) {
  let allBytes = 0;
  /** Bodies that are being received, the oldest first. */
  const receiving = new Set<{ startedMs: number; refuse: () => void }>();

  /** Frees memory: refuses the oldest body if it is slow, else this one. */
  function freeMemory(refuseThis: () => void): void {
    const [oldest] = receiving;
    const isSlow = oldest !== undefined && performance.now() - oldest.startedMs > slowAfterMs;
    if (isSlow) oldest.refuse();
    else refuseThis();
  }

  return (incoming: IncomingMessage): Promise<ReceivedBody> => {
    const announced = Number(incoming.headers['content-length'] ?? 0);
    if (announced > bytesMax) return Promise.reject(tooLarge(bytesMax));
    return new Promise((resolve, reject) => {
      const collected = createCollector(bytesMax);
      const release = () => {
        allBytes -= collected.capacity();
      };
      const done = () => {
        incoming
          .off('data', onData)
          .off('end', onEnd)
          .off('error', onBroken)
          .off('close', onBroken);
        receiving.delete(own);
      };
      const fail = (error: AppError) => {
        done();
        release();
        reject(error);
      };
      const own = {
        startedMs: performance.now(),
        refuse: () => fail(tooManyBodies(allBytesMax)),
      };
      receiving.add(own);
      const onData = (chunk: Buffer) => {
        const before = collected.capacity();
        if (!collected.add(chunk)) return fail(tooLarge(bytesMax));
        allBytes += collected.capacity() - before;
        if (allBytes > allBytesMax) freeMemory(own.refuse);
      };
      const onEnd = () => {
        done();
        resolve({ bytes: collected.bytes(), release });
      };
      const onBroken = (error?: unknown) => fail(isAppError(error) ? error : incomplete());
      incoming.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken);
    });
  };
}

/** Resolves with the complete body. Rejects as `createBodyReceiver` does. */
type ReadBody = (incoming: IncomingMessage) => Promise<Pick<Delivery, 'body' | 'encoded'>>;

/** Creates a reader of pushes, whose requests share one memory limit. */
export function createBodyReader(): ReadBody {
  const receive = createBodyReceiver({ bytesMax: bodyBytesMax, allBytesMax: allBodiesBytesMax });
  return async (incoming) => {
    const { bytes: body, release } = await receive(incoming);
    try {
      const encoding = encodingIn(incoming.headers['content-encoding']);
      return encoding === null ? { body } : { body, encoded: decodeBody(body, encoding) };
    } finally {
      release();
    }
  };
}

/**
 * Collects a body in one buffer of doubling size: a list of chunks would use some 400 bytes per chunk, and a chunk may
 * be one byte. Most bodies are one chunk, which is used directly.
 */
function createCollector(bytesMax: number) {
  let buffer: Uint8Array = new Uint8Array(0);
  let length = 0;
  return {
    /** Used memory, in bytes. */
    capacity: () => buffer.byteLength,
    /** Returns false if the body becomes too large. */
    add: (chunk: Uint8Array): boolean => {
      const bytes = length + chunk.byteLength;
      if (bytes > bytesMax) return false;
      if (length === 0) buffer = chunk;
      else {
        if (bytes > buffer.byteLength) {
          const larger = new Uint8Array(Math.min(bytesMax, Math.max(bytes, 2 * buffer.byteLength)));
          larger.set(buffer.subarray(0, length));
          buffer = larger;
        }
        buffer.set(chunk, length);
      }
      length = bytes;
      return true;
    },
    bytes: () => buffer.subarray(0, length),
  };
}

/**
 * Discards the rest of a body, so that the sender can read the response and reuse the connection.
 * Closing at once would reset the connection before the response is read (facts, lessons 2.28, 2.29).
 */
export function discardBody(incoming: IncomingMessage): void {
  if (incoming.readableEnded || incoming.destroyed) return;
  let bytes = 0;
  const close = () => {
    clearTimeout(timer);
    incoming.socket.destroySoon();
  };
  const timer = setTimeout(close, discardTimeoutMs);
  timer.unref();
  incoming.on('data', (chunk: Buffer) => {
    bytes += chunk.byteLength;
    if (bytes > discardBytesMax) close();
  });
  incoming.once('close', () => clearTimeout(timer));
  incoming.once('error', () => clearTimeout(timer));
  incoming.resume();
}

function tooLarge(bytesMax: number): AppError {
  return new AppError('too_large', `The body is larger than ${bytesMax} bytes.`);
}

function tooManyBodies(allBytesMax: number): AppError {
  return new AppError('unavailable', 'Too many requests are in progress.', {
    facts: { allBytesMax },
  });
}

function incomplete(): AppError {
  return new AppError('invalid', 'The sender closed the connection before the body was complete.');
}

/** Value of `Accept-Encoding` in the response to an unsupported encoding. */
export const knownEncodings = 'gzip, deflate, br';

/** Maximum number of encodings of a body; senders use one. */
const encodingsMax = 3;

const bounds = { maxOutputLength: bodyBytesMax };

type Decoder = (bytes: Uint8Array, options: typeof bounds) => Uint8Array;

/** Alternatives in order: `deflate` is the zlib format, but many senders omit its frame. */
const decoders: ReadonlyMap<string, readonly Decoder[]> = new Map([
  ['gzip', [zlib.gunzipSync]],
  ['x-gzip', [zlib.gunzipSync]],
  ['deflate', [zlib.inflateSync, zlib.inflateRawSync]],
  ['br', [zlib.brotliDecompressSync]],
]);

/** Returns the encodings of a header in the order of application; null for a plain body. */
function encodingIn(header: string | undefined): string | null {
  if (header === undefined) return null;
  const names = header.split(',').map((name) => name.trim().toLowerCase());
  const applied = names.filter((name) => name !== '' && name !== 'identity');
  return applied.length === 0 ? null : applied.join(', ');
}

/**
 * Decodes a body with a Content-Encoding (RFC 9110, 8.4), in milliseconds. Throws `too_large` if the decoded body exceeds
 * the limit.
 */
export function decodeBody(bytes: Uint8Array, encoding: string): EncodedBody {
  const names = encoding.split(', ');
  if (names.length > encodingsMax || !names.every((name) => decoders.has(name))) {
    return { encoding, content: unsupported };
  }
  let content = bytes;
  // The encoding that was applied last is decoded first.
  for (const name of names.toReversed()) {
    let decoded: Uint8Array | undefined;
    for (const decode of decoders.get(name) ?? []) decoded ??= attempt(decode, content);
    if (decoded === undefined) return { encoding, content: undecodable };
    content = decoded;
  }
  return { encoding, content };
}

function attempt(decode: Decoder, content: Uint8Array): Uint8Array | undefined {
  try {
    return decode(content, bounds);
  } catch (error) {
    if (error instanceof RangeError || errorCodeOf(error) === 'ERR_BUFFER_TOO_LARGE') {
      throw new AppError('too_large', `The decoded body is larger than ${bodyBytesMax} bytes.`);
    }
    return undefined;
  }
}

const unsupported: Fault = {
  code: 'unsupported-encoding',
  index: null,
  message: `The Content-Encoding is not supported. Send one of ${knownEncodings}, or none.`,
};
const undecodable: Fault = {
  code: 'undecodable-body',
  index: null,
  message: 'The body cannot be decoded with its Content-Encoding.',
};
