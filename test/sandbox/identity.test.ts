/** The identity provider of the sandbox: logins, tokens and one-time codes (facts, catalogue 4). */
import { TOTP } from 'otpauth';
import { describe, expect, it } from 'vitest';
import { missing, recorded, send, startMs, startTestSandbox } from './set-up.ts';

const secret = 'JBSWY3DPEHPK3PXP';
const codeAt = (timestamp: number) => new TOTP({ secret }).generate({ timestamp });

async function startIdentity(service = {}) {
  const test = await startTestSandbox({ service });
  const request = (fields: Record<string, string>) =>
    send(test.sandbox.tokenUrl, 'POST', new URLSearchParams(fields));
  const refresh = (token: string) =>
    request({ client_id: 'cdse-public', grant_type: 'refresh_token', refresh_token: token });
  const accepts = async (token: string) => {
    const url = `${test.sandbox.catalogueUrl}/odata/v1/Subscriptions/Info`;
    const { status } = await send(url, 'GET', undefined, { Authorization: `Bearer ${token}` });
    return status === 200;
  };
  return { ...test, refresh, accepts };
}

describe('a login', () => {
  it('gives tokens of ten minutes and an hour, with the recorded fields', async () => {
    const { login } = await startIdentity();
    const { status, json, headers } = await login();
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(json).toMatchObject({ expires_in: 600, refresh_expires_in: 3_600 });
    if (!missing) {
      expect(Object.keys(json)).toEqual(
        Object.keys(recorded('identity/token-200.fake-tokens.json')),
      );
    }
  });

  it('with a wrong field is refused', async () => {
    const { login } = await startIdentity();
    for (const [fields, status, error] of [
      [{ password: 'wrong' }, 401, 'invalid_grant'],
      [{ client_id: 'other' }, 401, 'invalid_client'],
      [{ grant_type: 'client_credentials' }, 400, 'unsupported_grant_type'],
      [{ grant_type: 'refresh_token', refresh_token: 'x' }, 400, 'invalid_grant'],
    ] as const) {
      const { json, ...answer } = await login(fields);
      const error_description = expect.any(String);
      expect([answer.status, json]).toEqual([status, { error, error_description }]);
    }
  });
});

it('a token expires, and the session with its refresh token an hour after the login', async () => {
  const { login, refresh, accepts, sandbox } = await startIdentity();
  const first = (await login()).json;
  sandbox.clock.advance(599_999);
  expect(await accepts(first.access_token)).toBe(true);
  for (const other of [first.refresh_token, 'unknown']) expect(await accepts(other)).toBe(false);
  sandbox.clock.advance(1);
  expect(await accepts(first.access_token)).toBe(false);
  const second = (await refresh(first.refresh_token)).json;
  expect(second).toMatchObject({ refresh_expires_in: 3_000, session_state: first.session_state });
  expect(await accepts(second.access_token)).toBe(true);
  sandbox.clock.advance(2_700_000);
  expect((await refresh(first.refresh_token)).json.expires_in).toBe(300);
  sandbox.clock.advance(300_000);
  expect((await refresh(first.refresh_token)).status).toBe(400);
});

it('a one-time code is required with a shared secret, and accepted once, also of the neighbouring periods', async () => {
  const { login } = await startIdentity({ totpSecret: secret });
  const statusOf = async (totp: string) => (await login({ totp })).status;
  expect((await login()).status).toBe(401);
  expect(await statusOf('000000')).toBe(401);
  // A wrong password does not use up the code.
  expect((await login({ totp: codeAt(startMs), password: 'wrong' })).status).toBe(401);
  for (const step of [0, -30_000, 30_000]) {
    expect(await statusOf(codeAt(startMs + step))).toBe(200);
    expect(await statusOf(codeAt(startMs + step))).toBe(401);
  }
  expect(await statusOf(codeAt(startMs + 90_000))).toBe(401);
});
