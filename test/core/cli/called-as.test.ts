/** Messages name commands as the user calls the program; data and JSON use the plain name. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { app } from '../../../src/app.ts';
import { nameCalledIn } from '../../../src/core/cli/output.ts';
import { commandsByGroup } from '../../../src/core/cli/run.ts';
import { bareEnvironment } from '../../helpers/bare-environment.ts';
import { runCommand } from '../../helpers/fake-io.ts';
import { filledContext } from '../../helpers/filled-store.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const root = join(import.meta.dirname, '../../..');
const byPath = { earshot_called_as: './earshot' };

describe('a message', () => {
  it.each([
    ['by the path', byPath, './earshot'],
    ['by a path with a blank', { earshot_called_as: '/my work/earshot' }, '"/my work/earshot"'],
    ['by the name', {}, 'earshot'],
  ])('names commands as they are called %s', async (_, env, name) => {
    const failed = await runCommand('start', { env });
    expect(failed.err).toContain(`Run \`${name} credentials create\``);
    const { out } = await runCommand('query --help', { env });
    expect(out).toContain(`Usage: ${name} query [options]`);
    expect(out).toContain(`\n  $ ${name} query --since 24h --event created `);
    const doctor = await runCommand('doctor', { env });
    expect(doctor.out).toContain(`\`${name} credentials create\``);
  });

  it.each([
    ['./earshot', 'sandbox-trial', '../earshot'],
    ['./earshot', '.', './earshot'],
    ['./earshot', '/srv/trial', '/home/me/checkout/earshot'],
    ['../checkout/earshot', 'sandbox-trial', '../earshot'],
    ['', 'sandbox-trial', 'earshot'],
  ])('names commands for another folder: %s, %s', (path, folder, name) => {
    const workingDir = '/home/me/checkout';
    const io = { env: { earshot_called_as: path }, workingDir };
    expect(nameCalledIn(resolve(workingDir, folder), io)).toBe(name);
  });

  it('reports that npm runs its scripts in another folder than the one with the settings', async () => {
    const [workingDir, trial] = [temporaryDirectory(), join(temporaryDirectory(), 'sandbox-trial')];
    mkdirSync(trial);
    writeFileSync(join(trial, '.env'), '');
    const env = { ...byPath, INIT_CWD: trial };
    const { err } = await runCommand('start', { env, workingDir });
    expect(err).toContain(
      `npm runs its scripts in ${workingDir}, but the file .env is in ${trial}.`,
    );
    expect(err).toContain('In the folder of .env, use `');
  });

  it('uses the plain name in JSON', async () => {
    const { out } = await runCommand('doctor --json', { env: byPath });
    expect(out).toContain('`earshot credentials create`');
    expect(out).not.toContain('./earshot');
  });

  it.each(['status', 'sinks'])('of %s contains no plain name', async (command) => {
    const context = await filledContext();
    const login = {
      EARSHOT_ENDPOINT_USERNAME: 'u',
      EARSHOT_ENDPOINT_PASSWORD: 'a long password',
    };
    const env = { ...byPath, ...login, EARSHOT_TLS: 'off', EARSHOT_LISTEN: '127.0.0.1:9' };
    const { out, err } = await context.earshot(command.split(' '), {
      env,
      isTTY: true,
      columns: 90,
    });
    expect(`${out}${err}`).not.toMatch(/(?<!\.\/)\bearshot [a-z]+/);
  });
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

it('no text runs an unrelated package of the same name from the registry', () => {
  const pages = ['README.md', 'SECURITY.md', '.env.example', 'earshot'];
  const folders = ['src', 'docs', 'deploy', 'examples', 'scripts'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => relative(root, join(parentPath, name))),
  );
  const wrong = [...pages, ...folders].filter((file) =>
    /\bnpx (?:-\S+ )*earshot\b/.test(readFileSync(join(root, file), 'utf8')),
  );
  expect(folders.length).toBeGreaterThan(300);
  expect(wrong).toEqual([]);
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
  expect(failed.stderr).toContain(`There is no file .env in ${elsewhere}.`);
});
