/** Makes a backup, and records its result. */

import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { credentialsFileName } from '../config/endpoint-credentials.ts';
import { AppError, errorText } from '../domain/app-error.ts';
import { formatDateUs } from '../domain/dates.ts';
import type { BackupRun } from '../domain/ports.ts';
import { readOwnerOnly } from '../host/files.ts';
import type { BackupFile } from '../store/backups/backup-format.ts';
import type { BackupProgress } from '../store/backups/backup-target.ts';
import { type BackupOptions, type MadeBackup, makeBackup } from '../store/backups/make-backup.ts';
import { acmeFolderName, acmeKeptFiles } from '../tls/acme-state.ts';
import type { Io } from './io.ts';
import { createProgressLine, whole } from './output.ts';

export interface RecordedBackup extends MadeBackup {
  run: BackupRun;
  /** Paths below the data directory. */
  files: readonly string[];
}

type Options = Omit<BackupOptions, 'about' | 'files'> & {
  /** Version of earshot. */
  version: string;
  withSecrets: boolean;
};

/**
 * Makes a backup and records its result. Rejects as `makeBackup` does; records failures, too, except wrong usage,
 * conflicts and cancellation. `record` must not reject.
 */
export async function makeRecordedBackup(
  { version, withSecrets, ...options }: Options,
  context: { nowUs: () => number; record: (run: BackupRun) => Promise<void> },
): Promise<RecordedBackup> {
  const { file, place } = options;
  const startedAtUs = context.nowUs();
  const recordRun = async (end: Pick<BackupRun, 'bytes' | 'lastPosition' | 'error'>) => {
    const run: BackupRun = { file, startedAtUs, endedAtUs: context.nowUs(), ...end };
    await context.record(run);
    return run;
  };
  try {
    const files = withSecrets ? readKeptFiles(place.dataDir) : [];
    const about = { madeAtUs: startedAtUs, version };
    const made = await makeBackup({ ...options, about, files });
    const { bytes, lastPosition } = made;
    const run = await recordRun({ bytes, lastPosition, error: null });
    return { ...made, run, files: files.map(({ path }) => path) };
  } catch (error) {
    const isOurs = error instanceof AppError && error.code !== 'internal';
    const isIgnored = isOurs && ['usage', 'conflict', 'cancelled'].includes(error.code);
    const reason = isOurs ? errorText(error) : 'Internal error.';
    if (!isIgnored) await recordRun({ bytes: null, lastPosition: null, error: reason });
    throw error;
  }
}

/** `earshot-20261121T120000Z.db`: sorting by name sorts by time. */
const ownName = /^earshot-\d{8}T\d{6}Z\.db$/;

export function backupName(madeAtUs: number): string {
  return `earshot-${compactTime(madeAtUs)}.db`;
}

/** Example: `20261121T120000Z`. */
export function compactTime(us: number): string {
  return `${formatDateUs(us).slice(0, 19).replaceAll(/[-:]/g, '')}Z`;
}

/** Keeps the newest `keep` backups, always including `newest`. Returns the names of the removed ones. */
export function removeOldBackups(
  folder: string,
  { keep, newest }: { keep: number; newest: string },
): string[] {
  const old = readdirSync(folder)
    .filter((name) => ownName.test(name) && name !== newest)
    .toSorted()
    .toReversed()
    .slice(keep - 1);
  for (const name of old) rmSync(join(folder, name), { force: true });
  return old;
}

/**
 * True for a file that belongs into a backup: the endpoint credentials, which the catalogue has; the certificate with
 * its key, and the ACME account. The session of the catalogue account is left out: it expires
 * within an hour.
 */
export function isKeptFile(path: string): boolean {
  return path === credentialsFileName || acmeKeptFiles.includes(path);
}

/** Reads the existing files. Throws `configuration` for a file that is unreadable, or readable by other users. */
function readKeptFiles(dataDir: string): BackupFile[] {
  const acmeFolder = join(dataDir, acmeFolderName);
  const names = existsSync(acmeFolder) ? readdirSync(acmeFolder).toSorted() : [];
  const paths = [credentialsFileName, ...names.map((name) => `${acmeFolderName}/${name}`)];
  return paths.filter(isKeptFile).flatMap((path) => {
    const text = readOwnerOnly(join(dataDir, path));
    return text === null ? [] : [{ path, bytes: Buffer.from(text) }];
  });
}

const phaseTexts: Record<BackupProgress['phase'], string> = {
  copying: 'Copying',
  comparing: 'Comparing',
  checking: 'Checking the structure',
  sealing: 'Sealing',
  verifying: 'Verifying',
};

export function createBackupProgress({ stderr }: Pick<Io, 'stderr'>) {
  const line = createProgressLine(stderr);
  const show = ({ phase, done, total }: BackupProgress) => {
    const text = phaseTexts[phase];
    if (total !== null) line.show(`${text}: ${Math.floor((done / total) * 100)} %`);
    else line.show(done === 0 ? text : `${text}: ${whole(done)} rows`);
  };
  return { show, done: line.clear };
}
