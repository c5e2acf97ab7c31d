/** `earshot setup`: questions, flags, and the file that it would write. It starts nothing here. */

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseEnv } from 'node:util';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isAppError } from '../../../src/core/terms/app-error.ts';
import { mergeEnvFile } from '../../../src/features/setup/env-file.ts';
import { ctrlC, promptsIn, runCommand } from '../../helpers/fake-io.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';

const secret = 'the-password-of-the-account';

function context(env: Record<string, string> = {}) {
  const workingDir = temporaryDirectory();
  const EARSHOT_DATA_DIR = join(workingDir, 'data');
  writeFileSync(join(workingDir, 'password'), secret);
  const run = (flags: readonly string[], answers?: string[]) =>
    runCommand(['setup', ...flags], {
      workingDir,
      env: { EARSHOT_DATA_DIR, ...env },
      ...(answers === undefined ? {} : { answers }),
    });
  return { workingDir, run, envFile: join(workingDir, '.env') };
}

const complete = [
  ...['--host', 'earshot.example.org', '--agree', '--email', 'me@example.org'],
  ...['--account-username', 'me', '--account-password-file', 'password'],
  ...['--collection', 'S2'],
];

/** Replaces flags by others of the same name: no option is given twice. */
function replaced(flags: readonly string[], others: readonly string[]): string[] {
  const isOther = (word = '') => word.startsWith('--') && others.includes(word);
  return [...flags.filter((word, i) => !isOther(word) && !isOther(flags[i - 1])), ...others];
}

describe('setup without a terminal', () => {
  it('lists all missing flags at once, and changes nothing', async () => {
    const { run, envFile } = context();
    const { code, err } = await run([]);
    expect(code).toBe(2);
    for (const flag of [
      '--host <name>',
      '--agree',
      '--account-username <name>',
      '--account-password-file <file>',
      '--collection <names>',
      '--yes',
    ])
      expect(err).toContain(`  - ${flag}  `);
    // Settings with a default and optional ones are not missing.
    for (const flag of ['--tls', '--listen', '--email', '--account-totp-file', '--cert'])
      expect(err).not.toContain(`- ${flag} `);
    expect(existsSync(envFile)).toBe(false);
  });

  it('takes answers from variables', async () => {
    const { run } = context({
      EARSHOT_PUBLIC_URL: 'https://earshot.example.org:8443',
      EARSHOT_ACME_AGREE: 'yes',
      EARSHOT_ACCOUNT_USERNAME: 'me',
      EARSHOT_ACCOUNT_PASSWORD: secret,
    });
    const { code, out } = await run(['--collection', 'S2', '--dry-run']);
    expect(code).toBe(0);
    expect(out).toContain('EARSHOT_LISTEN=0.0.0.0:8443\n');
    expect(out).toContain('EARSHOT_ACCOUNT_PASSWORD=********\n');
    expect(out).not.toContain(secret);
  });

  it('prints the file and the steps with --dry-run, and writes nothing', async () => {
    const { run, envFile, workingDir } = context();
    const { code, out } = await run([...complete, '--subscription', 'alps', '--dry-run']);
    expect(code).toBe(0);
    for (const line of [
      'EARSHOT_PUBLIC_URL=https://earshot.example.org',
      'EARSHOT_TLS=acme',
      'EARSHOT_LISTEN=0.0.0.0:443',
      'EARSHOT_ACME_EMAIL=me@example.org',
      'EARSHOT_ACME_AGREE=yes',
      'EARSHOT_ACCOUNT_USERNAME=me',
      `EARSHOT_ACCOUNT_PASSWORD_FILE=${join(workingDir, 'password')}`,
    ])
      expect(out).toContain(`  ${line}\n`);
    expect(out).toContain(
      'register subscription "alps" (created):\n       collection is SENTINEL-2\n',
    );
    expect(out).not.toContain('Collection/Name');
    expect(existsSync(envFile)).toBe(false);
    expect(existsSync(join(workingDir, 'data'))).toBe(false);
  });

  it('chooses ports and proxy for --tls off, and removes the files of an earlier certificate', async () => {
    const { run, envFile } = context({
      EARSHOT_TLS: 'files',
      EARSHOT_TLS_CERT: 'c.pem',
      EARSHOT_TLS_KEY: 'k.pem',
    });
    writeFileSync(envFile, 'EARSHOT_TLS=files\nEARSHOT_TLS_CERT=c.pem\nEARSHOT_TLS_KEY=k.pem\n');
    const { out } = await run([...complete, '--tls', 'off', '--dry-run']);
    expect(out).toContain('EARSHOT_LISTEN=127.0.0.1:8081\n');
    expect(out).toContain('EARSHOT_TRUSTED_PROXIES=127.0.0.1\n');
    expect(out).toContain('Removed: EARSHOT_TLS_CERT, EARSHOT_TLS_KEY\n');
  });

  it('finds files relative to the current folder, by flag and by answer', async () => {
    const { run, workingDir } = context();
    for (const file of ['c.pem', 'k.pem']) writeFileSync(join(workingDir, file), '');
    const files = complete.filter((flag) => flag !== '--agree');
    const { out } = await run([
      ...files,
      '--tls',
      'files',
      '--cert',
      'c.pem',
      '--key',
      'k.pem',
      '--dry-run',
    ]);
    expect(out).toContain(`EARSHOT_TLS_CERT=${join(workingDir, 'c.pem')}\n`);
    const asked = await run(
      [...files, '--tls', 'files', '--dry-run'],
      ['c.pem', 'k.pem', '', '', '', '', ''],
    );
    expect(asked.out).toContain(`EARSHOT_TLS_CERT=${join(workingDir, 'c.pem')}\n`);
    expect(asked.out).toContain(`EARSHOT_TLS_KEY=${join(workingDir, 'k.pem')}\n`);
  });

  it('does not change an existing .env without --force', async () => {
    const { run, envFile } = context();
    writeFileSync(envFile, '# mine\nOTHER=1\n');
    const refused = await run([...complete, '--yes']);
    expect(refused).toMatchObject({ code: 1 });
    expect(refused.err).toContain(`${envFile} exists and would be changed. Nothing was done.`);
    expect(refused.err).toContain('--force');
    expect(readFileSync(envFile, 'utf8')).toBe('# mine\nOTHER=1\n');
  });

  it.each<[string, string[], number, RegExp]>([
    ['a host that is a path', ['--host', 'example.org/notify'], 2, /--host: .*must contain only/],
    ['a port that is none', ['--listen', '443'], 2, /--listen: .*must be host:port/],
    ['an unknown kind of TLS', ['--tls', 'letsencrypt'], 2, /acme, files, off/],
    [
      'a missing password file',
      ['--account-password-file', 'none'],
      2,
      /--account-password-file: .*\/none cannot be read: there is no such file/,
    ],
    ['an e-mail that is none', ['--email', 'me'], 2, /--email: .*e-mail address/],
    ['a filter with an error', ['--filter', "foo eq 'bar'"], 2, /not valid for Products/],
    ['a password on the command line', ['--account-password', 'x'], 2, /unknown option/],
    ['a public host with pull', ['--pull'], 2, /--host is for push, and excludes --pull/],
    ['an address where a name is needed', ['--host', '192.0.2.1'], 2, /needs a host name/],
  ])('explains %s', async (_what, flags, exit, reason) => {
    const { run } = context();
    const { code, err } = await run([...replaced(complete, flags), '--yes']);
    expect(err).toMatch(reason);
    expect(code).toBe(exit);
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
    expect(err).toContain('An answer is required.');
    expect(err).toContain('must be an https URL');
    expect(err).toContain('Answer pull or push.');
    expect(err).toContain('Allowed choices are acme, files, off.');
    expect(err).toContain('Use created, modified, deleted, comma-separated.');
    expect(err).toContain('issues no certificate without your agreement.');
    expect(err).toContain('South (48) is greater than north (45)');
    expect(err).toContain('nowhere.geojson cannot be read');
    expect(err).toContain('Use a number greater than 0 and at most 100, such as 20.');
    expect(err).toContain('lower-case letters, digits and dashes');
    expect(code).toBe(0);
    expect(out).toContain('EARSHOT_LISTEN=0.0.0.0:443\n');
    expect(out).toContain('register subscription "alps" (created, modified):');
    expect(err + out).not.toContain(secret);
    expect(existsSync(envFile)).toBe(false);
  });

  it('asks for confirmation before it subscribes to every product', async () => {
    const { run } = context();
    const account = complete.slice(0, -2);
    const { code, err } = await run([...account, '--dry-run', '--yes'], ['', 'n', 'S1']);
    expect(err).toContain('This selects every product of the catalogue');
    expect(err.match(/Collection, such as/g)).toHaveLength(2);
    expect(code).toBe(0);
  });

  it('gives up after five invalid answers', async () => {
    const { run } = context();
    const { code, err } = await run(['--dry-run'], []);
    expect(err.match(/Public host name/g)).toHaveLength(5);
    expect(err).toContain('Stopped after 5 invalid answers.');
    expect(code).toBe(2);
  });

  it('asks only for what is not known, shows the plan, and asks all again after n', async () => {
    const { run, workingDir } = context({
      EARSHOT_PUBLIC_URL: 'https://old.example.org',
      ...{ EARSHOT_ACCOUNT_USERNAME: 'me', EARSHOT_ACCOUNT_PASSWORD: secret },
      ...{ EARSHOT_TLS: 'off', EARSHOT_ACCOUNT_TOTP: '' },
    });
    const answers = ['', '', 'n', '', 'new.example.org', ctrlC];
    const { err } = await run(['--collection', 'S2'], answers);
    expect(promptsIn(err)).toEqual([
      expect.stringMatching(/^Address of the public listener \[127\.0\.0\.1:8081\]/),
      expect.stringMatching(/^Addresses of trusted proxies \[127\.0\.0\.1\]/),
      expect.stringMatching(/^Enter to continue/),
      expect.stringMatching(/^Pull .* \[push\]/),
      expect.stringMatching(/^Public host name, .* \[https:\/\/old\.example\.org\]/),
      expect.stringMatching(/^HTTPS certificate.* \[off\]/),
    ]);
    expect(err).toContain('  EARSHOT_PUBLIC_URL=https://old.example.org\n');
    expect(err).toContain('  EARSHOT_ACCOUNT_PASSWORD=********\n');
    const { answers: stored } = JSON.parse(
      readFileSync(join(workingDir, 'data/setup.json'), 'utf8'),
    );
    expect(stored).toMatchObject({ EARSHOT_PUBLIC_URL: 'https://new.example.org' });
  });
});

const header = 'Written by a test.';

it('starts a new file with its header', () => {
  expect(mergeEnvFile(null, { EARSHOT_TLS: 'acme' }, { header })).toBe(
    '# Written by a test.\nEARSHOT_TLS=acme\n',
  );
});

it('keeps comments, other names, and lines that already have the value', () => {
  const before = [
    '# mine',
    'OTHER="1"',
    "EARSHOT_TLS='acme'",
    'EARSHOT_LISTEN=a:1',
    'export EARSHOT_LISTEN=b:2',
  ];
  const settings = { EARSHOT_TLS: 'acme', EARSHOT_LISTEN: '0.0.0.0:443' };
  expect(mergeEnvFile(before.join('\n'), settings, { header })).toBe(
    `# mine\nOTHER="1"\nEARSHOT_TLS='acme'\nEARSHOT_LISTEN=0.0.0.0:443\n`,
  );
});

it('ends the last line before it adds one', () => {
  expect(mergeEnvFile('A=1', { B: '2' }, { header })).toBe('A=1\nB=2\n');
});

it('removes dropped names', () => {
  const text = mergeEnvFile('A=1\nB=2\n', {}, { header, dropped: ['A'] });
  expect(text).toBe('B=2\n');
});

it('refuses to change a value of several lines instead of keeping a part of it', () => {
  const before = 'EARSHOT_ACCOUNT_PASSWORD="one\ntwo"\n';
  const merge = () =>
    mergeEnvFile(before, { EARSHOT_ACCOUNT_PASSWORD: 'a\'b"c' }, { header, dropped: [] });
  expect(merge).toThrow(/\.env cannot represent|cannot be changed automatically/);
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
