/** Makes a backup, and remembers what came of it. */

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
import { acmeFolderName } from '../tls/acme/state.ts';
import type { Io } from './io.ts';
import { createProgressLine, whole } from './output.ts';

export interface RecordedBackup extends MadeBackup {
  run: BackupRun;
  /** Paths below the data directory. */
  files: readonly string[];
}

type Options = Omit<BackupOptions, 'about' | 'files'> & {
  /** Of earshot. */
  version: string;
  withSecrets: boolean;
};

/**
 * Rejects as `makeBackup` does, and remembers that as well, but for what was asked wrongly, or ended by the user.
 * `remember` must not reject.
 */
export async function makeRecordedBackup(
  { version, withSecrets, ...options }: Options,
  context: { nowUs: () => number; remember: (run: BackupRun) => Promise<void> },
): Promise<RecordedBackup> {
  const { file, place } = options;
  const startedAtUs = context.nowUs();
  const remembered = async (end: Pick<BackupRun, 'bytes' | 'lastPosition' | 'error'>) => {
    const run: BackupRun = { file, startedAtUs, endedAtUs: context.nowUs(), ...end };
    await context.remember(run);
    return run;
  };
  try {
    const files = withSecrets ? readKeptFiles(place.dataDir) : [];
    const about = { madeAtUs: startedAtUs, version };
    const made = await makeBackup({ ...options, about, files });
    const { bytes, lastPosition } = made;
    const run = await remembered({ bytes, lastPosition, error: null });
    return { ...made, run, files: files.map(({ path }) => path) };
  } catch (error) {
    const isOurs = error instanceof AppError && error.code !== 'internal';
    const isPassedOver = isOurs && ['usage', 'conflict', 'cancelled'].includes(error.code);
    const reason = isOurs ? errorText(error) : 'The program failed in a way it should not.';
    if (!isPassedOver) await remembered({ bytes: null, lastPosition: null, error: reason });
    throw error;
  }
}

/** `earshot-20261121T120000Z.db`: by name is by time. */
const ownName = /^earshot-\d{8}T\d{6}Z\.db$/;

export function backupName(madeAtUs: number): string {
  return `earshot-${compactTime(madeAtUs)}.db`;
}

/** Such as `20261121T120000Z`. */
export function compactTime(us: number): string {
  return `${formatDateUs(us).slice(0, 19).replaceAll(/[-:]/g, '')}Z`;
}

/** Keeps a number of backups, `newest` among them whatever its name. Returns the names of those that it removed. */
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

const inAcmeFolder = new RegExp(`^${acmeFolderName}/[a-z0-9][a-z0-9-]*\\.json$`);

/**
 * The endpoint credentials, which the catalogue has; the certificate with its key and the accounts at authorities, which
 * are limited there. The account's session is none of them: it ends within the hour, and a new login makes another.
 */
export function isKeptFile(path: string): boolean {
  return path === credentialsFileName || inAcmeFolder.test(path);
}

/** Those that are there. Throws `configuration` for one that others may read, or that cannot be read. */
function readKeptFiles(dataDir: string): BackupFile[] {
  const acmeFolder = join(dataDir, acmeFolderName);
  const names = existsSync(acmeFolder) ? readdirSync(acmeFolder).toSorted() : [];
  const paths = [credentialsFileName, ...names.map((name) => `${acmeFolderName}/${name}`)];
  return paths.filter(isKeptFile).flatMap((path) => {
    const text = readOwnerOnly(join(dataDir, path));
    return text === null ? [] : [{ path, bytes: Buffer.from(text) }];
  });
}

const words: Record<BackupProgress['phase'], string> = {
  copying: 'Copying',
  comparing: 'Comparing',
  checking: 'Looking at the structure',
  sealing: 'Sealing',
  verifying: 'Verifying',
};

export function createBackupProgress({ stderr }: Pick<Io, 'stderr'>) {
  const line = createProgressLine(stderr);
  const show = ({ phase, done, total }: BackupProgress) => {
    if (total !== null) line.show(`${words[phase]}: ${Math.floor((done / total) * 100)} %`);
    else line.show(done === 0 ? words[phase] : `${words[phase]}: ${whole(done)} rows`);
  };
  return { show, done: line.clear };
}
