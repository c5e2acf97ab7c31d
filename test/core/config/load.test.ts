/**
 * The environment, read by the table of variables: unknown names, secrets in files, all problems at
 * once.
 */
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/core/config/config.ts';
import {
  configWith,
  environment,
  minimalEnv,
  problemsWith,
  refusalOf,
  wholeTextOf,
} from './environment.ts';

const secret = 'hunter2-not-to-be-shown';

const passwordFrom = (text: string) => {
  const files = { EARSHOT_ENDPOINT_USERNAME: 'catalogue', EARSHOT_ENDPOINT_PASSWORD_FILE: 'pw' };
  const { pairs } = loadConfig(environment(files, { pw: text }), ['credentials']).credentials;
  return pairs[0]?.password;
};

describe('the environment', () => {
  it.each([
    ['a variable that no section uses', { EARSHOT_LISTEN: 'nonsense' }],
    ['unrelated names', { PATH: '/bin', EARSHOTX: '1', earshot_tls: 'x' }],
  ])('may contain %s', (_title, env) => {
    const data = { dataDir: resolve('data'), diskReserveBytes: undefined, sharedLog: null };
    expect(loadConfig(environment(env), ['data'])).toEqual(data);
  });

  it.each([
    ['EARSHOT_LISTN', 'EARSHOT_LISTEN'],
    ['EARSHOT_DATADIR', 'EARSHOT_DATA_DIR'],
    ['EARSHOT_ENDPOINT_PASSWORD_FIEL', 'EARSHOT_ENDPOINT_PASSWORD_FILE'],
    ['EARSHOT_TLS_CERTIFICATE', 'EARSHOT_TLS_CERT'],
    ['EARSHOT_TLS_KEY_FILE', 'EARSHOT_TLS_KEY'],
  ])('with %s, which is unknown, gets the suggestion %s', (variable, nearest) => {
    const message = `${variable} is not a known variable.`;
    const advice = `Did you mean ${nearest}?`;
    for (const text of ['x', '']) {
      const { facts, details } = refusalOf(() => configWith({ [variable]: text }));
      expect({ facts, details }).toEqual({
        facts: { problems: [{ variable, message, advice }] },
        details: [`${message} ${advice}`],
      });
    }
  });

  it('gets all its problems reported at once, each with its variable', () => {
    const env = {
      EARSHOT_LISTEN: 'x',
      EARSHOT_PUBLIC_URL: 'x',
      EARSHOT_LOG_LEVEL: 'x',
      EARSHOT_TLS_CERT: undefined,
      EARSHOT_ENDPOINT_USERNAME: undefined,
      EARSHOT_TYPO: 'x',
    };
    const { facts, details } = refusalOf(() => configWith(env));
    const problems = Object.keys(env).map((variable) =>
      expect.objectContaining({ variable, message: expect.any(String) }),
    );
    expect(facts.problems).toHaveLength(problems.length);
    expect(facts.problems).toEqual(expect.arrayContaining(problems));
    expect(details).toHaveLength(problems.length);
  });

  it('gets one problem reported once, even when several sections meet it', () => {
    const both = ['listen', 'health', 'index', 'summary'] as const;
    const env = { ...minimalEnv, EARSHOT_LISTEN: 'x', EARSHOT_INDEX: 'x' };
    expect(refusalOf(() => loadConfig(environment(env), both)).details).toHaveLength(2);
  });

  it('gets the accepted words of a variable reported', () => {
    const problems = problemsWith({ EARSHOT_INDEX: 'yes', EARSHOT_LOG_LEVEL: 'loud' });
    expect(problems.toSorted()).toEqual([
      'EARSHOT_INDEX: must be on or off. Example: on',
      'EARSHOT_LOG_LEVEL: must be debug, info, warn or error. Example: info',
    ]);
  });

  it('is refused with one line that has the number of problems and the page to read', () => {
    const many = refusalOf(() => loadConfig(environment({}), ['serve']));
    expect(many.code).toBe('configuration');
    expect(many.message).toMatch(/^2 problems .*docs\/reference\/configuration\.md/);
    expect(refusalOf(() => configWith({ EARSHOT_LISTEN: 'x' })).message).toMatch(/^One problem /);
  });
});

describe('a secret from a file', () => {
  it.each([
    ['as it is', secret, secret],
    ['without the final line break', `${secret}\n`, secret],
    ['without a Windows line break', `${secret}\r\n`, secret],
    ['with all but the last line break', `${secret}\n\n`, `${secret}\n`],
    ['with its blanks', ` ${secret} `, ` ${secret} `],
  ])('is read %s', (_title, file, password) => {
    expect(passwordFrom(file)).toBe(password);
  });

  it('that is empty is a problem', () => {
    for (const text of ['\n', ''])
      expect(refusalOf(() => passwordFrom(text)).details).toEqual([
        'The file of EARSHOT_ENDPOINT_PASSWORD_FILE is empty.',
      ]);
  });

  it('that cannot be read is a problem; variable and reason are named, the file is not', () => {
    const env = { EARSHOT_ENDPOINT_PASSWORD: '', EARSHOT_ENDPOINT_PASSWORD_FILE: '/run/pw' };
    expect(problemsWith(env)[0]).toBe(
      'The file of EARSHOT_ENDPOINT_PASSWORD_FILE cannot be read (ENOENT).',
    );
  });

  it('conflicts with the variable itself', () => {
    const env = { EARSHOT_ENDPOINT_PASSWORD_FILE: '/run/pw' };
    expect(problemsWith(env, { '/run/pw': secret })[0]).toMatch(/are both set/);
  });

  it('with an empty name counts as unset', () => {
    expect(configWith({ EARSHOT_ENDPOINT_PASSWORD_FILE: '' }).credentials.pairs).toHaveLength(1);
  });
});

describe('no message contains a secret', () => {
  const withPassword = { EARSHOT_ENDPOINT_PASSWORD: secret };
  it.each([
    ['when the user name is missing', { ...withPassword, EARSHOT_ENDPOINT_USERNAME: '' }, {}],
    ['when the user name is wrong', { ...withPassword, EARSHOT_ENDPOINT_USERNAME: 'a:b' }, {}],
    [
      'when variable and file are both set',
      { ...withPassword, EARSHOT_ENDPOINT_PASSWORD_FILE: 'pw' },
      { pw: secret },
    ],
    ['when a name is mistyped', { EARSHOT_ENDPOINT_PASSWRD: secret }, {}],
    [
      'when everything is wrong',
      {
        ...withPassword,
        EARSHOT_ENDPOINT_USERNAME: undefined,
        EARSHOT_LISTEN: secret,
        EARSHOT_PUBLIC_URL: `https://user:${secret}@earshot.example.org`,
        EARSHOT_TLS: secret,
        EARSHOT_LOG_LEVEL: secret,
      },
      {},
    ],
  ])('%s', (_title, env, files) => {
    const error = refusalOf(() => configWith(env, files));
    expect(error.details.length).toBeGreaterThan(0);
    expect(wholeTextOf(error)).not.toContain(secret);
  });
});
