/** Notices that the credentials file has changed, so that a rotation reaches a receiver that runs. */

import { statSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { errorText } from '../domain/app-error.ts';
import {
  type CredentialPairs,
  credentialsFileName,
  readCredentialsFile,
} from './endpoint-credentials.ts';

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
