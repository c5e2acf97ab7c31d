/** The session of the account: shared, renewed, bounded in logins, with one clear cause for each refusal. */
import { chmodSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AccessTokensOptions, createAccessTokens } from '../../src/admin/session.ts';
import type { AcquireLock } from '../../src/core/host/job.ts';
import { AppError } from '../../src/core/terms/app-error.ts';
import { wholeTextOf } from '../core/config/environment.ts';
import { type Answer, startServer } from '../core/http/answering-server.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { failureOf, fileOf, savedBy, startAccount, type TestAccount } from './account.ts';

const secret = 'JBSWY3DPEHPK3PXP';

describe('a session', () => {
  it('is shared by fifty concurrent calls in two programs, and by a later program', async () => {
    const account = await startAccount();
    const programs = [account.tokens(), account.tokens()];
    const calls = Array.from({ length: 50 }, (_, index) => programs[index % 2]?.get());
    const found = await Promise.all([...calls, account.tokens().get()]);
    expect(new Set(found).size).toBe(1);
    expect(await account.accepts(String(found[0]))).toBe(true);
    expect(account.grants()).toEqual({ logins: 1, refreshes: 0 });
  });

  it.each([
    [600, 570],
    [10, 5],
  ])('is refreshed before a token of %d s ends: after %d s', async (accessTokenSeconds, after) => {
    const account = await startAccount({ accessTokenSeconds });
    const tokens = account.tokens();
    const first = await tokens.get();
    account.advance(after);
    expect(await tokens.get()).toBe(first);
    account.advance(0.001);
    expect(await tokens.get()).not.toBe(first);
    expect(account.grants()).toEqual({ logins: 1, refreshes: 1 });
  });

  const steps = ['minute', 'expiry', 'hour', 'get', 'refuse', 'kill', 'damage', 'outage'] as const;

  it('survives any interruptions with one valid token, and logs in only as often as needed', async () => {
    const step = fc.tuple(fc.constantFrom(...steps), fc.nat(2));
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (plan) => {
        const account = await startAccount({ totpSecret: secret });
        const acquireLock = createMemoryLock();
        // Programs wait by advancing the sandbox's clock.
        const wait = async (ms: number) => account.advance(ms / 1000);
        const start = (own: typeof fetch = fetch) =>
          account.tokens({ totp: secret }, { wait, acquireLock, fetch: own });
        const programs = [start(), start(), start()];
        const startUs = account.nowUs();
        let excuses = 1;
        for (const [name, index] of plan) {
          const program = programs[index] ?? start();
          if (name === 'minute') account.advance(60);
          if (name === 'expiry') account.advance(590);
          if (name === 'hour') account.advance(3_600);
          if (name === 'get') await Promise.all(programs.map((one) => one.get().catch(onlyPause)));
          if (name === 'refuse') await program.get().then(program.refused, onlyPause);
          if (name === 'outage') {
            account.sandbox.service.change({ identityUnavailable: true });
            await program.get().catch(() => undefined);
            account.sandbox.service.change({ identityUnavailable: false });
          }
          if (name === 'kill') {
            // The process ends after the request, before its answer is stored.
            const kill = (...request: Parameters<typeof fetch>) =>
              fetch(...request).then(() => Promise.reject(new Error('killed')));
            const killed = start(kill);
            await killed.get().catch(() => undefined);
            programs[index] = start();
          }
          if (name === 'damage' && existsSync(fileOf(account))) {
            writeFileSync(fileOf(account), '{');
            // The time of the last code is lost.
            account.advance(30);
          }
          if (['hour', 'kill', 'damage', 'outage'].includes(name)) excuses += 1;
        }
        account.advance(120);
        const all = [...programs, start()];
        for (const program of all) await program.get();
        const valid = new Set(await Promise.all(all.map((program) => program.get())));
        expect(valid.size).toBe(1);
        for (const token of valid) expect(await account.accepts(token)).toBe(true);
        const minutes = (account.nowUs() - startUs) / 60e6;
        expect(account.grants().logins).toBeLessThanOrEqual(excuses * 2 + minutes / 2);
        // No code was used twice.
        const codes = account.sandbox.requests().filter(({ status }) => status === 401);
        expect(codes).toEqual([]);
      }),
      { numRuns: 20 },
    );
  });
});

function onlyPause(error: unknown) {
  if (!(error instanceof AppError) || error.facts.retryAfterMs === undefined) throw error;
}

/** A lock without the polling of files. */
function createMemoryLock(): AcquireLock {
  let last = Promise.resolve();
  return async () => {
    const before = last;
    const { promise, resolve } = Promise.withResolvers<void>();
    last = promise;
    await before;
    return resolve;
  };
}

describe('the session file', () => {
  /** Changes the saved session. */
  const edit =
    (change: (saved: ReturnType<typeof savedBy>) => unknown) => (account: TestAccount) => {
      const saved = savedBy(account);
      change(saved);
      writeFileSync(fileOf(account), JSON.stringify(saved));
    };

  it.each<[string, (account: TestAccount) => void]>([
    ['is readable by others', (account) => chmodSync(fileOf(account), 0o640)],
    ['is not JSON', (account) => writeFileSync(fileOf(account), '{"session":')],
    ['is missing', (account) => rmSync(fileOf(account))],
    ['is of another account', edit((saved) => Object.assign(saved, { owner: 'x' }))],
    [
      'has a token that is invalid in a header',
      edit(({ session }) => Object.assign(session.accessToken, { value: 'a\nX-Header: 1' })),
    ],
    [
      'was written with a clock ahead of this one',
      edit(({ session }) => {
        session.accessToken.fromUs += 365 * 86_400e6;
        session.refreshToken.fromUs += 365 * 86_400e6;
      }),
    ],
  ])('is replaced, not used, if it %s', async (_title, damage) => {
    const account = await startAccount();
    const running = account.tokens();
    const first = await running.get();
    damage(account);
    expect(await account.tokens().get()).not.toBe(first);
    expect(account.grants()).toEqual({ logins: 2, refreshes: 0 });
    expect(statSync(fileOf(account)).mode & 0o777).toBe(0o600);
    await account.tokens().get();
    expect(account.grants().logins).toBe(2);
    expect(readFileSync(fileOf(account), 'utf8')).not.toContain('a long password');
  });

  it('that cannot be written leaves the session in memory', async () => {
    const account = await startAccount();
    const dataDir = join(account.dataDir, 'file', 'missing');
    writeFileSync(join(account.dataDir, 'file'), '');
    const tokens = account.tokens({}, { dataDir });
    const first = await tokens.get();
    expect(await tokens.get()).toBe(first);
    await tokens.refused(first);
    expect(await account.accepts(await tokens.get())).toBe(true);
    expect(account.grants()).toEqual({ logins: 1, refreshes: 1 });
  });
});

describe('a refused token', () => {
  it('of the settings is used until it is refused', async () => {
    const unused = () => Promise.reject(new Error('Unexpected call.'));
    const tokens = createAccessTokens({
      ...{ account: { kind: 'token', accessToken: 'given-token' }, dataDir: '/nowhere' },
      ...{ nowUs: () => 0, fetch: unused },
    });
    await tokens.refused('another-token');
    expect([await tokens.get(), await tokens.get()]).toEqual(['given-token', 'given-token']);
    await tokens.refused('given-token');
    const error = await failureOf(tokens.get());
    expect(error.code).toBe('unauthorized');
    expect(error.text).toMatch(/EARSHOT_ACCESS_TOKEN.*EARSHOT_ACCOUNT_USERNAME/);
    expect(error.text).not.toContain('given-token');
  });

  it('causes a refresh, then a login, in all programs at most every two minutes', async () => {
    const account = await startAccount();
    const refuse = async () => {
      const tokens = account.tokens();
      await tokens.refused(await tokens.get());
    };
    for (let login = 1; login <= 4; login += 1) {
      await refuse();
      await refuse();
      const error = await failureOf(account.tokens().get());
      expect([error.code, error.facts]).toEqual(['unauthorized', { retryAfterMs: 120_000 }]);
      expect(error.text).toContain('The catalogue refuses the tokens');
      account.advance(119);
      await failureOf(account.tokens().get());
      expect(account.grants()).toEqual({ logins: login, refreshes: login });
      account.advance(1);
    }
  });

  it('of a session that the provider ended causes a login at once, but not twice in a row', async () => {
    const account = await startAccount();
    const end = async () => {
      const tokens = account.tokens();
      const saved = savedBy(account);
      saved.session.refreshToken.value = 'an-ended-session';
      writeFileSync(fileOf(account), JSON.stringify(saved));
      await tokens.refused(await tokens.get());
    };
    await account.tokens().get();
    await end();
    expect(await account.accepts(await account.tokens().get())).toBe(true);
    await end();
    expect((await failureOf(account.tokens().get())).code).toBe('unauthorized');
    expect(account.grants()).toEqual({ logins: 2, refreshes: 1 });
  });
});

describe('a one-time code', () => {
  /** The secret of RFC 6238, appendix B. */
  const totp = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ';

  it.each([
    [20_000_000_000, `${totp.toLowerCase()}====`, '353130'],
    [59, '007123', '007123'],
  ])('at second %i of the secret %s is %s', async (seconds, totp, code) => {
    const { url, requests } = await startServer([{ body: granted }]);
    await tokensAt(url, { totp }, { nowUs: () => seconds * 1e6 }).get();
    expect(new URLSearchParams(requests[0]?.body).get('totp')).toBe(code);
  });

  it('cannot be computed from an invalid secret, and the error does not show it', async () => {
    const error = await failureOf(tokensAt('http://127.0.0.1:1', { totp: 'wrong-1890' }).get());
    expect([error.code, error.text]).toEqual(['configuration', expect.stringMatching(/_TOTP/)]);
    expect(wholeTextOf(error)).not.toContain('1890');
  });
});

const granted = { access_token: 'access', refresh_token: 'refresh', token_type: 'Bearer' };
const password = 'p"ass ü\\word+%';
const realm = '/auth/realms/CDSE';

/** Tokens of a provider, without waiting. */
function tokensAt(url: string, changes: object = {}, more: Partial<AccessTokensOptions> = {}) {
  const tokenUrl = `${url}${realm}/protocol/openid-connect/token`;
  const dataDir = temporaryDirectory();
  return createAccessTokens({
    account: {
      ...{ kind: 'password', tokenUrl, clientId: 'a-client', username: 'me@example.org' },
      ...{ password, totp: undefined, ...changes },
    },
    ...{ dataDir, nowUs: () => Date.now() * 1000, fetch, wait: async () => undefined },
    ...more,
  });
}

it.each([
  ['300', 300],
  [0, 60],
  [1e300, 60],
])('a login sends a form, and a lifetime of %s means %i s', async (expires_in, seconds) => {
  const { url, requests } = await startServer([{ body: { ...granted, expires_in } }]);
  const dataDir = temporaryDirectory();
  await tokensAt(url, {}, { dataDir }).get();
  expect(Object.fromEntries(new URLSearchParams(requests[0]?.body))).toEqual({
    ...{ grant_type: 'password', client_id: 'a-client', username: 'me@example.org', password },
  });
  expect(savedBy({ dataDir }).session.accessToken.lifetimeUs).toBe(seconds * 1e6);
});

/** Returns the text of a failed login; fails if anything in the error contains a secret. */
async function refusalWith(answer: Answer, totp?: string) {
  const { url } = await startServer([answer]);
  const error = await failureOf(tokensAt(url, { totp }).get());
  const secrets = [password, encodeURIComponent(password), '918273', secret, 'leaked-token'];
  expect(secrets.filter((one) => wholeTextOf(error).includes(one))).toEqual([]);
  const { code, facts, text } = error;
  return { code, fault: facts.fault, text: text.replace(new URL(url).host, 'HOST') };
}

const refusal = (status: number, error: string, description?: unknown): Answer => ({
  status,
  headers: { 'WWW-Authenticate': `Bearer error="${error}"` },
  body: { error, ...(description === undefined ? {} : { error_description: description }) },
});

describe('a refused login', () => {
  it.each([
    [400, 'odd_error', undefined, 'unauthorized', 'refused'],
    [400, 'invalid_grant', 'not fully set up', 'unauthorized', 'account'],
    [401, 'invalid_client', 'Invalid client', 'configuration', 'client'],
    [404, 'Realm does not exist', undefined, 'configuration', 'client'],
    [403, 'denied', 'Max session number 4 exceeded.', 'unavailable', 'sessions'],
    [429, 'slow_down', 'Too many requests', 'unavailable', 'unavailable'],
  ])('%i %s "%s" is %s, with the response', async (status, error, description, code, fault) => {
    const { text, ...found } = await refusalWith(refusal(status, error, description));
    expect(found).toEqual({ code, fault: `login-${fault}` });
    expect(text).toMatch(new RegExp(`\\(HOST\\).*\\(${status}\\).* Response: .*${error}`));
    expect(text.includes(`${realm}/account`)).toBe(/account|sessions/.test(fault));
  });

  const json = { 'Content-Type': 'application/json' };

  it.each([
    [{ status: 403, body: '<title>too many sessions</title>' }, 'unavailable', /too many/],
    [{ status: 403, body: '<title>Forbidden</title>' }, 'unavailable', /machine \(403\)/],
    [{ body: { access_token: 'leaked-token' } }, 'configuration', /no token/],
    [{ headers: json, body: '{"access_token":"leaked-token' }, 'configuration', /no token/],
    ['cut', 'unavailable', /HOST.*the connection was lost/],
    [{ body: 'x'.repeat(2 ** 20 + 1) }, 'unavailable', /the response is larger than/],
  ] satisfies [Answer, string, RegExp][])('the answer %j is %s', async (answer, code, words) => {
    expect(await refusalWith(answer)).toMatchObject({ code, text: expect.stringMatching(words) });
  });

  it('quotes at most 500 printable characters, and no secret that the provider repeats', async () => {
    const long = `\u001b[31m${password} and 918273: ${'x'.repeat(600)}`;
    const { text } = await refusalWith(refusal(400, 'odd', long), '918273');
    const said = text.slice(text.indexOf('Response: ') + 10);
    expect(said).toMatch(/"\\u001b\[31m… and …: x+…$/);
    expect(said).toHaveLength(501);
  });

  it('without HTTPS sends no password', async () => {
    const fetch = () => Promise.reject(new Error('Unexpected request.'));
    const error = await failureOf(tokensAt('http://identity.example', {}, { fetch }).get());
    expect(error.text).toContain('no request');
  });
});
