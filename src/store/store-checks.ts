/** Checks of the data directory by `earshot doctor`: permissions and database. */
import { access, constants, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { errorCodeOf } from '../core/terms/app-error.ts';
import { type FindingCheck, failedFinding, finding } from '../core/terms/evaluation.ts';
import { faultError } from '../core/terms/faults.ts';
import { databaseFileName, isWritableByAll } from './engine/database.ts';
import { openStore, openStoreReader } from './store.ts';

/** Creates the checks. They do not create a missing directory or database. */
export function createStoreChecks(dataDir: string): Record<'directory' | 'database', FindingCheck> {
  const directory = 'data directory';
  return {
    directory: async () => {
      const path = await nearestExisting(dataDir);
      const exists = path === resolve(dataDir);
      try {
        // With the slash, a file is refused.
        await access(`${path}/`, constants.W_OK | constants.X_OK);
        if (!exists) return [finding(directory, 'ok', `${dataDir} is created on first use.`)];
        if (!isWritableByAll(await stat(path)))
          return [finding(directory, 'ok', `${dataDir} is writable.`)];
        const text = `Every user of this machine can write to ${dataDir}.`;
        return [finding(directory, 'critical', text, `Run: chmod o-w ${dataDir}`)];
      } catch (cause) {
        const what = `${dataDir} (EARSHOT_DATA_DIR) cannot be written, because of ${path}`;
        return [failedFinding(directory, faultError('configuration', what, cause), '')];
      }
    },
    database: async () => {
      const check = 'database';
      if ((await stat(join(dataDir, databaseFileName)).catch(() => null)) === null)
        return [finding(check, 'unknown', 'There is no database yet; `earshot start` creates it.')];
      try {
        // Reads first: opening the file for writing would create missing tables.
        const reader = openStoreReader(dataDir, []);
        const nodeId = await reader.nodeId().finally(() => reader.close());
        // A shared log has the notifications, so that only its database is written.
        if (nodeId !== null) return [finding(check, 'ok', 'The database can be opened.')];
        const store = await openStore({ dataDir, tables: [], mustExist: true });
        await store.checkWritable().finally(() => store.close());
        return [finding(check, 'ok', 'The database can be opened and written.')];
      } catch (error) {
        return [failedFinding(check, error, 'Check the data directory and the disk.')];
      }
    },
  };
}

/** Returns the path or its nearest existing parent, or the path that cannot be accessed. */
export async function nearestExisting(path: string): Promise<string> {
  const absolute = resolve(path);
  try {
    await stat(absolute);
    return absolute;
  } catch (error) {
    const parent = dirname(absolute);
    const isMissing = ['ENOENT', 'ENOTDIR'].includes(errorCodeOf(error)) && parent !== absolute;
    return isMissing ? nearestExisting(parent) : absolute;
  }
}
