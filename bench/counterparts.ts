/**
 * Other servers of the benchmark, each started by name as a separate process: two baselines, and a web service for
 * sinks. Environment: PORT (on loopback); for the baselines TLS_CERT and TLS_KEY (files);
 * for the twenty-line receiver also DATABASE (file), USERNAME and PASSWORD.
 */
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:https';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';

const { env } = process;
const listenPort = Number(env.PORT);

/** Answer time of a slow web service. */
const slowMs = 1_000;

function serveHttps(app: Hono): void {
  const serverOptions = {
    cert: readFileSync(env.TLS_CERT ?? ''),
    key: readFileSync(env.TLS_KEY ?? ''),
  };
  const where = { hostname: '127.0.0.1', port: listenPort };
  serve({ fetch: app.fetch, ...where, createServer, serverOptions });
}

const counterparts: Readonly<Record<string, () => void | Promise<void>>> = {
  /** Reads the body, checks nothing and stores nothing: the upper limit. */
  bare: () => {
    const app = new Hono().all('/notifications/*', async (c) => {
      await c.req.arrayBuffer();
      return c.json({ status: 'stored' });
    });
    serveHttps(app);
  },

  /** A simple receiver, durable and deduplicating. */
  'twenty-line': async () => {
    // Imported here: it would increase the memory of the other servers.
    const { default: Database } = await import('better-sqlite3');
    const { basicAuth } = await import('hono/basic-auth');
    const { USERNAME: username = '', PASSWORD: password = '' } = env;
    const db = new Database(env.DATABASE);
    db.pragma('journal_mode = WAL');
    db.pragma('synchronous = FULL');
    db.exec('CREATE TABLE IF NOT EXISTS notification (ack_id TEXT UNIQUE, body TEXT)');
    const insert = db.prepare('INSERT OR IGNORE INTO notification (ack_id, body) VALUES (?, ?)');
    const app = new Hono();
    app.use(basicAuth({ username, password }));
    app.get('/notifications/*', (c) => c.text('ready'));
    app.post('/notifications/*', async (c) => {
      const notification = await c.req.json();
      const { changes } = insert.run(notification.AckId, JSON.stringify(notification));
      return c.json({ status: changes === 1 ? 'stored' : 'duplicate' });
    });
    serveHttps(app);
  },

  /** Accepts requests to /accept immediately, and to /slow after a second. Never answers others. */
  hook: () => {
    const server = createHttpServer((request, response) => {
      request.resume().on('end', () => {
        const accept = () => response.writeHead(204).end();
        if (request.url === '/accept') accept();
        if (request.url === '/slow') setTimeout(accept, slowMs);
      });
    });
    server.listen(listenPort, '127.0.0.1');
  },
};

await counterparts[process.argv[2] ?? '']?.();
