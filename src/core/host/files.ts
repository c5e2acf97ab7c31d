/** Files with secrets: only their owner can open them, and they are replaced atomically. */
import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  type Stats,
  statSync,
} from 'node:fs';
import { chown, mkdtemp, open, rename, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { AppError, errorCodeOf } from '../terms/app-error.ts';
import { faultError } from '../terms/faults.ts';

/**
 * Returns the content of a file; null if it does not exist. Throws `configuration` if others may read or change it: the
 * secret may be known or replaced. Follows links, and checks the target.
 */
export function readOwnerOnly(path: string): string | null {
  let file: number | undefined;
  try {
    // Without O_NONBLOCK, opening a pipe waits for a writer.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    // Checks the opened file: the path may refer to another one now.
    refuseOpen(path, fstatSync(file));
    return readFileSync(file, 'utf8');
  } catch (cause) {
    if (['ENOENT', 'ENOTDIR'].includes(errorCodeOf(cause))) return null;
    if (cause instanceof AppError) throw cause;
    throw faultError('configuration', `${path} cannot be read`, cause);
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function refuseOpen(path: string, { mode }: Stats): void {
  if ((mode & 0o077) === 0) return;
  throw new AppError(
    'configuration',
    `${path} contains a secret, and other users can read or change the file.`,
    {
      advice: `Run: chmod 600 ${path}`,
    },
  );
}

/**
 * Replaces a file atomically, and creates its folder if necessary; on disk when it resolves. After a failure, the old
 * file is unchanged. Keeps the owner; a new file belongs to the owner of its folder, also if root writes it. Rejects
 * with Node's error.
 */
export async function writeOwnerOnly(path: string, content: string | Uint8Array): Promise<void> {
  const folder = dirname(path);
  makeDirectory(folder);
  // Accessible only to this user; each program uses its own folder.
  const temporary = await mkdtemp(join(folder, '.new-'));
  try {
    const file = join(temporary, basename(path));
    await writeFile(file, content, { mode: 0o600, flush: true });
    await copyOwner(statSync(path, { throwIfNoEntry: false }) ?? statSync(folder), file);
    await rename(file, path);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
  await syncFolder(folder);
}

/** Only root can change the owner, and only root needs to. */
async function copyOwner({ uid, gid }: Stats, file: string): Promise<void> {
  if ((await stat(file)).uid !== uid) await chown(file, uid, gid).catch(() => undefined);
}

/**
 * Creates an empty file if it does not exist, independent of the umask; SQLite creates its other files with the same
 * permissions. Ignores errors: opening the file reports them. Does not open an existing file: closing any descriptor
 * of a file releases all locks of this process on it (POSIX, fcntl), including those of SQLite.
 */
export function createOwnerOnly(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch {}
}

/**
 * Creates the missing folders of a path, owner-only; existing folders stay unchanged. Throws Node's errors. Node's own
 * `recursive` never returns if a parent such as `/proc` fails with ENOENT.
 */
export function makeDirectory(path: string): void {
  const missing: string[] = [];
  // Ends at the root.
  for (let at = resolve(path); !isDirectory(at) && dirname(at) !== at; at = dirname(at)) {
    missing.unshift(at);
  }
  for (const folder of missing) {
    try {
      mkdirSync(folder, { mode: 0o700 });
    } catch (error) {
      // Another program may have created it.
      if (!isDirectory(folder)) throw error;
    }
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** Errors of file systems that cannot sync a folder. */
const unsupported: readonly unknown[] = ['EINVAL', 'ENOTSUP', 'EISDIR', 'EPERM'];

/** Makes created and renamed files survive a power failure, where the file system supports it. Rejects with Node's errors. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path);
  try {
    await folder.sync();
  } catch (error) {
    if (!unsupported.includes(errorCodeOf(error))) throw error;
  } finally {
    await folder.close();
  }
}
