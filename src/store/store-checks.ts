/** Checks of the data directory by `earshot doctor`: permissions, free space, database. */
import type { Stats } from 'node:fs';
import { access, constants, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { errorCodeOf } from '../domain/app-error.ts';
import { type Check, type Finding, failedFinding } from '../domain/finding.ts';
import { sizeText } from '../domain/formats.ts';
import { type DiskSpace, diskLevels } from '../domain/ports.ts';
import { databaseFileName, isWritableByAll } from './engine/database.ts';
import { type DataPlace, diskSpace } from './engine/disk-limit.ts';
import { openStore, openStoreReader } from './store.ts';

const runAsUser = 'Run this command as the user that runs earshot (sudo -u earshot …)';

export interface StoreCheckOptions extends DataPlace {
  nowUs: () => number;
  /** True if a shared log has the notifications, so that only its database is written. */
  isNode?: boolean;
  /** Names of the files with secrets in the data directory. */
  secretFileNames: readonly string[];
  /** Disk space at a path; by default from the file system. */
  space?: (place: DataPlace) => DiskSpace | null;
}

/** Creates the checks. They do not create a missing directory or database. */
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
    const message = `This user has no access to ${place.path}.`;
    return [{ check, state: 'fail', message, advice: `${runAsUser}.` }];
  }
  if (!place.stats.isDirectory()) {
    const advice = 'Set EARSHOT_DATA_DIR to a directory.';
    return [{ check, state: 'fail', message: `${place.path} is not a directory.`, advice }];
  }
  try {
    await access(place.path, constants.W_OK | constants.X_OK);
  } catch (error) {
    const fault = exists ? 'is not writable' : `cannot be created: ${place.path} is not writable`;
    const message = `${dataDir} ${fault} (${errorCodeOf(error)}).`;
    return [
      {
        check,
        state: 'fail',
        message,
        advice: `${runAsUser}, or set EARSHOT_DATA_DIR to another directory.`,
      },
    ];
  }
  if (exists && isWritableByAll(place.stats)) {
    const message = `Every user of this machine can write to ${dataDir}.`;
    return [{ check, state: 'fail', message, advice: `Run: chmod o-w ${dataDir}` }];
  }
  const message = exists
    ? `${dataDir} is writable.`
    : `${dataDir} does not exist yet; it is created on first use.`;
  return [{ check, state: 'pass', message }];
}

/** Fails for secrets that other users may read, and for files that all may change; else only warns for the database. */
async function checkOwnerOnly({ dataDir, secretFileNames }: StoreCheckOptions): Promise<Finding[]> {
  const check = 'owner-only files';
  const open = async (names: readonly string[], bits: number) => {
    const paths = names.map((name) => join(dataDir, name));
    const modes = await Promise.all(paths.map(async (path) => (await statsOf(path))?.mode ?? 0));
    return paths.filter((_path, i) => ((modes[i] ?? 0) & bits) !== 0);
  };
  const databaseFiles = ['', '-wal', '-shm'].map((suffix) => `${databaseFileName}${suffix}`);
  const [secrets, databases] = [
    await open(secretFileNames, 0o077),
    await open(databaseFiles, 0o077),
  ];
  const changeable = await open([...secretFileNames, ...databaseFiles], 0o002);
  const files = [...secrets, ...databases];
  if (files.length === 0) {
    return [{ check, state: 'pass', message: 'Other users cannot read the files of earshot.' }];
  }
  const state = secrets.length > 0 || changeable.length > 0 ? 'fail' : 'warn';
  const more = changeable.length > 0 ? ` Every user can change ${changeable.join(', ')}.` : '';
  const message = `Other users can read ${files.join(', ')}.${more}`;
  return [{ check, state, message, advice: `Run: chmod 600 ${files.join(' ')}` }];
}

async function checkFreeSpace(options: StoreCheckOptions): Promise<Finding[]> {
  const check = 'free space';
  const { dataDir, diskReserveBytes, space = diskSpace } = options;
  const { path } = await nearestExisting(dataDir);
  const found = space({ dataDir: path, diskReserveBytes });
  if (found === null) {
    return [
      { check, state: 'skipped', message: 'The file system does not report its free space.' },
    ];
  }
  const { freeBytes, reserveBytes } = found;
  const { warningBytes, criticalBytes } = diskLevels(found);
  const reserve = reserveBytes === 0 ? '' : ` (disk reserve: ${sizeText(reserveBytes)})`;
  const message = `${sizeText(freeBytes)} free for ${dataDir}${reserve}.`;
  if (freeBytes >= warningBytes) return [{ check, state: 'pass', message }];
  const advice =
    'Free some space, remove old notifications with `earshot prune`, or move the data directory. When only the disk reserve is free, the receiver refuses notifications. The catalogue drops them after three retries.';
  return [{ check, state: freeBytes < criticalBytes ? 'fail' : 'warn', message, advice }];
}

async function checkDatabase({ dataDir, nowUs, isNode }: StoreCheckOptions): Promise<Finding[]> {
  const check = 'database';
  if ((await statsOf(join(dataDir, databaseFileName))) === null) {
    const message = `${dataDir} contains no database yet; \`earshot start\` creates it.`;
    return [{ check, state: 'skipped', message }];
  }
  try {
    // Reads first: opening the file for writing would create missing tables.
    const reader = openStoreReader(dataDir);
    await reader.lastPosition().finally(() => reader.close());
    if (isNode) {
      return [{ check, state: 'pass', message: 'The database can be opened.' }];
    }
    const store = await openStore({ dataDir, nowUs, mustExist: true });
    await store.checkWritable().finally(() => store.close());
    return [{ check, state: 'pass', message: 'The database can be opened and written.' }];
  } catch (error) {
    return [failedFinding(check, error, 'Check the data directory and the disk.')];
  }
}

/** Returns the path or its nearest existing parent; `stats` is null when access is denied. */
async function nearestExisting(path: string): Promise<{ path: string; stats: Stats | null }> {
  const absolute = resolve(path);
  try {
    return { path: absolute, stats: await stat(absolute) };
  } catch (error) {
    const parent = dirname(absolute);
    const isMissing = ['ENOENT', 'ENOTDIR'].includes(errorCodeOf(error)) && parent !== absolute;
    return isMissing ? nearestExisting(parent) : { path: absolute, stats: null };
  }
}

/** Returns null for a missing or inaccessible path: other checks report that. */
async function statsOf(path: string): Promise<Stats | null> {
  return stat(path).catch(() => null);
}
