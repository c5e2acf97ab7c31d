/** Format of a backup: a store, its description, the small files, and a seal. Writes and reads it. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import Sqlite, { type Database } from 'better-sqlite3';
import { z } from 'zod';
import { AppError, errorCodeOf, readFaultOf } from '../../domain/app-error.ts';
import { printable } from '../../domain/text.ts';
import { expectedSchema, fileVersion, schemaOf, schemaVersion } from '../engine/database.ts';
import { lastPosition } from '../log/queries.ts';

/** Increased with each change of the format; newer formats are rejected. */
const backupFormat = 1;

/** Strict, because a backup may come from anybody: whoever can write a file can also seal it. */
const aboutSchema = z.strictObject({
  format: z.int().positive(),
  madeAtUs: z.int().nonnegative(),
  /** Version of earshot that made the backup. */
  version: z.string().max(100),
  lastPosition: z.int().nonnegative(),
  notifications: z.int().nonnegative(),
});

const filesSchema = z
  .array(
    z.strictObject({
      /** Path relative to the data directory, with `/` as separator. */
      path: z.string(),
      bytes: z.instanceof(Uint8Array),
    }),
  )
  .refine((files) => new Set(files.map(({ path }) => path)).size === files.length);

/** Description of a backup, stored in it. */
export type BackupDescription = Omit<z.infer<typeof aboutSchema>, 'format'>;

/** A file of the data directory that cannot be recreated. */
export type BackupFile = z.infer<typeof filesSchema>[number];

/** Tables that only a backup has. */
const backupTables = ['backup_about', 'backup_file'] as const;

const schema = `
  CREATE TABLE backup_about (
    format INTEGER NOT NULL,
    made_at_us INTEGER NOT NULL,
    version TEXT NOT NULL,
    last_position INTEGER NOT NULL,
    notifications INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE backup_file (path TEXT PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
`;

/** Converts a copy of a store to a backup. */
export function addContents(
  database: Database,
  about: BackupDescription,
  files: readonly BackupFile[],
): void {
  database.exec(schema);
  database
    .prepare(
      'INSERT INTO backup_about VALUES (@format, @madeAtUs, @version, @lastPosition, @notifications)',
    )
    .run({ format: backupFormat, ...about });
  const insert = database.prepare('INSERT INTO backup_file VALUES (@path, @bytes)');
  for (const file of files) insert.run(file);
}

/** Converts a backup to a store. */
export function dropContents(database: Database): void {
  for (const name of backupTables) database.exec(`DROP TABLE ${name}`);
}

/** Returns the names of all tables, including SQLite's own, such as `sqlite_sequence`. */
export function tableNames(database: Database): string[] {
  return database
    .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .pluck()
    .all();
}

/**
 * The seal is the last line of a backup: the SHA-256 of all bytes before it, which reveals any change. SQLite ignores
 * it, because it follows the last page: a backup can be opened as a database.
 */
const sealText = 'earshot backup, SHA-256 of all before: ';

/** Length of the line, in bytes. */
export const sealBytes = sealOf('0'.repeat(64)).length;

export function sealOf(digest: string): string {
  return `${sealText}${digest}\n`;
}

/** Size and digest of a backup's content, without its seal. */
export interface Sealed {
  sealedBytes: number;
  /** SHA-256 of the content, in hex. */
  digest: string;
}

export interface InspectedBackup extends BackupDescription, Sealed {
  bytes: number;
  schemaVersion: number;
  files: BackupFile[];
}

/**
 * Runs all checks that do not read the whole file. `restore`, `restore --check` and `backup list` share it, so that they
 * reject the same files. `mayContain` returns true for the path of a file that a backup may contain.
 * Throws `usage` if the file cannot be read, `configuration` if it is not a backup or is of a newer version of earshot,
 * and `invalid` if it is truncated, damaged at its beginning, or has unexpected contents.
 */
export function inspectBackup(
  file: string,
  mayContain: (path: string) => boolean,
): InspectedBackup {
  const { bytes, digest } = readEnds(file);
  let database: Database | undefined;
  try {
    database = new Sqlite(file, { readonly: true, fileMustExist: true });
    requireBackup(database);
    const { format, ...about } = readAbout(database);
    if (format > backupFormat) throw newer(file, `format ${format}`);
    if (digest === null) {
      throw new AppError(
        'invalid',
        `${file} was truncated or changed: the end of the file is not valid. Copy the file again, or use another backup.`,
      );
    }
    const files = filesSchema.parse(
      database.prepare('SELECT path, bytes FROM backup_file ORDER BY path').all(),
    );
    refuseUnexpected(database, files, mayContain);
    if (lastPosition(database) !== about.lastPosition) {
      throw new Error('The last position of the log differs from the description of the backup.');
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
      `${file} is damaged: the description of the backup is unreadable or wrong (${errorCodeOf(cause)}). Use another backup.`,
      { cause },
    );
  } finally {
    database?.close();
  }
}

function readAbout(database: Database) {
  return aboutSchema.parse(
    database
      .prepare(
        `SELECT format, made_at_us AS madeAtUs, version, last_position AS lastPosition, notifications
         FROM backup_about`,
      )
      .get(),
  );
}

function requireBackup(database: Database): void {
  const { name } = database;
  const names = tableNames(database);
  if (!backupTables.every((table) => names.includes(table))) {
    throw new AppError(
      'configuration',
      `${name} is a database, but not a backup made by earshot. Specify a file written by \`earshot backup\`.`,
    );
  }
  const version = fileVersion(database);
  if (version <= schemaVersion) return;
  throw newer(name, `schema ${version}; this version supports up to ${schemaVersion}`);
}

/** Rejects paths outside of the data directory, and any other schema: its code would run in the restored store. */
function refuseUnexpected(
  database: Database,
  files: readonly BackupFile[],
  mayContain: (path: string) => boolean,
): void {
  const path = files.map((file) => file.path).find((one) => !mayContain(one));
  const unexpected = path === undefined ? schemaDifference(database) : `file ${path}`;
  if (unexpected === null) return;
  throw new AppError(
    'invalid',
    `${database.name} contains the ${printable(unexpected)}, which is never part of a backup. Somebody changed this backup. Use another one.`,
  );
}

/** Names a part of the schema that a backup of its version does not have, or lacks; null for the expected schema. */
function schemaDifference(database: Database): string | null {
  const expected = expectedSchema(fileVersion(database), schema);
  const found = schemaOf(database);
  for (const [name, sql] of found) if (expected.get(name) !== sql) return name;
  for (const name of expected.keys()) if (!found.has(name)) return `schema without ${name}`;
  return null;
}

function newer(file: string, version: string): AppError {
  return new AppError(
    'configuration',
    `${file} was made by a newer version of earshot (${version}). Install the newer version to restore the file.`,
  );
}

/**
 * Checks the header and the length of a database file. Returns its size, and the digest at its end; null without a seal.
 * SQLite's file format: bytes 16 and 17 are the page size, where 1 means 65,536; bytes 28 to 31 are the number of pages.
 */
function readEnds(file: string): { bytes: number; digest: string | null } {
  const { header, bytes, end } = readBytes(file);
  if (header.toString('latin1', 0, 16) !== 'SQLite format 3\0') {
    throw new AppError(
      'configuration',
      `${file} is not a backup: it is not a database. Specify a file written by \`earshot backup\`.`,
    );
  }
  const pageBytes = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16);
  const wholeBytes = pageBytes * header.readUInt32BE(28);
  if (bytes < wholeBytes) {
    throw new AppError(
      'invalid',
      `${file} is truncated: it has ${bytes} bytes, but should have more than ${wholeBytes}. Copy the file again, or use another backup.`,
    );
  }
  const digest = end.slice(sealText.length, -1);
  return { bytes, digest: /^[0-9a-f]{64}$/.test(digest) && end === sealOf(digest) ? digest : null };
}

function readBytes(file: string) {
  let descriptor: number | undefined;
  try {
    descriptor = openSync(file, 'r');
    const bytes = fstatSync(descriptor).size;
    const [header, end] = [Buffer.alloc(100), Buffer.alloc(sealBytes)];
    readSync(descriptor, header);
    readSync(descriptor, end, 0, sealBytes, Math.max(0, bytes - sealBytes));
    return { header, bytes, end: end.toString('latin1') };
  } catch (cause) {
    throw new AppError(
      'usage',
      `${file} cannot be read: ${readFaultOf(cause)}. Run \`earshot backup list <folder>\` to see the backups in a folder.`,
      { cause },
    );
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
