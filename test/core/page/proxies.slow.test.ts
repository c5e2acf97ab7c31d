/** Pages and STAC clients in Chromium behind the proxies of the documentation. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
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
import { hasChromium, openBrowser, openPage } from './browser.ts';

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
  const notifications = createMemoryLog([1, 2, 3].map((position) => notificationRow(position)));
  const { port: upstreamPort, products } = await openConsole({ notifications });
  products.add('Products', ...generatedProducts(30).products);
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

const available = proxies.filter(({ program }) => installed(program));

describe.skipIf(!hasChromium || available.length === 0)('in Chromium (needs it)', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await openBrowser();
  });
  afterAll(() => browser?.close());

  it.each(available)(
    'pages and STAC clients work, live, behind the $name of the documentation',
    async (proxy) => {
      const origin = await startBehind(proxy);
      const options = { ignoreHTTPSErrors: true };
      const { page, problems } = await openPage(browser, `${origin}/earshot`, options);
      onTestFinished(() => page.context().close());
      const requested: string[] = [];
      page.on('request', (request) => requested.push(new URL(request.url()).pathname));
      const answered = (path: string) =>
        page.waitForResponse((answer) => new URL(answer.url()).pathname === `/earshot${path}`);
      const loaded = ['/api/live', '/api/footprints'].map(answered);
      await page.keyboard.press('g');
      await page.keyboard.press('m');
      for (const answer of loaded) expect((await answer).status()).toBe(200);
      await page.locator('.map canvas').first().waitFor();
      expect(requested.filter((path) => !path.startsWith('/earshot/'))).toEqual([]);
      await page.goto(`${origin}/browser/`);
      const root = JSON.stringify(`${origin}/earshot/stac`);
      const visited = await page.evaluate<string[]>(`(${walk})(${root})`);
      expect(visited.length).toBeGreaterThanOrEqual(4);
      expect(visited.filter((href) => !href.startsWith(`${origin}/earshot/stac`))).toEqual([]);
      expect(problems).toEqual([]);
    },
  );
});
