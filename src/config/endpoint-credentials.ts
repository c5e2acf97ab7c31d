/** The credentials that the receiver accepts: from the variables, else from the data directory. */

import { join } from 'node:path';
import { z } from 'zod';
import { AppError, errorText } from '../domain/app-error.ts';
import { errorCodeOf } from '../domain/error-code.ts';
import { jsonOf } from '../domain/json-of.ts';
import { readOwnerOnly, writeOwnerOnly } from '../domain/owner-only-file.ts';

/**
 * Kept owner-only in the data directory. Several pairs while the catalogue changes to a new one: all
 * are accepted, and the last one is what the catalogue is to be given.
 */
export const credentialsFileName = 'endpoint-credentials.json';

const credentialsFile = z.strictObject({
  pairs: z
    .array(z.strictObject({ username: z.string().regex(/^[^:]+$/), password: z.string().min(1) }))
    .min(1),
});

export type CredentialPairs = z.infer<typeof credentialsFile>['pairs'];

export interface EndpointCredentials {
  source: 'variables' | 'file' | 'none';
  /** Empty for `none`. */
  pairs: CredentialPairs;
}

/** What is wrong is added to `problems`; that there are none at all is for the caller to judge. */
export function readEndpointCredentials(
  values: {
    endpointUsername: string | undefined;
    endpointPassword: string | undefined;
    dataDir: string;
  },
  problems: string[],
): EndpointCredentials {
  const none = { source: 'none', pairs: [] } as const;
  const { endpointUsername: username, endpointPassword: password } = values;
  if (username !== undefined && password !== undefined) {
    return { source: 'variables', pairs: [{ username, password }] };
  }
  // What is wrong with one of them has been said; the other one alone is no second problem.
  if (problems.some((problem) => problem.includes('EARSHOT_ENDPOINT_')))
    return { ...none, pairs: [] };
  if (username !== undefined || password !== undefined) {
    problems.push(
      'EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD belong together: set both.',
    );
    return { ...none, pairs: [] };
  }
  try {
    const pairs = readCredentialsFile(values.dataDir);
    return pairs === null ? { ...none, pairs: [] } : { source: 'file', pairs };
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    problems.push(errorText(error));
    return { ...none, pairs: [] };
  }
}

/**
 * The pairs in the data directory; null without a file. Throws `configuration` for one that is not ours
 * alone, cannot be read, or holds something else.
 */
export function readCredentialsFile(dataDir: string): CredentialPairs | null {
  const path = join(dataDir, credentialsFileName);
  const text = readOwnerOnly(path);
  if (text === null) return null;
  const parsed = credentialsFile.safeParse(jsonOf(text));
  if (parsed.success) return parsed.data.pairs;
  throw new AppError(
    'configuration',
    `${path} is not as earshot wrote it: {"pairs":[{"username":…,"password":…}]}.`,
  );
}

/** Replaces the file in one step, and makes its folder if need be; on disk when it resolves. Rejects with `configuration`. */
export async function writeCredentialsFile(dataDir: string, pairs: CredentialPairs): Promise<void> {
  const path = join(dataDir, credentialsFileName);
  try {
    await writeOwnerOnly(path, `${JSON.stringify({ pairs }, null, 2)}\n`);
  } catch (cause) {
    throw new AppError(
      'configuration',
      `${path} cannot be written (${errorCodeOf(cause)}). Run this as the user of the receiver, and look at the disk.`,
      { cause },
    );
  }
}
