/** The private listener of a real receiver, over its store and its index. */

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { app } from '../../../src/app.ts';
import type { Config } from '../../../src/core/config/config.ts';
import { serve } from '../../../src/receiver/serve.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { generatedProducts } from './console-context.ts';

const pair = { username: 'catalogue', password: 'open sesame' };
const loopback = { host: '127.0.0.1', port: 0 };
const open = { listen: loopback, password: undefined, catalogueUrl: 'https://catalogue.test' };

async function start(consoleConfig: NonNullable<Config['console']> | null) {
  const errors: object[] = [];
  const silent = () => undefined;
  const log = { debug: silent, info: silent, warn: silent, error: (e: object) => errors.push(e) };
  const receiver = await serve(
    {
      listen: loopback,
      publicUrl: undefined,
      dataDir: temporaryDirectory(),
      diskReserveBytes: undefined,
      sharedLog: null,
      credentials: { source: 'variables', pairs: [pair] },
      tls: { kind: 'off' },
      trustedProxies: [],
      console: consoleConfig,
      index: true,
      logLevel: 'info',
    },
    log,
    { nowUs: () => Date.now() * 1000, newId: randomUUID, features: app, random: Math.random },
  );
  onTestFinished(() => receiver.close());
  const post = async (product: { Id: string; Name: string }) => {
    const notification = {
      SubscriptionEvent: 'created',
      ProductId: product.Id,
      ProductName: product.Name,
      SubscriptionId: randomUUID(),
      NotificationDate: '2026-05-01T00:00:00.000Z',
      AckId: randomUUID(),
      value: product,
    };
    const authorization = `Basic ${btoa(`${pair.username}:${pair.password}`)}`;
    const body = JSON.stringify(notification);
    const headers = { authorization };
    const sent = { method: 'POST', headers, body };
    return (await fetch(`${receiver.url}/notifications/alps`, sent)).status;
  };
  return { ...receiver, errors, post };
}

describe('a receiver with a private listener', () => {
  it('serves received notifications: from the log at once, from the index soon after', async () => {
    const receiver = await start(open);
    const { products } = generatedProducts(5);
    for (const product of products) expect(await receiver.post(product)).toBe(200);
    const ask = async (path: string) =>
      JSON.parse(await (await fetch(new URL(path, receiver.consoleUrl ?? ''))).text());
    const { notifications } = await ask('/api/notifications?event=created');
    expect(notifications).toHaveLength(5);
    const list = '/odata/v1/Products?$expand=Attributes,Assets,Locations&$count=true&$top=2';
    await expect.poll(async () => (await ask(list))['@odata.count'], { timeout: 5_000 }).toBe(5);
    const [last] = products.slice(-1);
    const first = await ask(list);
    expect(first.value[0]).toEqual(last);
    expect((await ask(first['@odata.nextLink'])).value).toHaveLength(2);
    const filter = encodeURIComponent(`Name eq '${last?.Name}'`);
    const found = await ask(`/api/products?filter=${filter}&record=true`);
    expect(found.products).toHaveLength(1);
    expect(found.products[0]).toMatchObject({ productId: last?.Id, record: last });
  });

  it('requires its password', async () => {
    const receiver = await start({ ...open, password: 'a word' });
    const ask = async (words: string) => {
      const headers = { authorization: `Basic ${btoa(words)}` };
      return (await fetch(`${receiver.consoleUrl}/api/openapi.json`, { headers })).status;
    };
    expect([await ask('earshot:a word'), await ask('earshot:word')]).toEqual([200, 401]);
  });

  it('accepts notifications although the port is taken, and names the variable to change', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => void other.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    const { port } = other.address() as AddressInfo;
    const receiver = await start({ ...open, listen: { host: '127.0.0.1', port } });
    expect(receiver.consoleUrl).toBeNull();
    expect(receiver.errors).toEqual([
      { reason: expect.stringMatching(/in use, not permitted.*EARSHOT_CONSOLE_LISTEN/) },
    ]);
    const [product] = generatedProducts(1).products;
    expect(product && (await receiver.post(product))).toBe(200);
  });

  it('works without it', async () => {
    const receiver = await start(null);
    expect(receiver).toMatchObject({ consoleUrl: null, errors: [] });
  });
});
