/** Requests of scripts on pages of other sites (CORS). */
import { describe, expect, it } from 'vitest';
import { openConsole } from './console-context.ts';

const allowed = 'https://maps.example.org';
const origins = [allowed, 'http://localhost:5173'];
/** Headers of a browser for a request of a script. */
const from = (origin: string) => ({ origin, 'sec-fetch-site': 'cross-site' });
const corsHeaders = (headers: object) =>
  Object.keys(headers).filter((name) => name.startsWith('access-control'));
const data = ['/api/products', '/odata/v1/Products', '/stac', '/stac/search?limit=1'];
const search = { method: 'POST', body: '{"limit":1}' };

describe('a configured origin', () => {
  it.each(origins)('reads all data by GET, HEAD and search, also refusals: %s', async (origin) => {
    const { get } = await openConsole({ origins });
    const expectReadable = async (path: string, sent: object, status: number) => {
      const answer = await get(path, { ...sent, headers: from(origin) });
      expect([path, answer.status]).toEqual([path, status]);
      expect(answer.headers).toMatchObject({
        'access-control-allow-origin': origin,
        'access-control-expose-headers': '*',
        vary: expect.stringContaining('Origin'),
      });
    };
    for (const path of data) {
      await expectReadable(path, {}, 200);
      await expectReadable(path, { method: 'HEAD' }, 200);
    }
    await expectReadable('/stac/search', search, 200);
    await expectReadable('/odata/v1/Products/OData.CSC.FilterList', search, 422);
    await expectReadable('/api/products', search, 405);
    await expectReadable('/stac/search?limit=x', {}, 400);
  });

  it.each([
    ['/stac/search', 'GET,HEAD,POST'],
    ['/odata/v1/Products/OData.CSC.FilterList', 'POST'],
    ['/api/products', 'GET,HEAD'],
    ['/stac/collections', 'GET,HEAD'],
  ])('gets the methods of %s by a preflight request', async (path, methods) => {
    const { get } = await openConsole({ origins });
    const headers = { ...from(allowed), 'access-control-request-headers': 'content-type,x-any' };
    const answer = await get(path, { method: 'OPTIONS', headers });
    expect(answer.status).toBe(204);
    expect(answer.headers).toMatchObject({
      'access-control-allow-origin': allowed,
      'access-control-allow-methods': methods,
      'access-control-allow-headers': 'content-type,x-any',
    });
    expect(corsHeaders(answer.headers)).not.toContain('access-control-allow-credentials');
  });

  it.each(['/', '/live', '/assets/x/page.css', '/metrics', '/healthz', '/apix', '/nowhere'])(
    'does not read %s',
    async (path) => {
      const { get } = await openConsole({ origins });
      for (const method of ['GET', 'OPTIONS']) {
        const answer = await get(path, { method, headers: from(allowed) });
        expect(answer.status).toBe(403);
        expect(corsHeaders(answer.headers)).toEqual([]);
      }
    },
  );
});

describe('any other origin', () => {
  it.each([
    ...['https://maps.example.org.evil.example', 'http://maps.example.org', 'null', '*'],
    ...['https://maps.example.org:8443', 'https://maps.example.org/', 'http://localhost:5174'],
    ...['https://maps.example.org, http://localhost:5173', 'HTTPS://MAPS.EXAMPLE.ORG', 'https://'],
  ])('is refused: %s', async (origin) => {
    const { get } = await openConsole({ origins });
    for (const sent of [{}, { method: 'OPTIONS' }, search]) {
      const answer = await get('/stac/search', { ...sent, headers: from(origin) });
      expect(answer.status).toBe(403);
      expect(corsHeaders(answer.headers)).toEqual([]);
    }
  });

  it('is refused, too, if it is missing, or if no origin is configured', async () => {
    const { get } = await openConsole({ origins });
    const headers = { 'sec-fetch-site': 'cross-site' };
    expect((await get('/stac', { headers })).status).toBe(403);
    const none = await openConsole();
    for (const one of [allowed, ''])
      expect((await none.get('/stac', { headers: from(one) })).status).toBe(403);
  });
});
