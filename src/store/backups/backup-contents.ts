/** What a backup holds besides the store: what it says of itself, and the small files. */
import type { Database } from 'better-sqlite3';
import { z } from 'zod';

/** A later form that this program cannot read gets another number. */
export const backupFormat = 1;

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
export const backupTables = ['backup_about', 'backup_file'] as const;

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

export function addContents(
  database: Database,
  { about, files }: { about: BackupAbout; files: readonly KeptFile[] },
): void {
  const { madeAtUs, version, lastPosition, notifications } = about;
  database.exec(schema);
  database
    .prepare('INSERT INTO backup_about VALUES (?, ?, ?, ?, ?)')
    .run(backupFormat, madeAtUs, version, lastPosition, notifications);
  const insert = database.prepare('INSERT INTO backup_file VALUES (@path, @bytes)');
  for (const file of files) insert.run(file);
}

export function readAbout(database: Database): BackupAbout & { format: number } {
  const about = database
    .prepare(
      `SELECT format, made_at_us AS madeAtUs, version, last_position AS lastPosition, notifications
       FROM backup_about`,
    )
    .get();
  return aboutSchema.parse(about);
}

export function readFiles(database: Database): KeptFile[] {
  return filesSchema.parse(
    database.prepare('SELECT path, bytes FROM backup_file ORDER BY path').all(),
  );
}

/** Makes a store of a backup again. */
export function dropContents(database: Database): void {
  for (const name of backupTables) database.exec(`DROP TABLE ${name}`);
}
