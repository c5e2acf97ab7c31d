/** Writes what cannot be read into the quarantine, and hands it out again. */
import { hash } from 'node:crypto';
import type { Database } from 'better-sqlite3';
import { AppError } from '../domain/app-error.ts';
import type { Fault } from '../domain/notification.ts';
import type { Delivery } from '../domain/ports.ts';
import { decodeStored } from '../http/request-body.ts';
import { bodyReader } from './bodies/body-reader.ts';
import type { BodyWriter } from './bodies/body-writer.ts';

export interface QuarantineWriter {
  /** Keeps a delivery; its body too, unless it is kept already. Returns the entry's id. */
  hold(delivery: Delivery, faults: readonly Fault[], bodyId?: number): number;
  /** Does the same, unless the same body of the same subscription is held already, as its sender may repeat it: then undefined. */
  holdOnce(delivery: Delivery, faults: readonly Fault[], bodyId?: number): number | undefined;
  /** A held entry as a delivery, to be written again. Throws `not_found`. */
  held(id: number): { delivery: Delivery; bodyId: number };
  release(id: number, atUs: number): void;
}

interface HeldRow {
  receivedAtUs: number;
  subscription: string | null;
  source: Delivery['source'];
  bodyId: number;
}

export function createQuarantineWriter(database: Database, bodies: BodyWriter): QuarantineWriter {
  const insert = database.prepare(
    `INSERT INTO quarantine (received_at_us, subscription, source, faults, headers, body_id, body_digest)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  );
  const findHeld = database
    .prepare<[Buffer, string | null], number>(
      `SELECT id FROM quarantine WHERE body_digest = ? AND subscription IS ? AND released_at_us IS NULL`,
    )
    .pluck();
  const select = database.prepare<[number], HeldRow>(
    `SELECT received_at_us AS receivedAtUs, subscription, source, body_id AS bodyId
     FROM quarantine WHERE id = ? AND released_at_us IS NULL`,
  );
  const reader = bodyReader(database);
  const setReleased = database.prepare('UPDATE quarantine SET released_at_us = ? WHERE id = ?');
  const add = (
    delivery: Delivery,
    faults: readonly Fault[],
    bodyId: number = bodies.keep(delivery),
    digest: Buffer | null = null,
  ) => {
    const headers = JSON.stringify(withoutCredentials(delivery.headers));
    const { receivedAtUs, subscription, source } = delivery;
    const faultsText = JSON.stringify(faults);
    const values = [receivedAtUs, subscription, source, faultsText, headers, bodyId, digest];
    return Number(insert.run(...values).lastInsertRowid);
  };
  return {
    hold: (delivery, faults, bodyId) => add(delivery, faults, bodyId),
    holdOnce: (delivery, faults, bodyId) => {
      const digest = hash('sha256', delivery.body, 'buffer');
      const isHeld = findHeld.get(digest, delivery.subscription) !== undefined;
      return isHeld ? undefined : add(delivery, faults, bodyId, digest);
    },
    held: (id) => {
      const row = select.get(id);
      if (row === undefined) {
        throw new AppError(
          'not_found',
          `No body with id ${id} is held in quarantine. \`earshot quarantine list\` shows those that are.`,
        );
      }
      const { bodyId, ...rest } = row;
      const body = reader.keptBody(bodyId);
      const encoding = reader.encoding(bodyId);
      const encoded = encoding === null ? undefined : decodeStored(body, encoding);
      return { delivery: { ...rest, headers: [], body, encoded }, bodyId };
    },
    release: (id, atUs) => {
      setReleased.run(atUs, id);
    },
  };
}

/** Header pairs without those that carry credentials. */
function withoutCredentials(headers: readonly string[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (/^(authorization|proxy-authorization|cookie)$/i.test(name)) continue;
    pairs.push([name, headers[i + 1] ?? '']);
  }
  return pairs;
}
