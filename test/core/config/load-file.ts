/**
 * Loads `earshot.config.ts` in a separate process, because a test runner treats TypeScript and
 * packages differently.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { subscriptionsFileName } from '../../../src/core/config/subscriptions-file.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import type { LoadedFile } from './load-file-child.ts';

// It ends with the test's process, which closes its channel.
const child = fork(join(import.meta.dirname, 'load-file-child.ts'), { execArgv: [] });

/** The results of all readers of the folder's file. */
export async function loadFolder(folder: string): Promise<LoadedFile> {
  const answered = once(child, 'message', { signal: AbortSignal.timeout(10_000) });
  child.send(folder);
  const [loaded] = await answered;
  return loaded;
}

export function writeConfig(folder: string, text: string): string {
  const path = join(folder, subscriptionsFileName);
  writeFileSync(path, text);
  return path;
}

/** Loads a file with this text, from a new folder by default. */
export async function loadText(
  text: string,
  folder = temporaryDirectory(),
): Promise<LoadedFile & { path: string }> {
  const path = writeConfig(folder, text);
  return { ...(await loadFolder(folder)), path };
}

export function exporting(value: object): string {
  return `export default ${JSON.stringify(value)};\n`;
}

/**
 * Returns the refusal of a file for problems at a place in it; a problem that ends with …
 * continues.
 */
export function refusalAt(path: string, place: string, problems: readonly string[]) {
  const details = problems.map((problem) => {
    if (!problem.endsWith('…')) return `${place}${problem}.`;
    const begin = (place + problem.slice(0, -1)).replaceAll(/[^\w ]/g, '\\$&');
    return expect.stringMatching(new RegExp(`^${begin}.*\\.$`));
  });
  return { name: 'AppError', code: 'configuration', message: `${path} is invalid.`, details };
}
