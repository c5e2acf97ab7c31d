/** The list of paths at `/` and `/api`: each route of the app is in it, and all that is in it answers. */
import { expect, it } from 'vitest';
import { openConsole } from './console-world.ts';

interface Listed {
  method: string;
  path: string;
  summary: string;
}

it('lists the routes of the app, all of them and no others', async () => {
  const { get, routes } = await openConsole();
  const { status, json } = await get('/');
  expect(status).toBe(200);
  expect((await get('/api')).json).toEqual(json);
  const listed: Listed[] = json.paths;
  const named = listed.map(({ method, path }) => `${method} ${path}`);
  expect(new Set(named).size).toBe(named.length);
  // Middleware counts as a route for all methods; below /odata one handler reads the paths.
  const own = routes
    .filter(({ method, path }) => method !== 'ALL' && !path.endsWith('*'))
    .map(({ method, path }) => `${method} ${path}`);
  const inOData = named.filter((name) => / \/odata\//.test(name));
  expect([...new Set([...own, ...inOData])].toSorted()).toEqual(named.toSorted());
  expect(inOData.length).toBeGreaterThanOrEqual(6);
});

it('lists only paths that answer, each with what it is', async () => {
  const { get } = await openConsole();
  const { paths } = (await get('/')).json as { paths: Listed[] };
  for (const { method, path, summary } of paths) {
    expect(summary).toMatch(/^[A-Z].*[^.]$/);
    const target = path.replace('<collection>', 'SENTINEL-1').replace('<Id>', 'an-id');
    const body = method === 'POST' ? { body: '{"FilterProducts":[{"Name":"x"}]}' } : {};
    const { status, text } = await get(target, { method, ...body });
    // A product that is not there is known by its own message.
    expect(status === 200 || text.includes('Product with id an-id'), `${path}: ${text}`).toBe(true);
  }
});

it('names the list where a path leads nowhere', async () => {
  const { get } = await openConsole();
  const { status, json } = await get('/nowhere');
  expect(status).toBe(404);
  expect(json.detail).toBe('There is nothing at this path. GET / lists all paths.');
});
