/** Guessing the password of the private listener. */
import { describe, expect, it } from 'vitest';
import { openWithPassword, type Sent } from './console-context.ts';

const basic = (password: string, user = 'earshot') => `Basic ${btoa(`${user}:${password}`)}`;
const good = basic('a: word');
const path = '/api/openapi.json';

/** A listener with a clock, and a login whose answer is a status. */
async function open() {
  const clock = { us: 1_777_777_777_000_000 };
  const context = await openWithPassword({ nowUs: () => clock.us });
  const login = async (authorization: string, cookie?: string) => {
    const headers = { authorization, ...(cookie === undefined ? {} : { cookie }) };
    return (await context.get(path, { headers })).status;
  };
  const guess = async (count: number, cookie?: string) => {
    const statuses: number[] = [];
    for (let i = 0; i < count; i += 1) statuses.push(await login(basic(`${i}`), cookie));
    return statuses;
  };
  /** Logs in, and returns the pair of the cookie with its attributes. */
  const cookieOf = async (headers: Record<string, string> = {}) => {
    const answer = await context.get(path, { headers: { authorization: good, ...headers } });
    const [set = ''] = answer.headers['set-cookie'] ?? [];
    const [pair = '', ...attributes] = set.split('; ');
    return { pair, attributes };
  };
  return { ...context, clock, login, guess, cookieOf };
}

describe('a hundred failed logins in a minute', () => {
  it.each<[string, Sent & { path?: string }]>([
    ['wrong users', { headers: { authorization: basic('a: word', 'admin') } }],
    ['no Basic login', { headers: { authorization: 'Bearer x' } }],
    ['other methods', { method: 'POST', headers: { authorization: basic('x') } }],
    ['pages', { path: '/', headers: { authorization: basic('x') } }],
  ])('with %s block the valid login, too', async (_title, { path: other = path, ...sent }) => {
    const { get, login } = await open();
    for (let i = 0; i < 100; i += 1) expect((await get(other, sent)).status).toBe(401);
    expect(await login(good)).toBe(429);
    expect((await get('/healthz')).status).toBe(200);
  });

  it('block all logins until the minute since the first one has passed, also after a success', async () => {
    const { get, clock, login, guess } = await open();
    await guess(1);
    clock.us += 20_000_000;
    await guess(98);
    expect(await login(good)).toBe(200);
    expect(await guess(1)).toEqual([401]);
    const answer = await get(path, { headers: { authorization: good } });
    expect([answer.status, answer.headers['retry-after']]).toEqual([429, '40']);
    expect(answer.json.detail).toContain('The correct password is refused, too. Retry in 40 s.');
    expect(new Set(await guess(500))).toEqual(new Set([429]));
    clock.us += 39_999_999;
    expect(await login(good)).toBe(429);
    clock.us += 1;
    expect(await login(good)).toBe(200);
  });
});

describe('a browser that has logged in', () => {
  it('is not blocked with others at its address, but needs the password', async () => {
    const { get, login, guess, cookieOf } = await open();
    const { pair, attributes } = await cookieOf();
    expect(attributes).toEqual(['Max-Age=2592000', 'Path=/', 'HttpOnly', 'SameSite=Strict']);
    await guess(101);
    expect(await login(good)).toBe(429);
    expect(await login(good, `a=b; ${pair}; c=d`)).toBe(200);
    expect((await get(path, { headers: { cookie: pair } })).status).toBe(401);
    // It may guess a hundred times itself.
    await guess(100, pair);
    expect(await login(good, pair)).toBe(429);
  });

  it('gets a cookie for HTTPS from a proxy, and a new one before the old one expires', async () => {
    const { clock, cookieOf } = await open();
    const { pair, attributes } = await cookieOf({ 'x-forwarded-proto': 'https, http' });
    expect(attributes).toContain('Secure');
    clock.us += 14 * 86_400_000_000;
    expect((await cookieOf({ cookie: pair })).pair).toBe('');
    clock.us += 2 * 86_400_000_000;
    expect((await cookieOf({ cookie: pair })).pair).not.toBe('');
  });

  it('is blocked with a changed, expired or foreign cookie', async () => {
    const { clock, login, guess, cookieOf } = await open();
    const { pair } = await cookieOf();
    const foreign = (await (await open()).cookieOf()).pair;
    const [name = '', value = ''] = pair.split(/=(.*)/s);
    const changed = [
      value.replace(/[^.]+$/, 'A'.repeat(43)),
      `x${value}`,
      value.replace(/\.(\d+)\./, (_, at) => `.${Number(at) + 1}.`),
      value.replace(/\.[^.]+$/, ''),
      '',
      value.repeat(50),
    ].map((one) => `${name}=${one}`);
    await guess(100);
    for (const cookie of [...changed, foreign])
      expect([cookie, await login(good, cookie)]).toEqual([cookie, 429]);
    expect(await login(good, pair)).toBe(200);
    clock.us += 30 * 86_400_000_000;
    await guess(100);
    expect(await login(good, pair)).toBe(429);
  });
});
