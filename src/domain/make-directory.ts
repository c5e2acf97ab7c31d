/** Makes a folder and those above it; for the data directory and what is in it. */
import { mkdirSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/**
 * Makes what is missing of the path, owner-only; a folder that is there is left as it is. Throws Node's errors.
 * Node's own `recursive` never returns where a folder exists in which none can be made and which says ENOENT to
 * it, as `/proc` does.
 */
export function makeDirectory(path: string): void {
  const missing: string[] = [];
  // Ends at the root, which is there.
  for (let at = resolve(path); !isDirectory(at) && dirname(at) !== at; at = dirname(at)) {
    missing.unshift(at);
  }
  for (const folder of missing) {
    try {
      mkdirSync(folder, { mode: 0o700 });
    } catch (error) {
      // Another program may have made it meanwhile.
      if (!isDirectory(folder)) throw error;
    }
  }
}

function isDirectory(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
}
