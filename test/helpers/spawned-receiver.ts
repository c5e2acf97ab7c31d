/** The real program as a child process, over real HTTPS on loopback. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent } from 'node:https';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { bareEnvironment } from './bare-environment.ts';
import { writeKeyPair } from './key-pair.ts';
import { type Answer, sendRequest } from './send-request.ts';

export const credentials = { username: 'catalogue', password: 'a:long-secret' };

export interface SpawnedReceiver {
  child: ChildProcess;
  pid: number;
  port: number;
  /** Returns everything written to stderr so far. */
  log(): string;
  /** Resolves with the exit code and the signal that ended it, of which one is null. */
  exit: Promise<unknown[]>;
  /** Sends a signal, by default SIGTERM, and waits for the end. */
  end(signal?: NodeJS.Signals): Promise<unknown[]>;
}

export interface ReceiverContext {
  dataDir: string;
  /** The authority's root, PEM. */
  ca: string;
  /** Starts the program in the folder; resolves when it reports that it accepts notifications. */
  start(env?: Record<string, string>, nodeOptions?: string[]): Promise<SpawnedReceiver>;
}

const checkedOut = join(import.meta.dirname, '../../scripts/earshot.js');

/** Creates a certificate and a folder; kills what is still running when the test has finished. */
export async function createReceiverContext(
  folder: string,
  program = checkedOut,
): Promise<ReceiverContext> {
  const { caPem, files } = await writeKeyPair(folder);
  const dataDir = join(folder, 'data');
  return {
    dataDir,
    ca: caPem,
    start: (env = {}, nodeOptions = []) =>
      startReceiver([...nodeOptions, program], folder, {
        EARSHOT_LISTEN: '127.0.0.1:0',
        EARSHOT_CONSOLE_LISTEN: '127.0.0.1:0',
        EARSHOT_DATA_DIR: dataDir,
        EARSHOT_ENDPOINT_USERNAME: credentials.username,
        EARSHOT_ENDPOINT_PASSWORD: credentials.password,
        EARSHOT_TLS_CERT: files.cert,
        EARSHOT_TLS_KEY: files.key,
        ...env,
      }),
  };
}

async function startReceiver(
  program: readonly string[],
  cwd: string,
  env: Record<string, string>,
): Promise<SpawnedReceiver> {
  const child = spawn(process.execPath, [...program, 'start'], {
    cwd,
    env: bareEnvironment(env),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const exit = once(child, 'exit');
  let log = '';
  const port = await new Promise<number>((resolve, reject) => {
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      log += text;
      const found = /"url":"https?:\/\/127\.0\.0\.1:(\d+)"/.exec(log)?.[1];
      if (found !== undefined) resolve(Number(found));
    });
    void exit.then(() => reject(new Error(`It ended before it was ready:\n${log}`)));
  });
  const end = (signal: NodeJS.Signals = 'SIGTERM') => {
    child.kill(signal);
    return exit;
  };
  return { child, pid: child.pid ?? 0, port, log: () => log, exit, end };
}

/** A client that keeps its connections open and trusts the given authority. */
export function createClient(options: { port: number; ca: string; connections?: number }) {
  const { port, ca, connections = 8 } = options;
  const agent = new Agent({ keepAlive: true, maxSockets: connections, ca });
  onTestFinished(() => agent.destroy());
  const auth = `${credentials.username}:${credentials.password}`;
  return (method: string, path: string, body?: string | Uint8Array): Promise<Answer> =>
    sendRequest({ port, agent, method, path, auth }, body);
}
