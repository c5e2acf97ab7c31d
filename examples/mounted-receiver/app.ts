/** An app with a mounted receiver: receives the catalogue's notifications and lists the last ones. */

import { createReceiver, type NotificationRow, openStore } from '@earshot-eo/earshot';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';

const { ENDPOINT_USERNAME, ENDPOINT_PASSWORD, DATA_DIR = './data', PORT = '3000' } = process.env;

const store = await openStore({ dataDir: DATA_DIR });

// Throws an error that names the problem if credentials are missing.
const receiver = createReceiver({
  store,
  credentials: [{ username: ENDPOINT_USERNAME ?? '', password: ENDPOINT_PASSWORD ?? '' }],
  // The HTTPS proxy in front runs on this machine.
  trustedProxies: ['127.0.0.1', '::1'],
  log: console,
});

const app = new Hono();

app.get('/', async (c) => {
  const last: ReturnType<typeof toJson>[] = [];
  for await (const row of store.find({ limit: 20 })) last.push(toJson(row));
  return c.json(last);
});

app.route('/', receiver);

function toJson({ productName, productId, event, receivedAtUs }: NotificationRow) {
  const receivedAt = new Date(receivedAtUs / 1000).toISOString();
  return { receivedAt, event, product: productName ?? productId };
}

const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(PORT) }, ({ port }) =>
  console.log(`http://127.0.0.1:${port}`),
);

// Answered notifications are already on disk. Finishes open requests, then closes the store.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => server.close(() => void store.close()));
}
