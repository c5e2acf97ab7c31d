/** Notices that the credentials file has changed, so that a rotation reaches a receiver that runs. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import {
  type CredentialPairs,
  credentialsFileName,
  readCredentialsFile,
} from './endpoint-credentials.ts';

/** How often the file is looked at. */
const watchIntervalMs = 500;

/**
 * Looks at the file again and again. One that is gone or cannot be used is reported once, and the
 * pairs in use stay.
 */
export function watchCredentialsFile(options: {
  dataDir: string;
  onChange: (pairs: CredentialPairs) => void;
  onProblem: (reason: string) => void;
}): { stop(): void } {
  const { dataDir, onChange, onProblem } = options;
  let seen = markOf(dataDir);
  const look = () => {
    const mark = markOf(dataDir);
    if (mark === seen) return;
    seen = mark;
    try {
      const pairs = readCredentialsFile(dataDir);
      if (pairs === null) onProblem('the file is gone');
      else onChange(pairs);
    } catch (error) {
      onProblem(error instanceof Error ? error.message : String(error));
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
