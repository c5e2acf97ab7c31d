/** Counts drift shapes during a transaction and writes the sums at its end. */
import type { Database } from 'better-sqlite3';
import type { DriftShape } from '../domain/notification.ts';

/** Names of fields come from outside; beyond this many shapes, new ones share a row. */
const shapesMax = 200;
const overflowShape = 'unknown-field:(more)';

export function createDriftCounter(database: Database) {
  const known = new Set(
    database.prepare<[], string>('SELECT shape FROM drift').pluck().all() as string[],
  );
  const add = database.prepare(
    `INSERT INTO drift VALUES (?, ?, ?, ?)
     ON CONFLICT (shape) DO UPDATE SET
       count = count + excluded.count, last_seen_at_us = excluded.last_seen_at_us`,
  );
  const sums = new Map<string, number>();
  let lastSeenAtUs = 0;

  return {
    count(shapes: readonly DriftShape[], atUs: number): void {
      lastSeenAtUs = atUs;
      for (const shape of shapes) {
        const bounded = shape.startsWith('unknown-field:') && known.size >= shapesMax;
        const row = bounded && !known.has(shape) ? overflowShape : shape;
        known.add(row);
        sums.set(row, (sums.get(row) ?? 0) + 1);
      }
    },
    /** Forgets what an interrupted transaction left. */
    begin(): void {
      sums.clear();
    },
    /** Writes the sums. */
    end(): void {
      for (const [shape, count] of sums) add.run(shape, count, lastSeenAtUs, lastSeenAtUs);
    },
  };
}
