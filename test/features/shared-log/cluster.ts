/** Several real receivers with a shared log behind a real load balancer, senders, and a checker. */
import { mkdirSync } from 'node:fs';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { expect, onTestFinished } from 'vitest';
import { ownTables } from '../../../src/features/shared-log/table-parts.ts';
import { behindProxy, startShippedProxy } from '../../e2e/behind-proxy.ts';
import { notification } from '../../helpers/deliveries.ts';
import { freePorts } from '../../helpers/free-ports.ts';
import { sendRequest } from '../../helpers/send-request.ts';
import {
  createReceiverContext,
  credentials,
  type SpawnedReceiver,
} from '../../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { openNode, query } from './shared-log-context.ts';

type Cluster = Awaited<ReturnType<typeof startCluster>>;

/** Starts receivers on this database, and a load balancer with the shipped configuration in front of them. */
export async function startCluster(options: {
  url: string;
  receivers?: number;
  env?: Record<string, string>;
  /** By default nginx. */
  balancer?: keyof typeof balancers;
  /** Differences of the nodes' clocks. */
  clockOffsetsMs?: readonly number[];
}) {
  const { url, receivers = 3, env = {}, clockOffsetsMs = [] } = options;
  const folder = temporaryDirectory();
  const ports = await freePorts(receivers);
  const nodes = await Promise.all(
    ports.map((port, i) => {
      const name = `node-${i + 1}`;
      const own = { EARSHOT_NODE: name, EARSHOT_LOG_URL: url, ...env };
      return createNode(join(folder, name), port, own, clockOffsetsMs[i]);
    }),
  );
  for (const node of nodes) await node.start();
  const proxy = await startBalancer(options.balancer ?? 'nginx', folder, ports);
  const agent = new Agent({ keepAlive: true, maxSockets: 64, ca: proxy.ca });
  onTestFinished(() => agent.destroy());
  const auth = `${credentials.username}:${credentials.password}`;
  const request = { method: 'POST', auth, headers: { 'Content-Type': 'application/json' } };
  return {
    folder,
    nodes,
    /** Posts a body to the load balancer. Rejects when the connection breaks. */
    post: async (body: string) => {
      const path = '/notifications/several';
      const target = { host: 'localhost', port: proxy.port, agent, path };
      return (await sendRequest({ ...target, ...request }, body)).status;
    },
    /** Posts a body to one receiver. */
    postTo: async ({ port }: { port: number }, body: string, login = credentials) => {
      const target = { url: `http://127.0.0.1:${port}/notifications/several` };
      const own = { ...request, auth: `${login.username}:${login.password}` };
      return (await sendRequest({ ...target, ...own }, body)).status;
    },
  };
}

async function createNode(
  folder: string,
  port: number,
  env: Record<string, string>,
  clockOffsetMs = 0,
) {
  mkdirSync(folder);
  const context = await createReceiverContext(folder);
  let receiver: SpawnedReceiver | null = null;
  return {
    ...{ port, dataDir: context.dataDir },
    start: async () => {
      const listen = { EARSHOT_LISTEN: `127.0.0.1:${port}`, EARSHOT_CONSOLE_LISTEN: 'off' };
      const own = { ...behindProxy, ...listen, ...env };
      receiver = await context.start(own, clockOffsetMs === 0 ? [] : otherClock(clockOffsetMs));
    },
    /** Kills the process and waits for its end. */
    kill: async (signal: NodeJS.Signals = 'SIGKILL') => void (await receiver?.end(signal)),
  };
}

/** Options of Node for a clock that differs. */
function otherClock(offsetMs: number): string[] {
  const code = `const now = Date.now; Date.now = () => now() + ${offsetMs};`;
  return ['--import', `data:text/javascript,${encodeURIComponent(code)}`];
}

/** Shipped configurations with the addresses of several receivers. */
const balancers = { nginx: 'nginx/several.conf', caddy: 'caddy/several.Caddyfile' };

function startBalancer(balancer: keyof typeof balancers, folder: string, ports: readonly number[]) {
  const toReceivers = (text: string) => {
    const own = ports.reduce(
      (changed, port, i) => changed.replace(`10.0.0.${i + 1}:8081`, `127.0.0.1:${port}`),
      text,
    );
    return own.replaceAll(/^ *server 10\.0\.0\..*\n| 10\.0\.0\.\d:8081/gm, '');
  };
  return startShippedProxy(balancers[balancer], { folder, toReceivers });
}

/** Sends notifications until it is stopped. Each sender continues with the next one after any answer. */
export function startSenders(post: (body: string) => Promise<number>) {
  /** AckIds that were answered with 200. */
  const answered: string[] = [];
  /** Answers other than 200, by status; 0 for a broken connection. */
  const refused = new Map<number, number>();
  let isStopped = false;
  let next = 0;
  const padding = 'x'.repeat(500);
  const send = async () => {
    while (!isStopped) {
      next += 1;
      const number = next;
      const body = JSON.stringify(notification(number, { padding }));
      const status = await post(body).catch(() => 0);
      if (status === 200) answered.push(`ack-${number}`);
      else refused.set(status, (refused.get(status) ?? 0) + 1);
      await delay(20);
    }
  };
  const sending = Promise.all(Array.from({ length: 16 }, send));
  return {
    answered,
    refused,
    stop: async () => {
      isStopped = true;
      await sending;
    },
  };
}

/** Returns all rows of the shared tables of a node, as text. */
export function contentOf(dataDir: string): Record<string, string[]> {
  const database = new Sqlite(join(dataDir, 'earshot.db'), { readonly: true });
  const tables = database
    .prepare<[], string>(`SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`)
    .pluck()
    .all()
    .filter((name) => name === 'notification' || !ownTables.has(name));
  const rows = tables.map((name) => [
    name,
    database
      .prepare(`SELECT * FROM ${name}`)
      .all()
      .map((row) => JSON.stringify(row))
      .sort(),
  ]);
  database.close();
  return Object.fromEntries(rows);
}

/** Content regardless of the ids of bodies and the order of rows. */
export function comparableOf(dataDir: string): Record<string, string[]> {
  const entries = Object.entries(contentOf(dataDir)).map(([table, rows]) => [
    table,
    rows.map((row) => row.replace(/"body_id":\d+/, '')).sort(),
  ]);
  return Object.fromEntries(entries);
}

/**
 * Stops the nodes, lets each apply the rest of the log, and checks all: each answered AckId is stored once, positions and
 * entries have no gap, and the tables of all nodes are equal.
 */
export async function checkCluster(
  url: string,
  { nodes }: Pick<Cluster, 'nodes'>,
  answered: readonly string[],
): Promise<{ stored: number }> {
  await Promise.all(nodes.map((node) => node.kill('SIGTERM')));
  const dataDirs = nodes.map(({ dataDir }) => dataDir);
  for (const dataDir of dataDirs) {
    const { store } = await openNode({ url, dataDir });
    await store.shared?.caughtUp();
    await store.close();
  }
  const [{ number, entries, keys, position = 0 } = {}] = await query<Record<string, number>>(
    url,
    `SELECT number::int, position::int, (SELECT count(*)::int FROM earshot.entry) AS entries,
       (SELECT count(*)::int FROM earshot.notification_key) AS keys FROM earshot.head`,
  );
  expect([entries, keys]).toEqual([number, position]);
  const [first = '', ...others] = dataDirs;
  const database = new Sqlite(join(first, 'earshot.db'), { readonly: true });
  const rows = database
    .prepare<[], { position: number; ackId: string }>(
      'SELECT position, ack_id AS ackId FROM notification ORDER BY position',
    )
    .all();
  database.close();
  expect(rows.map((row) => row.position)).toEqual(
    Array.from({ length: position }, (_, i) => i + 1),
  );
  const known = new Set(rows.map(({ ackId }) => ackId));
  expect(known.size).toBe(rows.length);
  expect(answered.filter((ackId) => !known.has(ackId))).toEqual([]);
  const content = contentOf(first);
  for (const other of others) {
    const found = contentOf(other);
    for (const [table, all] of Object.entries(content)) {
      expect(found[table], `table ${table} of ${other}`).toEqual(all);
    }
  }
  return { stored: rows.length };
}
