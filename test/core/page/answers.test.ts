/** Answers of the web page: who may open it, its headers, its files, and its errors. */

import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/core/terms/app-error.ts';
import { evaluation } from '../../../src/core/terms/evaluation.ts';
import { emptyStatus, sampleStatus } from '../../features/status/status-sample.ts';
import { navigation } from '../../helpers/pages.ts';
import {
  createMemoryLog,
  createMemoryProducts,
  openConsole,
  openWithPassword,
  type Sent,
} from '../api/console-context.ts';

const basic = (words: string) => ({ authorization: `Basic ${btoa(words)}` });
const paths = ['/odata/v1/Products', '/api/products', '/api/notifications', '/api/openapi.json'];

const link = {
  'sec-fetch-site': 'cross-site',
  'sec-fetch-mode': 'navigate',
  'sec-fetch-dest': 'document',
};

describe('the web page', () => {
  it('opens by a link in a chat, on every page', async () => {
    const { get } = await openConsole();
    for (const { path } of navigation) {
      for (const site of ['cross-site', 'same-site', 'same-origin', 'none']) {
        const headers = { ...link, 'sec-fetch-site': site };
        expect(await get(`${path}?since=1h`, { headers })).toMatchObject({ status: 200 });
      }
    }
    const item = await get('/products/an-id', { headers: link });
    expect(item.text).not.toContain('other sites');
  });

  it.each<[string, Sent]>([
    ['with an Origin', { headers: { ...link, origin: 'https://evil.example' } }],
    ['with the Origin null', { headers: { ...link, origin: 'null' } }],
    ['by POST', { method: 'POST', headers: link }],
    ['by HEAD', { method: 'HEAD', headers: link }],
    ['in an iframe', { headers: { ...link, 'sec-fetch-dest': 'iframe' } }],
    ['in an embed', { headers: { ...link, 'sec-fetch-dest': 'embed' } }],
    ['in an object', { headers: { ...link, 'sec-fetch-dest': 'object' } }],
    ['by fetch', { headers: { ...link, 'sec-fetch-mode': 'cors', 'sec-fetch-dest': 'empty' } }],
    ['by no-cors', { headers: { ...link, 'sec-fetch-mode': 'no-cors' } }],
    ['without a mode', { headers: { 'sec-fetch-site': 'cross-site' } }],
    ['with a name of a DNS attack', { headers: { ...link, host: 'evil.example' } }],
  ])('is refused to another site %s', async (_title, sent) => {
    const { get } = await openConsole();
    for (const { path } of navigation) expect(await get(path, sent)).toMatchObject({ status: 403 });
  });

  it('is the only part that a link of another site opens', async () => {
    const { get } = await openConsole();
    const others = ['/api', '/api/live', '/healthz', '/metrics', '/assets/x/page.css', '/nowhere'];
    for (const path of [...paths, ...others, '/livestock', '/api/..%2flive'])
      expect(await get(path, { headers: link })).toMatchObject({ status: 403 });
  });

  it('asks for the password', async () => {
    const { get } = await openWithPassword();
    for (const { path } of navigation) {
      const refused = await get(path, { headers: link });
      expect(refused.status).toBe(401);
      expect(refused.headers['www-authenticate']).toMatch(/^Basic realm=/);
      const headers = { ...link, ...basic('earshot:a: word') };
      expect(await get(path, { headers })).toMatchObject({ status: 200 });
    }
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

  it('answers HEAD with the headers only', async () => {
    const { get } = await openConsole();
    const head = await get('/live', { method: 'HEAD' });
    expect(head).toMatchObject({ status: 200, text: '' });
    expect(head.headers['content-security-policy']).toContain("default-src 'self'");
  });

  it('has files named by their digest, which never expire', async () => {
    const { get, origin } = await openConsole();
    const { text } = await get('/live');
    const found = text.matchAll(/"(\/assets\/[\da-f]{16}\/[\w.-]+)[#"]/g);
    const files = new Set([...found].map(([, file = '']) => file));
    expect(files.size).toBeGreaterThanOrEqual(5);
    for (const file of files) {
      const plain = await get(file);
      const headers = {
        'cache-control': 'private, max-age=31536000, immutable',
        'x-content-type-options': 'nosniff',
        vary: 'Accept-Encoding',
      };
      expect(plain).toMatchObject({ status: 200, headers });
      expect(plain.headers).not.toHaveProperty('content-encoding');
      const refused = await get(file, { headers: { 'accept-encoding': 'gzip;q=0, br' } });
      expect(refused.headers).not.toHaveProperty('content-encoding');
      const zipped = await fetch(origin + file, { headers: { 'accept-encoding': 'br, gzip' } });
      expect(zipped.headers.get('content-encoding')).toBe('gzip');
      expect(await zipped.text()).toBe(plain.text);
      expect(await get(file, { method: 'HEAD' })).toMatchObject({ status: 200, text: '' });
    }
    const [known = ''] = files;
    for (const path of ['/assets/', '/assets/0123456789abcdef/page.css', `${known}x`]) {
      const missing = await get(path, { headers: { accept: 'text/html' } });
      expect(missing.status).toBe(404);
      expect(missing.headers).toMatchObject({
        'content-type': 'application/problem+json',
        'cache-control': 'no-store',
      });
    }
  });
});

describe('a limited page', () => {
  const hour = 'since=2026-05-02T09:00Z&until=2026-05-02T10:00Z';

  it('states the subscription and the absolute period, with a link that removes both', async () => {
    const { get } = await openConsole();
    const { text } = await get(`/live?event=created&${hour}&subscription=alps`);
    expect(text).toMatch(
      /Only the subscription <strong>alps<\/strong>, the period <strong>2026-05-02 09:00 to 2026-05-02 10:00 UTC<\/strong>\.\s<a href="\/live\?event=created">Reset<\/a>/,
    );
    const nav = text.slice(text.indexOf('class="brand"'), text.indexOf('</nav>'));
    expect(nav).toContain('href="/timeliness?subscription=alps"');
    expect(nav).not.toMatch(/until|2026/);
    expect(nav).toMatch(/^class="brand" href="\/"/);
  });

  it('has no such note without limits, and keeps a relative period', async () => {
    const { get } = await openConsole();
    expect((await get('/live?since=7d')).text).not.toContain('class="scope"');
    expect((await get('/sinks?subscription=alps')).text).not.toContain('class="scope"');
    const { text } = await get('/live?since=7d&subscription=alps');
    expect(text).toContain('<a href="/live?since=7d">Reset</a>');
  });

  it('has a control for the subscription on the overview', async () => {
    const { get } = await openConsole();
    const { text } = await get('/?subscription=alps');
    expect(text).toContain('No notifications were received by the subscription alps');
    expect(text).toMatch(/<select name="subscription"><option value="" >all/);
    expect((await get('/')).text).not.toContain('name="subscription"');
  });
});

describe('a page with commands', () => {
  it('states once where to run them', async () => {
    const { get } = await openConsole();
    const note = 'Run commands in a terminal on the machine of the receiver.';
    expect((await get('/alerts')).text.split(note)).toHaveLength(2);
    expect((await get('/map')).text).not.toContain(note);
  });
});

describe('the overview', () => {
  it('gives the reason of each problem, with a link to its page, and commands to copy', async () => {
    const parts = [
      { part: 'coverage', ...evaluation('critical', 'Missing.', 'Run `earshot reconcile`.') },
      { part: 'sinks', ...evaluation('warning', 'The sink\u202e fails.') },
      { part: 'disk', ...evaluation('warning', 'Little is free.') },
    ] as const;
    const { get } = await openConsole({ status: async () => ({ ...emptyStatus(), parts }) });
    const { text } = await get('/');
    expect(text).toContain('data-copy="earshot reconcile"');
    expect(text).toContain('The sink\\u202e fails.');
    expect(text).toContain('Little is free.');
    // The worst level has its colour.
    expect(text).toMatch(/>Overview<span class="badge bad">!/);
    expect(text).toMatch(/>Sinks<span class="badge warn">!/);
  });

  it('states the lag of the index at the latest products', async () => {
    const notifications = { ...createMemoryLog([]), lastPosition: async () => 7 };
    const { get } = await openConsole({ notifications });
    expect((await get('/')).text).toContain('7 notifications are not indexed yet.');
  });
});

describe('a page that cannot be shown', () => {
  it.each([
    ['/?since=yesterday', 400, '&quot;yesterday&quot; is not a time. Use ISO 8601'],
    ['/live?until=24h&since=1h', 400, 'The period is empty'],
    ['/coverage?since=101d', 400, 'longer than 100 days'],
    ['/nowhere', 404, 'There is no page with this address.'],
    ['/live/1', 404, 'There is no page with this address.'],
  ])('%s states the reason and the next step', async (path, status, reason) => {
    const { get } = await openConsole();
    const answer = await get(path, { headers: { accept: 'text/html,*/*' } });
    expect(answer.status).toBe(status);
    expect(answer.text).toContain(reason);
    expect(answer.text).toContain('Change the address, or <a href="/">open the overview</a>');
    expect(answer.text).toContain('<nav aria-label="Pages">');
  });

  it('keeps the badges, and a choice that replaces an invalid period', async () => {
    const { get } = await openConsole({ status: async () => sampleStatus(true) });
    const { text } = await get('/timeliness?since=yesterday&subscription=alps');
    expect(text).toContain('class="badge');
    expect(text).toMatch(/<select name="since"><option value="" selected>last 24 hours/);
    expect(text).toContain('<input type="hidden" name="subscription" value="alps">');
    expect((await get('/sinks?since=yesterday')).text).not.toContain('<select');
  });

  it('shows a text of the address as text', async () => {
    const { get } = await openConsole();
    const { text } = await get('/?since=%3Cscript%3E%E2%80%AEx%1b');
    expect(text).toContain('&lt;script&gt;');
    for (const part of ['<script>', '\u202e', '\u001b']) expect(text).not.toContain(part);
  });

  it('shows each error of a filter with its place, below the form', async () => {
    const { get } = await openConsole();
    const { status, text } = await get("/live?filter=Nme%20eq%20'x'%20and%20Online%20eq%205");
    expect(status).toBe(200);
    expect(text).toContain('2 errors in the filter');
    expect(text).toContain('<mark>Nme</mark> eq &#39;x&#39; and Online eq 5</code>');
    expect(text).toContain('Nme eq &#39;x&#39; and Online eq <mark>5</mark>');
    expect(
      text.slice(text.indexOf('class="plain findings"'), text.indexOf('</ul><p>')),
    ).not.toMatch(/`|\^\^/);
    expect(text).toContain('value="Nme eq &#39;x&#39; and Online eq 5"');
  });

  it('explains that the index is missing, and loads again', async () => {
    const failure = new AppError('unavailable', 'SQLite said: no such file /secret/place');
    const status = () => Promise.reject(failure);
    const { get } = await openConsole({ status });
    const answer = await get('/');
    expect(answer).toMatchObject({ status: 503, headers: { 'retry-after': '5' } });
    expect(answer.text).toContain(
      'the product index cannot be read. The page reloads automatically.',
    );
    expect(answer.text).toContain('<code>earshot status</code>');
    expect(answer.text).toContain('<code>earshot admin index</code>');
    expect(answer.text).not.toContain('secret');
  });

  it('is shown without products when there is no index', async () => {
    const products = createMemoryProducts();
    products.failure = new AppError('unavailable', 'There is no index.');
    const { get } = await openConsole({ products });
    const { status, text } = await get('/');
    expect(status).toBe(200);
    expect(text).toContain('There is no product index yet.');
    expect(await get('/live')).toMatchObject({ status: 200 });
  });

  it('names commands as the user calls the program', async () => {
    const status = () => Promise.reject(new AppError('unavailable', 'No.'));
    const { get } = await openConsole({ status, programName: '/my"&/earshot' });
    const { text } = await get('/');
    const name = '/my&quot;&amp;/earshot';
    expect(text).toContain(`<html data-program="${name}" lang="en">`);
    expect(text).toContain(`<code>${name} status</code>`);
    expect(text).toContain(`data-copy="${name} status"`);
    expect(text).not.toMatch(/(?:<code>|")earshot [a-z]/);
  });

  it('names commands also in a compressed page', async () => {
    const { origin } = await openConsole({ programName: './earshot' });
    const answer = await fetch(`${origin}/alerts`, { headers: { 'accept-encoding': 'gzip' } });
    expect(answer.headers.get('content-encoding')).toBe('gzip');
    expect(await answer.text()).toContain('<html data-program="./earshot" lang="en">');
  });

  it('shows only the request id of an internal error', async () => {
    const errors: object[] = [];
    const silent = () => undefined;
    const log = { debug: silent, info: silent, warn: silent, error: (e: object) => errors.push(e) };
    const status = () => Promise.reject(new TypeError('x is not a function at /secret/place.ts'));
    const newRequestId = () => 'request-17';
    const { get } = await openConsole({ status, log, newRequestId });
    const answer = await get('/alerts');
    expect(answer.status).toBe(500);
    expect(answer.text).toContain('with request id request-17');
    expect(answer.text).not.toMatch(/secret|TypeError|function/);
    expect(errors).toMatchObject([{ requestId: 'request-17', path: '/alerts' }]);
  });
});
