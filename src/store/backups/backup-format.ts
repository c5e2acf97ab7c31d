/** What a backup holds: a store, its description, the small files, and a seal; and how it is read. */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import Sqlite, { type Database } from 'better-sqlite3';
import { z } from 'zod';
import { AppError, errorCodeOf, readFaultOf } from '../../domain/app-error.ts';
import { printable } from '../../domain/text.ts';
import { fileVersion, schemaVersion } from '../engine/database.ts';
import { lastPosition } from '../log/queries.ts';

/** Raised with each change of the form; a newer one is refused. */
const backupFormat = 1;

/** A backup may come from anybody: whoever can write a file can also seal it. */
const aboutSchema = z.strictObject({
  format: z.int().positive(),
  madeAtUs: z.int().nonnegative(),
  /** Version of the earshot that made it. */
  version: z.string().max(100),
  lastPosition: z.int().nonnegative(),
  notifications: z.int().nonnegative(),
});

const filesSchema = z
  .array(
    z.strictObject({
      /** Path below the data directory, with `/` between its parts. */
      path: z.string(),
      bytes: z.instanceof(Uint8Array),
    }),
  )
  .refine((files) => new Set(files.map(({ path }) => path)).size === files.length);

/** The description of a backup that it contains itself. */
export type BackupAbout = Omit<z.infer<typeof aboutSchema>, 'format'>;

/** A file of the data directory that cannot be created again. */
export type KeptFile = z.infer<typeof filesSchema>[number];

/** Tables that a store does not have. */
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

/** Turns a copy of a store into a backup. */
export function addContents(
  database: Database,
  about: BackupAbout,
  files: readonly KeptFile[],
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

/** Turns a backup into a store again. */
export function dropContents(database: Database): void {
  for (const name of backupTables) database.exec(`DROP TABLE ${name}`);
}

/** All tables, by name, with SQLite's own, such as the one of positions given so far. */
export function tableNames(database: Database): string[] {
  return database
    .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .pluck()
    .all();
}

/**
 * The last line of a backup is the SHA-256 of all before it, by which any change of it shows, on any machine. It follows
 * the last page, where SQLite does not read: a backup can be opened as a database.
 */
const sealText = 'earshot backup, SHA-256 of all before: ';

/** Of the whole line, in bytes. */
export const sealBytes = sealOf('0'.repeat(64)).length;

export function sealOf(digest: string): string {
  return `${sealText}${digest}\n`;
}

/** A backup without its seal, as it was made. */
export interface Sealed {
  /** Of all before the seal. */
  sealedBytes: number;
  /** SHA-256 of these, in hex. */
  digest: string;
}

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
  const { bytes, digest } = readEnds(file);
  let database: Database | undefined;
  try {
    database = new Sqlite(file, { readonly: true, fileMustExist: true });
    refuseOther(database);
    const { format, ...about } = readAbout(database);
    if (format > backupFormat) throw newer(file, `form ${format}`);
    if (digest === null) {
      throw new AppError(
        'invalid',
        `${file} does not end as a backup does: it was cut short or changed. Copy it here once more, or use another backup.`,
      );
    }
    const files = filesSchema.parse(
      database.prepare('SELECT path, bytes FROM backup_file ORDER BY path').all(),
    );
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

function newer(file: string, what: string): AppError {
  return new AppError(
    'configuration',
    `${file} is a backup of a newer earshot (${what}). Install that version, and restore it with that.`,
  );
}

/**
 * The size of a file that has a database's beginning, and all of its length; and the digest that it ends with, null for
 * one that ends otherwise. SQLite's file format: the size of a page in bytes 16 and 17, where 1 is 65,536, and the number
 * of pages in 28 to 31.
 */
function readEnds(file: string): { bytes: number; digest: string | null } {
  const { header, bytes, end } = readBytes(file);
  if (header.toString('latin1', 0, 16) !== 'SQLite format 3\0') {
    throw new AppError(
      'configuration',
      `${file} is no backup: it does not begin as a database does. Name a file that \`earshot backup\` has written.`,
    );
  }
  const pageBytes = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16);
  const wholeBytes = pageBytes * header.readUInt32BE(28);
  if (bytes < wholeBytes) {
    throw new AppError(
      'invalid',
      `${file} is cut short: it has ${bytes} of more than ${wholeBytes} bytes. Copy it here once more, or use another backup.`,
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
      `${file} cannot be read: ${readFaultOf(cause)}. Name a file that \`earshot backup\` has written; \`earshot backup list\` shows them.`,
      { cause },
    );
  } finally {
    if (descriptor !== undefined) closeSync(descriptor);
  }
}
