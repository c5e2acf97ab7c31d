/** Reads a request body within bounds, and gets rid of one that is not wanted. */
import type { IncomingMessage } from 'node:http';
import { promisify } from 'node:util';
import {
  brotliDecompress,
  brotliDecompressSync,
  gunzip,
  gunzipSync,
  inflate,
  inflateRaw,
  inflateRawSync,
  inflateSync,
} from 'node:zlib';
import { AppError, isAppError } from '../domain/app-error.ts';
import type { Delivery, EncodedBody } from '../domain/ports.ts';
import type { Fault } from '../domain/read-notifications.ts';

/** A body that nobody reads is thrown away up to this size and time; then the connection goes. */
const discardBytesMax = 64 * 2 ** 20;

const discardTimeoutMs = 10_000;

export interface BodyReader {
  /**
   * Resolves with the whole body. Rejects with `too_large` beyond the limit, `unavailable` when all
   * bodies being read take up too much memory, `invalid` when the sender goes away half-way, and
   * with the `AppError` that the body itself breaks with.
   */
  read(incoming: IncomingMessage): Promise<ReceivedBody>;
}

type ReceivedBody = Pick<Delivery, 'body' | 'encoded'>;

/** A body that takes longer may have to make room for others. */
const slowAfterMs = 2_000;

/** `allBodiesBytesMax` bounds the memory of all bodies that are being received at one time. */
export function createBodyReader(limits: {
  bodyBytesMax: number;
  allBodiesBytesMax: number;
}): BodyReader {
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
    if (announced > limits.bodyBytesMax) return Promise.reject(tooLarge(limits.bodyBytesMax));
    return new Promise((resolve, reject) => {
      const gathered = createGathering(limits.bodyBytesMax);
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
        if (!gathered.add(chunk)) return done(() => reject(tooLarge(limits.bodyBytesMax)));
        allBytes += gathered.capacity() - before;
        if (allBytes > limits.allBodiesBytesMax) makeRoom(mine.refuse);
      };
      const onEnd = () => done(() => resolve(gathered.bytes()));
      const onBroken = (error?: unknown) =>
        done(() => reject(isAppError(error) ? error : goneAway()));
      incoming.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken);
    });
  }

  /** One after the other: a small body may become as large as the limit. */
  async function decoded(body: Uint8Array, encoding: string): Promise<EncodedBody> {
    const reserved = body.byteLength + limits.bodyBytesMax;
    allBytes += body.byteLength;
    const turn = decoding.then(() => {
      allBytes += reserved - body.byteLength;
      return decodeBody(body, encoding).finally(() => {
        allBytes -= reserved;
      });
    });
    decoding = turn.catch(() => undefined);
    return turn;
  }

  return {
    read: async (incoming) => {
      const body = await receive(incoming);
      const encoding = encodingIn(incoming.headers['content-encoding']);
      return encoding === null ? { body } : { body, encoded: await decoded(body, encoding) };
    },
  };
}

/**
 * Gathers a body into one buffer that doubles: a list of chunks would cost some 400 bytes for each, and a chunk may
 * be one byte. Most bodies are one chunk, which is used as it is.
 */
function createGathering(bytesMax: number) {
  let buffer: Uint8Array = new Uint8Array(0);
  let length = 0;
  return {
    /** Memory that is taken up. */
    capacity: () => buffer.byteLength,
    /** False for a body that becomes too large. */
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
 * Throws away what is left of a body, so that the sender can read the answer and use the connection
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

function tooLarge(bodyBytesMax: number): AppError {
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

/** Maximum size of a decoded body; the same as that of a body as it comes. */
const contentBytesMax = 2 ** 20;

const bounds = { maxOutputLength: contentBytesMax };

type Decode = (bytes: Uint8Array, options: typeof bounds) => Promise<Uint8Array>;

type DecodeSync = (bytes: Uint8Array, options: typeof bounds) => Uint8Array;

interface Decoder {
  decode: Decode;
  decodeSync: DecodeSync;
}

const gzip: readonly Decoder[] = [{ decode: promisify(gunzip), decodeSync: gunzipSync }];

/** Each entry is tried in turn: `deflate` is zlib's format, and many senders leave its frame out. */
const decoders: ReadonlyMap<string, readonly Decoder[]> = new Map([
  ['gzip', gzip],
  ['x-gzip', gzip],
  [
    'deflate',
    [
      { decode: promisify(inflate), decodeSync: inflateSync },
      { decode: promisify(inflateRaw), decodeSync: inflateRawSync },
    ],
  ],
  ['br', [{ decode: promisify(brotliDecompress), decodeSync: brotliDecompressSync }]],
]);

/** The encodings of a header in the order in which they were applied; null where the body is plain. */
function encodingIn(header: string | undefined): string | null {
  if (header === undefined) return null;
  const names = header.split(',').map((name) => name.trim().toLowerCase());
  const applied = names.filter((name) => name !== '' && name !== 'identity');
  return applied.length === 0 ? null : applied.join(', ');
}

/** Decodes on the thread pool. Rejects with `too_large` for what is larger than the limit once it is decoded. */
async function decodeBody(bytes: Uint8Array, encoding: string): Promise<EncodedBody> {
  const chain = decodersOf(encoding);
  if (chain === null) return { encoding, content: unsupported };
  let content = bytes;
  for (const alternatives of chain) {
    let decoded: Uint8Array | undefined;
    for (const { decode } of alternatives) {
      decoded = await decode(content, bounds).catch(refuseTooLarge);
      if (decoded !== undefined) break;
    }
    if (decoded === undefined) return { encoding, content: undecodable };
    content = decoded;
  }
  return { encoding, content };
}

/** Does the same on this thread, for stored bodies. */
export function decodeStored(bytes: Uint8Array, encoding: string): EncodedBody {
  const chain = decodersOf(encoding);
  if (chain === null) return { encoding, content: unsupported };
  let content = bytes;
  for (const alternatives of chain) {
    const decoded = firstDecoded(content, alternatives);
    if (decoded === undefined) return { encoding, content: undecodable };
    content = decoded;
  }
  return { encoding, content };
}

function firstDecoded(bytes: Uint8Array, alternatives: readonly Decoder[]): Uint8Array | undefined {
  for (const { decodeSync } of alternatives) {
    try {
      return decodeSync(bytes, bounds);
    } catch (error) {
      refuseTooLarge(error);
    }
  }
  return undefined;
}

/** The last that was applied comes first. */
function decodersOf(encoding: string): (readonly Decoder[])[] | null {
  const chain = encoding.split(', ').map((name) => decoders.get(name));
  if (chain.length > encodingsMax) return null;
  const known = chain.filter((one) => one !== undefined);
  return known.length === chain.length ? known.toReversed() : null;
}

function refuseTooLarge(error: unknown): undefined {
  if (
    error instanceof RangeError ||
    (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
  ) {
    throw new AppError('too_large', `The decoded body is larger than ${contentBytesMax} bytes.`);
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
