import fc from 'fast-check';
import type { HonoRequest } from 'hono';
import { describe, expect, it } from 'vitest';
import { createAddresses } from '../../../src/core/api/app.ts';
import { isPagePath, navigation } from '../../helpers/pages.ts';
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

const { addressOf } = createAddresses(undefined, isPagePath);
const baseOf = (headers: Record<string, string>) =>
  addressOf({
    url: 'http://x/live?a=1',
    header: (name: string) => ({ host: 'localhost:9', ...headers })[name],
  } as HonoRequest);

describe('every link has', () => {
  it.each([
    ['https', 'https'],
    ['https, http', 'https'],
    ['HTTPS ,http,http', 'https'],
    ['https,', 'https'],
    ['http, https', 'http'],
    [', https', 'http'],
    ['httpss', 'http'],
    ['', 'http'],
  ])('the first scheme of X-Forwarded-Proto: %s', (value, scheme) => {
    expect(baseOf({ 'x-forwarded-proto': value }).base).toBe(`${scheme}://localhost:9`);
  });

  const prefix = { 'x-forwarded-prefix': '/a/b.c/, /d', 'x-forwarded-proto': 'https' };
  it.each([
    ['the scheme and the first prefix of headers', undefined, prefix, 'https://localhost:9/a/b.c'],
    ['the configured address', 'https://example.org/ear', {}, 'https://example.org/ear'],
    ['the configured address, whatever headers say', 'http://a.org', prefix, 'http://a.org'],
  ])('%s, and each can be followed', async (_title, consoleUrl, proxy, base) => {
    const context = await open(consoleUrl);
    const headers = { host: 'localhost:9', ...proxy };
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
});

describe('a prefix', () => {
  it.each([
    ...['//evil.example', '/a/../b', '/..', '/a"onload=x', 'ear', '/a b', 'http://evil.example'],
    ...['/%2e%2e', '/<b>', '/a//b', '/a?b', '/a#b', '/\\evil.example', `/${'a'.repeat(300)}`],
  ])('that is no simple path is ignored: %s', (value) => {
    expect(baseOf({ 'x-forwarded-prefix': value }).base).toBe('http://localhost:9');
  });

  it('never changes the host, or the markup of a page', () => {
    const parts = fc.constantFrom('/', '.', 'a', '\\', '"', '%', '@', ':', ' ');
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: parts })), (value) => {
        const { base, url } = baseOf({ 'x-forwarded-prefix': value });
        expect(url.href).toBe(`${base}/live?a=1`);
        expect(base).toMatch(/^http:\/\/localhost:9(\/[\w.~-]+)*$/);
      }),
    );
  });
});

describe('pages behind a prefix', () => {
  const attributes = /\b(?:href|src|action)="([^"]*)"/g;
  it.each([
    ['of a header', undefined, { 'x-forwarded-prefix': '/ear' }, ''],
    ['that a proxy removes', 'https://example.org/ear', {}, ''],
    ['that a proxy sends', 'https://example.org/ear', {}, '/ear'],
  ] as const)('%s link to it only', async (_title, consoleUrl, headers, sent) => {
    const context = await open(consoleUrl);
    for (const { path } of [...navigation, { path: '/no-such-page' }]) {
      const accept = { accept: 'text/html' };
      const { text } = await context.get(sent + path, { headers: { ...headers, ...accept } });
      const links = [...text.matchAll(attributes)].map(([, link = '']) => link);
      expect(links.length).toBeGreaterThan(10);
      expect(links.filter((link) => !/^(?:\/ear\/|#)/.test(link))).toEqual([]);
    }
    const redirect = await context.get(`${sent}/map?bbox=5,45,11,48`, { headers });
    expect(redirect.headers.location).toMatch(/^\/ear\/map\?/);
  });
});
