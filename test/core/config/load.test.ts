/**
 * The environment, read by the table of variables: unknown names, secrets in files, all problems at
 * once.
 */
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../../src/core/config/config.ts';

import { configWith, environment, problemsWith, refusalOf } from './environment.ts';

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
    ['EARSHOT_ENDPOINT_PASSWORD_FIEL', 'EARSHOT_ENDPOINT_PASSWORD_FILE'],
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
});

describe('a secret from a file', () => {
  it.each([
    ['as it is', secret, secret],
    ['without the final line break', `${secret}\n`, secret],
    ['with all but the last line break', `${secret}\n\n`, `${secret}\n`],
  ])('is read %s', (_title, file, password) => {
    expect(passwordFrom(file)).toBe(password);
  });

  it('that is empty, or cannot be read, is a problem; the file is not named', () => {
    const variable = 'EARSHOT_ENDPOINT_PASSWORD_FILE';
    const empty = refusalOf(() => passwordFrom('\n'));
    expect(empty.details).toEqual([`The file of ${variable} is empty.`]);
    const env = { EARSHOT_ENDPOINT_PASSWORD: '', [variable]: '/run/pw' };
    expect(problemsWith(env)[0]).toBe(`The file of ${variable} cannot be read (ENOENT).`);
  });

  it('conflicts with the variable itself', () => {
    const env = { EARSHOT_ENDPOINT_PASSWORD_FILE: '/run/pw' };
    expect(problemsWith(env, { '/run/pw': secret })[0]).toMatch(/are both set/);
  });
});
