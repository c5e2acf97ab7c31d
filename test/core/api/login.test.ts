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
  const login = async (authorization: string) =>
    (await context.get(path, { headers: { authorization } })).status;
  const guess = async (count: number) => {
    const statuses: number[] = [];
    for (let i = 0; i < count; i += 1) statuses.push(await login(basic(`${i}`)));
    return statuses;
  };
  return { ...context, clock, login, guess };
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
