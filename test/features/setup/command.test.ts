/** `earshot setup`: questions, flags, and the file that it would write; notes of folders that are not set up. */

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isAppError } from '../../../src/core/terms/app-error.ts';
import { mergeEnvFile } from '../../../src/features/setup/env-file.ts';
import { ctrlC, expectEnd, promptsIn, runCommand } from '../../helpers/fake-io.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const secret = 'the-password-of-the-account';

function context(env: Record<string, string> = {}) {
  const workingDir = temporaryDirectory();
  const EARSHOT_DATA_DIR = join(workingDir, 'data');
  const run = (flags: readonly string[], answers?: string[]) =>
    runCommand(['setup', ...flags], {
      workingDir,
      env: { EARSHOT_DATA_DIR, ...env },
      ...(answers === undefined ? {} : { answers }),
    });
  return { workingDir, run, envFile: join(workingDir, '.env') };
}

const settings = {
  ...{ EARSHOT_PUBLIC_URL: 'https://earshot.example.org', EARSHOT_ACME_AGREE: 'yes' },
  ...{ EARSHOT_ACME_EMAIL: 'me@example.org', EARSHOT_ACCOUNT_USERNAME: 'me' },
  EARSHOT_ACCOUNT_PASSWORD: secret,
};

const complete = ['--collection', 'S2'];

describe('setup without a terminal', () => {
  it('lists all missing variables and flags at once, and changes nothing', async () => {
    const { run, envFile } = context();
    const { err } = await expectEnd(run([]), 2, /EARSHOT_PUBLIC_URL {2}public host name/);
    const namesIn = (text: string) =>
      [...text.matchAll(/^ {2}- (--[\w-]+|EARSHOT_\w+)/gm)].map(([, name]) => name);
    const common = [
      'EARSHOT_ACCOUNT_USERNAME',
      'EARSHOT_ACCOUNT_PASSWORD',
      '--collection',
      '--yes',
    ];
    // Settings with a default and optional ones are not missing.
    expect(namesIn(err)).toEqual(['EARSHOT_PUBLIC_URL', 'EARSHOT_ACME_AGREE', ...common]);
    expect(namesIn((await run(['--pull'])).err)).toEqual(common);
    expect(existsSync(envFile)).toBe(false);
  });

  it('prints the file and the steps with --dry-run, and writes nothing', async () => {
    const { run, envFile, workingDir } = context(settings);
    const argv = [...complete, '--subscription', 'alps', '--dry-run'];
    const { out } = await expectEnd(run(argv), 0);
    for (const line of [
      'PUBLIC_URL=https://earshot.example.org',
      'TLS=acme',
      'LISTEN=0.0.0.0:443',
      'ACME_EMAIL=me@example.org',
      'ACME_AGREE=yes',
      'ACCOUNT_USERNAME=me',
      'ACCOUNT_PASSWORD=********',
    ])
      expect(out).toContain(`  EARSHOT_${line}\n`);
    expect(out).toContain(
      `register subscription "alps" (created):\n       Collection/Name = 'SENT`,
    );
    expect(existsSync(envFile)).toBe(false);
    expect(existsSync(join(workingDir, 'data'))).toBe(false);
  });

  it('chooses ports and proxy for EARSHOT_TLS=off, and removes the files of an earlier certificate', async () => {
    const files = { EARSHOT_TLS: 'off', EARSHOT_TLS_CERT: 'c.pem', EARSHOT_TLS_KEY: 'k.pem' };
    const { run, envFile } = context({ ...settings, ...files });
    writeFileSync(envFile, 'EARSHOT_TLS=files\nEARSHOT_TLS_CERT=c.pem\nEARSHOT_TLS_KEY=k.pem\n');
    const { out } = await run([...complete, '--dry-run', '--yes']);
    expect(out).toContain('EARSHOT_LISTEN=127.0.0.1:8081\n');
    expect(out).toContain('EARSHOT_TRUSTED_PROXIES=127.0.0.1\n');
    expect(out).toContain('Removed: EARSHOT_TLS_CERT, EARSHOT_TLS_KEY\n');
  });

  it('does not change an existing .env without --force', async () => {
    const { run, envFile } = context(settings);
    writeFileSync(envFile, '# mine\nOTHER=1\n');
    await expectEnd(run([...complete, '--yes']), 1, /Nothing was done\..*--force/s);
    expect(readFileSync(envFile, 'utf8')).toBe('# mine\nOTHER=1\n');
  });

  it.each<[env: Record<string, string>, flags: string[], RegExp]>([
    [{ EARSHOT_PUBLIC_URL: 'https://a.example/notify' }, complete, /URL: .*must contain only/],
    [{ EARSHOT_PUBLIC_URL: 'https://192.0.2.1' }, complete, /EARSHOT_PUBLIC_URL with a host name/],
    [{ EARSHOT_LISTEN: '443' }, complete, /EARSHOT_LISTEN: .*must be host:port/],
    [{}, ['--filter', 'foo=1'], /not valid for Products/],
    [{}, ['--area', 'nowhere.geojson'], /nowhere\.geojson cannot be read/],
  ])('refuses %j and %j with the reason', async (env, flags, reason) => {
    const { run } = context({ ...settings, ...env });
    await expectEnd(run([...flags, '--yes']), 2, reason);
  });
});

describe('setup on a terminal', () => {
  it('asks for everything, explains invalid answers, and asks again', async () => {
    const { run, envFile } = context();
    const { code, err, out } = await run(
      ['--dry-run'],
      [
        ...['maybe', ''],
        ...['', 'http://earshot.example.org', 'earshot.example.org'],
        ...['letsencrypt', ''],
        '',
        '',
        ...['no', 'y'],
        'me@example.org',
        secret,
        '',
        'S2',
        'S2MSI2A',
        ...['5,48,11,45', 'nowhere.geojson', '5.5,45,11,48'],
        ...['all', '20'],
        ...['create', 'created,modified'],
        ...['My Alps', 'alps'],
      ],
    );
    for (const words of [
      'An answer is required.',
      'must be an https URL',
      'Allowed choices are acme, files, off.',
      'issues no certificate without your agreement.',
      'South (48) is greater than north (45)',
      'nowhere.geojson cannot be read',
      'Use a number greater than 0 and at most 100, such as 20.',
      'lower-case letters, digits and dashes',
    ])
      expect(err).toContain(words);
    expect(code).toBe(0);
    expect(out).toContain('EARSHOT_LISTEN=0.0.0.0:443\n');
    expect(out).toContain('register subscription "alps" (created, modified):');
    expect(err + out).not.toContain(secret);
    expect(existsSync(envFile)).toBe(false);
  });

  it('accepts certificate files that can be read', async () => {
    const { run, workingDir } = context(settings);
    writeFileSync(join(workingDir, 'cert.pem'), '');
    const answers = ['', '', 'files', 'nowhere.pem', 'cert.pem', 'cert.pem', ...Array(4).fill('')];
    const { err, out } = await run(['--collection', 'S2', '--dry-run'], answers);
    expect(err).toContain(`${join(workingDir, 'nowhere.pem')} cannot be read: there is no such`);
    expect(out).toContain(`EARSHOT_TLS_CERT=${join(workingDir, 'cert.pem')}\n`);
  });

  it('asks for confirmation before it subscribes to every product', async () => {
    const { run } = context(settings);
    const { code, err } = await run(['--dry-run', '--yes'], ['', 'n', 'S1']);
    expect(err).toContain('This selects every product of the catalogue');
    expect(err.match(/Collection, such as/g)).toHaveLength(2);
    expect(code).toBe(0);
  });

  it('asks with the present answers as defaults, shows the plan, and asks again after n', async () => {
    const { run } = context({
      EARSHOT_PUBLIC_URL: 'https://old.example.org',
      ...{ EARSHOT_ACCOUNT_USERNAME: 'me', EARSHOT_ACCOUNT_PASSWORD: secret },
      EARSHOT_TLS: 'off',
    });
    const answers = [...Array(8).fill(''), 'n', '', 'new.example.org', ctrlC];
    const { err } = await run(['--collection', 'S2'], answers);
    const first = [
      expect.stringMatching(/^Pull .* \[push\]/),
      expect.stringMatching(/^Public host name, .* \[https:\/\/old\.example\.org\]/),
      expect.stringMatching(/^HTTPS certificate.* \[off\]/),
    ];
    expect(promptsIn(err)).toEqual([
      ...first,
      expect.stringMatching(/^Address of the public listener \[127\.0\.0\.1:8081\]/),
      expect.stringMatching(/^Addresses of trusted proxies \[127\.0\.0\.1\]/),
      expect.stringMatching(/^User name .* \[me\]/),
      expect.stringMatching(/^Password .* \[keep the current one\]/),
      expect.stringMatching(/^Shared secret/),
      expect.stringMatching(/^Enter to continue/),
      ...first,
    ]);
    expect(err).toContain('  EARSHOT_PUBLIC_URL=https://old.example.org\n');
    expect(err).toContain('  EARSHOT_ACCOUNT_PASSWORD=********\n');
  });
});

const header = 'Written by a test.';

it('an existing .env keeps comments, other names, and lines that already have the value', () => {
  const before =
    '# mine\nOTHER="1"\nEARSHOT_TLS=\'acme\'\nA=1\nEARSHOT_LISTEN=a:1\nexport EARSHOT_LISTEN=b:2';
  const settings = { EARSHOT_TLS: 'acme', EARSHOT_LISTEN: '0.0.0.0:443', B: '2' };
  expect(mergeEnvFile(before, settings, { header, dropped: ['A'] })).toBe(
    '# mine\nOTHER="1"\nEARSHOT_TLS=\'acme\'\nEARSHOT_LISTEN=0.0.0.0:443\nB=2\n',
  );
  // An optional answer that was left out.
  expect(mergeEnvFile('A=1\n', { A: '1', EARSHOT_ACCOUNT_TOTP: '' }, { header })).toBe('A=1\n');
});

it('writes every value so that it can be read back, or refuses it', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1, unit: 'grapheme-ascii' }), (value) => {
      try {
        const text = mergeEnvFile('A=1\n', { SECRET: value }, { header });
        expect(parseEnv(text)).toEqual({ A: '1', SECRET: value });
      } catch (error) {
        if (!isAppError(error)) throw error;
      }
    }),
  );
});

it('a command first names setup and the demo, but not in a folder with settings', async () => {
  const workingDir = temporaryDirectory();
  const run = () => runCommand('status', { workingDir, env: { earshot_called_as: './earshot' } });
  const notSetUp = /^The folder .* is not set up\. .*earshot setup`\. .*earshot demo`\.\n/;
  expect((await run()).err).toMatch(notSetUp);
  writeFileSync(join(workingDir, '.env'), '');
  expect((await run()).err).not.toMatch(/not set up/);
});
