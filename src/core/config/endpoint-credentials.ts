/** Credentials that the receiver accepts: from the variables, or from the data directory. */

import { join } from 'node:path';
import { z } from 'zod';
import { readOwnerOnly, writeOwnerOnly } from '../host/files.ts';
import { AppError } from '../terms/app-error.ts';
import { faultError } from '../terms/faults.ts';
import { jsonOf } from '../terms/text.ts';
import type { Reader } from './load.ts';
import { endpointPassword, passwordLengthMin, type variables } from './variables.ts';

/**
 * File in the data directory, readable only by its owner. It has several pairs during a rotation: all are accepted,
 * and the last one is for the catalogue.
 */
export const credentialsFileName = 'endpoint-credentials.json';

const credentialsFile = z.strictObject({
  pairs: z
    .array(z.strictObject({ username: z.string().regex(/^[^:]+$/), password: endpointPassword }))
    .min(1),
});

export type CredentialPairs = z.infer<typeof credentialsFile>['pairs'];

export interface EndpointCredentials {
  source: 'variables' | 'file' | 'none';
  /** Empty for `none`. */
  pairs: CredentialPairs;
}

/**
 * Reads the credentials. Stops with a problem if they cannot be read; the caller decides whether they are required.
 */
export function readEndpointCredentials({
  value,
  failed,
  report,
  stop,
}: Reader<typeof variables>): EndpointCredentials {
  const username = value('EARSHOT_ENDPOINT_USERNAME');
  const password = value('EARSHOT_ENDPOINT_PASSWORD');
  if (username !== undefined && password !== undefined)
    return { source: 'variables', pairs: [{ username, password }] };
  if (failed('EARSHOT_ENDPOINT_USERNAME', 'EARSHOT_ENDPOINT_PASSWORD')) return stop();
  if (username !== undefined || password !== undefined) {
    report(
      username === undefined ? 'EARSHOT_ENDPOINT_USERNAME' : 'EARSHOT_ENDPOINT_PASSWORD',
      'EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD belong together: set both.',
    );
    return stop();
  }
  try {
    const pairs = readCredentialsFile(value('EARSHOT_DATA_DIR'));
    return pairs === null ? { source: 'none', pairs: [] } : { source: 'file', pairs };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    report(null, error.message, error.advice);
    return stop();
  }
}

/**
 * Returns the pairs in the data directory; null without a file. Throws `configuration` when the file belongs to or is
 * open to others, cannot be read, or is invalid.
 */
export function readCredentialsFile(dataDir: string): CredentialPairs | null {
  const path = join(dataDir, credentialsFileName);
  const text = readOwnerOnly(path);
  if (text === null) return null;
  const parsed = credentialsFile.safeParse(jsonOf(text));
  if (parsed.success) return parsed.data.pairs;
  throw new AppError(
    'configuration',
    `${path} is invalid. Expected: {"pairs":[{"username":…,"password":…}]}, with passwords of at least ${passwordLengthMin} characters.`,
  );
}

/**
 * Replaces the file atomically and creates its directory if needed; on disk when it resolves. Rejects with
 * `configuration`.
 */
export async function writeCredentialsFile(dataDir: string, pairs: CredentialPairs): Promise<void> {
  const path = join(dataDir, credentialsFileName);
  try {
    await writeOwnerOnly(path, `${JSON.stringify({ pairs }, null, 2)}\n`);
  } catch (cause) {
    throw faultError('configuration', `${path} cannot be written`, cause);
  }
}
