/** The decision if a receiver needs a public listener. */
import { expect, it } from 'vitest';
import { needsEndpoint } from '../../src/admin/settings.ts';
import { environment } from '../core/config/environment.ts';

const account = { EARSHOT_ACCOUNT_USERNAME: 'me', EARSHOT_ACCOUNT_PASSWORD: 'secret' };

it.each<[title: string, env: Record<string, string>, expected: boolean]>([
  ['without any setting', {}, true],
  ['with an account only', account, false],
  ['with an account and empty variables', { ...account, EARSHOT_TLS: '' }, false],
  ['with a public URL', { ...account, EARSHOT_PUBLIC_URL: 'https://earshot.example.org' }, true],
  ['with a variable of the listener', { ...account, EARSHOT_TLS_CERT: 'a.pem' }, true],
])('a receiver needs an endpoint %s: %s', (_title, env, expected) => {
  expect(needsEndpoint(environment(env))).toBe(expected);
});
