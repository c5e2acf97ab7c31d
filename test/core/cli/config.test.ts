/** `earshot admin config`: each setting with its source, and all problems of the settings. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { expectEnd, printed, runCommand } from '../../helpers/fake-io.ts';
import { spawnCommand } from '../../helpers/spawned-command.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const password = 'not-to-be-seen-anywhere';

/** Creates a folder with settings from every source; runs the command in it as a process. */
function settings(env: Record<string, string> = {}, more = '') {
  const folder = temporaryDirectory();
  writeFileSync(join(folder, 'password'), `${password}\n`);
  const lines = [
    'EARSHOT_TLS=off',
    'EARSHOT_LISTEN=127.0.0.1:9443',
    'EARSHOT_ENDPOINT_USERNAME=catalogue',
    'EARSHOT_ENDPOINT_PASSWORD_FILE=password',
    'EARSHOT_LOG_LEVEL=warn',
    more,
  ];
  writeFileSync(join(folder, '.env'), `${lines.join('\n')}\n`);
  const own = { EARSHOT_LOG_LEVEL: 'debug', EARSHOT_CONSOLE_PASSWORD: password, ...env };
  const run = (...argv: string[]) =>
    spawnCommand(['admin', 'config', ...argv], { env: own, cwd: folder }).ended;
  return { folder, run };
}

it('prints each setting with its source, and no secret', async () => {
  const { folder, run } = settings();
  mkdirSync(join(folder, 'elsewhere'));
  const out = await printed(run('--json', '--data-dir', 'elsewhere'));
  const shown = JSON.parse(out);
  const of = (name: string) => {
    const { value, source } = shown.settings.find((one: { name: string }) => one.name === name);
    return [value, source];
  };
  expect(of('EARSHOT_TLS')).toEqual(['off', '.env']);
  expect(of('EARSHOT_LOG_LEVEL')).toEqual(['debug', 'environment']);
  expect(of('EARSHOT_ENDPOINT_PASSWORD')).toEqual([
    '(set)',
    'file of EARSHOT_ENDPOINT_PASSWORD_FILE',
  ]);
  expect(of('EARSHOT_CONSOLE_PASSWORD')).toEqual(['(set)', 'environment']);
  expect(of('EARSHOT_DATA_DIR')).toEqual(['elsewhere', '--data-dir']);
  expect(of('EARSHOT_CLIENT_ID')).toEqual(['cdse-public', 'default']);
  expect(of('EARSHOT_PUBLIC_URL')).toEqual([null, null]);
  // Depends on the size of the disk; `start` uses the same value.
  expect(of('EARSHOT_DISK_RESERVE')).toEqual([expect.stringMatching(/^[\d.]+ MiB$/), 'default']);
  expect(shown).toMatchObject({
    dataDir: join(folder, 'elsewhere'),
    envFile: join(folder, '.env'),
    configFile: null,
    problems: [],
  });
  const table = await run();
  expect(table.out).toMatch(/^EARSHOT_TLS +\.env +off$/m);
  expect(table.out).toContain(`no earshot.config.ts in ${folder}`);
  expect(table.out + out).not.toContain(password);
});

it('lists all problems at once after the settings, and exits 2', async () => {
  const { folder, run } = settings({ EARSHOT_LISTEN: 'here' }, 'EARSHOT_LOGLEVEL=debug');
  writeFileSync(join(folder, 'earshot.config.ts'), 'export default { sinks: { A: {} } };\n');
  const { out, err } = await expectEnd(run(), 2, 'EARSHOT_LISTEN: must be host:port');
  expect(out).toMatch(/^EARSHOT_LISTEN +environment +here$/m);
  expect(out).toContain(`earshot.config.ts  ${join(folder, 'earshot.config.ts')}`);
  expect(err).toContain('Did you mean EARSHOT_LOG_LEVEL?');
  expect(err).toContain('sinks.A: use lower-case letters');
  expect(JSON.parse((await run('-o', 'json')).out).problems).toHaveLength(3);
});

it.each([
  ['EARSHOT_TOKEN_URL', `https://me:${password}@id.example.org/token`],
  ['EARSHOT_CATALOGUE_URL', `https://me:${password}/@[host`],
  ['EARSHOT_PUBLIC_URL', `https:me:a ${password}@host`],
  ['EARSHOT_TOKEN_URL', `//me:p@${password}@host`],
  ['EARSHOT_KEEP', `https://me:${password}@host`],
])('hides the password of a URL in %s: %s', async (name, value) => {
  const { code, out, err } = await runCommand('admin config', { env: { [name]: value } });
  expect(code).toBe(2);
  expect(out).toContain('(hidden)@');
  expect(err).toContain(name);
  expect(out + err).not.toContain(password);
});
