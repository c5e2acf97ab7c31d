/**
 * A user's own app on loopback with the receiver mounted, served with the defaults of
 * @hono/node-server.
 */
import { once } from 'node:events';
import { Agent } from 'node:http';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { onTestFinished } from 'vitest';
import {
  type CreateReceiverOptions,
  createReceiver,
  openStore,
  type Store,
} from '../../src/index.ts';
import { type Answer, sendRequest } from './send-request.ts';
import { temporaryDirectory } from './temporary-directory.ts';

export const pair = { username: 'catalogue', password: 'open: sesame' };

export async function openTestStore(): Promise<Store> {
  const store = await openStore({ dataDir: temporaryDirectory() });
  onTestFinished(() => store.close());
  return store;
}

export interface Sent {
  method?: string;
  path?: string;
  body?: string | Uint8Array;
  headers?: Record<string, string>;
  /** `user:password`; the correct ones by default. */
  auth?: string | undefined;
}

/** Serves the app that `compose` builds around a receiver; returns a client for it. */
export async function serveApp(
  compose: (app: Hono, receiver: Hono) => void,
  options: Partial<CreateReceiverOptions> = {},
) {
  const store = await openTestStore();
  const app = new Hono();
  compose(app, createReceiver({ store, credentials: [pair], ...options }));
  const server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: 0 });
  await once(server, 'listening');
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => {
    agent.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const send = (sent: Sent = {}) => exchange({ port, agent, ...sent });
  return { store, send };
}

function exchange(sent: Sent & { port: number; agent: Agent }): Promise<Answer> {
  const { port, agent, method = 'POST', path = '/notifications/alps', headers = {} } = sent;
  const auth = 'auth' in sent ? sent.auth : `${pair.username}:${pair.password}`;
  const target = { protocol: 'http:', port, agent, method, path, headers, auth };
  return sendRequest(target, sent.body);
}
