/** Commands in messages and on the first pages work as printed, in the folder of the executable and in another. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { words as wordsOf } from '../docs/console-sessions.ts';
import { bareEnvironment } from '../helpers/bare-environment.ts';
import { runCommand } from '../helpers/fake-io.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const root = resolve(import.meta.dirname, '../..');

/** Creates a folder with the executable, and one with settings below it. */
function foldersWithSettings() {
  const folder = temporaryDirectory();
  const below = join(folder, 'receiver');
  mkdirSync(below);
  symlinkSync(join(root, 'earshot'), join(folder, 'earshot'));
  for (const one of [folder, below]) {
    const text = `EARSHOT_DATA_DIR=${join(one, 'data')}\nEARSHOT_TLS=off\n`;
    writeFileSync(join(one, '.env'), text);
  }
  return { folder, below };
}

const shell = (line: string, cwd: string) =>
  spawnSync('sh', ['-c', line], { cwd, encoding: 'utf8', env: bareEnvironment({}) });

/** Returns the commands in a text, without placeholders. */
const commandsIn = (text: string) =>
  [...text.matchAll(/`([^`\s]*earshot [^`<…]+)`/g)].map(([, command = '']) => command);

describe('a printed command', { timeout: 180_000 }, () => {
  it.each([
    { where: 'in the folder of the executable', place: 'folder', name: './earshot' },
    { where: 'in a folder below', place: 'below', name: '../earshot' },
  ] as const)('works $where', ({ place, name }) => {
    const cwd = foldersWithSettings()[place];
    const texts = ['status', 'start', 'query', 'doctor']
      .map((command) => shell(`${name} ${command} < /dev/null`, cwd))
      .map(({ stdout, stderr }) => `${stdout}${stderr}`);
    const commands = [...new Set(texts.flatMap(commandsIn))];
    expect(commands.length).toBeGreaterThan(3);
    for (const command of commands) {
      expect(command).toMatch(new RegExp(`^${name.replaceAll('.', '\\.')} `));
      const { status, stderr } = shell(`${command} --help`, cwd);
      expect({ command, status, stderr }).toEqual({ command, status: 0, stderr: '' });
    }
  });
});

/** Returns the commands of the shell blocks of a page. */
function pageCommands(page: string): string[] {
  const text = readFileSync(join(root, page), 'utf8').replaceAll('\\\n', ' ');
  const blocks = [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block);
  return blocks.flatMap((block) => block.match(/^\.\/earshot .*$/gm) ?? []);
}

describe.each(['README.md', 'docs/start.md', 'docs/monitoring.md', 'docs/operations.md'])(
  'a command of %s',
  (page) => {
    it.each(pageCommands(page).map((line) => [line]))('%s has valid flags', async (line) => {
      const [command = ''] = line.split(/ #| \||\d?>| \(/);
      const argv = wordsOf(command.replace('./earshot ', ''));
      const isLong = ['setup', 'demo', 'start'].includes(argv[0] ?? '');
      const workingDir = temporaryDirectory();
      writeFileSync(join(workingDir, 'account-password'), 'secret');
      const env = { EARSHOT_DATA_DIR: join(workingDir, 'data') };
      const words = isLong ? [...argv, '--help'] : argv;
      const { err } = await runCommand(words, { env, workingDir });
      expect(err).not.toMatch(/^error: /m);
    });
  },
);
