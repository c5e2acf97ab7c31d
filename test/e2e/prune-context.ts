/** A log with an old part and a new one, and an inspection of its database file. */
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { bodyReader } from '../../src/store/bodies/bodies.ts';
import { databaseFileName } from '../../src/store/engine/database.ts';
import { delivery, notification } from '../helpers/deliveries.ts';
import { openStore } from '../helpers/store.ts';

const dayUs = 86_400_000_000;
const padding = 'x'.repeat(1_000);

/** AckIds of notifications received two years ago, and of those received yesterday. */
export interface OldLog {
  old: string[];
  kept: string[];
}

/** Stores old notifications with numbers from 1, and newer ones with numbers from 1,000,001. */
export async function fillLog(
  dataDir: string,
  counts: { old: number; kept: number },
): Promise<OldLog> {
  const nowUs = Date.now() * 1_000;
  const store = await openStore({ dataDir, nowUs: () => nowUs });
  const fill = async (first: number, count: number, sinceUs: number) => {
    const ackIds: string[] = [];
    for (let at = 0; at < count; at += 250) {
      const numbers = Array.from({ length: Math.min(250, count - at) }, (_, i) => first + at + i);
      const receipts = numbers.map((number) =>
        store.accept(
          delivery(notification(number, { padding: `${number} ${padding}` }), {
            receivedAtUs: sinceUs + (number - first) * 1_000_000,
          }),
        ),
      );
      await Promise.all(receipts);
      ackIds.push(...numbers.map((number) => `ack-${number}`));
    }
    return ackIds;
  };
  const old = await fill(1, counts.old, nowUs - 730 * dayUs);
  const kept = await fill(1_000_001, counts.kept, nowUs - dayUs);
  await store.close();
  return { old, kept };
}

/** Returns all AckIds of the log, its unreadable and unused bodies, and the integrity of the file. */
export function inspectLog(dataDir: string) {
  const database = new Sqlite(join(dataDir, databaseFileName));
  const rows = database
    .prepare<[], { ackId: string; bodyId: number }>(
      'SELECT ack_id AS ackId, body_id AS bodyId FROM notification ORDER BY position',
    )
    .all();
  const { body } = bodyReader(database);
  const unreadable = rows.filter(({ ackId, bodyId }) => !body(bodyId)?.includes(`"${ackId}"`));
  const unused = database
    .prepare(
      `SELECT count(*) FROM body WHERE NOT EXISTS (SELECT 1 FROM notification
         WHERE body_id >= body.id AND body_id < body.id + bodies)`,
    )
    .pluck()
    .get();
  const check = database.pragma('integrity_check', { simple: true });
  database.close();
  return { ackIds: rows.map(({ ackId }) => ackId), unreadable, unused, check };
}
