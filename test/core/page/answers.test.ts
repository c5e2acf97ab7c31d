/** Answers of the web page: who may open it, its headers, its files, and its errors. */
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/core/terms/app-error.ts';
import { evaluation } from '../../../src/core/terms/evaluation.ts';
import { emptyStatus } from '../../features/status/status-sample.ts';
import { navigation } from '../../helpers/pages.ts';
import { recordingLog } from '../../helpers/recording-log.ts';
import {
  createMemoryLog,
  createMemoryProducts,
  openConsole,
  type Sent,
} from '../api/console-context.ts';

const link = {
  'sec-fetch-site': 'cross-site',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
};

describe('the web page', () => {
  it('opens by a link in a chat, on every page, and no other part does', async () => {
    const { get } = await openConsole();
    for (const { path } of navigation) {
      for (const site of ['cross-site', 'same-site', 'same-origin', 'none']) {
        const headers = { ...link, 'sec-fetch-site': site };
        expect(await get(`${path}?since=1h`, { headers })).toMatchObject({ status: 200 });
      }
    }
    expect(await get('/products/an-id', { headers: link })).toMatchObject({ status: 404 });
    const others = [
      ...['/odata/v1/Products', '/api', '/api/products', '/api/live', '/healthz', '/metrics'],
      ...['/assets/x/page.css', '/nowhere', '/livestock', '/api/..%2flive'],
    ];
    for (const path of others)
      expect(await get(path, { headers: link })).toMatchObject({ status: 403 });
  });

  it.each<[string, Sent]>([
    ['with an Origin', { headers: { ...link, origin: 'https://evil.example' } }],
    ['with the Origin null', { headers: { ...link, origin: 'null' } }],
    ['by POST', { method: 'POST', headers: link }],
    ['by HEAD', { method: 'HEAD', headers: link }],
    ['in an iframe', { headers: { ...link, 'sec-fetch-dest': 'iframe' } }],
    ['in an object', { headers: { ...link, 'sec-fetch-dest': 'object' } }],
    ['by fetch', { headers: { ...link, 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' } }],
    ['by no-cors', { headers: { ...link, 'sec-fetch-mode': 'no-cors' } }],
    ['without a mode', { headers: { 'sec-fetch-site': 'cross-site' } }],
  ])('is refused to another site %s', async (_title, sent) => {
    const { get } = await openConsole();
    for (const { path } of navigation) expect(await get(path, sent)).toMatchObject({ status: 403 });
  });

  it('allows only its own files, and cannot be cached, embedded or read by others', async () => {
    const { get } = await openConsole();
    const failures = ['/live?since=yesterday', '/live?until=1d&since=1h', '/products/no/such'];
    for (const path of [...navigation.map((one) => one.path), ...failures]) {
      const { headers, text } = await get(path, { headers: { accept: 'text/html' } });
      expect(headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy':
          "default-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'",
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
        'cross-origin-resource-policy': 'same-origin',
        'referrer-policy': 'no-referrer',
      });
      // No inline style or script; data is not executed.
      expect(text).not.toMatch(/\sstyle=|<style|\son\w+=|javascript:/);
      for (const [tag] of text.matchAll(/<script[^>]*>/g))
        expect(tag).toMatch(/ src="\/assets\/|type="application\/json"/);
    }
  });

  it('has files named by their digest, which never expire', async () => {
    const { get, origin } = await openConsole();
    const { text } = await get('/live');
    const found = text.matchAll(/"(\/assets\/[\da-f]{16}\/[\w.-]+)[#"]/g);
    const files = new Set([...found].map(([, file = '']) => file));
    expect(files.size).toBeGreaterThanOrEqual(4);
    for (const file of files) {
      const plain = await get(file, { headers: { 'accept-encoding': 'gzip;q=0, br' } });
      expect(plain).toMatchObject({
        status: 200,
        headers: {
          'cache-control': 'private, max-age=31536000, immutable',
          vary: 'Accept-Encoding',
        },
      });
      expect(plain.headers).not.toHaveProperty('content-encoding');
      const zipped = await fetch(origin + file, { headers: { 'accept-encoding': 'br, gzip' } });
      expect(zipped.headers.get('content-encoding')).toBe('gzip');
      expect(await zipped.text()).toBe(plain.text);
    }
    const [known = ''] = files;
    for (const path of ['/assets/', '/assets/0123456789abcdef/page.css', `${known}x`]) {
      const { status, headers } = await get(path, { headers: { accept: 'text/html' } });
      expect([status, headers['cache-control']]).toEqual([404, 'no-store']);
    }
  });
});

it('a limited page states the subscription and the absolute period, with a link that removes both', async () => {
  const { get } = await openConsole();
  const hour = 'since=2026-05-02T09:00Z&until=2026-05-02T10:00Z';
  const { text } = await get(`/live?event=created&${hour}&subscription=alps`);
  expect(text).toMatch(
    /<strong>alps<\/strong>.*09:00 to 2026-05-02 10:00 UTC<.*\s<a href="\/live\?event=created">Reset/,
  );
  const nav = text.slice(text.indexOf('class="brand"'), text.indexOf('</nav>'));
  expect(nav).toContain('href="/timeliness?subscription=alps"');
  expect(nav).not.toMatch(/until|2026/);
  // A relative period is no limit.
  const relative = await get('/live?since=7d&subscription=alps');
  expect(relative.text).toContain('<a href="/live?since=7d">Reset</a>');
  for (const path of ['/live?since=7d', '/sinks?subscription=alps'])
    expect((await get(path)).text).not.toContain('class="scope"');
  const overview = await get('/?subscription=alps');
  expect(overview.text).toContain('<input type="hidden" name="subscription" value="alps">');
  expect((await get('/')).text).not.toContain('name="subscription"');
});

it('the overview gives the reason of each problem, with badges, commands to copy, and the lag of the index', async () => {
  const parts = [
    { part: 'coverage', ...evaluation('critical', 'Missing.', 'Run `earshot reconcile`.') },
    { part: 'sinks', ...evaluation('warning', 'The sink\u202e fails.') },
    { part: 'disk', ...evaluation('warning', 'Little is free.') },
  ] as const;
  const { get } = await openConsole({
    status: async () => ({ ...emptyStatus(), parts }),
    notifications: { ...createMemoryLog([]), lastPosition: async () => 7 },
  });
  const { text } = await get('/');
  for (const part of ['data-copy="earshot reconcile"', 'The sink\\u202e fails.', 'Little is free.'])
    expect(text).toContain(part);
  // The worst level has its colour.
  expect(text).toMatch(/>Overview<span class="badge bad">!/);
  expect(text).toMatch(/>Sinks<span class="badge warn">!/);
  expect(text).toContain('7 notifications are not indexed yet.');
});

describe('a page that cannot be shown', () => {
  it.each([
    ['/?since=yesterday', 400, '&quot;yesterday&quot; is not a time. Use ISO 8601'],
    ['/?since=%3Cscript%3E%E2%80%AEx%1b', 400, '&lt;script&gt;'],
    ['/live?until=24h&since=1h', 400, 'since must be before until'],
    ['/coverage?since=101d', 400, 'at most 100 days'],
    ['/nowhere', 404, 'There is no page with this address.'],
    ['/live/1', 404, 'There is no page with this address.'],
  ])('%s states the reason and the next step', async (path, status, reason) => {
    const { get } = await openConsole();
    const answer = await get(path, { headers: { accept: 'text/html,*/*' } });
    expect(answer.status).toBe(status);
    for (const part of [reason, '<a href="/">open the overview</a>', '<nav aria-label="Pages">'])
      expect(answer.text).toContain(part);
    for (const part of ['<script>', '\u202e', '\u001b']) expect(answer.text).not.toContain(part);
  });

  it('shows each error of a filter with its place, below the form', async () => {
    const { get } = await openConsole();
    const { status, text } = await get("/live?filter=Nme%20eq%20'x'%20and%20Online%20eq%205");
    expect(status).toBe(200);
    expect(text).toContain('<mark>Nme</mark> eq &#39;x&#39; and Online eq 5</code>');
    expect(text).toContain('Nme eq &#39;x&#39; and Online eq <mark>5</mark>');
    expect(text).toContain('value="Nme eq &#39;x&#39; and Online eq 5"');
  });

  it('explains that the index is missing or cannot be read, without private details', async () => {
    const products = createMemoryProducts();
    products.failure = new AppError('unavailable', 'There is no index.');
    const missing = await openConsole({ products });
    const { status: shown, text } = await missing.get('/');
    expect([shown, text]).toEqual([200, expect.stringContaining('There is no product index yet.')]);
    expect(await missing.get('/live')).toMatchObject({ status: 200 });
    const failure = new AppError('unavailable', 'SQLite said: no such file /secret/place');
    const { get } = await openConsole({ status: () => Promise.reject(failure) });
    const answer = await get('/');
    expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
    expect(answer.text).toContain('<code>earshot status</code>');
    expect(answer.text).not.toContain('secret');
  });

  it('names commands as the user calls the program, also when it is compressed', async () => {
    const status = () => Promise.reject(new AppError('unavailable', 'No.'));
    const { get, origin } = await openConsole({ status, programName: '/my"&/earshot' });
    const { text } = await get('/');
    const name = '/my&quot;&amp;/earshot';
    expect(text).toContain(`<html data-program="${name}" lang="en">`);
    expect(text).toContain(`data-copy="${name} status"`);
    expect(text).not.toMatch(/(?:<code>|")earshot [a-z]/);
    const zipped = await fetch(`${origin}/live`, { headers: { 'accept-encoding': 'gzip' } });
    expect(zipped.headers.get('content-encoding')).toBe('gzip');
    expect(await zipped.text()).toContain(`data-program="${name}"`);
  });

  it('shows only the request id of an internal error', async () => {
    const { log, at } = recordingLog();
    const status = () => Promise.reject(new TypeError('x is not a function at /secret/place.ts'));
    const { get } = await openConsole({ status, log, newRequestId: () => 'request-17' });
    const answer = await get('/alerts');
    expect(answer.status).toBe(500);
    expect(answer.text).toContain('with request id request-17');
    expect(answer.text).not.toMatch(/secret|TypeError|function/);
    const fields = { requestId: 'request-17', path: '/alerts' };
    expect(at('error')).toMatchObject([{ fields }]);
  });
});
