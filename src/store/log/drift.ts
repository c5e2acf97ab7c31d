/** Counts of drift: shapes of notifications that were not expected. */
import type { Database } from 'better-sqlite3';
import type { DriftShape } from '../../domain/notification.ts';
import type { DriftCount } from '../../domain/ports.ts';
import { perConnection, prepared } from '../engine/database.ts';

/** Names of fields come from outside; beyond this many shapes, new ones share a row. */
const shapesMax = 200;
const overflowShape = 'unknown-field:(more)';

const knownShapes = perConnection(
  (database) => new Set(database.prepare<[], string>('SELECT shape FROM drift').pluck().all()),
);

export function driftCounts(database: Database): DriftCount[] {
  return prepared<[], DriftCount>(
    database,
    `SELECT shape, count, first_seen_at_us AS firstSeenAtUs, last_seen_at_us AS lastSeenAtUs
     FROM drift ORDER BY count DESC, shape`,
  ).all();
}

/** Adds what one transaction has found, each shape with one statement. */
export function countDrift(database: Database, shapes: readonly DriftShape[], atUs: number): void {
  const known = knownShapes(database);
  const sums = new Map<string, number>();
  for (const shape of shapes) {
    const bounded = shape.startsWith('unknown-field:') && known.size >= shapesMax;
    const row = bounded && !known.has(shape) ? overflowShape : shape;
    known.add(row);
    sums.set(row, (sums.get(row) ?? 0) + 1);
  }
  for (const [shape, count] of sums) {
    prepared(
      database,
      `INSERT INTO drift VALUES (?, ?, ?, ?)
       ON CONFLICT (shape) DO UPDATE SET
         count = count + excluded.count, last_seen_at_us = excluded.last_seen_at_us`,
    ).run(shape, count, atUs, atUs);
  }
}
