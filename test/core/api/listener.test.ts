/** Requests that the private listener answers, and requests that it refuses. */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import type { UnreadyReason } from '../../../src/core/api/app.ts';
import { type Answer, createMemoryLog, openConsole, openWithPassword } from './console-context.ts';

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
  it('refuses a second Host', async () => {
    const { port } = await openConsole();
    const socket = connect(port, '127.0.0.1');
    socket.end('GET /api HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n');
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /);
  });

  it('answers under its own names, on any port', async () => {
    const context = await openConsole();
    const names = [
      'localhost',
      'LOCALHOST:1',
      '127.0.0.1',
      `127.0.0.1:${context.port}`,
      '[::1]:8080',
    ];
    for (const host of names) {
      expect(await context.get('/odata/v1/Products', { headers: { host } })).toMatchObject({
        status: 200,
      });
    }
  });

  it('answers under its listen address', async () => {
    const context = await openConsole({ host: '127.0.0.2' });
    const ask = (host: string) =>
      context.get(`http://127.0.0.2:${context.port}/api/products`, { headers: { host } });
    expect(await ask('127.0.0.2')).toMatchObject({ status: 200 });
    expect(await ask('127.0.0.3')).toMatchObject({ status: 403 });
  });

  it.each([
    'evil.example',
    'evil.example:8080',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '10.0.0.1',
  ])('refuses the name %s, which a DNS attack directs here', async (host) => {
    const context = await openConsole();
    for (const path of paths) {
      const answer = await context.get(path, { headers: { host } });
      expect(answer.status).toBe(403);
      expect(answer.json.detail).toMatch(/http:\/\/localhost/);
      expect(answer.text).not.toMatch(/product/i);
      expectFormOf(path, answer);
    }
  });
});

describe('the private listener with a password', () => {
  it('accepts the right user, under any name', async () => {
    const context = await openWithPassword();
    const headers = { ...basic('earshot:a: word'), host: 'earshot.example.org' };
    for (const path of paths)
      expect(await context.get(path, { headers })).toMatchObject({ status: 200 });
    const { json } = await context.get('/api/openapi.json', { headers });
    expect(json.security).toEqual([{ login: [] }]);
  });

  it.each([
    ['nothing', {}],
    ['another password', basic('earshot:word')],
    ['another name', basic('admin:a: word')],
    ['another scheme', { authorization: 'Bearer a: word' }],
  ])('answers 401 to %s, on every path', async (_title, headers) => {
    const context = await openWithPassword();
    for (const path of [...paths, '/nowhere', '/odata/v1/Nothing']) {
      const answer = await context.get(path, { headers });
      expect(answer).toMatchObject({
        status: 401,
        headers: { 'www-authenticate': expect.stringMatching(/^Basic realm=/) },
      });
      expect(answer.json.status).toBe(401);
    }
  });

  it('slows down guessing', async () => {
    const context = await openWithPassword();
    const statuses = new Set<number>();
    for (let i = 0; i < 102; i += 1) statuses.add((await context.get('/api/products')).status);
    expect([...statuses]).toEqual([401, 429]);
  });
});

describe('every request', () => {
  it('that would change something gets 405 with the allowed methods', async () => {
    const context = await openConsole();
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
      for (const path of paths) {
        const answer = await context.get(path, { method });
        expect(answer).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
        expectFormOf(path, answer);
      }
    }
  });

  it('by HEAD gets only the headers', async () => {
    const context = await openConsole();
    for (const path of paths) {
      const answer = await context.get(path, { method: 'HEAD' });
      expect(answer).toMatchObject({ status: 200, text: '' });
    }
  });

  it("from another site's page is refused; from its own page, or a typed address, it is not", async () => {
    const context = await openConsole();
    const ask = (site: string) =>
      context.get('/api/products', { headers: { 'sec-fetch-site': site } });
    for (const site of ['cross-site', 'same-site', 'whatever'])
      expect(await ask(site)).toMatchObject({ status: 403 });
    const headers = { 'sec-fetch-site': 'cross-site' };
    expectFormOf('/odata', await context.get('/odata/v1/Products', { headers }));
    for (const site of ['same-origin', 'none'])
      expect(await ask(site)).toMatchObject({ status: 200 });
  });

  it("with another page's Origin is refused, also from browsers without Fetch Metadata", async () => {
    const context = await openConsole();
    const ask = (origin: string) => context.get('/api/products', { headers: { origin } });
    const own = context.origin;
    for (const origin of [
      'https://evil.example',
      'null',
      'http://127.0.0.1:1',
      `${own}.evil.example`,
    ])
      expect(await ask(origin)).toMatchObject({ status: 403 });
    for (const origin of [own, own.replace('http', 'https')])
      expect(await ask(origin)).toMatchObject({ status: 200 });
  });

  it('gets a response that no other page can read and no cache stores', async () => {
    const context = await openConsole();
    for (const path of [...paths, '/nowhere', '/odata/v1/Products?$top=x']) {
      const { headers } = await context.get(path, { headers: { origin: 'https://evil.example' } });
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

describe('a slow query', () => {
  const never = new Promise<never>(() => undefined);
  const hanging = {
    ...createMemoryLog([]),
    find: () => ({ [Symbol.asyncIterator]: () => ({ next: () => never }) }),
  };

  it('ends with 503', async () => {
    const context = await openConsole({ notifications: hanging, limits: { timeoutMs: 50 } });
    const answer = await context.get('/api/notifications');
    expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
    expect(answer.json.detail).toMatch(/took too long/);
  });

  it('keeps its place, others wait in the queue, and those beyond the queue get 503 at once', async () => {
    const limits = { atOnceMax: 1, waitingMax: 1, timeoutMs: 10_000 };
    const { promise, resolve } = Promise.withResolvers<void>();
    let calls = 0;
    const slow = {
      ...hanging,
      async *find() {
        calls += 1;
        await promise;
        yield* [];
      },
    };
    const context = await openConsole({ notifications: slow, limits });
    const first = context.get('/api/notifications');
    await expect.poll(() => calls).toBe(1);
    const others = [context.get('/api/notifications'), context.get('/api/notifications')];
    expect(await Promise.race(others)).toMatchObject({ status: 503 });
    expect(calls).toBe(1);
    resolve();
    const statuses = (await Promise.all([first, ...others])).map(({ status }) => status);
    expect(statuses.toSorted()).toEqual([200, 200, 503]);
    expect(calls).toBe(2);
  });
});

describe('the health check', () => {
  it('reports that the program is alive and ready', async () => {
    const { get } = await openConsole();
    expect(await get('/healthz')).toMatchObject({ status: 200, text: 'ok' });
    expect(await get('/readyz')).toMatchObject({ status: 200, text: 'ready' });
  });

  it('responds 503 with every reason while the receiver is not ready, but still alive', async () => {
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

  it('works without the password, under any name; metrics require it', async () => {
    const { get } = await openWithPassword();
    const headers = { host: 'earshot.example.org' };
    expect(await get('/healthz', { headers })).toMatchObject({ status: 200, text: 'ok' });
    expect(await get('/readyz', { headers })).toMatchObject({ status: 200, text: 'ready' });
    expect(await get('/metrics', { headers })).toMatchObject({ status: 401 });
    const authorization = `Basic ${btoa('earshot:a: word')}`;
    expect(await get('/metrics', { headers: { authorization } })).toMatchObject({ status: 200 });
    for (const path of ['/healthz/', '/healthz/x', '/readyz%2f', '/HEALTHZ']) {
      expect(await get(path, { headers })).toMatchObject({ status: 401 });
    }
  });

  it("refuses names of a DNS attack, and other sites' pages, like every path", async () => {
    const { get } = await openConsole();
    for (const path of ['/healthz', '/readyz', '/metrics']) {
      const tricked = { host: 'evil.example' };
      expect(await get(path, { headers: tricked })).toMatchObject({ status: 403 });
      const page = { 'sec-fetch-site': 'cross-site' };
      expect(await get(path, { headers: page })).toMatchObject({ status: 403 });
    }
  });
});

interface Listed {
  method: string;
  path: string;
  summary: string;
}

it('lists all routes of the app, and no others', async () => {
  const { get, routes } = await openConsole();
  const { status, json } = await get('/api');
  expect(status).toBe(200);
  const listed: Listed[] = json.paths;
  const named = listed.map(({ method, path }) => `${method} ${path}`);
  expect(new Set(named).size).toBe(named.length);
  // Middleware counts as a route for all methods; below /odata and /stac one handler reads the paths. Pages about one
  // item are found by links.
  const own = routes
    .filter(({ method, path }) => method !== 'ALL' && !/\*$|:/.test(path))
    .map(({ method, path }) => `${method} ${path}`);
  const below = named.filter((name) => / \/(?:odata|stac)\//.test(name));
  expect([...new Set([...own, ...below])].toSorted()).toEqual(named.toSorted());
  expect(below.length).toBeGreaterThanOrEqual(16);
});

it('lists only paths that answer, each with a description', async () => {
  const { get } = await openConsole();
  const { paths } = (await get('/api')).json as { paths: Listed[] };
  for (const { method, path, summary } of paths) {
    expect(summary).toMatch(/^[A-Z].*[^.]$/);
    const target = path.replace('<collection>', 'SENTINEL-1').replace('<Id>', 'an-id');
    const posted = path === '/stac/search' ? '{}' : '{"FilterProducts":[{"Name":"x"}]}';
    const body = method === 'POST' ? { body: posted } : {};
    // A stream never ends.
    if (path === '/api/live') continue;
    const { status, text } = await get(target, { method, ...body });
    // A missing item is recognized by its message.
    const isKnown =
      /Product with id an-id|There is no such notification|There is no collection|has no item/.test(
        text,
      );
    expect(status === 200 || isKnown, `${path}: ${text}`).toBe(true);
  }
});

it('names the list for an unknown path', async () => {
  const { get } = await openConsole();
  const { status, json } = await get('/nowhere');
  expect(status).toBe(404);
  expect(json.detail).toBe('Unknown path. GET /api lists all paths.');
});
