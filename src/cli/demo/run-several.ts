/** Runs `earshot demo --receivers`: several receivers with a shared log, one of which is killed. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { AppError } from '../../domain/app-error.ts';
import { type Listener, startListener } from '../../http/listener.ts';
import { problemResponse } from '../../http/problem.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { openStoreReader, type Store } from '../../store/store.ts';
import { type Closers, createClosers } from '../closers.ts';
import { type Io, pause } from '../io.ts';
import { createProgressLine } from '../output.ts';
import { ioWith, type Settings } from '../setup/env-file.ts';
import { withStore } from '../setup/past.ts';
import { anyPort } from '../setup/trial.ts';
import { demoSubscriptions, registerDemo } from './account.ts';
import { type DemoFlags, openSandbox } from './context.ts';
import { findPostgres, startPostgres } from './postgres-server.ts';

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
  if (findPostgres() === null) {
    throw new AppError(
      'configuration',
      'The demo with several receivers needs PostgreSQL 15 or newer, which is not installed.',
      { advice: 'Debian and Ubuntu: sudo apt-get install postgresql' },
    );
  }
  const closers = createClosers();
  const progress = createProgressLine(io.stderr);
  try {
    progress.show(`starting PostgreSQL and ${flags.receivers} receivers …`);
    const { receivers, sandbox, observer, products } = await open(io, flags, closers);
    progress.clear();
    const say = (text: string) => void io.stdout.write(`${text}\n`);
    say(`${receivers.length} receivers share a log in PostgreSQL.`);
    await withStore(observer, (store) =>
      registerDemo(observer, store, demoSubscriptions({ once: true }), { shown: false }),
    );
    sandbox.resume();
    const killed = receivers.at(-1);
    await untilDelivered(io, sandbox, products / 3);
    await killed?.kill();
    say(`Killed ${killed?.name} while products arrive (kill -9).`);
    await untilDelivered(io, sandbox, (2 * products) / 3);
    await killed?.start();
    say(`Started ${killed?.name} again.`);
    await sandbox.finished;
    await withStore(observer, (store) => printResult(io, { receivers, sandbox }, store));
  } finally {
    progress.clear();
    await closers.closeAll();
  }
}

async function open(
  io: Io,
  { receivers: count, products = productsDefault, seed }: DemoFlags & { receivers: number },
  closers: Closers,
) {
  const published = { seed, ratePerSecond, count: products };
  const how = { isPull: false, closers };
  const { folder, settings, sandbox } = await openSandbox(io, published, how);
  // PostgreSQL needs a folder that the user of the server can enter.
  const own = await mkdtemp(join(tmpdir(), 'earshot-postgres-'));
  closers.add(() => rm(own, { recursive: true, force: true }));
  const database = await startPostgres({ folder: own, port: await anyPort() });
  closers.add(() => database.stop());
  const shared = { ...settings, EARSHOT_LOG_URL: database.url('postgres') };
  const receivers: Receiver[] = [];
  for (let i = 1; i <= count; i += 1) {
    const place = join(folder, `receiver-${i}`);
    await mkdir(place, { mode: 0o700 });
    const receiver = createReceiver(io, place, await anyPort(), shared);
    closers.add(receiver.kill);
    await receiver.start();
    receivers.push(receiver);
  }
  const balancer = await startBalancer(io, receivers, settings);
  closers.add(() => balancer.close(1_000));
  const observer = ioWith(io, {
    ...{ ...shared, EARSHOT_DATA_DIR: join(folder, 'observer'), EARSHOT_NODE: 'observer' },
  });
  return { receivers, sandbox, observer, products };
}

const program = new URL('../../../scripts/earshot.js', import.meta.url);

function createReceiver(io: Io, folder: string, port: number, settings: Settings): Receiver {
  const name = basename(folder);
  const { EARSHOT_LOG_URL, EARSHOT_ENDPOINT_USERNAME, EARSHOT_ENDPOINT_PASSWORD } = settings;
  const dataDir = join(folder, 'data');
  const env = {
    ...{ EARSHOT_LOG_URL, EARSHOT_ENDPOINT_USERNAME, EARSHOT_ENDPOINT_PASSWORD },
    ...{ PATH: io.env.PATH, EARSHOT_DATA_DIR: dataDir, EARSHOT_LISTEN: `127.0.0.1:${port}` },
    ...{ EARSHOT_NODE: name, EARSHOT_TLS: 'off', EARSHOT_TRUSTED_PROXIES: '127.0.0.1' },
    ...{ EARSHOT_CONSOLE_LISTEN: 'off', EARSHOT_INDEX: 'off', EARSHOT_RECONCILE: 'off' },
  };
  const login = btoa(`${EARSHOT_ENDPOINT_USERNAME}:${EARSHOT_ENDPOINT_PASSWORD}`);
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

const forwarded = ['authorization', 'content-type'];

/** A load balancer over HTTPS: sends a request to the next receiver when one fails. */
function startBalancer(
  io: Io,
  receivers: readonly Receiver[],
  { EARSHOT_LISTEN = '', EARSHOT_TLS_CERT = '', EARSHOT_TLS_KEY = '' }: Settings,
): Promise<Listener> {
  let turn = 0;
  const forward = async (request: Request): Promise<Response> => {
    const { url, method } = request;
    const body = method === 'POST' ? await request.arrayBuffer() : null;
    const headers = [...request.headers].filter(([name]) => forwarded.includes(name));
    for (let attempt = 0; attempt < 2 * receivers.length; attempt += 1) {
      turn = (turn + 1) % receivers.length;
      const to = `http://127.0.0.1:${receivers[turn]?.port}${new URL(url).pathname}`;
      const answer = await io.fetch(to, { method, headers, body }).catch(() => null);
      if (answer !== null && answer.status !== 503) return answer;
    }
    return new Response(null, { status: 503 });
  };
  return startListener({
    fetch: forward,
    listen: { host: '127.0.0.1', port: Number(EARSHOT_LISTEN.split(':')[1]) },
    listenVariable: 'EARSHOT_LISTEN',
    keyPair: { cert: io.readFile(EARSHOT_TLS_CERT), key: io.readFile(EARSHOT_TLS_KEY) },
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

/** Compares what the sandbox has delivered with the shared log and the log of each receiver. */
async function printResult(
  io: Io,
  { receivers, sandbox }: { receivers: readonly Receiver[]; sandbox: Sandbox },
  store: Store,
): Promise<void> {
  await store.node?.caughtUp();
  const accepted = sandbox.entries().filter(({ timesReceivedOk }) => timesReceivedOk > 0);
  const lost = new Set(accepted.map(({ ackId }) => ackId));
  for await (const { ackId } of store.find({})) lost.delete(ackId ?? '');
  const { notifications: stored } = await store.counts();
  let isEqual = true;
  for (const { name, dataDir } of receivers) {
    const reader = openStoreReader(dataDir);
    let count = 0;
    for (let waitedMs = 0; count < stored && waitedMs < readyMs; waitedMs += pollMs) {
      count = (await reader.counts()).notifications;
      if (count < stored) await pause(pollMs, io.signal);
    }
    await reader.close();
    io.stdout.write(`${name}: ${count} stored\n`);
    isEqual &&= count === stored;
  }
  const { published } = sandbox.totals();
  const missing = lost.size;
  const result = { published, delivered: accepted.length, stored, missing };
  io.stdout.write(`${JSON.stringify({ ...result, receivers: receivers.length, killed: 1 })}\n`);
  if (missing === 0 && stored === accepted.length && stored === published && isEqual) return;
  throw new AppError('invalid', 'The records of the sandbox and of the receivers differ.');
}
