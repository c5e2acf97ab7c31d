/** Baseline "bare": an HTTPS server that reads the body, checks nothing and stores nothing. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';

/** Starts it as the environment says: PORT, TLS_CERT and TLS_KEY (files). */
export function startBareServer(env: NodeJS.ProcessEnv): void {
  const app = new Hono().all('/notifications/*', async (c) => {
    await c.req.arrayBuffer();
    return c.json({ status: 'stored' });
  });
  serve({
    fetch: app.fetch,
    hostname: '127.0.0.1',
    port: Number(env.PORT),
    createServer,
    serverOptions: {
      cert: readFileSync(env.TLS_CERT ?? ''),
      key: readFileSync(env.TLS_KEY ?? ''),
    },
  });
}

if (process.argv[1] === import.meta.filename) startBareServer(process.env);
