/** Messages name commands as the user calls the program; data and JSON use the plain name. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { app } from '../../../src/app.ts';
import { commandsByGroup } from '../../../src/core/cli/run.ts';
import { bareEnvironment } from '../../helpers/bare-environment.ts';
import { runCommand } from '../../helpers/fake-io.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const root = join(import.meta.dirname, '../../..');
const byPath = { earshot_called_as: './earshot' };

it.each([
  ['by the path', byPath, './earshot'],
  ['by a path with a blank', { earshot_called_as: '/my work/earshot' }, '"/my work/earshot"'],
  ['by the name', {}, 'earshot'],
])('a message names commands as they are called %s', async (_, env, name) => {
  const failed = await runCommand('start', { env });
  expect(failed.err).toContain(`Run \`${name} credentials create\``);
  const { out } = await runCommand('query --help', { env });
  expect(out).toContain(`Usage: ${name} query [options]`);
  expect(out).toContain(`\n  $ ${name} query --since 24h --event created `);
  const doctor = await runCommand('doctor', { env });
  expect(doctor.out).toContain(`\`${name} credentials create\``);
});

it('every command in a message is in backticks', () => {
  const commands = [...commandsByGroup(app).values()].flat();
  const named = new RegExp(`(?<![\`$\\w./-] ?|command\\(')\\bearshot (${commands.join('|')})\\b`);
  const inExample = /^ +(\$|EARSHOT_)/;
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
  const wrong = files
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) =>
      readFileSync(join(root, 'src', file), 'utf8')
        .split('\n')
        .filter(
          (line) => named.test(line) && !inExample.test(line) && !/^\s*(\*|\/[/*])/.test(line),
        )
        .map((line) => `${file}: ${line.trim()}`),
    );
  // Exceptions: the sandbox's certificate authority and its description, a heading, the seal of a backup.
  const names =
    /CN=earshot sandbox|port of the earshot sandbox|'bold', 'earshot demo'|SHA-256 of all/;
  expect(wrong.filter((line) => !names.test(line))).toEqual([]);
});

it('the executable runs from another folder, through chained links, with any Node on the path', () => {
  const folder = temporaryDirectory();
  const elsewhere = join(folder, 'project with a blank');
  mkdirSync(elsewhere);
  symlinkSync(join(root, 'earshot'), join(folder, 'first'));
  symlinkSync('../first', join(elsewhere, 'earshot'));
  const { PATH = '' } = bareEnvironment({});
  // A failing Node on the path is not used: the checkout has its own.
  symlinkSync('/bin/false', join(elsewhere, 'node'));
  const run = (...argv: string[]) =>
    spawnSync('earshot', argv, {
      cwd: elsewhere,
      encoding: 'utf8',
      env: bareEnvironment({ PATH: `${elsewhere}:${PATH}` }),
    });
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  expect(run('--version')).toMatchObject({ status: 0, stdout: `${version}\n`, stderr: '' });
  const called = spawnSync(join(root, 'earshot'), ['start'], {
    cwd: folder,
    encoding: 'utf8',
    env: bareEnvironment({}),
  });
  expect(called.stderr).toContain(`Run \`${join(root, 'earshot')} credentials create\``);
  const failed = run('start');
  expect(failed.status).toBe(2);
  expect(failed.stderr).toContain('Run `earshot credentials create`');
  expect(failed.stderr).toContain(`The folder ${elsewhere} is not set up.`);
});
