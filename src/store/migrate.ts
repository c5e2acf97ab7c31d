/** Brings a database file to this program's version, and refuses a file from a newer one. */
import type { Database } from 'better-sqlite3';
import { AppError } from '../domain/app-error.ts';
import { notificationLog } from './migrations/0001-notification-log.ts';
import { administration } from './migrations/0002-administration.ts';
import { summaries } from './migrations/0003-summaries.ts';
import { completeness } from './migrations/0004-completeness.ts';
import { alerts } from './migrations/0005-alerts.ts';
import { sinks } from './migrations/0006-sinks.ts';
import { packedBodies } from './migrations/0007-packed-bodies.ts';
import { keeping } from './migrations/0008-keeping.ts';
import { sinkDeliveries } from './migrations/0009-sink-deliveries.ts';
import { receivedAsSent } from './migrations/0010-received-as-sent.ts';
import { alertChannelsKept } from './migrations/0011-alert-channels.ts';

/** In order; the file's `user_version` is the number of the last one applied. */
const migrations = [
  notificationLog,
  administration,
  summaries,
  completeness,
  alerts,
  sinks,
  packedBodies,
  keeping,
  sinkDeliveries,
  receivedAsSent,
  alertChannelsKept,
] as const;

/** The version of the file's schema that this program reads and writes. */
export const schemaVersion = migrations.length;

/** SQLite's mark for "a file of this application": the letters "ears". */
const applicationId = 0x65617273;

/**
 * Applies what is missing, one transaction each. The lock is taken before the version is looked at
 * again, so that two programs that start together do the work once.
 */
export function migrate(database: Database): void {
  for (const migration of migrations) {
    if (fileVersion(database) >= migration.number) continue;
    database
      .transaction(() => {
        if (fileVersion(database) >= migration.number) return;
        database.exec(migration.sql);
        database.pragma(`application_id = ${applicationId}`);
        database.pragma(`user_version = ${migration.number}`);
      })
      .immediate();
  }
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
