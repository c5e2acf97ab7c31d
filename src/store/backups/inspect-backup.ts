/** Looks at a file that should be a backup, without reading all of it: what it is, and whether it can be used. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import Sqlite, { type Database } from 'better-sqlite3';
import { AppError } from '../../domain/app-error.ts';
import { errorCodeOf, readFaultOf } from '../../domain/error-code.ts';
import { printable } from '../../domain/text.ts';
import { fileVersion, schemaVersion } from '../engine/migrate.ts';
import { lastPosition } from '../log/queries.ts';
import {
  type BackupAbout,
  backupFormat,
  backupTables,
  type KeptFile,
  readAbout,
  readFiles,
} from './backup-contents.ts';
import { readSeal, sealBytes } from './seal.ts';
import { tableNames } from './table-digests.ts';
import type { Sealed } from './verify-backup.ts';

export interface InspectedBackup extends BackupAbout, Sealed {
  bytes: number;
  schemaVersion: number;
  files: KeptFile[];
}

/**
 * Checks all that can be checked without reading the whole file. `restore`, `restore --check` and `backup list` share it, so that
 * they refuse the same files. `isKept` is true for the path of a file that a backup may contain.
 * Throws `usage` where there is no file, `configuration` for one that is no backup or is a newer earshot's, and `invalid` for one
 * that is cut short, damaged at its beginning, or changed to hold what no backup of earshot contains.
 */
export function inspectBackup(file: string, isKept: (path: string) => boolean): InspectedBackup {
  const bytes = wholeSize(file);
  let database: Database | undefined;
  try {
    database = new Sqlite(file, { readonly: true, fileMustExist: true });
    refuseOther(database);
    const { format, ...about } = readAbout(database);
    if (format > backupFormat) throw newer(file, `form ${format}`);
    const digest = readSeal(file);
    if (digest === null) throw endless(file);
    const files = readFiles(database);
    refuseForeign(database, files, isKept);
    if (lastPosition(database) !== about.lastPosition) {
      throw new Error('The log does not end at the position that the backup states.');
    }
    return {
      ...{ ...about, bytes, sealedBytes: bytes - sealBytes, digest },
      schemaVersion: fileVersion(database),
      files,
    };
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw new AppError(
      'invalid',
      `${file} is damaged: its own description cannot be read or is wrong (${errorCodeOf(cause)}). Use another backup.`,
      { cause },
    );
  } finally {
    database?.close();
  }
}

function refuseOther(database: Database): void {
  const { name } = database;
  const names = tableNames(database);
  if (!backupTables.every((table) => names.includes(table))) {
    throw new AppError(
      'configuration',
      `${name} is a database, but no backup that earshot has made. Name a file that \`earshot backup\` has written.`,
    );
  }
  const version = fileVersion(database);
  if (version <= schemaVersion) return;
  throw newer(name, `schema ${version}, this program knows up to ${schemaVersion}`);
}

/** Refuses paths that lead out of the data directory, and SQL that would run in the restored store. */
function refuseForeign(
  database: Database,
  files: readonly KeptFile[],
  isKept: (path: string) => boolean,
): void {
  const path = files.map((file) => file.path).find((one) => !isKept(one));
  const code = database
    .prepare<[], string>(
      "SELECT type || ' ' || name FROM sqlite_schema WHERE type IN ('trigger', 'view') LIMIT 1",
    )
    .pluck()
    .get();
  const what = path === undefined ? code : `file ${path}`;
  if (what === undefined) return;
  throw new AppError(
    'invalid',
    `${database.name} holds the ${printable(what)}, which no backup of earshot contains. Somebody has changed it: use another backup.`,
  );
}

function endless(file: string): AppError {
  return new AppError(
    'invalid',
    `${file} does not end as a backup does: it was cut short or changed. Copy it here once more, or use another backup.`,
  );
}

function newer(file: string, what: string): AppError {
  return new AppError(
    'configuration',
    `${file} is a backup of a newer earshot (${what}). Install that version, and restore it with that.`,
  );
}

/**
 * The size of a file that has a database's beginning, and all of its length. SQLite's file format: the size of a page
 * in bytes 16 and 17, where 1 is 65,536, and how many there are in 28 to 31.
 */
function wholeSize(file: string): number {
  const { header, bytes } = beginning(file);
  if (header.toString('latin1', 0, 16) !== 'SQLite format 3\0') {
    throw new AppError(
      'configuration',
      `${file} is no backup: it does not begin as a database does. Name a file that \`earshot backup\` has written.`,
    );
  }
  const pageBytes = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16);
  const wholeBytes = pageBytes * header.readUInt32BE(28);
  if (bytes >= wholeBytes) return bytes;
  throw new AppError(
    'invalid',
    `${file} is cut short: it has ${bytes} of more than ${wholeBytes} bytes. Copy it here once more, or use another backup.`,
  );
}

function beginning(file: string): { header: Buffer; bytes: number } {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, 'r');
    const header = Buffer.alloc(100);
    readSync(descriptor, header);
    return { header, bytes: fstatSync(descriptor).size };
  } catch (cause) {
    throw new AppError(
      'usage',
      `${file} cannot be read: ${readFaultOf(cause)}. Name a file that \`earshot backup\` has written; \`earshot backup list\` shows them.`,
      { cause },
    );
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
