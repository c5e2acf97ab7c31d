/** Baseline "twenty-line": the receiver a user would write in an hour, durable and deduplicating. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { serve } from '@hono/node-server';
import Database from 'better-sqlite3';
import { Hono } from 'hono';
import { basicAuth } from 'hono/basic-auth';

/** Starts it as the environment says: PORT, TLS_CERT, TLS_KEY, DATABASE (files), USERNAME, PASSWORD. */
export function startTwentyLineReceiver(env: NodeJS.ProcessEnv): void {
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

  const serverOptions = {
    cert: readFileSync(env.TLS_CERT ?? ''),
    key: readFileSync(env.TLS_KEY ?? ''),
  };
  const port = Number(env.PORT);
  serve({ fetch: app.fetch, hostname: '127.0.0.1', port, createServer, serverOptions });
}

if (process.argv[1] === import.meta.filename) startTwentyLineReceiver(process.env);
