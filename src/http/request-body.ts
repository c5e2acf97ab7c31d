/** Reads a request body within bounds, decodes it, and discards one that is not wanted. */
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import * as zlib from 'node:zlib';
import { AppError, errorCodeOf, isAppError } from '../domain/app-error.ts';
import type { Fault } from '../domain/notification.ts';
import type { Delivery, EncodedBody } from '../domain/ports.ts';

/** Maximum size of a body, as it comes and once decoded (design, interface contract). */
export const bodyBytesMax = 2 ** 20;
/** Maximum memory of all bodies that are being received at one time. */
const allBodiesBytesMax = 64 * 2 ** 20;
/** A body that takes longer may have to make room for others. */
const slowAfterMs = 2_000;
/** A body that nobody reads is discarded up to this size and time; then the connection is closed. */
const discardBytesMax = 64 * 2 ** 20;
const discardTimeoutMs = 10_000;

/**
 * Resolves with the whole body. Rejects with `too_large` beyond the limit, `unavailable` when all
 * bodies being read take up too much memory, `invalid` when the sender goes away half-way, and
 * with the `AppError` that the body itself breaks with.
 */
type ReadBody = (incoming: IncomingMessage) => Promise<Pick<Delivery, 'body' | 'encoded'>>;

/** The bodies of all requests to one reader share its bound on memory. */
export function createBodyReader(): ReadBody {
  let allBytes = 0;
  let decoding: Promise<unknown> = Promise.resolve();
  /** What is being received; the first has taken longest. */
  const under = new Set<{ beganMs: number; refuse: () => void }>();

  /** The slowest makes room; without a slow one, this one does. */
  function makeRoom(refuseThis: () => void): void {
    const [slowest] = under;
    const isSlow = slowest !== undefined && performance.now() - slowest.beganMs > slowAfterMs;
    if (isSlow) slowest.refuse();
    else refuseThis();
  }

  function receive(incoming: IncomingMessage): Promise<Uint8Array> {
    const announced = Number(incoming.headers['content-length'] ?? 0);
    if (announced > bodyBytesMax) return Promise.reject(tooLarge());
    return new Promise((resolve, reject) => {
      const gathered = createGathering();
      const done = (finish: () => void) => {
        incoming
          .off('data', onData)
          .off('end', onEnd)
          .off('error', onBroken)
          .off('close', onBroken);
        allBytes -= gathered.capacity();
        under.delete(mine);
        finish();
      };
      const mine = {
        beganMs: performance.now(),
        refuse: () => done(() => reject(tooMuchAtOnce())),
      };
      under.add(mine);
      const onData = (chunk: Buffer) => {
        const before = gathered.capacity();
        if (!gathered.add(chunk)) return done(() => reject(tooLarge()));
        allBytes += gathered.capacity() - before;
        if (allBytes > allBodiesBytesMax) makeRoom(mine.refuse);
      };
      const onEnd = () => done(() => resolve(gathered.bytes()));
      const onBroken = (error?: unknown) =>
        done(() => reject(isAppError(error) ? error : goneAway()));
      incoming.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken);
    });
  }

  /** One after the other: a small body may become as large as the limit. */
  async function decoded(body: Uint8Array, encoding: string): Promise<EncodedBody> {
    allBytes += body.byteLength;
    const turn = decoding.then(() => {
      allBytes += bodyBytesMax;
      return decodeBody(body, encoding).finally(() => {
        allBytes -= body.byteLength + bodyBytesMax;
      });
    });
    decoding = turn.catch(() => undefined);
    return turn;
  }

  return async (incoming) => {
    const body = await receive(incoming);
    const encoding = encodingIn(incoming.headers['content-encoding']);
    return encoding === null ? { body } : { body, encoded: await decoded(body, encoding) };
  };
}

/**
 * Gathers a body into one buffer that doubles: a list of chunks would cost some 400 bytes for each, and a chunk may
 * be one byte. Most bodies are one chunk, which is used as it is.
 */
function createGathering() {
  let buffer: Uint8Array = new Uint8Array(0);
  let length = 0;
  return {
    /** Memory that is taken up. */
    capacity: () => buffer.byteLength,
    /** False for a body that becomes too large. */
    add: (chunk: Uint8Array): boolean => {
      const bytes = length + chunk.byteLength;
      if (bytes > bodyBytesMax) return false;
      if (length === 0) buffer = chunk;
      else {
        if (bytes > buffer.byteLength) {
          const larger = new Uint8Array(
            Math.min(bodyBytesMax, Math.max(bytes, 2 * buffer.byteLength)),
          );
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
 * Discards what is left of a body, so that the sender can read the answer and use the connection
 * again. Closing at once would reset the connection under the answer (facts, lessons 2.28, 2.29).
 */
export function discardBody(incoming: IncomingMessage): void {
  if (incoming.readableEnded || incoming.destroyed) return;
  let bytes = 0;
  const giveUp = () => {
    clearTimeout(timer);
    incoming.socket.destroySoon();
  };
  const timer = setTimeout(giveUp, discardTimeoutMs);
  timer.unref();
  incoming.on('data', (chunk: Buffer) => {
    bytes += chunk.byteLength;
    if (bytes > discardBytesMax) giveUp();
  });
  incoming.once('close', () => clearTimeout(timer));
  incoming.once('error', () => clearTimeout(timer));
  incoming.resume();
}

function tooLarge(): AppError {
  return new AppError('too_large', `The body is larger than ${bodyBytesMax} bytes.`);
}

function tooMuchAtOnce(): AppError {
  return new AppError('unavailable', 'Too many bodies are being received at the same time.');
}

function goneAway(): AppError {
  return new AppError('invalid', 'The sender closed the connection before the body was complete.');
}

/** For `Accept-Encoding` in the answer to any other. */
export const knownEncodings = 'gzip, deflate, br';

/** Senders use one; each takes a pass over the body. */
const encodingsMax = 3;

const bounds = { maxOutputLength: bodyBytesMax };

interface Decoder {
  decode: (bytes: Uint8Array, options: typeof bounds) => Promise<Uint8Array>;
  decodeSync: (bytes: Uint8Array, options: typeof bounds) => Uint8Array;
}

const gzip: Decoder = { decode: promisify(zlib.gunzip), decodeSync: zlib.gunzipSync };
const zlibFormat: Decoder = { decode: promisify(zlib.inflate), decodeSync: zlib.inflateSync };
const raw: Decoder = { decode: promisify(zlib.inflateRaw), decodeSync: zlib.inflateRawSync };
const brotli: Decoder = {
  decode: promisify(zlib.brotliDecompress),
  decodeSync: zlib.brotliDecompressSync,
};
/** Alternatives in turn: `deflate` is zlib's format, and many senders leave its frame out. */
const decoders: ReadonlyMap<string, readonly Decoder[]> = new Map([
  ['gzip', [gzip]],
  ['x-gzip', [gzip]],
  ['deflate', [zlibFormat, raw]],
  ['br', [brotli]],
]);

/** The encodings of a header in the order in which they were applied; null where the body is plain. */
function encodingIn(header: string | undefined): string | null {
  if (header === undefined) return null;
  const names = header.split(',').map((name) => name.trim().toLowerCase());
  const applied = names.filter((name) => name !== '' && name !== 'identity');
  return applied.length === 0 ? null : applied.join(', ');
}

/**
 * Decodes a body that came with a Content-Encoding (RFC 9110, 8.4), on the thread pool. Rejects with `too_large` for
 * what is larger than the limit once it is decoded.
 */
async function decodeBody(bytes: Uint8Array, encoding: string): Promise<EncodedBody> {
  const attempts = decoding(bytes, encoding);
  let next = attempts.next();
  while (!next.done) {
    const { decoder, content } = next.value;
    next = attempts.next(await decoder.decode(content, bounds).catch(refuseTooLarge));
  }
  return next.value;
}

/** Does the same on this thread, for stored bodies. */
export function decodeStored(bytes: Uint8Array, encoding: string): EncodedBody {
  const attempts = decoding(bytes, encoding);
  let next = attempts.next();
  while (!next.done) next = attempts.next(decodedNow(next.value));
  return next.value;
}

function decodedNow({ decoder, content }: Attempt): Uint8Array | undefined {
  try {
    return decoder.decodeSync(content, bounds);
  } catch (error) {
    return refuseTooLarge(error);
  }
}

interface Attempt {
  decoder: Decoder;
  content: Uint8Array;
}

/** Yields each attempt, and continues with its result; undefined for what that decoder cannot read. */
function* decoding(
  bytes: Uint8Array,
  encoding: string,
): Generator<Attempt, EncodedBody, Uint8Array | undefined> {
  const names = encoding.split(', ');
  if (names.length > encodingsMax || !names.every((name) => decoders.has(name))) {
    return { encoding, content: unsupported };
  }
  let content = bytes;
  // The last that was applied comes first.
  for (const name of names.toReversed()) {
    let decoded: Uint8Array | undefined;
    for (const decoder of decoders.get(name) ?? []) decoded ??= yield { decoder, content };
    if (decoded === undefined) return { encoding, content: undecodable };
    content = decoded;
  }
  return { encoding, content };
}

function refuseTooLarge(error: unknown): undefined {
  if (error instanceof RangeError || errorCodeOf(error) === 'ERR_BUFFER_TOO_LARGE') {
    throw new AppError('too_large', `The decoded body is larger than ${bodyBytesMax} bytes.`);
  }
  return undefined;
}

const unsupported: Fault = {
  code: 'unsupported-encoding',
  index: null,
  message: `The Content-Encoding is not supported. Send one of ${knownEncodings}, or none.`,
};
const undecodable: Fault = {
  code: 'undecodable-body',
  index: null,
  message: 'The body cannot be decoded as its Content-Encoding says.',
};
