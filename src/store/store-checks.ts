/** The doctor's checks of the data directory: its rights, its space, its database. */
import type { Stats } from 'node:fs';
import { access, constants, stat, statfs } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { errorCodeOf } from '../domain/error-code.ts';
import { failedFinding } from '../domain/failed-finding.ts';
import type { Check, Finding } from '../domain/finding.ts';
import { databaseFileName } from './database.ts';
import { openStore, openStoreReader } from './store.ts';

/** Below the first the user is warned, below the second the check fails. */
const freeBytesWarn = 2 ** 30;
const freeBytesFail = 100 * 2 ** 20;

const runAsUser = 'Run this as the user of the receiver (sudo -u earshot …)';

export interface StoreCheckOptions {
  dataDir: string;
  nowUs: () => number;
  /** Names of files in the directory that hold secrets. */
  secretFileNames: readonly string[];
  /** Bytes that this user may still write where a path is; the file system's own answer unless told. */
  freeBytes?: (path: string) => Promise<number>;
}

/** Nothing is made by looking: a directory or database that is not there yet is none afterwards. */
export function createStoreChecks(
  options: StoreCheckOptions,
): Record<'directory' | 'ownerOnly' | 'freeSpace' | 'database', Check> {
  return {
    directory: () => checkDirectory(options.dataDir),
    ownerOnly: () => checkOwnerOnly(options),
    freeSpace: () => checkFreeSpace(options),
    database: () => checkDatabase(options),
  };
}

async function checkDirectory(dataDir: string): Promise<Finding[]> {
  const check = 'data directory';
  const place = await nearestExisting(dataDir);
  const exists = place.path === resolve(dataDir);
  if (place.stats === null) {
    const message = `${place.path} cannot be entered by this user.`;
    return [{ check, state: 'fail', message, advice: `${runAsUser}.` }];
  }
  if (!place.stats.isDirectory()) {
    const advice = 'Name a directory in EARSHOT_DATA_DIR.';
    return [{ check, state: 'fail', message: `${place.path} is not a directory.`, advice }];
  }
  try {
    await access(place.path, constants.W_OK | constants.X_OK);
  } catch (error) {
    const what = exists ? 'cannot be written' : `cannot be made: ${place.path} cannot be written`;
    const message = `${dataDir} ${what} (${errorCodeOf(error)}).`;
    return [
      {
        check,
        state: 'fail',
        message,
        advice: `${runAsUser}, or name another one in EARSHOT_DATA_DIR.`,
      },
    ];
  }
  const message = exists
    ? `${dataDir} can be written.`
    : `${dataDir} is not there yet; it is made when it is first needed.`;
  return [{ check, state: 'pass', message }];
}

/** Secrets that others may read fail; the database, which holds none, only warns. */
async function checkOwnerOnly({ dataDir, secretFileNames }: StoreCheckOptions): Promise<Finding[]> {
  const check = 'owner-only files';
  const open = async (names: readonly string[]) => {
    const paths = names.map((name) => join(dataDir, name));
    const modes = await Promise.all(paths.map(async (path) => (await statsOf(path))?.mode ?? 0));
    return paths.filter((_path, i) => ((modes[i] ?? 0) & 0o077) !== 0);
  };
  const databaseFiles = ['', '-wal', '-shm'].map((suffix) => `${databaseFileName}${suffix}`);
  const [secrets, databases] = [await open(secretFileNames), await open(databaseFiles)];
  const files = [...secrets, ...databases];
  if (files.length === 0) {
    return [{ check, state: 'pass', message: 'No file of earshot can be read by others.' }];
  }
  const state = secrets.length > 0 ? 'fail' : 'warn';
  const message = `Others may read ${files.join(', ')}.`;
  return [{ check, state, message, advice: `Run: chmod 600 ${files.join(' ')}` }];
}

async function checkFreeSpace(options: StoreCheckOptions): Promise<Finding[]> {
  const check = 'free space';
  const { dataDir, freeBytes = freeBytesOf } = options;
  const { path } = await nearestExisting(dataDir);
  const bytes = await freeBytes(path).catch(() => null);
  if (bytes === null) {
    return [{ check, state: 'skipped', message: 'The file system does not tell.' }];
  }
  const message = `${inUnits(bytes)} free for ${dataDir}.`;
  if (bytes >= freeBytesWarn) return [{ check, state: 'pass', message }];
  const advice =
    'Free some space, or move the data directory: on a full disk notifications are refused, and lost after a few tries.';
  return [{ check, state: bytes < freeBytesFail ? 'fail' : 'warn', message, advice }];
}

async function checkDatabase({ dataDir, nowUs }: StoreCheckOptions): Promise<Finding[]> {
  const check = 'database';
  if ((await statsOf(join(dataDir, databaseFileName))) === null) {
    const message = `There is none in ${dataDir} yet; \`npm start\` makes it.`;
    return [{ check, state: 'skipped', message }];
  }
  try {
    // Reading comes first: it refuses a file of an older version, which writing would bring up to
    // date under a receiver that is still running.
    const reader = openStoreReader(dataDir);
    await reader.lastPosition().finally(() => reader.close());
    const store = await openStore({ dataDir, nowUs, mustExist: true });
    await store.checkWritable().finally(() => store.close());
    return [{ check, state: 'pass', message: 'It opens, and a commit reaches the disk.' }];
  } catch (error) {
    return [failedFinding(check, error, 'Look at the data directory and at the disk.')];
  }
}

/** The path itself, or what of it there is; `stats` null where the way is barred. */
async function nearestExisting(path: string): Promise<{ path: string; stats: Stats | null }> {
  const absolute = resolve(path);
  try {
    return { path: absolute, stats: await stat(absolute) };
  } catch (error) {
    const parent = dirname(absolute);
    const goesOn = ['ENOENT', 'ENOTDIR'].includes(errorCodeOf(error)) && parent !== absolute;
    return goesOn ? nearestExisting(parent) : { path: absolute, stats: null };
  }
}

/** Null for what is not there, or cannot be looked at: other checks tell of that. */
async function statsOf(path: string): Promise<Stats | null> {
  return stat(path).catch(() => null);
}

async function freeBytesOf(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}

function inUnits(bytes: number): string {
  return bytes >= 2 ** 30
    ? `${(bytes / 2 ** 30).toFixed(1)} GiB`
    : `${Math.floor(bytes / 2 ** 20)} MiB`;
}
