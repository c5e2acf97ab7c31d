/** Several real receivers with a shared log behind a real load balancer, senders, and a checker. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { expect, onTestFinished } from 'vitest';
import { ownTables } from '../../../src/features/shared-log/state-tables.ts';
import { createCertificateAuthority } from '../../../src/sandbox/certificate-authority.ts';
import { type MadeNotification, notification } from '../../helpers/deliveries.ts';
import { freePort, freePorts } from '../../helpers/free-ports.ts';
import { sendRequest } from '../../helpers/send-request.ts';
import {
  createReceiverContext,
  credentials,
  type SpawnedReceiver,
} from '../../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { openNode, query } from './shared-log-context.ts';

export interface Cluster {
  folder: string;
  nodes: ClusterNode[];
  /** Posts a body to the load balancer. Rejects when the connection breaks. */
  post(body: string, path?: string): Promise<number>;
  /** Posts a body to one receiver. */
  postTo(node: ClusterNode, body: string, login?: typeof credentials): Promise<number>;
}

export interface ClusterNode {
  name: string;
  port: number;
  dataDir: string;
  /** Environment of the next start, in addition to that of all nodes. */
  env: Record<string, string>;
  receiver(): SpawnedReceiver;
  start(): Promise<void>;
  /** Kills the process and waits for its end. */
  kill(signal?: NodeJS.Signals): Promise<void>;
}

/** Starts receivers on this database, and a load balancer with the shipped configuration in front of them. */
export async function startCluster(options: {
  url: string;
  receivers?: number;
  env?: Record<string, string>;
  /** Text of earshot.config.ts. */
  config?: string;
  /** By default nginx. */
  balancer?: Balancer;
  /** Differences of the nodes' clocks. */
  clockOffsetsMs?: readonly number[];
}): Promise<Cluster> {
  const { url, receivers = 3, env = {}, config, clockOffsetsMs = [] } = options;
  const folder = temporaryDirectory();
  const ports = await freePorts(receivers);
  const nodes = await Promise.all(
    ports.map((port, i) => {
      const clockOffsetMs = clockOffsetsMs[i] ?? 0;
      return createNode({ folder, port, name: `node-${i + 1}`, url, env, config, clockOffsetMs });
    }),
  );
  for (const node of nodes) await node.start();
  const { proxyPort, ca } = await startBalancer(options.balancer ?? 'nginx', folder, ports);
  const agent = new Agent({ keepAlive: true, maxSockets: 64, ca });
  onTestFinished(() => agent.destroy());
  const auth = `${credentials.username}:${credentials.password}`;
  const request = { method: 'POST', auth, headers: { 'Content-Type': 'application/json' } };
  return {
    folder,
    nodes,
    post: async (body, path = '/notifications/several') => {
      const target = { host: 'localhost', port: proxyPort, agent, path };
      return (await sendRequest({ ...target, ...request }, body)).status;
    },
    postTo: async ({ port }, body, { username, password } = credentials) => {
      const target = { url: `http://127.0.0.1:${port}/notifications/several` };
      const own = { ...request, auth: `${username}:${password}` };
      return (await sendRequest({ ...target, ...own }, body)).status;
    },
  };
}

async function createNode(options: {
  folder: string;
  port: number;
  name: string;
  url: string;
  env: Record<string, string>;
  config: string | undefined;
  clockOffsetMs: number;
}): Promise<ClusterNode> {
  const { port, name, url, env, clockOffsetMs } = options;
  const folder = join(options.folder, name);
  mkdirSync(folder);
  if (options.config !== undefined) {
    writeFileSync(join(folder, 'earshot.config.ts'), options.config);
  }
  const context = await createReceiverContext(folder);
  let receiver: SpawnedReceiver | undefined;
  const current = () => {
    if (receiver === undefined) throw new Error(`${name} does not run.`);
    return receiver;
  };
  const node: ClusterNode = {
    ...{ name, port, dataDir: context.dataDir, env: {}, receiver: current },
    start: async () => {
      const own = {
        EARSHOT_TLS: 'off',
        EARSHOT_TLS_CERT: '',
        EARSHOT_TLS_KEY: '',
        EARSHOT_TRUSTED_PROXIES: '127.0.0.1',
        EARSHOT_LISTEN: `127.0.0.1:${port}`,
        EARSHOT_CONSOLE_LISTEN: 'off',
        EARSHOT_NODE: name,
        EARSHOT_LOG_URL: url,
        ...env,
        ...node.env,
      };
      receiver = await context.start(own, clockOffsetMs === 0 ? [] : otherClock(clockOffsetMs));
    },
    kill: async (signal = 'SIGKILL') => {
      const { child } = current();
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exit = once(child, 'exit');
      child.kill(signal);
      await exit;
    },
  };
  return node;
}

/** Options of Node for a clock that differs. */
function otherClock(offsetMs: number): string[] {
  const code = `const now = Date.now; Date.now = () => now() + ${offsetMs};`;
  return ['--import', `data:text/javascript,${encodeURIComponent(code)}`];
}

const deploy = join(import.meta.dirname, '../../../deploy');

export type Balancer = 'nginx' | 'caddy';

interface BalancerParts {
  folder: string;
  port: number;
  receivers: readonly number[];
  certFile: string;
  keyFile: string;
}

/** The shipped configuration with other addresses. */
function shipped(file: string, { receivers }: BalancerParts): string {
  let text = readFileSync(join(deploy, file), 'utf8');
  for (const [i, port] of receivers.entries()) {
    text = text.replace(`10.0.0.${i + 1}:8081`, `127.0.0.1:${port}`);
  }
  return text.replaceAll(/^ *server 10\.0\.0\..*\n| 10\.0\.0\.\d:8081/gm, '');
}

/** Writes the configuration of each load balancer; returns the program and its arguments. */
const balancers: Record<Balancer, (parts: BalancerParts) => [string, string[]]> = {
  nginx: (parts) => {
    const { folder, port, certFile, keyFile } = parts;
    const site = shipped('nginx/several.conf', parts)
      .replaceAll('/etc/letsencrypt/live/earshot.example.org/fullchain.pem', certFile)
      .replaceAll('/etc/letsencrypt/live/earshot.example.org/privkey.pem', keyFile)
      .replaceAll('earshot.example.org', 'localhost')
      .replaceAll('listen 443 ', `listen 127.0.0.1:${port} `)
      .replaceAll('listen [::]:443 ', `listen [::1]:${port} `);
    writeFileSync(join(folder, 'earshot.conf'), site);
    const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
    const paths = kinds.map((kind) => `${kind}_temp_path ${join(folder, kind)};`).join('\n');
    writeFileSync(
      join(folder, 'nginx.conf'),
      `${process.getuid?.() === 0 ? 'user root;' : ''}
      daemon off; pid ${join(folder, 'nginx.pid')}; error_log ${join(folder, 'error.log')};
      events { worker_connections 1024; }
      http { access_log off; ${paths} include ${join(folder, 'earshot.conf')}; }`,
    );
    const main = join(folder, 'nginx.conf');
    return ['/usr/sbin/nginx', ['-p', folder, '-e', 'stderr', '-c', main]];
  },
  caddy: (parts) => {
    const { folder, port, certFile, keyFile } = parts;
    const file = join(folder, 'Caddyfile');
    const text = shipped('caddy/several.Caddyfile', parts)
      .replace(
        '# tls /etc/earshot/fullchain.pem /etc/earshot/privkey.pem',
        `tls ${certFile} ${keyFile}`,
      )
      .replaceAll('earshot.example.org', `localhost:${port}`)
      .replace(
        '\n{\n',
        '\n{\n\tadmin off\n\tdefault_bind 127.0.0.1\n\tauto_https disable_redirects\n',
      );
    writeFileSync(file, text);
    return ['/usr/bin/caddy', ['run', '--adapter', 'caddyfile', '--config', file]];
  },
};

async function startBalancer(kind: Balancer, folder: string, receivers: readonly number[]) {
  const authority = await createCertificateAuthority({ now: Date.now });
  const pair = await authority.issue({ hosts: ['localhost'] });
  const [certFile, keyFile] = [join(folder, 'proxy.pem'), join(folder, 'proxy-key.pem')];
  writeFileSync(certFile, pair.certificatePem);
  writeFileSync(keyFile, pair.keyPem);
  const port = await freePort();
  const [program, args] = balancers[kind]({ folder, port, receivers, certFile, keyFile });
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    XDG_DATA_HOME: folder,
    XDG_CONFIG_HOME: folder,
  };
  const child = spawn(program, args, { cwd: folder, env, stdio: 'ignore' });
  onTestFinished(() => ended(child));
  const ca = authority.certificatePem;
  const probe = () =>
    sendRequest({ host: 'localhost', port, ca, path: '/' }).then(
      ({ status }) => status,
      () => 0,
    );
  await expect.poll(probe, { timeout: 10_000 }).toBe(404);
  return { proxyPort: port, ca };
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  await exit;
}

/** Answers to senders. */
export interface Sent {
  /** AckIds that were answered with 200. */
  answered: string[];
  /** Answers other than 200, by status; 0 for a broken connection. */
  refused: Map<number, number>;
  stop(): Promise<void>;
}

/** Sends notifications until it is stopped. Each sender continues with the next one after any answer. */
export function startSenders(
  post: (body: string) => Promise<number>,
  {
    senders = 16,
    padding = 500,
    pauseMs = 20,
    fieldsOf = () => ({}),
  }: {
    senders?: number;
    padding?: number;
    /** Pause of a sender after each answer. */
    pauseMs?: number;
    /** Fields of the notification with a number. */
    fieldsOf?: (number: number) => MadeNotification;
  } = {},
): Sent {
  const answered: string[] = [];
  const refused = new Map<number, number>();
  let isStopped = false;
  let next = 0;
  const filler = 'x'.repeat(padding);
  const send = async () => {
    while (!isStopped) {
      next += 1;
      const number = next;
      const fields = { padding: filler, ...fieldsOf(number) };
      const body = JSON.stringify(notification(number, fields));
      const status = await post(body).catch(() => 0);
      if (pauseMs > 0) await delay(pauseMs);
      if (status === 200) answered.push(`ack-${number}`);
      else {
        refused.set(status, (refused.get(status) ?? 0) + 1);
        await delay(20);
      }
    }
  };
  const sending = Promise.all(Array.from({ length: senders }, send));
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

interface CheckedRow {
  position: number;
  ackId: string;
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
    await store.node?.caughtUp();
    await store.close();
  }
  const [head] = await query<{ number: string; position: string; entries: string; keys: string }>(
    url,
    `SELECT number, position, (SELECT count(*) FROM earshot.entry) AS entries,
       (SELECT count(*) FROM earshot.notification_key) AS keys FROM earshot.head`,
  );
  const position = Number(head?.position);
  expect(Number(head?.entries)).toBe(Number(head?.number));
  expect(Number(head?.keys)).toBe(position);
  const [first = '', ...others] = dataDirs;
  const database = new Sqlite(join(first, 'earshot.db'), { readonly: true });
  const rows = database
    .prepare<[], CheckedRow>('SELECT position, ack_id AS ackId FROM notification ORDER BY position')
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
