/** Pages and scripts in Chromium: behind the proxies of the documentation, and at other origins. */
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { createCertificateAuthority } from '../../../src/sandbox/certificate-authority.ts';
import {
  caddy,
  installed,
  nginx,
  prepareCaddy,
  prepareNginx,
  startProxy,
} from '../../e2e/behind-proxy.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import {
  createMemoryLog,
  generatedProducts,
  notificationRow,
  openConsole,
} from '../api/console-context.ts';
import { follow, hasChromium, openBrowser, openPage } from './browser.ts';

async function openFilled(options: Parameters<typeof openConsole>[0] = {}) {
  const rows = [1, 2, 3].map((position) => notificationRow(position));
  const context = await openConsole({ notifications: createMemoryLog(rows), ...options });
  context.products.add('Products', ...generatedProducts(30).products);
  return context;
}

/** Returns the example with a text from a page of the documentation. */
function exampleOf(page: string, text: string): string {
  const file = new URL(`../../../docs/${page}.md`, import.meta.url);
  const examples = readFileSync(file, 'utf8').matchAll(/^```\w+\n([\s\S]*?)^```/gm);
  const found = [...examples].map(([, example = '']) => example).find((one) => one.includes(text));
  if (found === undefined) throw new Error(`${page}.md has no example with ${text}.`);
  return found;
}

/** Follows the links from the root to an item, as STAC Browser does; returns the addresses. */
const walk = `async (root) => {
  const visited = [];
  const read = async (href) => {
    visited.push(href);
    const answer = await fetch(href);
    if (!answer.ok) throw new Error(href + ': ' + answer.status);
    return answer.json();
  };
  const follow = (json, rel) => read(json.links.find((link) => link.rel === rel).href);
  const catalogue = await read(root);
  const items = await follow(await follow(catalogue, 'child'), 'items');
  await follow(items.features[0], 'self');
  const search = catalogue.links.find(({ rel, method }) => rel === 'search' && method === 'POST');
  const page = await fetch(search.href, { method: 'POST', body: '{"limit":10}' });
  await read((await page.json()).links.find(({ rel }) => rel === 'next').href);
  return visited;
}`;

interface Proxy {
  name: string;
  program: string;
  prepare(folder: string, port: number, upstreamPort: number): { program: string; args: string[] };
}

const proxies: Proxy[] = [
  {
    name: 'nginx',
    program: nginx,
    prepare: (folder, port, upstreamPort) => {
      const recipe = exampleOf('stac', 'alias /srv/stac-browser/');
      const text = exampleOf('page', 'proxy_pass')
        .replace(/\}\s*$/, `${recipe}}\n`)
        .replaceAll('/etc/letsencrypt/live/example.org', folder)
        .replaceAll('/srv', folder)
        .replaceAll('example.org', 'localhost')
        .replace('listen 443', `listen 127.0.0.1:${port}`)
        .replace('127.0.0.1:8080', `127.0.0.1:${upstreamPort}`);
      return prepareNginx(folder, text);
    },
  },
  {
    name: 'Caddy',
    program: caddy,
    prepare: (folder, port, upstreamPort) => {
      const recipe = exampleOf('stac', 'root * /srv/stac-browser');
      const tls = `tls ${join(folder, 'fullchain.pem')} ${join(folder, 'privkey.pem')}\n`;
      const text = exampleOf('page', 'reverse_proxy')
        .replace(/\}\s*$/, `${recipe}${tls}}\n`)
        .replaceAll('/srv', folder)
        .replace('example.org', `localhost:${port}`)
        .replace('127.0.0.1:8080', `127.0.0.1:${upstreamPort}`);
      return prepareCaddy(folder, text);
    },
  },
];

/** Without the icon, Chromium would request one of the host. */
const emptyPage = '<!doctype html><title>Page</title><link rel="icon" href="data:,">';

/** Starts the proxy of the documentation in front of a listener. */
async function startBehind({ prepare }: Proxy): Promise<string> {
  const folder = temporaryDirectory();
  const { port: upstreamPort } = await openFilled();
  const authority = await createCertificateAuthority({ now: Date.now });
  const pair = await authority.issue({ hosts: ['localhost'] });
  writeFileSync(join(folder, 'fullchain.pem'), pair.certificatePem);
  writeFileSync(join(folder, 'privkey.pem'), pair.keyPem);
  mkdirSync(join(folder, 'stac-browser'));
  writeFileSync(join(folder, 'stac-browser/index.html'), emptyPage);
  const port = await freePort();
  await startProxy(prepare(folder, port, upstreamPort), folder, port);
  return `https://localhost:${port}`;
}

/** Serves an empty page at an origin of its own. */
async function openOrigin(): Promise<string> {
  const server = createServer((_, outgoing) => {
    outgoing.setHeader('Content-Type', 'text/html');
    outgoing.end(emptyPage);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe.skipIf(!hasChromium)('in Chromium (needs it)', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser?.close());
  const open = async (url: string) => {
    const opened = await openPage(browser, url, { ignoreHTTPSErrors: true });
    onTestFinished(() => opened.page.context().close());
    return opened;
  };

  describe.each(proxies)('behind the $name of the documentation', (proxy) => {
    it.runIf(installed(proxy.program))('pages and STAC clients work, live', async () => {
      const origin = await startBehind(proxy);
      const { page, problems } = await open(`${origin}/earshot`);
      const requested: string[] = [];
      page.on('request', (request) => requested.push(new URL(request.url()).pathname));
      const answered = (path: string) =>
        page.waitForResponse((answer) => new URL(answer.url()).pathname === `/earshot${path}`);
      const loaded = ['/api/live', '/api/footprints'].map(answered);
      await page.keyboard.press('g');
      await page.keyboard.press('m');
      for (const answer of loaded) expect((await answer).status()).toBe(200);
      await page.locator('.map canvas').first().waitFor();
      await follow(page, page.getByRole('link', { name: 'Products', exact: true }));
      const found = answered('/products');
      await page.fill('#filter', 'Online eq true');
      await page.keyboard.press('Control+Enter');
      expect((await found).status()).toBe(200);
      await page.waitForURL((url) => url.searchParams.has('filter'));
      expect(requested.filter((path) => !path.startsWith('/earshot/'))).toEqual([]);
      await page.goto(`${origin}/browser/`);
      const visited = await run<string[]>(page, walk, `${origin}/earshot/stac`);
      expect(visited.length).toBeGreaterThanOrEqual(4);
      expect(visited.filter((href) => !href.startsWith(`${origin}/earshot/stac`))).toEqual([]);
      expect(problems).toEqual([]);
    });
  });

  it('a page of a configured origin reads data, and one of another origin does not', async () => {
    const [allowed, other] = [await openOrigin(), await openOrigin()];
    const { origin } = await openFilled({ origins: [allowed] });
    const read = `async (root) => {
      const answers = [
        await fetch(root + '/stac/search?limit=1'),
        await fetch(root + '/stac/search', {
          method: 'POST',
          headers: { 'Content-Type': 'application/json', Authorization: 'Basic eDp5' },
          body: '{"limit":1}',
        }),
        await fetch(root + '/odata/v1/Products?$top=1', { headers: { 'OData-Version': '4.0' } }),
        await fetch(root + '/api/products?limit=1'),
      ];
      for (const answer of answers) await answer.json();
      return answers.map(({ status }) => status);
    }`;
    const { page } = await open(allowed);
    expect(await run(page, read, origin)).toEqual([200, 200, 200, 200]);
    expect(await run(page, walk, `${origin}/stac`)).toContain(`${origin}/stac`);
    const { page: foreign } = await open(other);
    for (const path of ['/stac', '/odata/v1/Products', '/api/products']) {
      const failing = `(url) => fetch(url).then(({ status }) => status, ({ name }) => name)`;
      expect(await run(foreign, failing, origin + path)).toBe('TypeError');
      expect(await run(page, failing, `${origin}/`)).toBe('TypeError');
    }
  });
});

/** Runs a function in a page. */
function run<Result>(page: Page, code: string, argument: string): Promise<Result> {
  return page.evaluate<Result>(`(${code})(${JSON.stringify(argument)})`);
}
