/** What the quarantine takes up of the log's file. */
import type { Database } from 'better-sqlite3';

/** The newest so many are looked at; the others count as much as these on average. */
const sampleMax = 200;

/**
 * About the size of all bodies that are held there. Pruning by size leaves them out: they do not go by it, and
 * notifications are not to go for them.
 */
export function quarantineBytes(database: Database): number {
  const held = 'quarantine INDEXED BY quarantine_held WHERE released_at_us IS NULL';
  const ask = (sql: string) => Number(database.prepare(sql).pluck().get() ?? 0);
  const entries = ask(`SELECT count(*) FROM ${held}`);
  if (entries === 0) return 0;
  const mean = ask(
    `SELECT avg((SELECT length(packed) / bodies FROM body WHERE id <= body_id ORDER BY id DESC LIMIT 1))
     FROM (SELECT body_id FROM ${held} ORDER BY id DESC LIMIT ${sampleMax})`,
  );
  return Math.round(entries * mean);
}
