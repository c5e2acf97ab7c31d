/** The identity provider over real HTTP: grants, lifetimes, sessions, one-time codes, and its errors. */
import { TOTP } from 'otpauth';
import { describe, expect, it } from 'vitest';
import type { SandboxOptions } from '../../src/sandbox/sandbox-options.ts';
import { type Answer, loginFields, send, startMs, startTestSandbox } from './set-up.ts';

const totpSecret = 'JBSWY3DPEHPK3PXP';
const codeAt = (timestamp: number) => new TOTP({ secret: totpSecret }).generate({ timestamp });
const badCredentials = { error: 'invalid_grant', error_description: 'Invalid user credentials' };
const notActive = { error: 'invalid_grant', error_description: 'Token is not active' };
const shape = ({ status, json }: Answer) => [status, json];

async function startIdentity(service: SandboxOptions['service'] = {}) {
  const test = await startTestSandbox({ service });
  const { root, login, askToken } = test;
  return {
    ...test,
    advance: test.sandbox.clock.advance,
    loginStatus: async (fields: Record<string, string> = {}) => (await login(fields)).status,
    refresh: (fields: Record<string, string>) =>
      askToken({ client_id: 'cdse-public', grant_type: 'refresh_token', ...fields }),
    /** Returns the catalogue's status for a token: 200 while it is valid. */
    statusWith: async (token: string) => {
      const headers = { Authorization: `bearer ${token}` };
      return (await send(`${root}/Subscriptions/Info`, { headers })).status;
    },
  };
}

describe('a login', () => {
  it('returns opaque tokens, their lifetimes and the date of the sandbox, and forbids caching', async () => {
    const { login, advance } = await startIdentity();
    advance(1_000);
    const { status, headers, json } = await login();
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(headers.get('date')).toBe(new Date(startMs + 1_000).toUTCString());
    expect(json).toEqual({
      access_token: expect.stringMatching(/^[\da-f]{64}$/),
      expires_in: 600,
      refresh_expires_in: 3600,
      refresh_token: expect.stringMatching(/^[\da-f]{64}$/),
      token_type: 'Bearer',
      'not-before-policy': 0,
      session_state: expect.any(String),
      scope: expect.any(String),
    });
    expect(json.access_token).not.toBe(json.refresh_token);
  });

  it.each([
    [{ password: 'x' }, 401, badCredentials],
    [{ username: 'x' }, 401, badCredentials],
    [{ client_id: 'x' }, 401, { error: 'invalid_client' }],
    [{ grant_type: 'code' }, 400, { error: 'unsupported_grant_type' }],
  ])('with %j is refused', async (fields, status, body) => {
    const { login } = await startIdentity();
    const expected = { error_description: expect.any(String), ...body };
    expect(await login(fields)).toMatchObject({ status, json: expected });
  });

  it('without one of its fields is refused', async () => {
    const { askToken } = await startIdentity();
    for (const name of Object.keys(loginFields)) {
      const { [name]: _, ...fields } = { ...loginFields } as Record<string, string>;
      const { status, json } = await askToken(fields);
      expect([400, 401], name).toContain(status);
      expect(json).toEqual({ error: expect.any(String), error_description: expect.any(String) });
    }
  });

  it('to an inactive account is refused, after the password was checked', async () => {
    const { login, loginStatus, sandbox } = await startIdentity({ accountActive: false });
    const body = { error: 'invalid_grant', error_description: 'Account is not fully set up' };
    expect(shape(await login())).toEqual([400, body]);
    expect((await login({ password: 'x' })).json).toEqual(badCredentials);
    sandbox.service.change({ accountActive: true });
    expect(await loginStatus()).toBe(200);
  });

  it('accepts the configured user name and password', async () => {
    const account = { username: 'me@example.org', password: 'pässwörd & more' };
    const { login } = await startTestSandbox({ account });
    expect([(await login(account)).status, (await login()).status]).toEqual([200, 401]);
  });
});

describe('an access token', () => {
  it('is valid for 600 seconds; access and refresh tokens are not interchangeable', async () => {
    const { login, refresh, statusWith, advance } = await startIdentity();
    const { access_token, refresh_token } = (await login()).json;
    expect(await statusWith(refresh_token)).toBe(401);
    expect((await refresh({ refresh_token: access_token })).status).toBe(400);
    advance(599_999);
    expect(await statusWith(access_token)).toBe(200);
    advance(1);
    expect(await statusWith(access_token)).toBe(401);
  });

  it('expires with its session', async () => {
    const { login, refresh, statusWith, advance } = await startIdentity();
    const { refresh_token } = (await login()).json;
    advance(3_500_000);
    const { json } = await refresh({ refresh_token });
    expect([json.expires_in, json.refresh_expires_in]).toEqual([100, 100]);
    advance(100_000);
    expect(await statusWith(json.access_token)).toBe(401);
  });
});

describe('a refresh token', () => {
  it('is reusable for 3,600 seconds from the login', async () => {
    const { login, refresh, statusWith, advance } = await startIdentity();
    const first = (await login()).json;
    let { refresh_token } = first;
    for (const left of [2_700, 1_800, 900]) {
      advance(900_000);
      const { status, json } = await refresh({ refresh_token });
      expect([status, json.refresh_expires_in]).toEqual([200, left]);
      expect(json.session_state).toBe(first.session_state);
      expect(await statusWith(json.access_token)).toBe(200);
      refresh_token = json.refresh_token;
    }
    advance(899_999);
    expect((await refresh({ refresh_token })).status).toBe(200);
    advance(1);
    expect(shape(await refresh({ refresh_token }))).toEqual([400, notActive]);
  });

  it.each([
    [{ refresh_token: 'x' }, notActive],
    [{}, { error: 'invalid_request' }],
  ])('is refused when given as %j', async (fields, json) => {
    const { refresh } = await startIdentity();
    expect(await refresh({ ...fields })).toMatchObject({ status: 400, json });
  });
});

describe('sessions', () => {
  it('are limited to 100; a refresh does not open one', async () => {
    const { login, loginStatus, refresh, advance } = await startIdentity();
    const { refresh_token } = (await login()).json;
    for (let number = 2; number <= 99; number += 1) await login();
    for (let times = 0; times < 5; times += 1) await refresh({ refresh_token });
    expect(await loginStatus()).toBe(200);
    const { status, headers, text } = await login();
    expect([status, headers.get('content-type')]).toEqual([403, expect.stringMatching(/html/)]);
    expect(text).toContain('too many sessions');
    advance(3_600_000);
    expect(await loginStatus()).toBe(200);
  });

  it('are not opened by a failed login', async () => {
    const { login, loginStatus } = await startIdentity({ sessionsMax: 1 });
    for (let times = 0; times < 3; times += 1) await login({ password: 'x' });
    expect([await loginStatus(), await loginStatus()]).toEqual([200, 403]);
  });
});

describe('a one-time code', () => {
  it('that is missing, wrong or not six digits gets the same answer as a wrong password', async () => {
    const { login } = await startIdentity({ totpSecret });
    const wrong = codeAt(startMs + 3_600_000);
    for (const fields of [{}, { totp: wrong }, { totp: '' }, { totp: 'secret' }]) {
      expect(shape(await login(fields))).toEqual([401, badCredentials]);
    }
  });

  it('is valid once, and stays valid after a wrong password', async () => {
    const { loginStatus, advance } = await startIdentity({ totpSecret });
    const totp = codeAt(startMs);
    expect(await loginStatus({ totp, password: 'x' })).toBe(401);
    expect([await loginStatus({ totp }), await loginStatus({ totp })]).toEqual([200, 401]);
    advance(30_000);
    // Still within the window, but already used.
    expect(await loginStatus({ totp })).toBe(401);
    expect(await loginStatus({ totp: codeAt(startMs + 30_000) })).toBe(200);
  });

  it.each([
    [-60_000, 401],
    [-30_000, 200],
    [30_000, 200],
    [60_000, 401],
  ])('for a time %d ms from now is answered with %d', async (offsetMs, status) => {
    const { loginStatus } = await startIdentity({ totpSecret });
    expect(await loginStatus({ totp: codeAt(startMs + offsetMs) })).toBe(status);
  });

  it('is not required for a refresh or without a secret', async () => {
    const { login, loginStatus, refresh, sandbox } = await startIdentity({ totpSecret });
    const { refresh_token } = (await login({ totp: codeAt(startMs) })).json;
    expect((await refresh({ refresh_token })).status).toBe(200);
    sandbox.service.change({ totpSecret: null });
    expect(await loginStatus({ totp: '123456' })).toBe(200);
  });
});

it('the identity provider describes the realm and has no other pages', async () => {
  const { sandbox } = await startTestSandbox();
  const issuer = `${sandbox.catalogueUrl}/auth/realms/CDSE`;
  const { status, json } = await send(`${issuer}/.well-known/openid-configuration`);
  expect(status).toBe(200);
  expect(json).toMatchObject({ issuer, token_endpoint: sandbox.tokenUrl });
  expect(json.grant_types_supported).toEqual(['password', 'refresh_token']);
  expect((await send(`${issuer}/account`)).status).toBe(404);
  expect((await send(sandbox.tokenUrl)).status).toBe(404);
});
