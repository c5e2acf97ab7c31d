/** The files of the data directory that cannot be made again: a backup has them, so that it alone is enough. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { credentialsFileName } from '../../config/endpoint-credentials.ts';
import { errorCodeOf } from '../../domain/error-code.ts';
import { readOwnerOnly } from '../../domain/owner-only-file.ts';
import type { KeptFile } from '../../store/backups/backup-format.ts';
import { acmeFolderName } from '../../tls/acme/acme-folder.ts';

const inAcmeFolder = new RegExp(`^${acmeFolderName}/[a-z0-9][a-z0-9-]*\\.json$`);

/**
 * The endpoint credentials, which the catalogue has; the certificate with its key and the accounts at authorities, which
 * are limited there. The account's session is none of them: it ends within the hour, and a new login makes another.
 */
export function isKeptFile(path: string): boolean {
  return path === credentialsFileName || inAcmeFolder.test(path);
}

/** Those that are there. Throws `configuration` for one that others may read, or that cannot be read. */
export function readKeptFiles(dataDir: string): KeptFile[] {
  const paths = [
    credentialsFileName,
    ...namesIn(dataDir).map((name) => `${acmeFolderName}/${name}`),
  ];
  return paths.filter(isKeptFile).flatMap((path) => {
    const text = readOwnerOnly(join(dataDir, path));
    return text === null ? [] : [{ path, bytes: Buffer.from(text) }];
  });
}

function namesIn(dataDir: string): string[] {
  try {
    return readdirSync(join(dataDir, acmeFolderName)).toSorted();
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
}
