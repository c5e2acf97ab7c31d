/** The folder of a backup: its name, its manifest, and all checks of its content. */

import { createHash } from 'node:crypto';
import {
  appendFileSync,
  constants,
  createReadStream,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { makeDirectory } from '../../core/host/files.ts';
import { AppError, errorCodeOf, errorText, isAppError } from '../../core/terms/app-error.ts';
import { formatDateUs } from '../../core/terms/dates.ts';
import { faultError } from '../../core/terms/faults.ts';
import { printable } from '../../core/terms/text.ts';
import {
  type Database,
  databaseFileName,
  expectedSchema,
  fileVersion,
  openSqlite,
  schemaVersion as ownSchemaVersion,
  schemaOf,
} from '../../store/engine/database.ts';
import { lastPosition } from '../../store/log/queries.ts';
import { loadTables, type TablesSlot, tableFiles } from '../../store/tables.ts';

/**
 * Files of the data directory, next to the database, that cannot be recreated: the endpoint credentials, which the
 * catalogue has; the certificate with its key, and the ACME account, whose number is limited. The session of the
 * catalogue account expires within an hour.
 */
export const secretPaths = [
  'endpoint-credentials.json',
  'acme/state.json',
  'acme/certificate.json',
] as const;

export const manifestName = 'manifest.json';

/** Increased with each change of the format; newer formats are refused. */
export const backupFormat = 1;

const keptPath = z.enum([databaseFileName, ...secretPaths]);
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
  files: z.array(z.strictObject({ path: keptPath, bytes: count, sha256: z.string() })),
});
type Manifest = z.infer<typeof manifestSchema>;
export type FileSum = { path: string; bytes: number; sha256: string };

/** Content of a database. */
export type Content = Pick<Manifest, 'schemaVersion' | 'lastPosition' | 'notifications'>;

export interface Backup extends Manifest {
  /** Absolute path of the folder. */
  path: string;
  /** Size of the files in the manifest. */
  bytes: number;
}

/** Example: `20261121T120000Z`. Sorting by name sorts by time. */
export function compactTime(us: number): string {
  return `${formatDateUs(us).slice(0, 19).replaceAll(/[-:]/g, '')}Z`;
}

/** Ending of the name of an incomplete backup. */
export const partEnding = '.part';

const ownName = /^earshot-\d{8}T\d{6}Z(\.part)?$/;

/** Returns the paths of the backups in a folder, also of incomplete ones, the newest first. */
export function backupsIn(folder: string): string[] {
  const names = readdirSync(folder).filter((name) => ownName.test(name));
  return names
    .toSorted()
    .toReversed()
    .map((name) => join(folder, name));
}

/** Keeps `keep` complete backups of a folder, the new one and the newest. Returns the paths of the removed ones. */
export function removeOldBackups(folder: string, keep: number, newPath: string): string[] {
  const isComplete = (path: string) => {
    try {
      return readBackup(path).path === path;
    } catch {
      return false;
    }
  };
  const others = backupsIn(folder).filter((path) => path !== newPath && isComplete(path));
  return others.slice(keep - 1).map((path) => {
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
    const advice = 'Specify the folder of a backup, such as /mnt/backups/earshot-<time>.';
    throw new AppError('invalid', `${path} is incomplete, or not a backup.`, { advice });
  }
  try {
    const manifest = readManifest(path);
    const names = [manifestName, ...manifest.files.map((file) => file.path)];
    const found = readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map((entry) => (entry.isFile() ? relative(path, join(entry.parentPath, entry.name)) : ''));
    if (!isDeepStrictEqual(found.toSorted(), names.toSorted())) {
      throw damaged(path, 'it has a missing or added file, or a link');
    }
    return { ...manifest, path, bytes: manifest.files.reduce((sum, { bytes }) => sum + bytes, 0) };
  } catch (cause) {
    if (isAppError(cause)) throw cause;
    throw damaged(path, `${manifestName} is unreadable, or lists other files`, cause);
  }
}

/** The types of the options lack numbers. */
const plainFile = (constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK) as never;

function readManifest(path: string): Manifest {
  const options = { encoding: 'utf8', flag: plainFile } as const;
  const data: unknown = JSON.parse(readFileSync(join(path, manifestName), options));
  const { format, schemaVersion } = versionsSchema.parse(data);
  if (format <= backupFormat && schemaVersion <= ownSchemaVersion) {
    return manifestSchema.strict().parse(data);
  }
  const message = `${path} was made by a newer version of earshot. Install the newer version.`;
  throw new AppError('configuration', message);
}

/**
 * Reads every byte of the backup, and compares it with the manifest. With `to`, copies the files into that folder, and
 * checks the copied database. Rejects with `invalid`, or `cancelled` when the signal is aborted.
 */
export async function checkBackup(
  backup: Backup,
  options: { tables: readonly TablesSlot[]; signal?: AbortSignal | undefined; to?: string },
): Promise<void> {
  const { signal, to } = options;
  await loadTables(tableFiles(options.tables));
  for (const file of backup.files) {
    const found = await sumOf(backup.path, file.path, { signal, to });
    if (!isDeepStrictEqual(found, file)) throw damaged(backup.path, `${file.path} has changed`);
  }
  const fault = databaseFault(join(to ?? backup.path, databaseFileName), backup);
  if (fault !== null) throw damaged(backup.path, fault);
}

/** Sums a file of a folder, which must not be a link. With `to`, copies it into that folder, and syncs the copy. */
export async function sumOf(
  folder: string,
  path: string,
  { signal, to }: { signal?: AbortSignal | undefined; to?: string | undefined } = {},
): Promise<FileSum> {
  const hash = createHash('sha256');
  let bytes = 0;
  const copy = to === undefined ? undefined : join(to, path);
  if (copy !== undefined) makeDirectory(dirname(copy));
  const options = { flags: plainFile, highWaterMark: 2 ** 24 };
  for await (const chunk of createReadStream(join(folder, path), options)) {
    if (signal?.aborted) throw cancelled();
    hash.update(chunk);
    bytes += chunk.length;
    if (copy !== undefined) appendFileSync(copy, chunk, { mode: 0o600, flush: true });
  }
  return { path, bytes, sha256: hash.digest('hex') };
}

export function contentOf(database: Database): Content {
  const notifications = database.prepare('SELECT count(*) FROM notification').pluck().get();
  const [schemaVersion, last] = [fileVersion(database), lastPosition(database)];
  return { schemaVersion, lastPosition: last, notifications: Number(notifications) };
}

/**
 * Returns how a database differs from what it should contain; null if not. Code in another schema would run; a table of
 * a feature may be missing. `prepare`
 * may change the database, which otherwise is opened read-only.
 */
export function databaseFault(
  file: string,
  { schemaVersion, lastPosition, notifications }: Content,
  prepare?: (database: Database) => void,
): string | null {
  const database = openSqlite(file, { readonly: prepare === undefined, fileMustExist: true });
  try {
    prepare?.(database);
    const found = schemaOf(database);
    const { own, all } = expectedSchema(schemaVersion);
    const foreign =
      [...found].find(([name, sql]) => all.get(name) !== sql) ??
      [...own].find(([name]) => !found.has(name));
    if (foreign !== undefined) return `the database has a foreign ${printable(foreign[0])}`;
    const expected = { schemaVersion, lastPosition, notifications };
    return isDeepStrictEqual(contentOf(database), expected) ? null : 'the content differs';
  } catch (error) {
    return errorText(error);
  } finally {
    database.close();
  }
}

/** Converts an error of the file system or of SQLite to one with advice. Returns any other error unchanged. */
export function diskError(error: unknown, path: string): unknown {
  const code = errorCodeOf(error);
  if (isAppError(error) || !/^(E[A-Z]+|SQLITE_(FULL|IOERR.*))$/.test(code)) return error;
  return faultError('unavailable', `${path} cannot be read or written`, error);
}

export function cancelled(): AppError {
  return new AppError('cancelled', 'Cancelled. The incomplete files were removed.');
}

function damaged(path: string, fault: string, cause?: unknown): AppError {
  const advice = 'Copy it again, or use another backup.';
  return new AppError('invalid', `The backup ${path} is damaged: ${fault}.`, { advice, cause });
}
