/** Starts earshot and its counterparts as processes of their own, waits until they answer, and stops them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { type Agent, request } from 'node:https';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createCertificateAuthority } from '../src/sandbox/certificate-authority.ts';
import type { Cleanup } from './harness.ts';
import { freePort } from './processes.ts';

/** The certificate and credentials that all servers of one benchmark share, and what a client needs to reach them. */
export interface Endpoint {
  /** PEM of the throw-away authority that clients trust. */
  readonly authorityPem: string;
  /** PEM files. */
  readonly certificateFile: string;
  readonly keyFile: string;
  readonly username: string;
  readonly password: string;
}

/** Issues a certificate for loopback and random credentials; the files go into `folder`. */
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
 * The status of an authenticated GET over HTTPS, on a connection of its own unless an agent is given, once the body
 * has been read, or undefined when none came. Never rejects.
 */
export function getStatus(
  { authorityPem: ca, username, password }: Endpoint,
  port: number,
  path: string,
  agent: Agent | false = false,
): Promise<number | undefined> {
  return new Promise((resolve) => {
    const where = { host: '127.0.0.1', servername: 'localhost', port, path, ca };
    const auth = `${username}:${password}`;
    const outgoing = request({ ...where, auth, agent, timeout: statusTimeoutMs });
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

/** The servers that are compared. */
export const serverNames = ['bare', 'twenty-line', 'earshot'] as const;
export type ServerName = (typeof serverNames)[number];

/** A server that answers. */
export interface RunningServer {
  readonly port: number;
  readonly processId: number;
  /** Asks for a clean stop and waits for it. Rejects when it takes too long or, for earshot, fails. */
  stop(): Promise<void>;
}

/** What starting a server needs. */
export interface ServerStart {
  readonly endpoint: Endpoint;
  /** Where the server keeps its database, and is started; the folder exists. */
  readonly dataFolder: string;
  readonly cleanup: Cleanup;
  /** Variables of earshot beside those that every run has, or in their place. */
  readonly environment?: NodeJS.ProcessEnv;
}

const readyTimeoutMs = 60_000;
const stopTimeoutMs = 60_000;
const pollMs = 50;

/** The folder that `scripts/` and `bench/` are in. */
export const projectFolder = join(import.meta.dirname, '..');

/** The database file that the servers, but for the one that stores nothing, leave in their data folder. */
export function databaseFile(dataFolder: string): string {
  return join(dataFolder, 'earshot.db');
}

/** The words after `node` that run earshot, as npm's scripts have it. */
export function earshotProgram(...words: readonly string[]): string[] {
  return ['--max-semi-space-size=16', join(projectFolder, 'scripts/earshot.js'), ...words];
}

/** The environment of every earshot process of the benchmark: nothing is inherited but the path. */
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
 * Starts a server on a free loopback port.
 * Rejects, with the end of the server's log, when it exits or does not answer in time.
 */
export async function startServer(name: ServerName, start: ServerStart): Promise<RunningServer> {
  const { endpoint, dataFolder } = start;
  const port = await freePort();
  const isEarshot = name === 'earshot';
  const { child, isRunning, log, stop } = startProcess({
    words: isEarshot ? earshotProgram('start') : [counterpartFile, name],
    // Neither an .env nor an earshot.config.ts of a checkout may count.
    folder: dataFolder,
    env: isEarshot
      ? { ...earshotEnvironment(endpoint, dataFolder, port), ...start.environment }
      : counterpartEnvironment(endpoint, dataFolder, port),
    logFile: join(dataFolder, `${name}.log`),
    cleanup: start.cleanup,
  });
  const fail = (problem: string) => {
    child.kill('SIGKILL');
    return new Error(`${name} ${problem}; its log ends:\n${log().slice(-2_000)}`);
  };
  const readyPath = isEarshot ? '/notifications' : '/notifications/bench';
  const giveUpMs = performance.now() + readyTimeoutMs;
  while ((await getStatus(endpoint, port, readyPath)) !== 200) {
    if (!isRunning()) throw fail('ended while starting');
    if (performance.now() > giveUpMs) throw fail('did not become ready');
    await delay(pollMs);
  }
  if (child.pid === undefined) throw fail('has no process id');
  return {
    port,
    processId: child.pid,
    async stop() {
      if (!isRunning()) throw fail('ended by itself');
      await stop();
      if (isRunning()) throw fail('did not stop');
      if (isEarshot && child.exitCode !== 0) throw fail(`stopped with ${child.exitCode}`);
    },
  };
}

/** A program that runs beside this one, and writes all that it has to say to a file. */
export interface StartedProcess {
  readonly child: ChildProcess;
  isRunning(): boolean;
  /** All that it has written to its log. */
  log(): string;
  /** Asks for a clean stop and waits, not for ever: it may still run afterwards. */
  stop(): Promise<void>;
}

/** Starts Node with these words. */
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

/** Starts a service that earshot talks to, on a port that is returned; it answers a moment later. */
export async function startService(name: 'hook' | 'model', cleanup: Cleanup): Promise<number> {
  const port = await freePort();
  const env = { PATH: process.env.PATH, PORT: String(port) };
  const child = spawn(process.execPath, [counterpartFile, name], { env, stdio: 'ignore' });
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
