/** The doctor's look at the clock, against services on loopback. */
import { createServer } from 'node:http';
import { describe, expect, it } from 'vitest';
import { checkClock } from '../../../src/admin/account-checks.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { listening } from '../endpoint/tls-endpoint.ts';

const thereMs = Date.UTC(2026, 4, 1, 12);

/** A service whose clock stands still. */
async function startService(headers: Record<string, string> = {}) {
  const asked: unknown[] = [];
  const server = createServer(({ method, headers: { 'cache-control': cache } }, response) => {
    asked.push([method, cache]);
    response.sendDate = false;
    response.writeHead(404, { Date: new Date(thereMs).toUTCString(), ...headers }).end();
  });
  return { url: `http://127.0.0.1:${await listening(server)}`, asked };
}

const at = (secondsAhead: number) => () => (thereMs + secondsAhead * 1000) * 1000;

describe('the clock', () => {
  it.each([
    [0, 'pass', 'agrees'],
    [30, 'pass', 'agrees'],
    [-30, 'pass', 'agrees'],
    [31, 'warn', '31 s ahead of'],
    [-31, 'warn', '31 s behind'],
    [300, 'warn', '5 minutes ahead of'],
    [301, 'fail', '5 minutes ahead of'],
    [-7200, 'fail', '120 minutes behind'],
  ])('%i seconds ahead: %s', async (seconds, state, words) => {
    const { url, asked } = await startService();
    const [finding] = await checkClock({ urls: [url], fetch, nowUs: at(seconds) });
    expect(finding).toMatchObject({ check: 'clock', state });
    expect(finding?.message).toContain(words);
    expect(finding?.message).toContain(new URL(url).host);
    expect(finding?.advice === undefined).toBe(state === 'pass');
    expect(asked).toEqual([['HEAD', 'no-store']]);
  });

  it('takes the age of a cached answer into account', async () => {
    const { url } = await startService({ Age: '600' });
    expect(await checkClock({ urls: [url], fetch, nowUs: at(600) })).toMatchObject([
      { state: 'pass' },
    ]);
  });

  it('asks the next service when one does not answer, or does not tell', async () => {
    const closed = `http://127.0.0.1:${await freePort()}`;
    const silent = await startService({ Date: '' });
    const { url } = await startService();
    const urls = [closed, silent.url, url];
    const [finding] = await checkClock({ urls, fetch, nowUs: at(100) });
    expect(finding).toMatchObject({ state: 'warn' });
    expect(finding?.message).toContain(new URL(url).host);
    expect(silent.asked).toHaveLength(1);
  });

  it('is skipped when nobody can be asked', async () => {
    const urls = [`http://127.0.0.1:${await freePort()}`];
    expect(await checkClock({ urls, fetch, nowUs: at(0) })).toMatchObject([{ state: 'skipped' }]);
    expect(await checkClock({ urls: [], fetch, nowUs: at(0) })).toMatchObject([
      { state: 'skipped' },
    ]);
  });
});
