/** The identity provider's client: the forms it sends, and the tokens it reads. */
import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createIdentityProvider } from '../../../src/admin/identity-provider.ts';
import { type Answer, startServer } from '../../http/answering-server.ts';

const granted = {
  access_token: 'access',
  expires_in: 600,
  refresh_token: 'refresh',
  refresh_expires_in: 3600,
  token_type: 'Bearer',
};

/** A client of a provider that answers so, and what it was sent. */
async function startProvider(body: unknown, path = '/token') {
  const { url, requests } = await startServer([{ body } satisfies Answer]);
  const tokenUrl = `${url}${path}`;
  const options = { tokenUrl, clientId: 'cdse-public', totp: undefined, fetch };
  return { provider: createIdentityProvider(options), requests };
}

describe('a login', () => {
  it('sends user name, password and client as a form, and the code where there is one', async () => {
    const { provider, requests } = await startProvider(granted, '/realm/token');
    await provider.login('me@example.org', 'p&=ü +', null);
    await provider.login('me@example.org', 'p', '012345');
    const forms = requests.map(({ body }) => Object.fromEntries(new URLSearchParams(body)));
    const common = { grant_type: 'password', client_id: 'cdse-public', username: 'me@example.org' };
    expect(forms).toEqual([
      { ...common, password: 'p&=ü +' },
      { ...common, password: 'p', totp: '012345' },
    ]);
    const [first] = requests;
    expect([first?.method, first?.path]).toEqual(['POST', '/realm/token']);
    expect(first?.headers['content-type']).toMatch(/^application\/x-www-form-urlencoded/);
    expect(first?.headers['user-agent']).toBe('earshot');
    expect(first?.headers.authorization).toBeUndefined();
  });

  it('gives the tokens with their lifetimes', async () => {
    const { provider } = await startProvider(granted);
    expect(await provider.login('me', 'p', null)).toEqual({
      accessToken: 'access',
      accessSeconds: 600,
      refreshToken: 'refresh',
      refreshSeconds: 3600,
    });
  });

  it.each([
    ['none', undefined, 60],
    ['none that ends', 0, 60],
    ['a part of a second', 0.4, 1],
    ['a text', '300', 300],
    ['more than all time', 1e300, 2_592_000],
  ])(
    'gives a lifetime that can be reckoned with when the provider says %s',
    async (_title, said, seconds) => {
      const { provider } = await startProvider({ ...granted, expires_in: said });
      expect((await provider.login('me', 'p', null)).accessSeconds).toBe(seconds);
    },
  );

  it('does without a refresh token, or with one that cannot be kept', async () => {
    for (const token of [undefined, 'ü']) {
      const { provider } = await startProvider({ ...granted, refresh_token: token });
      expect((await provider.login('me', 'p', null)).refreshToken).toBeNull();
    }
  });
});

it('a refresh sends the token and the client as a form', async () => {
  const { provider, requests } = await startProvider(granted);
  expect((await provider.refresh('the-token'))?.accessToken).toBe('access');
  expect(Object.fromEntries(new URLSearchParams(requests[0]?.body))).toEqual({
    grant_type: 'refresh_token',
    client_id: 'cdse-public',
    refresh_token: 'the-token',
  });
});

const fixture = resolve(
  import.meta.dirname,
  '../../../../shared/fixtures/identity/token-200.fake-tokens.json',
);

it.skipIf(!existsSync(fixture))('a recorded answer is read (of ../shared/fixtures)', async () => {
  const recorded = JSON.parse(readFileSync(fixture, 'utf8'));
  const { provider } = await startProvider(recorded);
  expect(await provider.login('me', 'p', null)).toEqual({
    accessToken: recorded.access_token,
    accessSeconds: 300,
    refreshToken: recorded.refresh_token,
    refreshSeconds: 1800,
  });
});
