/** Secrets: given as files, and never told again. */
import { describe, expect, it } from 'vitest';
import { readVariables } from '../../src/config/read-variables.ts';
import { configWith, environment, problemsWith, refusalOf, wholeTextOf } from './environment.ts';

const secret = 'hunter2-not-to-be-told';

function passwordFrom(file: string): string | undefined {
  const env = { EARSHOT_ENDPOINT_PASSWORD_FILE: 'pw' };
  return readVariables(environment(env, { pw: file }), ['endpointPassword']).values
    .endpointPassword;
}

describe('a secret from a file', () => {
  it.each([
    ['as it is', secret, secret],
    ['without the line break at its end', `${secret}\n`, secret],
    ['without a line break of Windows', `${secret}\r\n`, secret],
    ['with all but the last line break', `${secret}\n\n`, `${secret}\n`],
    ['with its blanks', ` ${secret} `, ` ${secret} `],
  ])('is taken %s', (_title, file, password) => {
    expect(passwordFrom(file)).toBe(password);
  });

  it('makes a pair with the user name', () => {
    const env = {
      EARSHOT_ENDPOINT_PASSWORD: undefined,
      EARSHOT_ENDPOINT_PASSWORD_FILE: '/run/pw',
    };
    expect(configWith(env, { '/run/pw': `${secret}\n` }).credentials).toEqual([
      { username: 'catalogue', password: secret },
    ]);
  });

  it('that is empty counts as unset', () => {
    expect(passwordFrom('\n')).toBeUndefined();
    expect(passwordFrom('')).toBeUndefined();
  });

  it('that cannot be read is a problem which names variable and reason, and not the file', () => {
    const env = { EARSHOT_ENDPOINT_PASSWORD: '', EARSHOT_ENDPOINT_PASSWORD_FILE: '/run/pw' };
    expect(problemsWith(env)[0]).toBe(
      'The file that EARSHOT_ENDPOINT_PASSWORD_FILE names cannot be read (ENOENT).',
    );
  });

  it('and from the variable, too, is one too many', () => {
    const env = { EARSHOT_ENDPOINT_PASSWORD_FILE: '/run/pw' };
    expect(problemsWith(env, { '/run/pw': secret })[0]).toMatch(/are both set/);
  });

  it('whose name is empty is none', () => {
    expect(configWith({ EARSHOT_ENDPOINT_PASSWORD_FILE: '' }).credentials).toHaveLength(1);
  });
});

describe('no message holds a secret', () => {
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
