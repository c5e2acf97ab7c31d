/** Starts the three servers as processes of their own, waits until they answer, and stops them. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Cleanup } from './cleanup.ts';
import type { Endpoint } from './endpoint.ts';
import { getStatus } from './get-status.ts';

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

/** The database file a server leaves in its data folder; undefined for the one that stores nothing. */
export function databaseFile(name: ServerName, dataFolder: string): string | undefined {
  return name === 'bare' ? undefined : join(dataFolder, 'earshot.db');
}

/**
 * Starts a server on a free loopback port.
 * Rejects, with the end of the server's log, when it exits or does not answer in time.
 */
export async function startServer(name: ServerName, start: ServerStart): Promise<RunningServer> {
  const port = await freePort();
  const logFile = join(start.dataFolder, `${name}.log`);
  const log = openSync(logFile, 'a');
  const child = spawn(process.execPath, programOf(name), {
    // Neither an .env nor an earshot.config.ts of a checkout may count.
    cwd: start.dataFolder,
    env: environmentOf(name, start, port),
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  start.cleanup.ownProcess(child);
  const ended = once(child, 'exit');
  const running = () => child.exitCode === null && child.signalCode === null;
  const fail = (problem: string) => {
    child.kill('SIGKILL');
    return new Error(
      `${name} ${problem}; its log ends:\n${readFileSync(logFile, 'utf8').slice(-2_000)}`,
    );
  };
  const giveUpMs = Date.now() + readyTimeoutMs;
  while ((await getStatus({ ...start.endpoint, port, path: readyPath(name) })) !== 200) {
    if (!running()) throw fail('ended while starting');
    if (Date.now() > giveUpMs) throw fail('did not become ready');
    await delay(pollMs);
  }
  if (child.pid === undefined) throw fail('has no process id');
  return {
    port,
    processId: child.pid,
    async stop() {
      if (!running()) throw fail('ended by itself');
      child.kill('SIGTERM');
      await Promise.race([ended, delay(stopTimeoutMs, undefined, { ref: false })]);
      if (running()) throw fail('did not stop');
      if (name === 'earshot' && child.exitCode !== 0) throw fail(`stopped with ${child.exitCode}`);
    },
  };
}

/** The folder that `scripts/` and `bench/` are in. */
export function projectFolder(): string {
  return join(import.meta.dirname, '..');
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

function programOf(name: ServerName): string[] {
  const path = (file: string) => join(projectFolder(), file);
  if (name === 'bare') return [path('bench/bare-server.ts')];
  if (name === 'twenty-line') return [path('bench/twenty-line-receiver.ts')];
  // As `npm start` has it.
  return ['--max-semi-space-size=16', path('scripts/earshot.js'), 'start'];
}

function readyPath(name: ServerName): string {
  return name === 'earshot' ? '/notifications' : '/notifications/bench';
}

function environmentOf(name: ServerName, start: ServerStart, port: number): NodeJS.ProcessEnv {
  const { endpoint, dataFolder } = start;
  if (name === 'earshot') {
    return { ...earshotEnvironment(endpoint, dataFolder, port), ...start.environment };
  }
  return {
    PATH: process.env.PATH,
    PORT: String(port),
    TLS_CERT: endpoint.certificateFile,
    TLS_KEY: endpoint.keyFile,
    DATABASE: databaseFile(name, dataFolder),
    USERNAME: endpoint.username,
    PASSWORD: endpoint.password,
  };
}

/** A port of loopback that nobody listens on at this moment. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('no free port');
  return address.port;
}
