/** Storage of bodies: several in one compressed frame (a pack), with a versioned dictionary. */
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import type { Database } from 'better-sqlite3';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import { perConnection, prepared } from '../engine/database.ts';
import dictionary1 from './dictionary-1.json' with { type: 'json' };

/** A row of the table `body`, with `bodies` consecutive bodies. */
export interface BodyRow {
  encoding: string;
  bodies: number;
  bytes: Uint8Array;
}

/** A row in the table; `id` is the id of its first body. */
export interface StoredRow extends BodyRow {
  id: number;
  bytes: Buffer;
}

/** Limits of a pack, so that reading one body stays cheap. */
export const packBodiesMax = 64;

export const packRawBytesMax = 256 * 2 ** 10;

/** Maximum body that the receiver accepts. A larger one from another source is stored uncompressed. */
const packedBodyBytesMax = 2 ** 20;

/** A frame begins with the lengths of the bodies, four bytes each, little-endian. */
const lengthBytes = 4;

const frameBytesMax = packBodiesMax * lengthBytes + packedBodyBytesMax;

/** Dictionaries of all encodings except `identity`; `zstd` has none. They must never be changed or removed. */
const dictionaries = {
  'zstd-1': Buffer.from(dictionary1.base64, 'base64'),
  zstd: undefined,
};

type Encoding = keyof typeof dictionaries;

/**
 * Packs consecutive bodies, within the limits above, at a zstd level. Bodies that do not get smaller become
 * uncompressed rows with one body each.
 */
export function packBodies(
  bodies: readonly Uint8Array[],
  level: number,
  encoding: Encoding = 'zstd-1',
): BodyRow[] {
  const lengths = Buffer.alloc(bodies.length * lengthBytes);
  for (const [i, { length }] of bodies.entries()) lengths.writeUInt32LE(length, i * lengthBytes);
  const raw = Buffer.concat([lengths, ...bodies]);
  if (raw.length <= frameBytesMax) {
    const { bytes } = compress(raw, level, encoding);
    if (bytes.length < raw.length - lengths.length) {
      return [{ encoding, bodies: bodies.length, bytes }];
    }
  }
  return bodies.map((bytes) => ({ encoding: 'identity', bodies: 1, bytes }));
}

/** Compresses a frame, by default with the current dictionary. */
export function compress(
  raw: Buffer,
  level: number,
  encoding: Encoding = 'zstd-1',
): { encoding: Encoding; bytes: Buffer } {
  const bytes = zstdCompressSync(raw, {
    dictionary: dictionaries[encoding],
    pledgedSrcSize: raw.length,
    params: {
      [constants.ZSTD_c_compressionLevel]: level,
      // A small hash table: clearing the default one for each pack took a quarter of the time.
      ...(level === 1 && encoding === 'zstd-1' ? { [constants.ZSTD_c_hashLog]: 13 } : {}),
      // Four bytes that detect damage.
      [constants.ZSTD_c_checksumFlag]: 1,
    },
  });
  return { encoding, bytes };
}

/**
 * Decompresses a frame, in chunks of about its size: V8 counts them late, so that larger ones would keep 30 MB. Throws
 * `unavailable` for an unknown encoding, and other errors for a damaged frame.
 */
export function decompress(
  { encoding, bytes }: { encoding: string; bytes: Uint8Array },
  maxOutputLength: number,
  chunkSize = 2 ** 16,
): Buffer {
  if (!isEncoding(encoding)) {
    throw new AppError(
      'unavailable',
      `A body in the log has the unknown encoding "${encoding}": a newer version of earshot wrote it. Install that version again.`,
    );
  }
  const dictionary = dictionaries[encoding];
  return zstdDecompressSync(bytes, { dictionary, maxOutputLength, chunkSize });
}

function isEncoding(encoding: string): encoding is Encoding {
  return Object.hasOwn(dictionaries, encoding);
}

/** Most bodies are smaller than 8 KiB. */
const chunkBytesOf = ({ bodies }: BodyRow) => Math.min(bodies * 2 ** 13, 2 ** 18);

/** Returns the bodies of a row, exactly as received. Throws `unavailable` for an unreadable row. */
export function unpackBodies(row: BodyRow): Buffer[] {
  if (row.encoding === 'identity' && row.bodies === 1) return [bufferOf(row.bytes)];
  try {
    return splitFrame(decompress(row, frameBytesMax, chunkBytesOf(row)), row.bodies);
  } catch (cause) {
    if (isAppError(cause)) throw cause;
    throw new AppError(
      'unavailable',
      'A body in the log is damaged. Stop earshot, keep a copy of the data directory, and restore a backup.',
      { cause, facts: { isDamaged: true } },
    );
  }
}

function splitFrame(raw: Buffer, count: number): Buffer[] {
  let start = count * lengthBytes;
  const bodies = Array.from({ length: count }, (_, i) => {
    const end = start + raw.readUInt32LE(i * lengthBytes);
    const body = raw.subarray(start, end);
    start = end;
    return body;
  });
  if (start !== raw.length) throw new Error(`A pack has ${raw.length} bytes instead of ${start}.`);
  return bodies;
}

function bufferOf({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}

export interface BodyReader {
  /** Returns a body exactly as received, or undefined. Throws as `unpackBodies` does. */
  body(id: number): Buffer | undefined;
  /** Returns a body that must exist, as a copy that can be sent to another thread. */
  storedBody(id: number): Uint8Array;
}

const rowSql =
  'SELECT id, encoding, bodies, packed AS bytes FROM body WHERE id <= ? ORDER BY id DESC LIMIT 1';

/** Returns the body reader of a connection. It caches the last pack: bodies are mostly read in order. */
export const bodyReader = perConnection((database) => createBodyReader(database, 'connection'));

/** The last pack that was read. */
interface OpenPack {
  row: StoredRow;
  bodies: Buffer[];
}

/**
 * Creates a reader for one transaction, in which rows do not change: it reads each pack once. A reader for a whole
 * connection compares each pack: compaction or a restore may have assigned the id to another one.
 */
export function createBodyReader(
  database: Database,
  usedFor: 'transaction' | 'connection',
): BodyReader {
  let last: OpenPack | undefined;
  const contains = ({ row }: OpenPack, id: number) => id >= row.id && id < row.id + row.bodies;
  const packOf = (id: number): OpenPack | undefined => {
    if (usedFor === 'transaction' && last !== undefined && contains(last, id)) return last;
    const row = prepared<[number], StoredRow>(database, rowSql).get(id);
    if (row === undefined || id >= row.id + row.bodies) return undefined;
    const isSame = last?.row.id === row.id && last.row.bytes.equals(row.bytes);
    const bodies = isSame && last !== undefined ? last.bodies : unpackBodies(row);
    last = { row, bodies };
    return last;
  };
  const body = (id: number): Buffer | undefined => {
    const pack = packOf(id);
    return pack?.bodies[id - pack.row.id];
  };
  return {
    body,
    storedBody: (id) => {
      const stored = body(id);
      if (stored === undefined) throw new Error(`The log refers to a missing body: ${id}.`);
      return new Uint8Array(stored);
    },
  };
}

export interface BodyWriter {
  /** Returns the id of the next body. */
  nextId(): number;
  /** Adds a body and returns its id. It is in the table after `end`. */
  add(body: Uint8Array): number;
  /** Returns a body that was added and is not in the table yet, or undefined. */
  pending(id: number): Uint8Array | undefined;
  /** Writes the added bodies. Called last in each transaction. */
  end(): void;
}

/** Maximum bodies of a pack. Reading one body unpacks its whole pack. */
const bodiesMax = 8;

/**
 * From this number on, the bodies of a transaction are packed without the dictionary, up to `bodiesTogetherMax`: loading
 * it takes longer than compressing. 32 bodies then use as much space as four packs of eight.
 */
const bodiesTogetherMin = 16;
const bodiesTogetherMax = 32;

/** The fastest useful zstd level: compaction compresses further. */
const level = 1;

const nextFreeIdSql = 'SELECT coalesce((SELECT id + bodies FROM body ORDER BY id DESC LIMIT 1), 1)';

/** Creates a writer for the current transaction. Not reusable: other programs may write between transactions. */
export function createBodyWriter(database: Database): BodyWriter {
  const firstId = Number(prepared(database, nextFreeIdSql).pluck().get());
  const added: Uint8Array[] = [];
  const nextId = () => firstId + added.length;
  return {
    nextId,
    add: (body) => {
      const id = nextId();
      added.push(body);
      return id;
    },
    pending: (id) => added[id - firstId],
    end: () => insertBodies(database, firstId, packBatch(added)),
  };
}

/** Packs the bodies of a transaction into rows with about the same number of bodies. */
export function packBatch(bodies: readonly Uint8Array[]): BodyRow[] {
  const isTogether = bodies.length >= bodiesTogetherMin;
  const packMax = isTogether ? bodiesTogetherMax : bodiesMax;
  const perPack = Math.ceil(bodies.length / Math.ceil(bodies.length / packMax));
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
  return packs.flatMap((one) => packBodies(one, level, isTogether ? 'zstd' : 'zstd-1'));
}

/** Inserts consecutive rows, the first with this id. */
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
