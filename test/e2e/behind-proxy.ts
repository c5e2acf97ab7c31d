/** What must hold behind any proxy that is set up as we ship it: real program, real receiver, HTTPS. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, writeFileSync } from 'node:fs';
import { Agent, type RequestOptions } from 'node:https';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished } from 'vitest';
import { createCertificateAuthority } from '../../src/sandbox/certificate-authority.ts';
import { freePort } from '../helpers/free-ports.ts';
import { type Answer, sendRequest } from '../helpers/send-request.ts';
import {
  createReceiverContext,
  credentials,
  type ReceiverContext,
  type SpawnedReceiver,
} from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

/** What a shipped snippet is filled in with. */
export interface ProxyParts {
  folder: string;
  proxyPort: number;
  receiverPort: number;
  certFile: string;
  keyFile: string;
}

/** Writes the configuration; the program's name and its words. */
export type PrepareProxy = (parts: ProxyParts) => { program: string; args: string[] };

export interface Ask {
  method?: string;
  path?: string;
  body?: string;
  headers?: Record<string, string>;
  password?: string;
  /** A loopback address of the client's. */
  from?: string;
}

export interface ProxyContext {
  context: ReceiverContext;
  receiver: SpawnedReceiver;
  proxyPort: number;
  ca: string;
  /** One request over HTTPS. Rejects when the connection breaks before the whole answer is there. */
  ask(request: Ask): Promise<Answer>;
  /** Starts the receiver again, where the proxy looks for it. */
  restart(): Promise<SpawnedReceiver>;
}

/** Runs the proxy in front of a receiver; both end with the test. */
export async function startBehind(prepare: PrepareProxy): Promise<ProxyContext> {
  const folder = temporaryDirectory();
  const context = await createReceiverContext(folder);
  const authority = await createCertificateAuthority({ now: Date.now });
  const pair = await authority.issue({ hosts: ['localhost'] });
  const files = { certFile: join(folder, 'proxy.pem'), keyFile: join(folder, 'proxy-key.pem') };
  writeFileSync(files.certFile, pair.certificatePem);
  writeFileSync(files.keyFile, pair.keyPem);
  const env = {
    EARSHOT_TLS: 'off',
    EARSHOT_TLS_CERT: '',
    EARSHOT_TLS_KEY: '',
    EARSHOT_TRUSTED_PROXIES: '127.0.0.1',
  };
  const receiver = await context.start(env);
  const proxyPort = await freePort();
  const parts = { folder, proxyPort, receiverPort: receiver.port, ...files };
  await startProxy(prepare(parts), folder, proxyPort);
  const restart = () => context.start({ ...env, EARSHOT_LISTEN: `127.0.0.1:${receiver.port}` });
  const ca = authority.certificatePem;
  return { context, receiver, proxyPort, ca, ask: createAsk(proxyPort, ca), restart };
}

/** Resolves when the proxy takes connections. */
async function startProxy(
  { program, args }: { program: string; args: string[] },
  folder: string,
  port: number,
): Promise<void> {
  const env = {
    PATH: process.env.PATH,
    HOME: folder,
    XDG_DATA_HOME: folder,
    XDG_CONFIG_HOME: folder,
  };
  const child = spawn(program, args, { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] });
  onTestFinished(() => ended(child));
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const probe = createAsk(port, '', { rejectUnauthorized: false });
  const answers = () =>
    probe({ method: 'GET', path: '/' }).then(
      () => 'answers',
      () => log,
    );
  await expect.poll(answers, { timeout: 10_000 }).toBe('answers');
}

/** By SIGTERM, as a proxy ends its workers only when it is asked. */
async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), 5_000);
  await exit;
  clearTimeout(timer);
}

function createAsk(port: number, ca: string, more: RequestOptions = {}): ProxyContext['ask'] {
  const agents = new Map<string, Agent>();
  onTestFinished(() => {
    for (const agent of agents.values()) agent.destroy();
  });
  const agentOf = (localAddress: string) => {
    const known =
      agents.get(localAddress) ?? new Agent({ keepAlive: true, maxSockets: 8, localAddress });
    agents.set(localAddress, known);
    return known;
  };
  return ({ method = 'POST', path = '/notifications/proxied', body, headers, ...rest }) => {
    const { password = credentials.password, from = '127.0.0.1' } = rest;
    const target = { port, servername: 'localhost', ca, path, method, agent: agentOf(from) };
    const auth = `${credentials.username}:${password}`;
    const host = { Host: `localhost:${port}` };
    return sendRequest({ ...target, auth, headers: { ...host, ...headers }, ...more }, body);
  };
}

/** As the catalogue does it: again until it is taken. */
export async function sendUntilTaken(ask: ProxyContext['ask'], body: string): Promise<void> {
  for (;;) {
    const status = await ask({ body }).then(
      (answer) => answer.status,
      () => 0,
    );
    if (status === 200) return;
    // A pause of the sender's, as a receiver that is away would be asked a thousand times a second.
    await delay(20);
  }
}

/** Where Debian puts the program; undefined where it is not. In CI it must be there. */
export function installed(program: string): boolean {
  return process.env.CI !== undefined || existsSync(program);
}
