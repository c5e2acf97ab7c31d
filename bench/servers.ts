/** Starts earshot and the other servers as separate processes, waits until they answer, and stops them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createCertificateAuthority } from '../src/sandbox/certificate-authority.ts';
import type { Cleanup } from './harness.ts';
import { freePort } from './processes.ts';

/** Certificate and credentials shared by all servers of a benchmark. */
export interface Endpoint {
  /** Temporary certificate authority that clients trust, PEM. */
  readonly authorityPem: string;
  /** PEM files. */
  readonly certificateFile: string;
  readonly keyFile: string;
  readonly username: string;
  readonly password: string;
}

/** Issues a certificate for loopback and random credentials. Writes the files to `folder`. */
export async function createEndpoint(folder: string): Promise<Endpoint> {
  const authority = await createCertificateAuthority({ now: Date.now });
  const issued = await authority.issue({ hosts: ['localhost', '127.0.0.1'] });
  const certificateFile = join(folder, 'certificate.pem');
  const keyFile = join(folder, 'key.pem');
  writeFileSync(certificateFile, issued.certificatePem);
  writeFileSync(keyFile, issued.keyPem, { mode: 0o600 });
  const password = randomBytes(18).toString('base64url');
  const { certificatePem: authorityPem } = authority;
  return { authorityPem, certificateFile, keyFile, username: 'bench', password };
}

const statusTimeoutMs = 5_000;

/**
 * Returns the status of an authenticated GET over HTTPS, on a new connection without an agent; undefined if there was
 * no complete answer. Never rejects.
 */
export function getStatus(
  { authorityPem: ca, username, password }: Endpoint,
  port: number,
  path: string,
): Promise<number | undefined> {
  return new Promise((resolve) => {
    const where = { host: '127.0.0.1', servername: 'localhost', port, path, ca };
    const auth = `${username}:${password}`;
    const outgoing = request({ ...where, auth, agent: false, timeout: statusTimeoutMs });
    outgoing.on('response', (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode));
      response.on('error', () => resolve(undefined));
    });
    outgoing.on('timeout', () => outgoing.destroy());
    outgoing.on('error', () => resolve(undefined));
    outgoing.on('close', () => resolve(undefined));
    outgoing.end();
  });
}

/** Compared servers. */
export const serverNames = ['bare', 'twenty-line', 'earshot'] as const;
export type ServerName = (typeof serverNames)[number];

/** A ready server. */
export interface RunningServer {
  readonly port: number;
  readonly processId: number;
  /** Returns its complete log. */
  log(): string;
  /** Sends SIGTERM and waits for the exit. Rejects on timeout and, for earshot, on a failure. */
  stop(): Promise<void>;
}

/** Options to start a server. */
interface ServerStart {
  readonly endpoint: Endpoint;
  /** Existing folder of the database, and working directory of the server. */
  readonly dataFolder: string;
  readonly cleanup: Cleanup;
  /** Environment variables of earshot that add to or override the defaults. */
  readonly environment?: NodeJS.ProcessEnv;
}

const readyTimeoutMs = 60_000;
const stopTimeoutMs = 60_000;
const pollMs = 50;

/** Root folder of the project. */
const projectFolder = join(import.meta.dirname, '..');

/** Returns the database file of a server that stores notifications. */
export function databaseFile(dataFolder: string): string {
  return join(dataFolder, 'earshot.db');
}

/** Returns the arguments of `node` that run earshot, as in the npm scripts. */
export function earshotProgram(...words: readonly string[]): string[] {
  return ['--max-semi-space-size=4', join(projectFolder, 'scripts/earshot.js'), ...words];
}

/** Returns the environment of an earshot process; inherits only the path. */
export function earshotEnvironment(
  endpoint: Endpoint,
  dataFolder: string,
  port: number,
): NodeJS.ProcessEnv {
  return {
    PATH: process.env.PATH,
    EARSHOT_LISTEN: `127.0.0.1:${port}`,
    EARSHOT_CONSOLE_LISTEN: '127.0.0.1:0',
    EARSHOT_DATA_DIR: dataFolder,
    EARSHOT_ENDPOINT_USERNAME: endpoint.username,
    EARSHOT_ENDPOINT_PASSWORD: endpoint.password,
    EARSHOT_TLS_CERT: endpoint.certificateFile,
    EARSHOT_TLS_KEY: endpoint.keyFile,
    EARSHOT_LOG_LEVEL: 'info',
  };
}

/**
 * Starts a server on a free loopback port. Rejects with the end of the server's log if it exits or does not answer
 * in time.
 */
export async function startServer(name: ServerName, start: ServerStart): Promise<RunningServer> {
  const { endpoint, dataFolder } = start;
  const port = await freePort();
  const isEarshot = name === 'earshot';
  const { child, isRunning, log, stop } = startProcess({
    words: isEarshot ? earshotProgram('start') : [counterpartFile, name],
    // Ignores .env and earshot.config.ts of a checkout.
    folder: dataFolder,
    env: isEarshot
      ? { ...earshotEnvironment(endpoint, dataFolder, port), ...start.environment }
      : counterpartEnvironment(endpoint, dataFolder, port),
    logFile: join(dataFolder, `${name}.log`),
    cleanup: start.cleanup,
  });
  const fail = (problem: string) => {
    child.kill('SIGKILL');
    return new Error(`${name} ${problem}; end of its log:\n${log().slice(-2_000)}`);
  };
  const isReady = async () =>
    isEarshot
      ? log().includes('"ready to receive notifications"')
      : (await getStatus(endpoint, port, '/notifications/bench')) === 200;
  const giveUpMs = performance.now() + readyTimeoutMs;
  while (!(await isReady())) {
    if (!isRunning()) throw fail('exited while starting');
    if (performance.now() > giveUpMs) throw fail('did not become ready');
    await delay(pollMs);
  }
  if (child.pid === undefined) throw fail('has no process id');
  return {
    port,
    processId: child.pid,
    log,
    async stop() {
      if (!isRunning()) throw fail('exited unexpectedly');
      await stop();
      if (isRunning()) throw fail('did not stop');
      if (isEarshot && child.exitCode !== 0) throw fail(`exited with ${child.exitCode}`);
    },
  };
}

/** A child process with its output in a log file. */
export interface StartedProcess {
  readonly child: ChildProcess;
  isRunning(): boolean;
  /** Returns the content of its log. */
  log(): string;
  /** Sends SIGTERM and waits for the exit or a timeout; it may still run afterwards. */
  stop(): Promise<void>;
}

/** Starts Node with arguments. */
export function startProcess(options: {
  words: readonly string[];
  folder: string;
  env: NodeJS.ProcessEnv;
  logFile: string;
  cleanup: Cleanup;
}): StartedProcess {
  const { words, folder: cwd, env, logFile, cleanup } = options;
  const written = openSync(logFile, 'a');
  const child = spawn(process.execPath, words, { cwd, env, stdio: ['ignore', written, written] });
  closeSync(written);
  cleanup.ownProcess(child);
  const ended = once(child, 'exit');
  return {
    child,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    log: () => readFileSync(logFile, 'utf8'),
    stop: async () => {
      child.kill('SIGTERM');
      await Promise.race([ended, delay(stopTimeoutMs, undefined, { ref: false })]);
    },
  };
}

const counterpartFile = join(import.meta.dirname, 'counterparts.ts');

/** Starts a web service for sinks; returns its port. It is ready shortly after. */
export async function startHook(cleanup: Cleanup): Promise<number> {
  const port = await freePort();
  const env = { PATH: process.env.PATH, PORT: String(port) };
  const child = spawn(process.execPath, [counterpartFile, 'hook'], { env, stdio: 'ignore' });
  cleanup.ownProcess(child);
  return port;
}

function counterpartEnvironment(endpoint: Endpoint, dataFolder: string, port: number) {
  return {
    PATH: process.env.PATH,
    PORT: String(port),
    TLS_CERT: endpoint.certificateFile,
    TLS_KEY: endpoint.keyFile,
    DATABASE: databaseFile(dataFolder),
    USERNAME: endpoint.username,
    PASSWORD: endpoint.password,
  };
}
