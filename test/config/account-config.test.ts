/** What the account's commands read: how the account is entered, what is missing, and no secret told. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  completeAccountConfig,
  readAccountConfig,
  readCompleteAccountConfig,
} from '../../src/config/account-config.ts';
import { credentialsFileName } from '../../src/config/endpoint-credentials.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { environment, refusalOf, wholeTextOf } from './environment.ts';

const EARSHOT_ACCOUNT_USERNAME = 'me@example.org';
const EARSHOT_ACCOUNT_PASSWORD = 'the-password-of-the-account';
const EARSHOT_ACCESS_TOKEN = 'eyJ.not-to-be.told';
const EARSHOT_PUBLIC_URL = 'https://earshot.example.org:8443';
const both = { EARSHOT_ACCOUNT_USERNAME, EARSHOT_ACCOUNT_PASSWORD };
const belongTogether =
  'EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD belong together: set both.';

type Variables = Record<string, string | undefined>;

/** With a data directory of its own, so that no file of this machine is looked at. */
function read(env: Variables, files: Record<string, string> = {}) {
  const EARSHOT_DATA_DIR = temporaryDirectory();
  return readAccountConfig(environment({ EARSHOT_DATA_DIR, ...env }, files));
}

function problemsWith(env: Variables, files: Record<string, string> = {}) {
  return refusalOf(() => read(env, files)).details;
}

describe('the account', () => {
  const password = {
    kind: 'password',
    tokenUrl:
      'https://identity.dataspace.copernicus.eu/auth/realms/CDSE/protocol/openid-connect/token',
    clientId: 'cdse-public',
    username: EARSHOT_ACCOUNT_USERNAME,
    password: EARSHOT_ACCOUNT_PASSWORD,
    totp: undefined,
  };
  const token = { kind: 'token', accessToken: EARSHOT_ACCESS_TOKEN };

  it.each<[string, Variables, unknown]>([
    ['user name and password', both, password],
    [
      'a one-time code, too',
      { ...both, EARSHOT_ACCOUNT_TOTP: '123 456' },
      { ...password, totp: '123456' },
    ],
    [
      'another identity provider',
      { ...both, EARSHOT_TOKEN_URL: 'http://127.0.0.1:1/token', EARSHOT_CLIENT_ID: 'me' },
      { ...password, tokenUrl: 'http://127.0.0.1:1/token', clientId: 'me' },
    ],
    ['a token', { EARSHOT_ACCESS_TOKEN }, token],
    ['all of them: the token wins', { ...both, EARSHOT_ACCESS_TOKEN }, token],
    ['a token and a user name', { EARSHOT_ACCESS_TOKEN, EARSHOT_ACCOUNT_USERNAME }, token],
    ['a token and a password', { EARSHOT_ACCESS_TOKEN, EARSHOT_ACCOUNT_PASSWORD }, token],
    ['nothing', {}, null],
    ['empty values', { EARSHOT_ACCOUNT_USERNAME: '', EARSHOT_ACCESS_TOKEN: '' }, null],
    ['a one-time code alone', { EARSHOT_ACCOUNT_TOTP: 'JBSWY3DPEHPK3PXP' }, null],
  ])('is read from %s', (_title, env, account) => {
    expect(read(env).account).toEqual(account);
  });

  it('is read from files that hold the secrets', () => {
    const env = {
      EARSHOT_ACCOUNT_USERNAME,
      EARSHOT_ACCOUNT_PASSWORD_FILE: '/run/password',
      EARSHOT_ACCOUNT_TOTP_FILE: '/run/totp',
    };
    const files = {
      '/run/password': `${EARSHOT_ACCOUNT_PASSWORD}\n`,
      '/run/totp': 'jbsw y3dp ehpk 3pxp\n',
    };
    expect(read(env, files).account).toEqual({ ...password, totp: 'jbswy3dpehpk3pxp' });
    const EARSHOT_ACCESS_TOKEN_FILE = '/run/token';
    const fromFile = read({ EARSHOT_ACCESS_TOKEN_FILE }, { '/run/token': EARSHOT_ACCESS_TOKEN });
    expect(fromFile.account).toEqual(token);
  });

  it.each<[string, Variables, string[]]>([
    ['a user name', { EARSHOT_ACCOUNT_USERNAME }, [belongTogether]],
    ['a password', { EARSHOT_ACCOUNT_PASSWORD }, [belongTogether]],
    [
      'a user name and a wrong one-time code',
      { EARSHOT_ACCOUNT_USERNAME, EARSHOT_ACCOUNT_TOTP: '12' },
      ['EARSHOT_ACCOUNT_TOTP: must be six digits', belongTogether],
    ],
    [
      'a user name and a mistyped password',
      { EARSHOT_ACCOUNT_USERNAME, EARSHOT_ACCOUNT_PASSWRD: 'x' },
      ['EARSHOT_ACCOUNT_PASSWRD is not a variable'],
    ],
    [
      'a user name and a password in a file that is not there',
      { EARSHOT_ACCOUNT_USERNAME, EARSHOT_ACCOUNT_PASSWORD_FILE: 'gone' },
      ['EARSHOT_ACCOUNT_PASSWORD_FILE names cannot be read (ENOENT)'],
    ],
  ])('is refused with no more than %s', (_title, env, problems) => {
    const parts = problems.map((problem) => expect.stringContaining(problem));
    expect(problemsWith(env)).toEqual(parts);
  });
});

describe('the password of the account', () => {
  const reused = /is the password of your account.*use another one/;

  it('is refused as that of the endpoint', () => {
    const endpoint = {
      EARSHOT_ENDPOINT_USERNAME: 'catalogue',
      EARSHOT_ENDPOINT_PASSWORD: EARSHOT_ACCOUNT_PASSWORD,
    };
    for (const env of [{ ...both }, { ...both, EARSHOT_ACCESS_TOKEN }]) {
      const error = refusalOf(() => read({ ...env, ...endpoint }));
      expect(error.details).toEqual([expect.stringMatching(reused)]);
      expect(error.details[0]).toMatch(/^EARSHOT_ENDPOINT_PASSWORD /);
      expect(wholeTextOf(error)).not.toContain(EARSHOT_ACCOUNT_PASSWORD);
    }
    expect(read(endpoint).endpoint.source).toBe('variables');
  });

  it('is refused in any pair of the credentials file, which is named then', () => {
    const EARSHOT_DATA_DIR = temporaryDirectory();
    const passwords = [EARSHOT_ACCOUNT_PASSWORD, 'another'];
    const pairs = passwords.map((password) => ({ username: 'u', password }));
    const path = join(EARSHOT_DATA_DIR, credentialsFileName);
    writeFileSync(path, JSON.stringify({ pairs }), { mode: 0o600 });
    const error = refusalOf(() => read({ EARSHOT_DATA_DIR, ...both }));
    expect(error.details).toEqual([expect.stringMatching(reused)]);
    expect(error.details[0]).toContain(credentialsFileName);
    expect(error.details[0]).not.toContain('EARSHOT_ENDPOINT_PASSWORD');
    expect(read({ EARSHOT_DATA_DIR }).endpoint).toEqual({ source: 'file', pairs });
  });
});

describe('the configuration of the account', () => {
  it('has defaults for all that can have one, and nothing has to be set', () => {
    expect(readAccountConfig(environment({ EARSHOT_DATA_DIR: '/nonexistent/earshot' }))).toEqual({
      dataDir: '/nonexistent/earshot',
      publicUrl: undefined,
      catalogueUrl: 'https://catalogue.dataspace.copernicus.eu',
      account: null,
      limits: { runningMax: 2, totalMax: 10 },
      probeCa: undefined,
      endpoint: { source: 'none', pairs: [] },
    });
  });

  it('takes other limits', () => {
    const env = { EARSHOT_SUBSCRIPTIONS_RUNNING_MAX: '3', EARSHOT_SUBSCRIPTIONS_MAX: '7' };
    expect(read(env).limits).toEqual({ runningMax: 3, totalMax: 7 });
  });

  it('reports all problems at once, and tells no secret', () => {
    const secret = 'hunter2 not to be told';
    const error = refusalOf(() =>
      read({
        EARSHOT_ACCESS_TOKEN: secret,
        EARSHOT_ACCOUNT_PASSWORD: secret,
        EARSHOT_ACCOUNT_TOTP: `${secret}!`,
        EARSHOT_ENDPOINT_USERNAME: `catalogue:${secret}`,
        EARSHOT_ENDPOINT_PASSWORD: secret,
        EARSHOT_PUBLIC_URL: `https://me:${secret}@earshot.example.org`,
        EARSHOT_CATALOGUE_URL: `https://me:${secret}@catalogue.example.org`,
        EARSHOT_TOKEN_URL: 'http://identity.example.org',
        EARSHOT_SUBSCRIPTIONS_MAX: secret,
        EARSHOT_ACCES_TOKEN: secret,
      }),
    );
    const named = [
      'EARSHOT_ACCES_TOKEN',
      'EARSHOT_ACCESS_TOKEN:',
      'EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD belong together',
      'EARSHOT_ACCOUNT_TOTP:',
      'EARSHOT_ENDPOINT_USERNAME:',
      'EARSHOT_PUBLIC_URL:',
      'EARSHOT_CATALOGUE_URL:',
      'EARSHOT_TOKEN_URL:',
      'EARSHOT_SUBSCRIPTIONS_MAX:',
    ];
    for (const name of named) {
      expect(error.details.filter((problem) => problem.startsWith(name))).toHaveLength(1);
    }
    expect(error.details).toHaveLength(named.length);
    expect(wholeTextOf(error)).not.toMatch(/hunter2|aHVudGVyMg/);
  });

  it('cannot be changed', () => {
    const env = { ...both, EARSHOT_PUBLIC_URL, EARSHOT_DATA_DIR: temporaryDirectory() };
    for (const read of [readAccountConfig, readCompleteAccountConfig]) {
      const config = read(environment(env));
      const parts = [config, config.account, config.limits, config.endpoint, config.endpoint.pairs];
      expect(parts.map((part) => Object.isFrozen(part))).toEqual(parts.map(() => true));
    }
  });
});

describe('a command that works on the account', () => {
  const account = expect.stringMatching(
    /^Set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD/,
  );
  const publicUrl = expect.stringMatching(/^Set EARSHOT_PUBLIC_URL/);

  it.each<[string, Variables, unknown[]]>([
    ['account and public URL', {}, [account, publicUrl]],
    ['the account', { EARSHOT_PUBLIC_URL }, [account]],
    ['the public URL', both, [publicUrl]],
    ['the public URL beside a token', { EARSHOT_ACCESS_TOKEN }, [publicUrl]],
  ])('is told together that it lacks %s', (_title, env, missing) => {
    const all = environment({ EARSHOT_DATA_DIR: temporaryDirectory(), ...env });
    const error = refusalOf(() => readCompleteAccountConfig(all));
    expect(error.code).toBe('configuration');
    expect(error.details).toEqual(missing);
    expect(completeAccountConfig(readAccountConfig(all))).toEqual({ missing });
  });

  it('is told what is wrong before what is missing', () => {
    const env = environment({ EARSHOT_ACCOUNT_USERNAME, EARSHOT_DATA_DIR: temporaryDirectory() });
    expect(refusalOf(() => readCompleteAccountConfig(env)).details).toEqual([belongTogether]);
  });

  it('is given account and public URL when both are there', () => {
    const env = environment({
      ...both,
      EARSHOT_PUBLIC_URL,
      EARSHOT_DATA_DIR: temporaryDirectory(),
    });
    const config = readCompleteAccountConfig(env);
    expect(config).toEqual(readAccountConfig(env));
    expect(config).toMatchObject({ publicUrl: EARSHOT_PUBLIC_URL, account: { kind: 'password' } });
  });
});
