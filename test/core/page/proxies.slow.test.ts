/** Pages in Chromium behind the proxies of the documentation; `address.test.ts` follows the links of the APIs. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { readPage } from '../../docs/console-sessions.ts';
import { caddy, nginx, prepareCaddy, prepareNginx, startProxy } from '../../e2e/behind-proxy.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { createKeyPair } from '../../helpers/key-pair.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { installed } from '../../helpers/thorough.ts';
import {
  createMemoryLog,
  generatedProducts,
  notificationRow,
  openConsole,
} from '../api/console-context.ts';
import { hasChromium, openBrowser, openPage } from './browser.ts';

/** Returns the example with a text from docs/page.md. */
function exampleWith(text: string): string {
  const page = readPage('page.md').matchAll(/^```\w+\n([\s\S]*?)^```/gm);
  const found = [...page].map(([, example = '']) => example).find((one) => one.includes(text));
  if (found === undefined) throw new Error(`docs/page.md has no example with ${text}.`);
  return found;
}

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
      const text = exampleWith('proxy_pass')
        .replaceAll('/etc/letsencrypt/live/example.org', folder)
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
      const tls = `tls ${join(folder, 'fullchain.pem')} ${join(folder, 'privkey.pem')}\n`;
      const text = exampleWith('reverse_proxy')
        .replace(/\}\s*$/, `${tls}}\n`)
        .replace('example.org', `localhost:${port}`)
        .replace('127.0.0.1:8080', `127.0.0.1:${upstreamPort}`);
      return prepareCaddy(folder, text);
    },
  },
];

/** Starts the proxy of the documentation in front of a listener. */
async function startBehind({ prepare }: Proxy): Promise<string> {
  const folder = temporaryDirectory();
  const notifications = createMemoryLog([1, 2, 3].map((position) => notificationRow(position)));
  const port = await freePort();
  const consoleUrl = `https://localhost:${port}/earshot`;
  const { port: upstreamPort, products } = await openConsole({ notifications, consoleUrl });
  products.add('Products', ...generatedProducts(30).products);
  const { keyPair } = await createKeyPair();
  writeFileSync(join(folder, 'fullchain.pem'), keyPair.cert);
  writeFileSync(join(folder, 'privkey.pem'), keyPair.key);
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

  it.each(available)('pages work, live, behind the $name of the documentation', async (proxy) => {
    const origin = await startBehind(proxy);
    const options = { ignoreHTTPSErrors: true };
    const { page, problems } = await openPage(browser, `${origin}/earshot`, options);
    onTestFinished(() => page.context().close());
    const requested: string[] = [];
    page.on('request', (request) => requested.push(new URL(request.url()).pathname));
    const answered = (path: string) =>
      page.waitForResponse((answer) => new URL(answer.url()).pathname === `/earshot${path}`);
    const loaded = ['/api/live', '/api/footprints'].map(answered);
    await page.locator('nav').getByText('Map').click();
    for (const answer of loaded) expect((await answer).status()).toBe(200);
    await page.locator('.map canvas').first().waitFor();
    expect(requested.filter((path) => !path.startsWith('/earshot/'))).toEqual([]);
    expect(problems).toEqual([]);
  });
});
