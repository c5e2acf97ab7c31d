/** Runs `earshot demo --receivers`: several receivers with a shared log, one of which is killed. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AppError } from '../../domain/app-error.ts';
import { type Listener, startListener } from '../../http/listener.ts';
import { problemResponse } from '../../http/problem.ts';
import { noFaults } from '../../sandbox/delivery/faults.ts';
import { type Sandbox, startSandbox } from '../../sandbox/sandbox.ts';
import { openStoreReader, type Store } from '../../store/store.ts';
import { newCredentials } from '../account.ts';
import { type Closers, createClosers } from '../closers.ts';
import { type Io, pause } from '../io.ts';
import { openConfiguredStore } from '../open-store.ts';
import { type Column, createProgressLine, printTable } from '../output.ts';
import { createTrialCertificate } from '../setup/trial.ts';
import { registerDemo } from './account.ts';
import { retryDelaysMs } from './context.ts';
import { findPostgres, type PostgresServer, startPostgres } from './postgres-server.ts';
import type { DemoFlags } from './run-demo.ts';

const productsDefault = 600;

/** The products take some seconds, so that one receiver can be killed meanwhile. */
const ratePerSecond = 100;

const pollMs = 50;

const readyMs = 60_000;

/** A receiver as a process of its own. */
interface Receiver {
  name: string;
  port: number;
  dataDir: string;
  start(): Promise<void>;
  kill(): Promise<void>;
}

/** Runs the demo. Throws `configuration` without PostgreSQL, and `invalid` if a notification is missing. */
export async function runSeveral(io: Io, flags: DemoFlags & { receivers: number }): Promise<void> {
  if (findPostgres() === null) throw notInstalled();
  const closers = createClosers();
  const progress = createProgressLine(io.stderr);
  try {
    progress.show(`starting PostgreSQL and ${flags.receivers} receivers …`);
    const demo = await open(io, flags, closers);
    progress.clear();
    const { receivers, sandbox, store, products } = demo;
    const say = (text: string) => void io.stdout.write(`${text}\n`);
    say(`${receivers.length} receivers share a log in PostgreSQL ${await versionOf(store)}.`);
    await registerDemo(io, { ...demo, receiver: { store } }, 'everything');
    const killed = receivers.at(-1);
    await untilDelivered(io, sandbox, products / 3);
    await killed?.kill();
    say(`Killed ${killed?.name} while products arrive (kill -9).`);
    await untilDelivered(io, sandbox, (2 * products) / 3);
    await killed?.start();
    say(`Started ${killed?.name} again.`);
    await sandbox.finished;
    await printResult(io, demo);
  } finally {
    progress.clear();
    await closers.closeAll();
  }
}

function notInstalled(): AppError {
  return new AppError(
    'configuration',
    'The demo with several receivers needs PostgreSQL 15 or newer, which is not installed.',
    { advice: 'Debian and Ubuntu: sudo apt-get install postgresql' },
  );
}

async function versionOf({ node }: Pick<Store, 'node'>): Promise<string> {
  return (await node?.log.database())?.version ?? '';
}

type Demo = Awaited<ReturnType<typeof open>>;

async function open(
  io: Io,
  { receivers: count, products = productsDefault, seed }: DemoFlags & { receivers: number },
  closers: Closers,
) {
  const folder = await mkdtemp(join(tmpdir(), 'earshot-demo-'));
  closers.add(() => rm(folder, { recursive: true, force: true }));
  const now = () => io.nowUs() / 1000;
  const certificate = await createTrialCertificate(folder, now);
  await certificate.write();
  const pair = newCredentials(io);
  const account = { username: 'demo', password: io.newSecret() };
  const sandbox = await startSandbox({
    ...{ account, now, seed, ratePerSecond, count: products, faults: noFaults },
    ...{ retryDelaysMs, trustedCaPems: [certificate.authorityPem] },
  });
  sandbox.pause();
  closers.add(() => sandbox.close());
  const database = await startDatabase(closers);
  const logUrl = database.url('postgres');
  const receivers: Receiver[] = [];
  for (let i = 1; i <= count; i += 1) {
    const own = join(folder, `receiver-${i}`);
    await mkdir(own, { mode: 0o700 });
    const receiver = await createReceiver(io, { folder: own, name: `receiver-${i}`, logUrl, pair });
    closers.add(() => receiver.kill());
    await receiver.start();
    receivers.push(receiver);
  }
  const { files } = certificate;
  const keyPair = { cert: io.readFile(files.cert), key: io.readFile(files.key) };
  const balancer = await startBalancer(io, receivers, keyPair);
  closers.add(() => balancer.close(1_000));
  const dataDir = join(folder, 'observer');
  const sharedLog = { urls: [logUrl], needsStandby: false, nodeName: 'observer' };
  const store = await openConfiguredStore({ dataDir, sharedLog }, io);
  closers.add(() => store.close());
  const config = {
    ...{ dataDir, sharedLog, publicUrl: `https://localhost:${balancer.address.port}` },
    catalogueUrl: sandbox.catalogueUrl,
    account: {
      ...{ kind: 'password' as const, tokenUrl: sandbox.tokenUrl, clientId: 'cdse-public' },
      ...{ totp: undefined, ...account },
    },
    limits: { runningMax: 2, totalMax: 10 },
    probeCa: files.ca,
    endpoint: { source: 'variables' as const, pairs: [pair] },
    pullRequestsPerMinute: 6_000,
  };
  return { receivers, sandbox, store, config, products };
}

/** Starts PostgreSQL in a folder of its own: the user of the server must be able to enter it. */
async function startDatabase(closers: Closers): Promise<PostgresServer> {
  const folder = await mkdtemp(join(tmpdir(), 'earshot-postgres-'));
  closers.add(() => rm(folder, { recursive: true, force: true }));
  const server = await startPostgres({ folder, port: await freePort() });
  closers.add(() => server.stop());
  return server;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('A server has no port.');
  return address.port;
}

const program = new URL('../../../scripts/earshot.js', import.meta.url);

async function createReceiver(
  io: Io,
  options: {
    folder: string;
    name: string;
    logUrl: string;
    pair: { username: string; password: string };
  },
): Promise<Receiver> {
  const { folder, name, logUrl, pair } = options;
  const port = await freePort();
  const dataDir = join(folder, 'data');
  const env = {
    PATH: io.env.PATH,
    EARSHOT_DATA_DIR: dataDir,
    EARSHOT_LISTEN: `127.0.0.1:${port}`,
    EARSHOT_CONSOLE_LISTEN: 'off',
    EARSHOT_TLS: 'off',
    EARSHOT_TRUSTED_PROXIES: '127.0.0.1',
    EARSHOT_ENDPOINT_USERNAME: pair.username,
    EARSHOT_ENDPOINT_PASSWORD: pair.password,
    EARSHOT_LOG_URL: logUrl,
    EARSHOT_NODE: name,
    EARSHOT_INDEX: 'off',
    EARSHOT_RECONCILE: 'off',
  };
  const login = Buffer.from(`${pair.username}:${pair.password}`).toString('base64');
  const headers = { Authorization: `Basic ${login}` };
  const isReady = () =>
    io.fetch(`http://127.0.0.1:${port}/notifications`, { headers }).then(
      ({ status }) => status === 200,
      () => false,
    );
  let child: ChildProcess | undefined;
  return {
    ...{ name, port, dataDir },
    start: async () => {
      child = fork(program, ['start'], { cwd: folder, env, stdio: 'ignore' });
      for (let waitedMs = 0; !(await isReady()); waitedMs += pollMs) {
        if (waitedMs > readyMs || child.exitCode !== null) {
          throw new AppError('unavailable', `${name} did not start.`);
        }
        await pause(pollMs, io.signal);
      }
    },
    kill: async () => {
      if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
      const exit = once(child, 'exit');
      child.kill('SIGKILL');
      await exit;
    },
  };
}

/** A load balancer over HTTPS: sends a request to the next receiver when one fails. */
function startBalancer(
  io: Io,
  receivers: readonly Receiver[],
  keyPair: { cert: string; key: string },
): Promise<Listener> {
  let turn = 0;
  const forward = async (request: Request): Promise<Response> => {
    const { pathname } = new URL(request.url);
    const body = request.method === 'POST' ? await request.arrayBuffer() : null;
    const headers = new Headers();
    for (const name of ['authorization', 'content-type']) {
      const value = request.headers.get(name);
      if (value !== null) headers.set(name, value);
    }
    for (let attempt = 0; attempt < 2 * receivers.length; attempt += 1) {
      turn = (turn + 1) % receivers.length;
      const url = `http://127.0.0.1:${receivers[turn]?.port}${pathname}`;
      const answer = await io
        .fetch(url, { method: request.method, headers, body })
        .catch(() => null);
      if (answer === null || answer.status === 503) continue;
      const { status } = answer;
      return new Response(await answer.arrayBuffer(), { status, headers: answer.headers });
    }
    return new Response(null, { status: 503 });
  };
  return startListener({
    fetch: forward,
    listen: { host: '127.0.0.1', port: 0 },
    listenVariable: 'EARSHOT_LISTEN',
    keyPair,
    onBadRequest: () =>
      problemResponse(new AppError('invalid', 'The request is malformed.'), io.newId()),
  });
}

/** Resolves when a number of notifications is delivered. */
async function untilDelivered(io: Io, sandbox: Sandbox, count: number): Promise<void> {
  while (sandbox.totals().delivered < count) {
    if (io.signal.aborted) throw new AppError('cancelled', 'Stopped.');
    await pause(pollMs, io.signal);
  }
}

interface Counted {
  name: string;
  notifications: number;
}

/** Compares what the sandbox has delivered with the log of each receiver. */
async function printResult(io: Io, { receivers, sandbox, store }: Demo): Promise<void> {
  await store.node?.caughtUp();
  const accepted = sandbox.entries().filter(({ timesReceivedOk }) => timesReceivedOk > 0);
  const missing = new Set(accepted.map(({ ackId }) => ackId));
  let stored = 0;
  for await (const { ackId } of store.find({})) {
    stored += 1;
    missing.delete(ackId ?? '');
  }
  const counted: Counted[] = [];
  for (const { name, dataDir } of receivers) {
    const reader = openStoreReader(dataDir);
    const count = async () => (await reader.counts()).notifications;
    for (let waitedMs = 0; (await count()) < stored && waitedMs < readyMs; waitedMs += pollMs) {
      await pause(pollMs, io.signal);
    }
    counted.push({ name, notifications: await count() });
    await reader.close();
  }
  const columns: Column<Counted>[] = [
    { title: 'receiver', value: ({ name }) => name },
    { title: 'stored', value: ({ notifications }) => String(notifications), align: 'right' },
  ];
  await printTable(io.stdout, columns, counted);
  const { published } = sandbox.totals();
  const result = { published, delivered: accepted.length, stored, missing: missing.size };
  io.stdout.write(`${JSON.stringify({ ...result, receivers: receivers.length, killed: 1 })}\n`);
  const isEqual = counted.every(({ notifications }) => notifications === stored);
  if (missing.size === 0 && stored === accepted.length && stored === published && isEqual) return;
  throw new AppError('invalid', 'The records of the sandbox and of the receivers differ.');
}
