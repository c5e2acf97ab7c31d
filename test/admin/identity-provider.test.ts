/** The client of the identity provider: requests, tokens, and the error of each failed login. */
import { existsSync, readFileSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createIdentityProvider } from '../../src/admin/identity-provider.ts';
import { type AppError, errorText } from '../../src/domain/app-error.ts';
import { createSelfSigned } from '../../src/sandbox/certificate-authority.ts';
import { wholeTextOf } from '../config/environment.ts';
import { freePort } from '../helpers/free-ports.ts';
import { type Answer, startServer } from '../http/answering-server.ts';
import { failureOf, startAccount } from './account.ts';

const granted = {
  access_token: 'access',
  expires_in: 600,
  refresh_token: 'refresh',
  refresh_expires_in: 3600,
  token_type: 'Bearer',
};

/** A client of a provider with a fixed answer, and the requests that the provider received. */
async function startProvider(body: unknown, path = '/token') {
  const { url, requests } = await startServer([{ body } satisfies Answer]);
  const tokenUrl = `${url}${path}`;
  const options = { tokenUrl, clientId: 'cdse-public', totp: undefined, fetch };
  return { provider: createIdentityProvider(options), requests };
}

describe('a login', () => {
  it('sends user name, password, client and any code as a form', async () => {
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

  it('returns the tokens with their lifetimes', async () => {
    const { provider } = await startProvider(granted);
    expect(await provider.login('me', 'p', null)).toEqual({
      accessToken: 'access',
      accessSeconds: 600,
      refreshToken: 'refresh',
      refreshSeconds: 3600,
    });
  });

  it.each([
    ['no lifetime', undefined, 60],
    ['zero', 0, 60],
    ['a fraction of a second', 0.4, 1],
    ['a text', '300', 300],
    ['an excessive number', 1e300, 2_592_000],
  ])('returns a usable lifetime when the provider sends %s', async (_title, said, seconds) => {
    const { provider } = await startProvider({ ...granted, expires_in: said });
    expect((await provider.login('me', 'p', null)).accessSeconds).toBe(seconds);
  });

  it('accepts a missing or invalid refresh token', async () => {
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
  '../../../shared/fixtures/identity/token-200.fake-tokens.json',
);

it.skipIf(!existsSync(fixture))('reads a recorded answer (in ../shared/fixtures)', async () => {
  const recorded = JSON.parse(readFileSync(fixture, 'utf8'));
  const { provider } = await startProvider(recorded);
  expect(await provider.login('me', 'p', null)).toEqual({
    accessToken: recorded.access_token,
    accessSeconds: 300,
    refreshToken: recorded.refresh_token,
    refreshSeconds: 1800,
  });
});

const password = 'p"ass ü\\word+%';
const code = '918273';
const refreshToken = 'the-refresh-token';
const realm = '/auth/realms/CDSE';
const tokenPath = `${realm}/protocol/openid-connect/token`;
const secret = 'JBSWY3DPEHPK3PXP';

const refusal = (status: number, error: string, description?: unknown): Answer => ({
  status,
  body: { error, ...(description === undefined ? {} : { error_description: description }) },
});

function providerAt(url: string, totp?: string) {
  const tokenUrl = `${url}${tokenPath}`;
  return createIdentityProvider({ tokenUrl, clientId: 'a-client', totp, fetch, timeoutMs: 1_000 });
}

/** Returns the error of a login; fails when there is none, or when it contains a secret. */
async function errorOf(login: Promise<unknown>): Promise<AppError> {
  const error = await failureOf(login);
  const text = wholeTextOf(error);
  const echo = [password, encodeURIComponent(password), code, refreshToken, secret];
  expect(echo.filter((one) => text.includes(one))).toEqual([]);
  expect(text).not.toMatch(/ass ü|\[cause\]|Response \{/);
  return error;
}

/** Returns the error of a login with the given answer. */
async function errorWith(answer: Answer, totp?: string) {
  const { url } = await startServer([answer]);
  const error = await errorOf(providerAt(url, totp).login('me', password, totp ? code : null));
  return { code: error.code, message: errorText(error), host: new URL(url).host, url };
}

describe('wrong credentials', () => {
  const wrong = refusal(401, 'invalid_grant', 'Invalid user credentials');

  it('without a code may be a missing code, and the message names both causes', async () => {
    const error = await errorWith(wrong);
    expect(error.code).toBe('unauthorized');
    expect(error.message).toMatch(
      /EARSHOT_ACCOUNT_USERNAME.*EARSHOT_ACCOUNT_PASSWORD.*EARSHOT_ACCOUNT_TOTP/,
    );
    expect(error.message).toMatch(/Response: Invalid user credentials$/);
  });

  it('with a code may be a used code', async () => {
    expect((await errorWith(wrong, code)).message).toContain('a code is valid once, for 30 s');
  });

  it('with a secret may be the secret of another account, or a wrong clock', async () => {
    expect((await errorWith(wrong, secret)).message).toContain('the clock of this machine');
  });
});

describe('a refusal', () => {
  it.each([
    [
      refusal(400, 'invalid_grant', 'Account is not fully set up'),
      'unauthorized',
      'not fully set up. Log in at',
    ],
    [refusal(400, 'invalid_grant', 'Account disabled'), 'unauthorized', 'The account is disabled'],
    [refusal(400, 'invalid_grant', 'User is not activated'), 'unauthorized', 'not activated, or'],
    [
      refusal(401, 'invalid_client', 'Invalid client or Invalid client credentials'),
      'configuration',
      '"a-client"',
    ],
    [
      refusal(400, 'unauthorized_client', 'Client not allowed for direct access grants'),
      'configuration',
      'EARSHOT_CLIENT_ID',
    ],
    [
      refusal(400, 'unsupported_grant_type', 'Unsupported grant_type'),
      'configuration',
      'does not support logins with user name and password',
    ],
    [
      refusal(403, 'access_denied', 'Max session number 4 exceeded.'),
      'unavailable',
      'too many open sessions',
    ],
    [
      { status: 403, body: '<title>There are too many sessions</title>' },
      'unavailable',
      'too many open sessions',
    ],
    [{ status: 403, body: '<title>Forbidden</title>' }, 'unavailable', 'blocks this machine'],
    [refusal(429, 'slow_down', 'Too many requests'), 'unavailable', 'too many requests'],
    [{ status: 429, body: '<html>' }, 'unavailable', 'too many requests'],
    [
      refusal(404, 'Realm does not exist'),
      'configuration',
      'There is no token endpoint at EARSHOT_TOKEN_URL',
    ],
    [
      refusal(500, 'unknown_error', 'For more on this error consult the server log'),
      'unavailable',
      'internal error (500)',
    ],
    [
      { status: 503, body: '<title>Bad gateway</title>' },
      'unavailable',
      'Response: (a web page) Bad gateway',
    ],
    [
      refusal(400, 'something_new', 'Nobody knows'),
      'unauthorized',
      'refused the login (400). Response: Nobody knows',
    ],
    [
      { status: 302, headers: { location: 'https://elsewhere.example' } },
      'configuration',
      'with a redirect (302)',
    ],
    [{ body: '<html>Welcome</html>' }, 'configuration', 'text/plain instead of JSON (200)'],
    [{ status: 200 }, 'configuration', 'something without a type instead of JSON'],
    [{ body: [] }, 'configuration', 'answered without a valid token'],
    [
      { body: { access_token: 7, token_type: 'bearer' } },
      'configuration',
      'answered without a valid token',
    ],
    [
      { body: { access_token: 'ü', token_type: 'bearer' } },
      'configuration',
      'a token that contains characters not allowed in an HTTP header',
    ],
    [{ status: 400, body: { detail: 'x' } }, 'configuration', 'answered without a valid token'],
    [
      { headers: { 'Content-Type': 'application/json' }, body: '{"access_token":' },
      'configuration',
      'answered without a valid token',
    ],
    ['cut', 'unavailable', 'cannot be reached: the connection was lost'],
    ['hang', 'unavailable', 'cannot be reached: it did not answer in time'],
    [{ body: 'x'.repeat(2 ** 20 + 1) }, 'unavailable', 'the response is larger than'],
  ] satisfies [Answer, string, string][])('%j is %s: %s', async (answer, errorCode, words) => {
    const error = await errorWith(answer);
    expect([error.code, error.message]).toEqual([errorCode, expect.stringContaining(words)]);
  });

  it('names the account page, and the host', async () => {
    const unready = await errorWith(refusal(400, 'invalid_grant', 'Account is not fully set up'));
    expect(unready.message).toContain(`Log in at ${unready.url}${realm}/account with`);
    const down = await errorWith({ status: 502, body: '' });
    expect(down.message).toBe(
      `The identity provider (${down.host}) has an internal error (502). Retry later.`,
    );
  });

  it('shows the message of the provider even if the answer has a challenge', async () => {
    const wrong = refusal(401, 'invalid_grant', 'Invalid user credentials');
    const headers = { 'WWW-Authenticate': 'Bearer realm="CDSE", error="invalid_grant"' };
    const error = await errorWith({ ...(wrong as object), headers });
    expect(error.message).toContain('Response: Invalid user credentials');
  });

  it('shows at most 500 printable characters of the message, and no secret that it repeats', async () => {
    const long = `\u001b[31m${password} and ${code}: ${'x'.repeat(600)}`;
    const { message } = await errorWith(refusal(400, 'odd', long), code);
    const said = message.slice(message.indexOf('Response: ') + 10);
    expect(said).toMatch(/^\\u001b\[31m… and …: x+…$/);
    expect(said).toHaveLength(501);
  });

  it('whose description is not a string shows the error code', async () => {
    const { message } = await errorWith(refusal(400, 'odd_error', { a: 1 }));
    expect(message).toContain('Response: odd_error');
  });
});

describe('an unreachable provider', () => {
  it('is reported when nothing listens on the port', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const error = await errorOf(providerAt(url).login('me', password, code));
    expect(error.code).toBe('unavailable');
    expect(error.text).toContain('the connection was refused (ECONNREFUSED)');
    expect(error.text).toContain('check EARSHOT_TOKEN_URL');
  });

  it('is reported when its name does not exist', async () => {
    const error = await errorOf(
      createIdentityProvider({
        tokenUrl: 'https://identity.invalid/token',
        clientId: 'a-client',
        totp: undefined,
        fetch: () =>
          Promise.reject(
            new TypeError(`fetch failed ${password}`, {
              cause: Object.assign(new Error(password), { code: 'ENOTFOUND' }),
            }),
          ),
      }).login('me', password, null),
    );
    expect(error.text).toContain(
      '(identity.invalid) cannot be reached: the host name cannot be resolved',
    );
  });

  it('is reported when its certificate is not trusted', async () => {
    const pair = await createSelfSigned({ hosts: ['localhost'], now: Date.now });
    const server = createTlsServer({ cert: pair.certificatePem, key: pair.keyPem });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo; // A TCP server that listens has one.
    const error = await errorOf(
      providerAt(`https://localhost:${port}`).login('me', password, null),
    );
    expect(error.code).toBe('unavailable');
    expect(error.text).toContain('no trusted HTTPS connection');
  });

  it('does not receive the password without HTTPS', async () => {
    const seen: unknown[] = [];
    const provider = createIdentityProvider({
      tokenUrl: 'http://identity.example/token',
      clientId: 'a-client',
      totp: undefined,
      fetch: (...request) => {
        seen.push(request);
        return Promise.reject(new TypeError('fetch failed'));
      },
    });
    await errorOf(provider.login('me', password, null));
    expect(seen).toEqual([]);
  });
});

describe('the refresh of a session', () => {
  it('returns null when the provider has ended the session', async () => {
    const { url } = await startServer([refusal(400, 'invalid_grant', 'Token is not active')]);
    expect(await providerAt(url).refresh(refreshToken)).toBeNull();
  });

  it('does not show the token when the provider repeats it', async () => {
    const { url } = await startServer([refusal(400, 'odd', `Bad token ${refreshToken}`)]);
    const error = await errorOf(providerAt(url).refresh(refreshToken));
    expect(error.text).toContain('Response: Bad token …');
  });
});

describe('a refusal of the sandbox', () => {
  it.each([
    [{}, { password: 'wrong' }, 'unauthorized', 'EARSHOT_ACCOUNT_TOTP'],
    [{ totpSecret: secret }, {}, 'unauthorized', 'EARSHOT_ACCOUNT_TOTP'],
    [{ totpSecret: secret }, { totp: '000000' }, 'unauthorized', 'valid once'],
    [{ totpSecret: secret }, { totp: 'GEZDGNBVGY3TQOJQ' }, 'unauthorized', 'clock'],
    [{ accountActive: false }, {}, 'unauthorized', 'not fully set up'],
    [{ sessionsMax: 0 }, {}, 'unavailable', 'too many open sessions'],
    [{}, { clientId: 'another' }, 'configuration', 'EARSHOT_CLIENT_ID'],
    [{ identityUnavailable: true }, {}, 'unavailable', 'internal error (503)'],
  ])('with settings %j and account %j is %s: %s', async (service, changes, errorCode, words) => {
    const { tokens } = await startAccount(service);
    const error = await errorOf(tokens(changes).get());
    expect([error.code, error.text]).toEqual([errorCode, expect.stringContaining(words)]);
  });
});
