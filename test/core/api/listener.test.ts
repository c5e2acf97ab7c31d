import { describe, expect, it } from 'vitest';
import { type Answer, openConsole, openWithPassword } from './console-context.ts';

const paths = [
  ...['/odata/v1/Products', '/api/products', '/api/notifications', '/api/summaries'],
  '/api/openapi.json',
];
/** Below `/odata`: the catalogue's form, with the id in a header; elsewhere problem JSON. */
function expectFormOf(path: string, { json, headers }: Answer) {
  const isOData = path.startsWith('/odata');
  expect(headers['content-type']).toBe(isOData ? 'application/json' : 'application/problem+json');
  if (isOData) expect(json).toEqual({ detail: expect.any(String) });
  expect(isOData ? headers['request-id'] : json.requestId).toMatch(/^[\da-f-]{36}$/);
}

const basic = (words: string) => ({ authorization: `Basic ${btoa(words)}` });

describe('the private listener without a password', () => {
  it('answers under its own names, on any port, and its listen address', async () => {
    const { get, port } = await openConsole();
    const names = ['localhost', 'LOCALHOST:1', '127.0.0.1', `127.0.0.1:${port}`, '[::1]:8080'];
    for (const host of names) {
      expect(await get('/odata/v1/Products', { headers: { host } })).toMatchObject({ status: 200 });
    }
    const other = await openConsole({ host: '127.0.0.2' });
    const statusOf = async (host: string) =>
      (await other.get(`http://127.0.0.2:${other.port}/api`, { headers: { host } })).status;
    expect([await statusOf('127.0.0.2'), await statusOf('127.0.0.3')]).toEqual([200, 403]);
  });

  it.each([
    ...['evil.example', 'evil.example:8080', 'localhost.evil.example', '127.0.0.1.evil.example'],
    '10.0.0.1',
  ])('refuses the name %s, which a DNS attack directs here', async (host) => {
    const { get } = await openConsole();
    for (const path of [...paths, '/', '/healthz', '/readyz', '/metrics']) {
      const answer = await get(path, { headers: { host } });
      expect(answer.status).toBe(403);
      expect(answer.json.detail).toMatch(/http:\/\/localhost/);
      expect(answer.text).not.toMatch(/product/i);
      expectFormOf(path, answer);
    }
  });
});

it.each([
  ['nothing', {}],
  ['another password', basic('earshot:word')],
  ['another name', basic('admin:a: word')],
  ['another scheme', { authorization: 'Bearer a: word' }],
])(
  'the private listener with a password answers 401 to %s, on every path but those of the health checks',
  async (_title, headers) => {
    const { get } = await openWithPassword();
    const similar = ['/healthz/', '/healthz/x', '/readyz%2f', '/HEALTHZ'];
    for (const path of [...paths, '/', '/metrics', '/nowhere', '/odata/v1/Nothing', ...similar]) {
      const answer = await get(path, { headers });
      expect([path, answer.status, answer.json.status]).toEqual([path, 401, 401]);
      expect(answer.headers['www-authenticate']).toMatch(/^Basic realm=/);
    }
    const named = { headers: { ...headers, host: 'earshot.example.org' } };
    expect(await get('/healthz', named)).toMatchObject({ status: 200, text: 'ok' });
    expect(await get('/readyz', named)).toMatchObject({ status: 200, text: 'ready' });
  },
);

describe('every request', () => {
  it('that would change something gets 405 with the allowed methods', async () => {
    const { get } = await openConsole();
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      for (const path of paths) {
        const answer = await get(path, { method });
        expect(answer).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
        expectFormOf(path, answer);
      }
    }
    expect(await get('/readyz', { method: 'POST' })).toMatchObject({ status: 405 });
  });

  it("from another site's page is refused; from its own page, or a typed address, it is not", async () => {
    const context = await openConsole();
    const own = context.origin;
    const ask = (headers: Record<string, string>, path = '/api/products') =>
      context.get(path, { headers });
    for (const site of ['cross-site', 'same-site', 'whatever'])
      expect(await ask({ 'sec-fetch-site': site })).toMatchObject({ status: 403 });
    for (const path of ['/odata/v1/Products', '/healthz', '/metrics']) {
      const answer = await ask({ 'sec-fetch-site': 'cross-site' }, path);
      expect(answer.status).toBe(403);
      expectFormOf(path, answer);
    }
    for (const site of ['same-origin', 'none'])
      expect(await ask({ 'sec-fetch-site': site })).toMatchObject({ status: 200 });
    // Browsers without Fetch Metadata send only the origin.
    const others = ['https://evil.example', 'null', 'http://127.0.0.1:1', `${own}.evil.example`];
    for (const origin of others) expect(await ask({ origin })).toMatchObject({ status: 403 });
    for (const origin of [own, own.replace('http', 'https')])
      expect(await ask({ origin })).toMatchObject({ status: 200 });
  });

  it('gets a response that no other page can read and no cache stores', async () => {
    const { get } = await openConsole();
    for (const path of [...paths, '/nowhere', '/odata/v1/Products?$top=x']) {
      const { headers } = await get(path, { headers: { origin: 'https://evil.example' } });
      expect(headers).toMatchObject({
        'cache-control': 'no-store',
        'cross-origin-resource-policy': 'same-origin',
        'x-content-type-options': 'nosniff',
        'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      });
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
    }
  });
});

describe('the list of routes', () => {
  it('has all routes of the app and no others, each of which answers', async () => {
    const { get, routes } = await openConsole();
    const listed: { method: string; path: string; summary: string }[] = (await get('/api')).json
      .paths;
    const named = listed.map(({ method, path }) => `${method} ${path}`);
    // Middleware counts as a route for all methods; below /odata and /stac one handler reads the
    // paths. Pages about one item are found by links.
    const own = routes
      .filter(({ method, path }) => method !== 'ALL' && !/\*$|:/.test(path))
      .map(({ method, path }) => `${method} ${path}`);
    const below = named.filter((name) => / \/(?:odata|stac)\//.test(name));
    expect([...new Set([...own, ...below])].toSorted()).toEqual(named.toSorted());
    expect(below.length).toBeGreaterThanOrEqual(16);
    for (const { method, path, summary } of listed) {
      expect(summary).toMatch(/^[A-Z].*[^.]$/);
      const target = path.replace('<collection>', 'SENTINEL-1').replace('<Id>', 'an-id');
      const posted = path === '/stac/search' ? '{}' : '{"FilterProducts":[{"Name":"x"}]}';
      // A stream never ends.
      if (['/api/live', '/api/feed'].includes(path)) continue;
      const sent = { method, ...(method === 'POST' ? { body: posted } : {}) };
      const { status, text } = await get(target, sent);
      // A missing item is recognized by its message.
      const missing = /Product with id an-id|no such notification|no collection|has no item/;
      expect(status === 200 || missing.test(text), `${path}: ${text}`).toBe(true);
    }
  });

  it('is named for an unknown path', async () => {
    const { get } = await openConsole();
    const { status, json } = await get('/nowhere');
    expect([status, json.detail]).toEqual([404, 'Unknown path. GET /api lists all paths.']);
  });
});
