/** Brings a database file to this program's version, and refuses a file from a newer one. */
import type { Database } from 'better-sqlite3';
import { AppError } from '../../domain/app-error.ts';
import { migrations } from './migrations.ts';

/** The version of the file's schema that this program reads and writes. */
export const schemaVersion = migrations.length;

/** SQLite's mark for "a file of this application": the letters "ears". */
const applicationId = 0x65617273;

/**
 * Applies what is missing, one transaction each; a fresh file gets all in one, which syncs the disk once. The lock is
 * taken before the version is read again, so that two programs that start together do the work once.
 */
export function migrate(database: Database): void {
  const version = fileVersion(database);
  const missing = migrations.slice(version).map((sql, i) => ({ number: version + i + 1, sql }));
  for (const steps of version === 0 ? [missing] : missing.map((one) => [one])) {
    database
      .transaction(() => {
        for (const step of steps) apply(database, step);
      })
      .immediate();
  }
}

function apply(database: Database, { number, sql }: { number: number; sql: string }): void {
  if (fileVersion(database) >= number) return;
  database.exec(sql);
  database.pragma(`application_id = ${applicationId}`);
  database.pragma(`user_version = ${number}`);
}

/** Rejects a file that is another program's, or a newer earshot's. An empty file passes. */
export function refuseForeignFile(database: Database): void {
  // One transaction: between single reads, another process may create the tables.
  const { id, version, tables } = database.transaction(() => ({
    id: database.pragma('application_id', { simple: true }),
    version: fileVersion(database),
    tables: hasTables(database),
  }))();
  if (id !== applicationId && (id !== 0 || version !== 0 || tables)) {
    throw new AppError('configuration', `${database.name} is a SQLite file of another program.`, {
      advice: 'Name another folder in EARSHOT_DATA_DIR.',
    });
  }
  if (version > schemaVersion) {
    throw new AppError(
      'configuration',
      `${database.name} was written by a newer earshot (schema ${version}, this program knows up to ${schemaVersion}).`,
      { advice: 'Install that version again, or restore a backup made before the upgrade.' },
    );
  }
}

/** The schema version of a file; 0 for an empty one. */
export function fileVersion(database: Database): number {
  return Number(database.pragma('user_version', { simple: true }));
}

function hasTables(database: Database): boolean {
  return database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() !== undefined;
}
