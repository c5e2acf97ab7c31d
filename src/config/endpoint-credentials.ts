/** The credentials that the receiver accepts: from the variables, else from the data directory. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { Environment } from './read-variables.ts';

/** Kept owner-only in the data directory; several pairs while the catalogue changes to a new one. */
export const credentialsFileName = 'endpoint-credentials.json';

const credentialsFile = z.strictObject({
  pairs: z
    .array(z.strictObject({ username: z.string().regex(/^[^:]+$/), password: z.string().min(1) }))
    .min(1),
});

export type EndpointCredentials = z.infer<typeof credentialsFile>['pairs'];

/** Fails closed: without credentials the result is empty and a problem says what to do. */
export function readEndpointCredentials(
  values: {
    endpointUsername: string | undefined;
    endpointPassword: string | undefined;
    dataDir: string;
  },
  readFile: Environment['readFile'],
  problems: string[],
): EndpointCredentials {
  const { endpointUsername: username, endpointPassword: password } = values;
  if (username !== undefined && password !== undefined) return [{ username, password }];
  // What is wrong with one of them has been said; the other one alone is no second problem.
  if (problems.some((problem) => problem.includes('EARSHOT_ENDPOINT_'))) return [];
  if (username !== undefined || password !== undefined) {
    problems.push(
      'EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD belong together: set both.',
    );
    return [];
  }
  const path = join(values.dataDir, credentialsFileName);
  const stats = statsOf(path);
  if (stats === undefined) {
    problems.push(
      'There are no endpoint credentials, so nobody could be let in. Set EARSHOT_ENDPOINT_USERNAME and EARSHOT_ENDPOINT_PASSWORD.',
    );
    return [];
  }
  if ((stats.mode & 0o077) !== 0) {
    problems.push(`${path} can be read by others. Run: chmod 600 ${path}`);
    return [];
  }
  const parsed = credentialsFile.safeParse(jsonOf(path, readFile));
  if (parsed.success) return parsed.data.pairs;
  problems.push(`${path} is not as earshot wrote it: {"pairs":[{"username":…,"password":…}]}.`);
  return [];
}

function statsOf(path: string) {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    // A directory on the way that cannot be entered: nothing there can be used.
    return undefined;
  }
}

function jsonOf(path: string, readFile: Environment['readFile']): unknown {
  try {
    return JSON.parse(readFile(path));
  } catch {
    return undefined;
  }
}
