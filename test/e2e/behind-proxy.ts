/** Tests for any reverse proxy with our shipped configuration: real program, real receiver, HTTPS. */
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

export const nginx = '/usr/sbin/nginx';
export const caddy = '/usr/bin/caddy';

/** Values that replace those of the shipped configuration. */
export interface ProxyParts {
  folder: string;
  proxyPort: number;
  receiverPort: number;
  certFile: string;
  keyFile: string;
}

/** Writes the configuration; returns the program and its arguments. */
export type PrepareProxy = (parts: ProxyParts) => { program: string; args: string[] };

export interface Ask {
  method?: string;
  path?: string;
  body?: string;
  headers?: Record<string, string>;
  password?: string;
  /** Loopback address of the client. */
  from?: string;
}

export interface ProxyContext {
  context: ReceiverContext;
  receiver: SpawnedReceiver;
  proxyPort: number;
  ca: string;
  /** Sends one request over HTTPS. Rejects when the connection breaks before the complete answer. */
  ask(request: Ask): Promise<Answer>;
  /** Starts the receiver again at the address that the proxy uses. */
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

/** Resolves when the proxy accepts connections. */
export async function startProxy(
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

/** Sends SIGTERM: a proxy ends its workers only on request. */
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

/** Repeats a push until it is acknowledged, as the catalogue does. */
export async function sendUntilAcknowledged(ask: ProxyContext['ask'], body: string): Promise<void> {
  for (;;) {
    const status = await ask({ body }).then(
      (answer) => answer.status,
      () => 0,
    );
    if (status === 200) return;
    // Limits the attempts: a stopped receiver would get a thousand requests a second.
    await delay(20);
  }
}

/** Writes Debian's settings from nginx.conf around a file with servers; returns the program and its arguments. */
export function prepareNginx(folder: string, servers: string) {
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const paths = kinds.map((kind) => `  ${kind}_temp_path ${join(folder, kind)};`).join('\n');
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const main = join(folder, 'nginx.conf');
  writeFileSync(join(folder, 'earshot.conf'), servers);
  writeFileSync(
    main,
    `${user}
daemon off;
pid ${join(folder, 'nginx.pid')};
error_log stderr;
events {}
http {
  access_log off;
${paths}
  include ${join(folder, 'earshot.conf')};
}
`,
  );
  return { program: nginx, args: ['-p', folder, '-e', 'stderr', '-c', main] };
}

/** Writes a Caddyfile with options that limit Caddy to loopback; returns the program and its arguments. */
export function prepareCaddy(folder: string, text: string) {
  const file = join(folder, 'Caddyfile');
  const options = '{\n\tadmin off\n\tdefault_bind 127.0.0.1\n\tauto_https disable_redirects\n';
  const isWithOptions = text.includes('\n{\n');
  writeFileSync(
    file,
    isWithOptions ? text.replace('\n{\n', `\n${options}`) : `${options}}\n${text}`,
  );
  return { program: caddy, args: ['run', '--adapter', 'caddyfile', '--config', file] };
}

/** Returns true if Debian's package of the program is installed; in CI it is required. */
export function installed(program: string): boolean {
  return process.env.CI !== undefined || existsSync(program);
}
