/** Reads request bodies of limited size, and discards unread ones. */
import type { IncomingMessage } from 'node:http';
import { AppError, isAppError } from '../terms/app-error.ts';
import { bodyBytesMax } from '../terms/ports.ts';

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

/** Creates a reader of pushes, whose requests share one memory limit. Rejects as `createBodyReceiver` does. */
export function createBodyReader(): (incoming: IncomingMessage) => Promise<Uint8Array> {
  const receive = createBodyReceiver({ bytesMax: bodyBytesMax, allBytesMax: allBodiesBytesMax });
  return async (incoming) => {
    const { bytes, release } = await receive(incoming);
    release();
    return bytes;
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
