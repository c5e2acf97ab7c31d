import { expect, it } from 'vitest';
import { navigation } from '../../helpers/pages.ts';
import {
  createMemoryLog,
  generatedProducts,
  notificationRow,
  openConsole,
  type Sent,
} from './console-context.ts';

async function open(consoleUrl?: string) {
  const rows = [1, 2, 3].map((position) => notificationRow(position));
  const context = await openConsole({ notifications: createMemoryLog(rows), consoleUrl });
  context.products.add('Products', ...generatedProducts(3).products);
  return context;
}

/** Requests whose answers have links. */
const linked: [path: string, sent?: Sent][] = [
  ['/stac'],
  ['/stac/collections'],
  ['/stac/search?limit=1'],
  ['/stac/search', { method: 'POST', body: '{"limit":1}' }],
  ['/stac/queryables'],
  ['/stac/api'],
  ['/odata/v1'],
  ['/odata/v1/Products?$top=1'],
  ['/api/products?limit=1'],
  ['/api/notifications?limit=1'],
  ['/api/openapi.json'],
];

it.each([
  ['the address of the request', undefined, 'http://localhost:9'],
  ['the configured address', 'https://example.org/ear', 'https://example.org/ear'],
])('every link has %s, and each can be followed', async (_title, consoleUrl, base) => {
  const context = await open(consoleUrl);
  const headers = { host: 'localhost:9', 'x-forwarded-proto': 'ftp' };
  for (const [path, sent] of linked) {
    const { text } = await context.get(path, { ...sent, headers });
    const own = [...text.matchAll(/"(https?:[^"]*)"/g)].flatMap(([, link = '']) =>
      ['localhost:9', new URL(base).host].includes(new URL(link).host) ? [link] : [],
    );
    expect([path, own.length > 0]).toEqual([path, true]);
    for (const link of new Set(own)) {
      expect(link.startsWith(`${base}/`) || link === base).toBe(true);
      // The description of the API names the base alone.
      const inside = link.slice(base.length) || '/api';
      expect([inside, (await context.get(inside)).status]).toEqual([inside, 200]);
    }
  }
});

const attributes = /\b(?:href|src|action)="([^"]*)"/g;
it.each([
  ['that a proxy removes', ''],
  ['that a proxy sends', '/ear'],
])('pages behind a prefix %s link to it only', async (_title, sent) => {
  const context = await open('https://example.org/ear');
  for (const { path } of [...navigation, { path: '/no-such-page' }]) {
    const { text } = await context.get(sent + path, { headers: { accept: 'text/html' } });
    const links = [...text.matchAll(attributes)].map(([, link = '']) => link);
    expect(links.length).toBeGreaterThan(10);
    expect(links.filter((link) => !/^(?:\/ear\/|#)/.test(link))).toEqual([]);
  }
  const redirect = await context.get(`${sent}/map?bbox=5,45,11,48`);
  expect(redirect.headers.location).toMatch(/^\/ear\/map\?/);
});
