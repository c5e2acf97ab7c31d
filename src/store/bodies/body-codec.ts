/** How bodies lie in the log: several in one compressed frame, made with a dictionary that has a version. */
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { AppError } from '../../domain/app-error.ts';
import dictionary1 from './dictionary-1.json' with { type: 'json' };

/** A row of the table `body`: `bodies` of them, with the ids from its own on. */
export interface BodyRow {
  encoding: string;
  bodies: number;
  bytes: Uint8Array;
}

/** The same with its place in the table. */
export interface StoredRow extends BodyRow {
  id: number;
  bytes: Buffer;
}

/** Limits of one pack, so that reading a body stays cheap. */
export const packBodiesMax = 64;
export const packRawBytesMax = 128 * 2 ** 10;

/** The receiver accepts no larger bodies; one that came another way stays as it is. */
const packedBodyBytesMax = 2 ** 20;

/** A frame begins with the lengths of the bodies, four bytes each, the lowest first. */
const lengthBytes = 4;
const frameBytesMax = packBodiesMax * lengthBytes + packedBodyBytesMax;

/** Every encoding there ever was but `identity`, with its dictionary: none may be changed, or taken away. */
const dictionaries: Record<string, Buffer> = {
  'zstd-1': Buffer.from(dictionary1.base64, 'base64'),
};
const encoding = 'zstd-1';

/**
 * Packs bodies that follow each other, within the bounds above, at a level of zstd. What does not get smaller
 * becomes rows of one body each, as they are.
 */
export function packBodies(bodies: readonly Uint8Array[], level: number): BodyRow[] {
  const lengths = Buffer.alloc(bodies.length * lengthBytes);
  for (const [i, { length }] of bodies.entries()) lengths.writeUInt32LE(length, i * lengthBytes);
  const raw = Buffer.concat([lengths, ...bodies]);
  if (raw.length <= frameBytesMax) {
    const bytes = zstdCompressSync(raw, {
      dictionary: dictionaries[encoding],
      pledgedSrcSize: raw.length,
      params: {
        [constants.ZSTD_c_compressionLevel]: level,
        // A table for what a pack has, not for more: it is cleared for each, which took a quarter of the time.
        ...(level === 1 ? { [constants.ZSTD_c_hashLog]: 13 } : {}),
        // Four bytes that show damage which would else pass for other content.
        [constants.ZSTD_c_checksumFlag]: 1,
      },
    });
    if (bytes.length < raw.length - lengths.length) {
      return [{ encoding, bodies: bodies.length, bytes }];
    }
  }
  return bodies.map((bytes) => ({ encoding: 'identity', bodies: 1, bytes }));
}

/** The bodies of a row, byte by byte as they came. Throws `unavailable` for a row that cannot be read. */
export function unpackBodies(row: BodyRow): Buffer[] {
  if (row.encoding === 'identity' && row.bodies === 1) return [bufferOf(row.bytes)];
  const dictionary = dictionaries[row.encoding];
  if (dictionary === undefined) {
    throw new AppError(
      'unavailable',
      `A body of the log is kept as "${row.encoding}", which this earshot does not know: a newer one wrote it. Install that version again.`,
    );
  }
  try {
    const raw = zstdDecompressSync(row.bytes, {
      dictionary,
      maxOutputLength: frameBytesMax,
      // Most packs fit one chunk; with smaller ones it takes a fifth longer.
      chunkSize: 2 ** 16,
    });
    return cut(raw, row.bodies);
  } catch (cause) {
    throw new AppError(
      'unavailable',
      'A body of the log is damaged. Stop earshot, keep a copy of the data directory, and restore a backup.',
      { cause },
    );
  }
}

function cut(raw: Buffer, count: number): Buffer[] {
  let start = count * lengthBytes;
  const bodies = Array.from({ length: count }, (_, i) => {
    const end = start + raw.readUInt32LE(i * lengthBytes);
    const body = raw.subarray(start, end);
    start = end;
    return body;
  });
  if (start !== raw.length)
    throw new Error(`${start} bytes were packed, and these are ${raw.length}.`);
  return bodies;
}

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
