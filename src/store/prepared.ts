/** Statements of a connection, each prepared once. */
import type { Database, Statement } from 'better-sqlite3';

const statements = new WeakMap<Database, Map<string, Statement>>();

/** The statement for fixed SQL; SQL that is composed for a question is prepared where it is used. */
export function prepared<Values extends unknown[] | object = unknown[], Row = unknown>(
  database: Database,
  sql: string,
): Statement<Values extends unknown[] ? Values : [Values], Row> {
  let known = statements.get(database);
  if (known === undefined) {
    known = new Map();
    statements.set(database, known);
  }
  let statement = known.get(sql);
  if (statement === undefined) {
    statement = database.prepare(sql);
    known.set(sql, statement);
  }
  return statement as Statement<Values extends unknown[] ? Values : [Values], Row>;
}
