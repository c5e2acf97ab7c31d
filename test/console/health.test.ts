/** `/healthz` and `/readyz`: who is answered, and what. */
import { describe, expect, it } from 'vitest';
import type { UnreadyReason } from '../../src/console/app.ts';
import { createCredentialCheck, createGate } from '../../src/receiver/basic-auth.ts';
import { openConsole } from './console-world.ts';

const silent = () => undefined;
const log = { debug: silent, info: silent, warn: silent, error: silent };
const checkCredentials = createCredentialCheck([{ username: 'earshot', password: 'a word' }]);
const newRequestId = () => 'an-id';
const letIn = createGate({ checkCredentials, log, nowUs: () => 0, newRequestId }, silent);

describe('the private listener', () => {
  it('says that the program lives, and that it is ready', async () => {
    const { get } = await openConsole();
    expect(await get('/healthz')).toMatchObject({ status: 200, text: 'ok' });
    expect(await get('/readyz')).toMatchObject({ status: 200, text: 'ready' });
  });

  it('is 503 with every reason while it is not ready; alive all the same', async () => {
    const reasons: UnreadyReason[] = ['store', 'certificate'];
    const { get } = await openConsole({ readiness: async () => reasons });
    expect(await get('/readyz')).toMatchObject({ status: 503, text: 'store\ncertificate' });
    expect(await get('/healthz')).toMatchObject({ status: 200 });
  });

  it('answers HEAD with the same status and no body', async () => {
    const { get } = await openConsole({ readiness: async () => ['writer'] });
    const head = async (path: string) => (await get(path, { method: 'HEAD' })).status;
    expect([await head('/healthz'), await head('/readyz'), await head('/metrics')]).toEqual([
      200, 503, 200,
    ]);
    expect((await get('/metrics', { method: 'HEAD' })).text).toBe('');
    expect(await get('/readyz', { method: 'POST' })).toMatchObject({ status: 405 });
  });

  it('says so without the password as well, under any name; metrics want it', async () => {
    const { get } = await openConsole({ letIn });
    const headers = { host: 'earshot.example.org' };
    expect(await get('/healthz', { headers })).toMatchObject({ status: 200, text: 'ok' });
    expect(await get('/readyz', { headers })).toMatchObject({ status: 200, text: 'ready' });
    expect(await get('/metrics', { headers })).toMatchObject({ status: 401 });
    const authorization = `Basic ${btoa('earshot:a word')}`;
    expect(await get('/metrics', { headers: { authorization } })).toMatchObject({ status: 200 });
    for (const path of ['/healthz/', '/healthz/x', '/readyz%2f', '/HEALTHZ']) {
      expect(await get(path, { headers })).toMatchObject({ status: 401 });
    }
  });

  it('refuses names that lead here by a trick, and pages of other sites, there as everywhere', async () => {
    const { get } = await openConsole();
    for (const path of ['/healthz', '/readyz', '/metrics']) {
      const tricked = { host: 'evil.example' };
      expect(await get(path, { headers: tricked })).toMatchObject({ status: 403 });
      const page = { 'sec-fetch-site': 'cross-site' };
      expect(await get(path, { headers: page })).toMatchObject({ status: 403 });
    }
  });
});
