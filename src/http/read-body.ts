/** Reads a request body within bounds, and gets rid of one that is not wanted. */
import type { IncomingMessage } from 'node:http';
import { AppError, isAppError } from '../domain/app-error.ts';

/** A body that nobody reads is thrown away up to this size and time; then the connection goes. */
const discardBytesMax = 64 * 2 ** 20;
const discardTimeoutMs = 10_000;

export interface BodyReader {
  /**
   * Resolves with the whole body. Rejects with `too_large` beyond the limit, `unavailable` when all
   * bodies being read take up too much memory, `invalid` when the sender goes away half-way, and
   * with the `AppError` that the body itself breaks with.
   */
  read(incoming: IncomingMessage): Promise<Uint8Array>;
}

/** `allBodiesBytesMax` bounds the memory of all bodies that are being received at one time. */
export function createBodyReader(limits: {
  bodyBytesMax: number;
  allBodiesBytesMax: number;
}): BodyReader {
  let allBytes = 0;

  function read(incoming: IncomingMessage): Promise<Uint8Array> {
    const announced = Number(incoming.headers['content-length'] ?? 0);
    if (announced > limits.bodyBytesMax) return Promise.reject(tooLarge(limits.bodyBytesMax));
    return new Promise((resolve, reject) => {
      const chunks: Buffer[] = [];
      let bytes = 0;
      const done = (finish: () => void) => {
        incoming
          .off('data', onData)
          .off('end', onEnd)
          .off('error', onBroken)
          .off('close', onBroken);
        allBytes -= bytes;
        finish();
      };
      const onData = (chunk: Buffer) => {
        bytes += chunk.byteLength;
        allBytes += chunk.byteLength;
        chunks.push(chunk);
        if (bytes > limits.bodyBytesMax) done(() => reject(tooLarge(limits.bodyBytesMax)));
        else if (allBytes > limits.allBodiesBytesMax) done(() => reject(tooMuchAtOnce()));
      };
      const onEnd = () => done(() => resolve(joined(chunks)));
      const onBroken = (error?: unknown) =>
        done(() => reject(isAppError(error) ? error : goneAway()));
      incoming.on('data', onData).on('end', onEnd).on('error', onBroken).on('close', onBroken);
    });
  }

  return { read };
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

function joined(chunks: readonly Buffer[]): Uint8Array {
  const [first] = chunks;
  return chunks.length === 1 && first !== undefined ? first : Buffer.concat(chunks);
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
