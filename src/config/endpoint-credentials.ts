/** The credentials that the receiver accepts: from the variables, else from the data directory. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { AppError, errorCodeOf, errorText } from '../domain/app-error.ts';
import { jsonOf } from '../domain/text.ts';
import { readOwnerOnly, writeOwnerOnly } from '../host/files.ts';
import type { Reader } from './load.ts';

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

/** Stops with a problem where the credentials cannot be read; that there are none is for the section to judge. */
export function readEndpointCredentials({
  value,
  failed,
  report,
  stop,
}: Reader): EndpointCredentials {
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

/** How often the file is looked at. */
const watchIntervalMs = 500;

/**
 * Looks at the file again and again, and tells when it holds other pairs than the `current` ones. One
 * that is gone or cannot be used is reported once, and the pairs in use stay.
 */
export function watchCredentialsFile(options: {
  dataDir: string;
  current: CredentialPairs;
  onChange: (pairs: CredentialPairs) => void;
  onProblem: (reason: string) => void;
}): { stop(): void } {
  const { dataDir, onChange, onProblem } = options;
  let { current } = options;
  // Nothing yet: since the current pairs were read, the file may have changed already.
  let seen: string | undefined;
  const look = () => {
    const mark = markOf(dataDir);
    if (mark === seen) return;
    seen = mark;
    try {
      const pairs = readCredentialsFile(dataDir);
      if (pairs === null) return onProblem('the file is gone');
      if (isDeepStrictEqual(pairs, current)) return;
      current = pairs;
      onChange(pairs);
    } catch (error) {
      onProblem(errorText(error));
    }
  };
  const timer = setInterval(look, watchIntervalMs);
  timer.unref();
  return { stop: () => clearInterval(timer) };
}

/** Differs when the file was replaced, written or made readable for others. */
function markOf(dataDir: string): string {
  try {
    const stats = statSync(join(dataDir, credentialsFileName), { throwIfNoEntry: false });
    return stats === undefined ? '' : `${stats.ino} ${stats.mtimeMs} ${stats.size} ${stats.mode}`;
  } catch {
    return 'unreadable';
  }
}
