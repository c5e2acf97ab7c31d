/** Writes the programs and files of docs/sinks.md to a folder. */
import { spawn } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { printedBy } from '../helpers/spawned-command.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { blocks, readPage } from './console-sessions.ts';

export const page = readPage('sinks.md');
export const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

/** Returns the program of the page whose first line names this file. */
function programOf(file: string): string {
  const found = blocks(page, 'js').find((text) => text.startsWith(`// ${file}`));
  if (found === undefined) throw new Error(`docs/sinks.md has no ${file}.`);
  return found;
}

/** Creates a folder with packages, the secret and an inbox; `changes` apply to every text. */
export function createPageFolder(changes: readonly (readonly [string, string])[] = []) {
  const folder = temporaryDirectory();
  symlinkSync(join(import.meta.dirname, '../../node_modules'), join(folder, 'node_modules'));
  writeFileSync(join(folder, 'hook-secret'), `${secret}\n`, { mode: 0o600 });
  writeFileSync(join(folder, 'gis-password'), 'word\n', { mode: 0o600 });
  mkdirSync(join(folder, 'inbox'));
  const changed = (text: string) =>
    [...changes, ['/opt/act', folder] as const].reduce(
      (result, [from, to]) => result.replaceAll(from, to),
      text,
    );
  return {
    folder,
    write: (file: string) => writeFileSync(join(folder, file), changed(programOf(file))),
    /** Writes the first file of the page, or the first complete one that contains a text. */
    writeConfig: (contains = '') => {
      const config = blocks(page, 'ts').find(
        (text) => text.includes('defineConfig') && text.includes(contains),
      );
      if (config === undefined) throw new Error(`docs/sinks.md has no file with ${contains}`);
      const library = new URL('../../src/index.ts', import.meta.url).href;
      const text = changed(config.replace("'earshot'", `'${library}'`));
      writeFileSync(join(folder, 'earshot.config.ts'), text);
    },
    /** Starts a program of the folder; `printed` returns its output. */
    start: (file: string) => startProgram(folder, file),
  };
}

function startProgram(folder: string, file: string): { printed: () => string } {
  const child = spawn(process.execPath, [file], { cwd: folder });
  onTestFinished(() => void child.kill('SIGKILL'));
  return { printed: printedBy(child.stdout, child.stderr) };
}
