/** How bodies lie in the log: several in one compressed frame, made with a dictionary that has a version. */
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import type { Database } from 'better-sqlite3';
import { AppError } from '../../domain/app-error.ts';
import { contentOf, type Delivery } from '../../domain/ports.ts';
import { decodeStored } from '../../http/request-body.ts';
import { perConnection, prepared } from '../engine/database.ts';
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

interface BodyReader {
  /** The body, byte by byte as it came; undefined where there is none. Throws as `unpackBodies` does. */
  body(id: number): Buffer | undefined;
  /** The same of a body that something refers to, as a copy that can be sent to another thread. */
  storedBody(id: number): Uint8Array;
  /** The Content-Encoding that a body came with; null for one without. */
  encoding(id: number): string | null;
  /** The body, decoded where it had a Content-Encoding: for its JSON. */
  content(id: number): Uint8Array | undefined;
}

const rowSql =
  'SELECT id, encoding, bodies, packed AS bytes FROM body WHERE id <= ? ORDER BY id DESC LIMIT 1';

/** The one reader of a connection. Keeps the pack that it read last: bodies are mostly read in their order. */
export const bodyReader = perConnection(createBodyReader);

function createBodyReader(database: Database): BodyReader {
  let last: { row: StoredRow; bodies: Buffer[] } | undefined;
  const body = (id: number): Buffer | undefined => {
    const row = prepared<[number], StoredRow>(database, rowSql).get(id);
    if (row === undefined || id >= row.id + row.bodies) return undefined;
    // Compared by content: an id may have become another pack's, by `earshot compact` or a restored file.
    if (last?.row.id !== row.id || !last.row.bytes.equals(row.bytes)) {
      last = { row, bodies: unpackBodies(row) };
    }
    return last.bodies[id - row.id];
  };
  const encoding = (id: number): string | null =>
    prepared<[number], string>(database, 'SELECT encoding FROM body_encoding WHERE body_id = ?')
      .pluck()
      .get(id) ?? null;
  return {
    body,
    encoding,
    content: (id) => {
      const bytes = body(id);
      const name = bytes === undefined ? null : encoding(id);
      if (bytes === undefined || name === null) return bytes;
      return contentOf({ body: bytes, encoded: decodeStored(bytes, name) });
    },
    storedBody: (id) => {
      const kept = body(id);
      if (kept === undefined) throw new Error(`The log has no body ${id}, which it refers to.`);
      return new Uint8Array(kept);
    },
  };
}

export interface BodyWriter {
  /** The id that the next body will get. */
  nextId(): number;
  /** Returns the body's id. It is in the table after `end`. */
  keep(delivery: Pick<Delivery, 'body' | 'encoded'>): number;
  /** The content of a body of this transaction, which is not in the table yet; undefined for any other. */
  kept(id: number): Uint8Array | undefined;
  /** Called last in each transaction. */
  end(): void;
}

/**
 * Measured: three packs of eight notifications fill a page of the file, where one of sixteen would have most of a
 * page for itself. To read one body, its whole pack is unpacked.
 */
const bodiesMax = 8;

/** The fastest of zstd's levels that is worth it: `earshot compact` gets what this leaves. */
const level = 1;

const nextFreeIdSql = 'SELECT coalesce((SELECT id + bodies FROM body ORDER BY id DESC LIMIT 1), 1)';

/** For one transaction, within which it is created: another program may have written since the last one. */
export function createBodyWriter(database: Database): BodyWriter {
  const firstId = Number(prepared(database, nextFreeIdSql).pluck().get());
  const kept: Pick<Delivery, 'body' | 'encoded'>[] = [];
  const nextId = () => firstId + kept.length;
  return {
    nextId,
    keep: (delivery) => {
      const id = nextId();
      kept.push(delivery);
      if (delivery.encoded !== undefined) {
        const insert = prepared(database, 'INSERT OR REPLACE INTO body_encoding VALUES (?, ?)');
        insert.run(id, delivery.encoded.encoding);
      }
      return id;
    },
    kept: (id) => {
      const delivery = kept[id - firstId];
      return delivery && contentOf(delivery);
    },
    end: () => insertBodies(database, firstId, packBatch(kept.map(({ body }) => body))),
  };
}

/** The rows of bodies that came together, in packs of about the same number. */
export function packBatch(bodies: readonly Uint8Array[]): BodyRow[] {
  const perPack = Math.ceil(bodies.length / Math.ceil(bodies.length / bodiesMax));
  const packs: Uint8Array[][] = [];
  let pack: Uint8Array[] = [];
  let rawBytes = 0;
  for (const body of bodies) {
    const isFull = pack.length === perPack || rawBytes + body.length > packRawBytesMax;
    if (pack.length === 0 || isFull) {
      pack = [];
      packs.push(pack);
      rawBytes = 0;
    }
    pack.push(body);
    rawBytes += body.length;
  }
  return packs.flatMap((one) => packBodies(one, level));
}

/** Writes rows that follow each other, the first with this id. */
export function insertBodies(database: Database, firstId: number, rows: readonly BodyRow[]): void {
  const insert = prepared(
    database,
    'INSERT INTO body (id, encoding, packed, bodies) VALUES (?, ?, ?, ?)',
  );
  let id = firstId;
  for (const { encoding, bytes, bodies } of rows) {
    insert.run(id, encoding, bytes, bodies);
    id += bodies;
  }
}
