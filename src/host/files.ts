/** Files that hold secrets of earshot: nobody but their owner may open them, and they are replaced in one step. */
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
import { AppError, errorCodeOf } from '../domain/app-error.ts';

/**
 * What the file holds; null without one. Throws `configuration` for one that others may read or change: what they
 * could read they may have noted, and what they could change is not ours. A link is followed: what counts is
 * the file at its end.
 */
export function readOwnerOnly(path: string): string | null {
  let file: number | undefined;
  try {
    // A pipe would otherwise wait for somebody to write into it.
    file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    // Of what was opened, not of the path: it may be another file by now.
    refuseOpen(path, fstatSync(file));
    return readFileSync(file, 'utf8');
  } catch (cause) {
    if (['ENOENT', 'ENOTDIR'].includes(errorCodeOf(cause))) return null;
    if (cause instanceof AppError) throw cause;
    throw new AppError('configuration', `${path} cannot be read (${errorCodeOf(cause)}).`, {
      advice: 'Give it to the user of the receiver, and run commands as that user.',
      cause,
    });
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

function refuseOpen(path: string, { mode }: Stats): void {
  if ((mode & 0o077) === 0) return;
  throw new AppError('configuration', `${path} holds a secret, and others may read or change it.`, {
    advice: `Run: chmod 600 ${path}`,
  });
}

/**
 * Replaces the file, and makes its folder if need be; on disk when it resolves. Whoever fails in the midst leaves
 * the old file whole. Its owner stays; a new one belongs to the owner of its folder, also when root writes it.
 * Rejects with Node's error.
 */
export async function writeOwnerOnly(path: string, content: string | Uint8Array): Promise<void> {
  const folder = dirname(path);
  makeDirectory(folder);
  // Nobody else can enter it, and no two programs write to the same file.
  const beside = await mkdtemp(join(folder, '.new-'));
  try {
    const file = join(beside, basename(path));
    await writeFile(file, content, { mode: 0o600, flush: true });
    await giveTo(statSync(path, { throwIfNoEntry: false }) ?? statSync(folder), file);
    await rename(file, path);
  } finally {
    await rm(beside, { recursive: true, force: true });
  }
  await syncFolder(folder);
}

/** Only root can, and only root has to. */
async function giveTo({ uid, gid }: Stats, file: string): Promise<void> {
  if ((await stat(file)).uid !== uid) await chown(file, uid, gid).catch(() => undefined);
}

/**
 * Makes an empty file where there is none, whatever the umask is; SQLite gives those that it puts beside it the same
 * rights. Where it cannot be made, whoever opens it says why. One that is there is not opened: closing any
 * descriptor of a file drops all locks that this process holds on it (POSIX, fcntl), those of SQLite included.
 */
export function createOwnerOnly(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600));
  } catch {}
}

/**
 * Makes what is missing of the path, owner-only; a folder that is there is left as it is. Throws Node's errors.
 * Node's own `recursive` never returns where a folder exists in which none can be made and which says ENOENT to
 * it, as `/proc` does.
 */
export function makeDirectory(path: string): void {
  const missing: string[] = [];
  // Ends at the root, which is there.
  for (let at = resolve(path); !isDirectory(at) && dirname(at) !== at; at = dirname(at)) {
    missing.unshift(at);
  }
  for (const folder of missing) {
    try {
      mkdirSync(folder, { mode: 0o700 });
    } catch (error) {
      // Another program may have made it meanwhile.
      if (!isDirectory(folder)) throw error;
    }
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}

/** Without it a power cut may bring an old name back, or take a new one. Some file systems have no such thing. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path);
  await folder.sync().catch(() => undefined);
  await folder.close();
}
