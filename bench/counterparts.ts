/**
 * The servers that the benchmark needs beside earshot, each started as a process of its own by its name: two baselines
 * to compare with, a web service for sinks, and a language model. Told by the environment: PORT of loopback; the
 * baselines TLS_CERT and TLS_KEY, the twenty-line receiver also DATABASE (all files), USERNAME and PASSWORD.
 */
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:https';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';

const { env } = process;
const listenPort = Number(env.PORT);

/** A short text of a hosted model takes some seconds. */
const modelDelayMs = 1_000;
/** States nothing that could be checked, so that it is kept as it is. */
const modelText = 'This product has arrived.';

function serveHttps(app: Hono): void {
  const serverOptions = {
    cert: readFileSync(env.TLS_CERT ?? ''),
    key: readFileSync(env.TLS_KEY ?? ''),
  };
  const where = { hostname: '127.0.0.1', port: listenPort };
  serve({ fetch: app.fetch, ...where, createServer, serverOptions });
}

const counterparts: Readonly<Record<string, () => void | Promise<void>>> = {
  /** Reads the body, checks nothing and stores nothing: the ceiling. */
  bare: () => {
    const app = new Hono().all('/notifications/*', async (c) => {
      await c.req.arrayBuffer();
      return c.json({ status: 'stored' });
    });
    serveHttps(app);
  },

  /** The receiver a user would write in an hour, durable and deduplicating. */
  'twenty-line': async () => {
    // Not for the others: what a baseline does not need would show in its memory.
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

  /** Takes what is posted to /take at once, and never answers elsewhere. */
  hook: () => {
    const server = createHttpServer((request, response) => {
      request.resume().on('end', () => {
        if (request.url === '/take') response.writeHead(204).end();
      });
    });
    server.listen(listenPort, '127.0.0.1');
  },

  /** Answers every completion after a second, with one text. */
  model: () => {
    const message = { role: 'assistant', content: modelText };
    const body = JSON.stringify({ choices: [{ message }] });
    const server = createHttpServer((request, response) => {
      request.resume().on('end', () => {
        setTimeout(() => {
          response.writeHead(200, { 'content-type': 'application/json' }).end(body);
        }, modelDelayMs);
      });
    });
    server.listen(listenPort, '127.0.0.1');
  },
};

await counterparts[process.argv[2] ?? '']?.();
