/** Sections of the configuration: their contents, and variables that must be set together. */
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  accountSections,
  completeAccountConfig,
  loadAccountConfig,
} from '../../../src/admin/settings.ts';
import { loadConfig } from '../../../src/core/config/config.ts';
import { credentialsFileName } from '../../../src/core/config/endpoint-credentials.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import {
  configWith,
  type Env,
  environment,
  problemsWith,
  refusalOf,
  wholeTextOf,
} from './environment.ts';

const EARSHOT_ACCOUNT_USERNAME = 'me@example.org';
const EARSHOT_ACCOUNT_PASSWORD = 'the-password-of-the-account';
const EARSHOT_ACCESS_TOKEN = 'eyJ.not-to-be.shown';
const EARSHOT_PUBLIC_URL = 'https://earshot.example.org:8443';
const EARSHOT_INFERENCE_API_KEY = 'sk-hunter2-not-to-be-shown';
const EARSHOT_INFERENCE_MODEL = 'openai/gpt-oss-120b';
const both = { EARSHOT_ACCOUNT_USERNAME, EARSHOT_ACCOUNT_PASSWORD };
const key = { EARSHOT_INFERENCE_API_KEY };
const model = { ...key, EARSHOT_INFERENCE_MODEL };
const secretWord = 'a word of mine';
/** A push subscription is involved. */
const needs = { publicUrl: true };

/** An environment with its own data directory, so that no file of this machine is read. */
const ownEnvironment = (env: Env, files: Record<string, string> = {}) =>
  environment({ EARSHOT_DATA_DIR: temporaryDirectory(), ...env }, files);
const readAccount = (env: Env, files: Record<string, string> = {}) =>
  loadConfig(ownEnvironment(env, files), accountSections);
const readSummary = (env: Env, files = {}) =>
  loadConfig(environment(env, files), ['summary']).summary;

it('the configuration of start has defaults wherever a default is possible', () => {
  expect(configWith({})).toMatchObject({
    listen: { host: '0.0.0.0', port: 8443 },
    publicUrl: undefined,
    dataDir: resolve('data'),
    ...{ diskReserveBytes: undefined, sharedLog: null, trustedProxies: [], index: true },
    credentials: {
      source: 'variables',
      pairs: [{ username: 'catalogue', password: 'a long password' }],
    },
    tls: { kind: 'files', cert: 'cert.pem', key: 'key.pem' },
    console: {
      ...{ listen: { host: '127.0.0.1', port: 8080 }, password: undefined },
      catalogueUrl: 'https://catalogue.dataspace.copernicus.eu',
    },
    logLevel: 'info',
  });
});

describe('the private listener', () => {
  it.each(['127.0.0.1:1', '127.8.9.1:1', '[::1]:1', 'localhost:1'])(
    'needs no password on %s',
    (listen) => {
      const config = configWith({ EARSHOT_CONSOLE_LISTEN: listen });
      expect(config.console).toMatchObject({ password: undefined });
    },
  );

  it.each([
    ...['0.0.0.0:8080', '[::]:8080', '192.168.1.2:8080', 'earshot.example.org:8080', '1.2:1'],
    // All addresses of the machine, and loopback names that other systems resolve differently.
    ...['0:8080', '00.0.0.0:1', '[::ffff:0:0]:1', '[0:0:0:0:0:0:0:0]:1', '[::2]:1', '[fe80::1]:1'],
    ...['127.1:1', '0x7f000001:1', '2130706433:1', '0177.0.0.1:1', 'localhost.example.org:1'],
  ])('needs a password on %s', (listen) => {
    const env = { EARSHOT_CONSOLE_LISTEN: listen };
    expect(problemsWith(env)).toEqual([
      expect.stringMatching(/^EARSHOT_CONSOLE_LISTEN: .* Set EARSHOT_CONSOLE_PASSWORD too, or use/),
    ]);
    const config = configWith({ ...env, EARSHOT_CONSOLE_PASSWORD: secretWord });
    expect(config.console?.password).toBe(secretWord);
  });

  it('can be turned off, takes its password from a file, and reports a missing file once', () => {
    expect(configWith({ EARSHOT_CONSOLE_LISTEN: 'off' }).console).toBeNull();
    const env = { EARSHOT_CONSOLE_LISTEN: '0.0.0.0:8080', EARSHOT_CONSOLE_PASSWORD_FILE: 'word' };
    expect(configWith(env, { word: `${secretWord}\n` }).console?.password).toBe(secretWord);
    const missing = 'The file of EARSHOT_CONSOLE_PASSWORD_FILE cannot be read (ENOENT).';
    expect(problemsWith(env)).toEqual([missing]);
  });
});

describe('the configuration of the account', () => {
  const identity = 'https://identity.dataspace.copernicus.eu/auth/realms/CDSE';
  const password = {
    ...{ kind: 'password', tokenUrl: `${identity}/protocol/openid-connect/token` },
    ...{ clientId: 'cdse-public', username: EARSHOT_ACCOUNT_USERNAME },
    ...{ password: EARSHOT_ACCOUNT_PASSWORD, totp: undefined },
  };
  const token = { kind: 'token', accessToken: EARSHOT_ACCESS_TOKEN };
  const inFile = { EARSHOT_ACCOUNT_PASSWORD: '', EARSHOT_ACCOUNT_PASSWORD_FILE: 'password' };

  it.each<[Env, unknown]>([
    [both, password],
    [
      { ...both, EARSHOT_ACCOUNT_TOTP: '123 456' },
      { ...password, totp: '123456' },
    ],
    [{ EARSHOT_ACCESS_TOKEN }, token],
    [{ ...both, EARSHOT_ACCESS_TOKEN }, token],
    [{ EARSHOT_ACCOUNT_USERNAME: '', EARSHOT_ACCESS_TOKEN: '' }, null],
    [{ EARSHOT_ACCOUNT_TOTP: 'JBSWY3DPEHPK3PXP' }, null],
    [{ ...both, ...inFile }, password],
    [
      { ...both, EARSHOT_ACCOUNT_TOTP_FILE: 'totp' },
      { ...password, totp: 'jbswy3dpehpk3pxp' },
    ],
    [{ EARSHOT_ACCESS_TOKEN_FILE: 'token' }, token],
  ])('is read from %j', (env, account) => {
    const texts = { totp: 'jbsw y3dp ehpk 3pxp\n', token: EARSHOT_ACCESS_TOKEN };
    const files = { password: `${EARSHOT_ACCOUNT_PASSWORD}\n`, ...texts };
    expect(readAccount(env, files).account).toEqual(account);
  });

  it('has defaults wherever possible, and requires nothing', () => {
    const env = { EARSHOT_DATA_DIR: '/nonexistent/earshot', EARSHOT_SUBSCRIPTIONS_MAX: '7' };
    expect(readAccount(env)).toEqual({
      ...{ dataDir: '/nonexistent/earshot', publicUrl: undefined, sharedLog: null, account: null },
      catalogueUrl: 'https://catalogue.dataspace.copernicus.eu',
      ...{ limits: { runningMax: 2, totalMax: 7 }, probeCa: undefined },
      ...{ endpoint: { source: 'none', pairs: [] }, pullRequestsPerMinute: 120 },
    });
  });

  it('reports all problems at once, without secrets', () => {
    const secret = 'hunter2 not to be shown';
    const env = {
      EARSHOT_ACCES_TOKEN: secret,
      EARSHOT_PUBLIC_URL: `https://me:${secret}@earshot.example.org`,
      EARSHOT_CATALOGUE_URL: `https://me:${secret}@catalogue.example.org`,
      EARSHOT_ACCESS_TOKEN: secret,
      EARSHOT_TOKEN_URL: 'http://identity.example.org',
      EARSHOT_ACCOUNT_TOTP: `${secret}!`,
      EARSHOT_SUBSCRIPTIONS_MAX: secret,
      EARSHOT_ENDPOINT_USERNAME: `catalogue:${secret}`,
      EARSHOT_ACCOUNT_USERNAME: undefined,
    };
    const others = { EARSHOT_ACCOUNT_PASSWORD: secret, EARSHOT_ENDPOINT_PASSWORD: secret };
    const error = refusalOf(() => readAccount({ ...env, ...others }));
    const named = error.details.map((problem) => /^EARSHOT_\w+/.exec(problem)?.[0]);
    expect(named.toSorted()).toEqual(Object.keys(env).toSorted());
    expect(wholeTextOf(error)).not.toMatch(/hunter2|aHVudGVyMg/);
  });
});

const belongTogether = 'EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD belong together';
const unreadable = (name: string) => `The file of ${name} cannot be read (ENOENT)`;

it.each<[env: Env, ...problems: string[]]>([
  [{ EARSHOT_ACCOUNT_USERNAME }, belongTogether],
  [
    { EARSHOT_ACCOUNT_USERNAME, EARSHOT_ACCOUNT_TOTP: '12' },
    ...['EARSHOT_ACCOUNT_TOTP: must be six digits', belongTogether],
  ],
  [
    { EARSHOT_ACCOUNT_USERNAME, EARSHOT_ACCOUNT_PASSWORD_FILE: 'gone' },
    unreadable('EARSHOT_ACCOUNT_PASSWORD_FILE'),
  ],
  [key, 'EARSHOT_INFERENCE_MODEL is not. Set EARSHOT_INFERENCE_MODEL to a'],
  [{ EARSHOT_INFERENCE_MODEL }, 'EARSHOT_INFERENCE_API_KEY is not. Set EARSHOT_INFERENCE_API_KEY'],
  [{ ...key, EARSHOT_INFERENCE_MODEL: 'gpt' }, 'EARSHOT_INFERENCE_MODEL: must have the form'],
  [
    { EARSHOT_INFERENCE_MODEL, EARSHOT_INFERENCE_API_KEY_FILE: 'gone' },
    unreadable('EARSHOT_INFERENCE_API_KEY_FILE'),
  ],
  [
    { ...key, EARSHOT_INFERENCE_URL: 'http://inference.example.org' },
    ...['EARSHOT_INFERENCE_URL: must be an https URL', 'EARSHOT_INFERENCE_MODEL is not'],
  ],
  [
    { EARSHOT_SUMMARY: 'each', EARSHOT_INDEX: 'off' },
    'EARSHOT_SUMMARY=each needs the product index',
  ],
])('%j is refused, with each problem once', (env, ...problems) => {
  const sections = [...accountSections, 'summary'] as const;
  expect(refusalOf(() => loadConfig(ownEnvironment(env), sections)).details).toEqual(
    problems.map((problem) => expect.stringContaining(problem)),
  );
});

describe('the password of the account', () => {
  const reused = /is the password of your account.*Use another password/;

  it("is refused when it is the endpoint's password", () => {
    const EARSHOT_ENDPOINT_PASSWORD = EARSHOT_ACCOUNT_PASSWORD;
    const endpoint = { EARSHOT_ENDPOINT_USERNAME: 'catalogue', EARSHOT_ENDPOINT_PASSWORD };
    for (const env of [both, { ...both, EARSHOT_ACCESS_TOKEN }]) {
      const error = refusalOf(() => readAccount({ ...env, ...endpoint }));
      expect(error.details).toEqual([expect.stringMatching(reused)]);
      expect(error.details[0]).toMatch(/^EARSHOT_ENDPOINT_PASSWORD /);
      expect(wholeTextOf(error)).not.toContain(EARSHOT_ACCOUNT_PASSWORD);
    }
    expect(readAccount(endpoint).endpoint.source).toBe('variables');
  });

  it('is refused in any pair of the credentials file, and the file is named', () => {
    const EARSHOT_DATA_DIR = temporaryDirectory();
    const passwords = [EARSHOT_ACCOUNT_PASSWORD, 'another password'];
    const pairs = passwords.map((password) => ({ username: 'u', password }));
    const path = join(EARSHOT_DATA_DIR, credentialsFileName);
    writeFileSync(path, JSON.stringify({ pairs }), { mode: 0o600 });
    const error = refusalOf(() => readAccount({ EARSHOT_DATA_DIR, ...both }));
    expect(error.details).toEqual([expect.stringMatching(reused)]);
    expect(error.details[0]).toContain(credentialsFileName);
    expect(readAccount({ EARSHOT_DATA_DIR }).endpoint).toEqual({ source: 'file', pairs });
  });
});

describe('a command that uses the account', () => {
  const account = expect.stringMatching(/^Set EARSHOT_ACCOUNT_USERNAME and/);
  const publicUrl = expect.stringMatching(/^Set EARSHOT_PUBLIC_URL/);

  it.each<[string, Env, unknown[]]>([
    ['account and public URL', {}, [account, publicUrl]],
    ['the account', { EARSHOT_PUBLIC_URL }, [account]],
    ['the public URL', both, [publicUrl]],
    ['the public URL with a token', { EARSHOT_ACCESS_TOKEN }, [publicUrl]],
  ])('gets one report that it lacks %s', (_title, env, missing) => {
    const all = ownEnvironment(env);
    const error = refusalOf(() => loadAccountConfig(all, needs));
    expect([error.code, error.details]).toEqual(['configuration', missing]);
    expect(completeAccountConfig(loadConfig(all, accountSections), needs)).toEqual({ missing });
  });
});

const inference = {
  ...{ url: 'https://api-sherlock.cloudferro.com', model: EARSHOT_INFERENCE_MODEL },
  apiKey: EARSHOT_INFERENCE_API_KEY,
};
const budget = { requestsPerDay: 500, tokensPerDay: 500_000 };

it.each<[Env, object]>([
  [{}, { rule: 'off', inference: null, budget }],
  [
    { ...model, EARSHOT_SUMMARY: 'each' },
    { rule: 'each', inference },
  ],
  [{ EARSHOT_SUMMARY: 'digest' }, { rule: 'digest', inference: null }],
  [{ ...model, EARSHOT_INDEX: 'off' }, { rule: 'off' }],
])('the configuration of summaries is read from %j', (env, expected) => {
  expect(readSummary(env, { key: `${EARSHOT_INFERENCE_API_KEY}\n` })).toMatchObject(expected);
});
