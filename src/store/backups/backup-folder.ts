/** The folder of a backup: its name, its manifest, and all checks of its content. */
import { createHash } from 'node:crypto';
import { constants, existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import Sqlite, { type Database } from 'better-sqlite3';
import { z } from 'zod';
import { AppError, errorCodeOf, errorText, isAppError } from '../../domain/app-error.ts';
import { formatDateUs } from '../../domain/dates.ts';
import { printable } from '../../domain/text.ts';
import { makeDirectory } from '../../host/files.ts';
import {
  databaseFileName,
  expectedSchema,
  fileVersion,
  schemaVersion as ownSchemaVersion,
  schemaOf,
} from '../engine/database.ts';
import { lastPosition } from '../log/queries.ts';

/**
 * Files of the data directory that cannot be recreated: the database; the endpoint credentials, which the catalogue has;
 * the certificate with its key, and the ACME accounts, whose number is limited. The session of the catalogue account
 * expires within an hour.
 */
export const keptFiles =
  /^(earshot\.db|endpoint-credentials\.json|acme\/[a-z0-9][a-z0-9-]*\.json)$/;

export const manifestName = 'manifest.json';

/** Increased with each change of the format; newer formats are refused. */
export const backupFormat = 1;

const count = z.int().nonnegative();
const versionsSchema = z.object({ format: count, schemaVersion: count });

/** Strict, because a backup may come from anybody. */
const manifestSchema = versionsSchema.extend({
  madeAt: z.iso.datetime({ precision: 6 }),
  /** Version of earshot that made the backup. */
  version: z.string().max(100),
  lastPosition: count,
  notifications: count,
  /** The other files; their paths are relative to the data directory. */
  files: z
    .array(z.strictObject({ path: z.string().regex(keptFiles), bytes: count, sha256: z.string() }))
    .refine((files) => new Set(files.map(({ path }) => path)).size === files.length)
    .refine((files) => files.some(({ path }) => path === databaseFileName)),
});
type Manifest = z.infer<typeof manifestSchema>;
export type FileSum = Manifest['files'][number];

/** Content of a database. */
export type Content = Pick<Manifest, 'schemaVersion' | 'lastPosition' | 'notifications'>;

export interface Backup extends Manifest {
  /** Absolute path of the folder. */
  path: string;
  /** Size of the files in the manifest. */
  bytes: number;
}

export interface BackupWatch {
  onProgress?: ((done: number, total: number) => void) | undefined;
  signal?: AbortSignal | undefined;
}

/** Example: `20261121T120000Z`. Sorting by name sorts by time. */
export function compactTime(us: number): string {
  return `${formatDateUs(us).slice(0, 19).replaceAll(/[-:]/g, '')}Z`;
}

/** Example: `2026-11-21 12:00`. */
export function madeText({ madeAt }: Pick<Backup, 'madeAt'>): string {
  return madeAt.slice(0, 16).replace('T', ' ');
}

/** Ending of the name of an incomplete backup. */
export const partEnding = '.part';

const ownName = /^earshot-\d{8}T\d{6}Z(\.part)?$/;

/** Returns the backups in a folder, newest first; for one that is incomplete or damaged, the fault. */
export function backupsIn(folder: string): (Backup | { path: string; fault: string })[] {
  const names = readdirSync(folder).filter((name) => ownName.test(name));
  return names
    .toSorted()
    .map((name) => {
      const path = join(folder, name);
      try {
        return readBackup(path);
      } catch (error) {
        return { path, fault: errorText(error) };
      }
    })
    .toReversed();
}

/** Keeps `keep` complete backups of a folder, the new one and the newest. Returns the paths of the removed ones. */
export function removeOldBackups(folder: string, keep: number, newPath: string): string[] {
  const others = backupsIn(folder).filter((one) => !('fault' in one) && one.path !== newPath);
  return others.slice(keep - 1).map(({ path }) => {
    // After an interruption, it counts as incomplete.
    renameSync(path, `${path}${partEnding}`);
    rmSync(`${path}${partEnding}`, { recursive: true });
    return path;
  });
}

/**
 * Checks everything except the content of the files. Throws `invalid` for an incomplete or damaged backup, or one with
 * links or foreign files, and `configuration` for one of a newer version of earshot.
 */
export function readBackup(path: string): Backup {
  if (path.endsWith(partEnding) || !existsSync(join(path, manifestName))) {
    throw new AppError('invalid', `${path} is incomplete, or not a backup.`, {
      advice: 'Run `earshot backup list FOLDER` to see the backups in a folder.',
    });
  }
  try {
    const manifest = readManifest(path);
    const listed = new Set([manifestName, ...manifest.files.map((file) => file.path)]);
    const entries = readdirSync(path, { recursive: true, withFileTypes: true });
    for (const entry of entries.filter((one) => !one.isDirectory())) {
      const name = relative(path, join(entry.parentPath, entry.name));
      if (!entry.isFile()) throw damaged(path, `${printable(name)} is a link or not a file`);
      if (!listed.has(name)) throw damaged(path, `it has the added file ${printable(name)}`);
    }
    return { ...manifest, path, bytes: manifest.files.reduce((sum, { bytes }) => sum + bytes, 0) };
  } catch (cause) {
    if (isAppError(cause)) throw cause;
    throw damaged(path, `${manifestName} is unreadable, or lists other files`, cause);
  }
}

const plainFile = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

function readManifest(path: string): Manifest {
  // The type of the option lacks numbers.
  const flag = plainFile as never;
  const data: unknown = JSON.parse(
    readFileSync(join(path, manifestName), { encoding: 'utf8', flag }),
  );
  const { format, schemaVersion } = versionsSchema.parse(data);
  if (format <= backupFormat && schemaVersion <= ownSchemaVersion) {
    return manifestSchema.strict().parse(data);
  }
  throw new AppError('configuration', `${path} was made by a newer version of earshot.`, {
    advice: 'Install the newer version to restore it.',
  });
}

/**
 * Reads every byte of the backup, and compares it with the manifest. With `to`, copies the files into that folder, and
 * checks the copied database. Rejects with `invalid`, or `cancelled` when the signal is aborted.
 */
export async function checkBackup(
  backup: Backup,
  { onProgress, signal }: BackupWatch,
  to?: string,
): Promise<void> {
  let done = 0;
  const onBytes = (bytes: number) => {
    if (signal?.aborted) throw cancelled();
    done += bytes;
    onProgress?.(done, backup.bytes);
  };
  for (const file of backup.files) {
    const from = join(backup.path, file.path);
    const found = await sumOf(from, file.path, onBytes, to && join(to, file.path));
    if (!isDeepStrictEqual(found, file)) throw damaged(backup.path, `${file.path} has changed`);
  }
  const fault = databaseFault(join(to ?? backup.path, databaseFileName), backup);
  if (fault !== null) throw damaged(backup.path, fault);
}

/** Sums a file, which must not be a link. With `to`, copies it; the copy is on disk when it resolves. */
export async function sumOf(
  from: string,
  path: string,
  onBytes: (bytes: number) => void,
  to?: string,
): Promise<FileSum | null> {
  const hash = createHash('sha256');
  let bytes = 0;
  if (to !== undefined) makeDirectory(dirname(to));
  const copy = to === undefined ? null : await open(to, 'wx', 0o600);
  try {
    const source = await open(from, plainFile).catch(() => null);
    if (source === null) return null;
    for await (const chunk of source.createReadStream({ highWaterMark: 2 ** 20 })) {
      onBytes(chunk.length);
      hash.update(chunk);
      bytes += chunk.length;
      await copy?.writeFile(chunk);
    }
    await copy?.sync();
  } finally {
    await copy?.close();
  }
  return { path, bytes, sha256: hash.digest('hex') };
}

export function contentOf(database: Database): Content {
  const rows = database.prepare<[], number>('SELECT count(*) FROM notification').pluck().get() ?? 0;
  const schemaVersion = fileVersion(database);
  return { schemaVersion, lastPosition: lastPosition(database), notifications: rows };
}

/** Returns how a database differs from what it should contain; null if not. Code in another schema would run. */
export function databaseFault(file: string, expected: Content): string | null {
  let database: Database | undefined;
  try {
    database = new Sqlite(file, { readonly: true, fileMustExist: true });
    const [found, own] = [schemaOf(database), expectedSchema(expected.schemaVersion)];
    const foreign = [...found, ...own].find(([name]) => found.get(name) !== own.get(name));
    if (foreign !== undefined) return `the database has a foreign schema: ${printable(foreign[0])}`;
    const isSame = Object.entries(contentOf(database)).every(
      ([name, value]) => expected[name as keyof Content] === value,
    );
    return isSame ? null : 'the database has another content';
  } catch (error) {
    return `the database cannot be read (${errorCodeOf(error)})`;
  } finally {
    database?.close();
  }
}

/** Converts an error of the file system or of SQLite to one with advice. Returns any other error unchanged. */
export function diskError(error: unknown, path: string): unknown {
  const code = errorCodeOf(error);
  if (isAppError(error) || !/^(E[A-Z]+|SQLITE_(FULL|IOERR.*))$/.test(code)) return error;
  return new AppError('unavailable', `${path} cannot be read or written (${code}).`, {
    advice: 'Check its permissions, the free space of the disk, and the system log.',
    cause: error,
  });
}

export function cancelled(): AppError {
  return new AppError('cancelled', 'Cancelled. The incomplete files were removed.');
}

function damaged(path: string, fault: string, cause?: unknown): AppError {
  const advice = 'Copy it again, or use another backup.';
  return new AppError('invalid', `The backup ${path} is damaged: ${fault}.`, { advice, cause });
}
