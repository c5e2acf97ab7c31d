/** The doctor's checks of the data directory: its rights, its space, its database. */
import type { Stats } from 'node:fs';
import { access, constants, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { errorCodeOf } from '../domain/app-error.ts';
import { type Check, type Finding, failedFinding } from '../domain/finding.ts';
import { type DiskSpace, diskLevels } from '../domain/ports.ts';
import { sizeText } from '../domain/text.ts';
import { databaseFileName, isWritableByAll } from './engine/database.ts';
import { type DataPlace, diskSpace } from './engine/disk-limit.ts';
import { openStore, openStoreReader } from './store.ts';

const runAsUser = 'Run this as the user of the receiver (sudo -u earshot …)';

export interface StoreCheckOptions extends DataPlace {
  nowUs: () => number;
  /** Names of files in the directory that hold secrets. */
  secretFileNames: readonly string[];
  /** The room where a path is; the file system's own answer unless told. */
  room?: (place: DataPlace) => DiskSpace | null;
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
  if (exists && isWritableByAll(place.stats)) {
    const message = `Every user of this machine may write to ${dataDir}.`;
    return [{ check, state: 'fail', message, advice: `Run: chmod o-w ${dataDir}` }];
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
  const { dataDir, diskReserveBytes, room = diskSpace } = options;
  const { path } = await nearestExisting(dataDir);
  const found = room({ dataDir: path, diskReserveBytes });
  if (found === null) {
    return [{ check, state: 'skipped', message: 'The file system does not tell.' }];
  }
  const { freeBytes, reserveBytes } = found;
  const { warningBytes, criticalBytes } = diskLevels(found);
  const kept = reserveBytes === 0 ? '' : `, of which ${sizeText(reserveBytes)} are kept`;
  const message = `${sizeText(freeBytes)} free for ${dataDir}${kept}.`;
  if (freeBytes >= warningBytes) return [{ check, state: 'pass', message }];
  const advice =
    'Free some space, remove old notifications with `earshot prune`, or move the data directory: when no more than what is kept is free, notifications are refused, and lost after a few tries.';
  return [{ check, state: freeBytes < criticalBytes ? 'fail' : 'warn', message, advice }];
}

async function checkDatabase({ dataDir, nowUs }: StoreCheckOptions): Promise<Finding[]> {
  const check = 'database';
  if ((await statsOf(join(dataDir, databaseFileName))) === null) {
    const message = `There is none in ${dataDir} yet; \`earshot start\` creates it.`;
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
