/** Keeps request bodies, each once, byte by byte: those of one transaction are packed together at its end. */
import type { Database } from 'better-sqlite3';
import { contentOf, type Delivery } from '../../domain/ports.ts';
import { prepared } from '../engine/database.ts';
import { type BodyRow, packBodies, packRawBytesMax } from './body-codec.ts';

export interface BodyWriter {
  /** Called first in each transaction: another program may have written since the last one. */
  begin(): void;
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

export function createBodyWriter(database: Database): BodyWriter {
  let firstId = 1;
  let kept: Pick<Delivery, 'body' | 'encoded'>[] = [];
  const nextId = () => firstId + kept.length;
  return {
    begin: () => {
      firstId = Number(prepared(database, nextFreeIdSql).pluck().get());
      kept = [];
    },
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
    end: () => {
      firstId = insertBodies(database, firstId, packKept(kept.map(({ body }) => body)));
      kept = [];
    },
  };
}

/** The rows of bodies that came together, in packs of about the same number. */
export function packKept(bodies: readonly Uint8Array[]): BodyRow[] {
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

/** Writes rows that follow each other, the first with this id; returns the id after the last. */
export function insertBodies(
  database: Database,
  firstId: number,
  rows: readonly BodyRow[],
): number {
  const insert = prepared(
    database,
    'INSERT INTO body (id, encoding, packed, bodies) VALUES (?, ?, ?, ?)',
  );
  let id = firstId;
  for (const { encoding, bytes, bodies } of rows) {
    insert.run(id, encoding, bytes, bodies);
    id += bodies;
  }
  return id;
}
