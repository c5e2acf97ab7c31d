/** The real program with pull subscriptions: settings of the account only, without an endpoint. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import { bareEnvironment } from '../helpers/bare-environment.ts';
import { expectEnd } from '../helpers/fake-io.ts';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const program = join(import.meta.dirname, '../../scripts/earshot.js');

export interface PullReceiver {
  child: ChildProcess;
  pid: number;
  exited: Promise<unknown>;
  /** Returns everything written to stderr so far. */
  log(): string;
  /** Stops it as systemd does. */
  stop(): Promise<void>;
}

/** Creates a data directory for the account of a sandbox; `catalogueUrl` may be that of a proxy. */
export function openPullContext(
  { tokenUrl, ...sandbox }: Pick<Sandbox, 'catalogueUrl' | 'tokenUrl'>,
  { catalogueUrl = sandbox.catalogueUrl, consolePort = 0 } = {},
) {
  const cwd = temporaryDirectory();
  const dataDir = join(cwd, 'data');
  const env = {
    EARSHOT_ACCOUNT_USERNAME: 'sandbox',
    EARSHOT_ACCOUNT_PASSWORD: 'sandbox',
    EARSHOT_CATALOGUE_URL: catalogueUrl,
    EARSHOT_TOKEN_URL: tokenUrl,
    EARSHOT_DATA_DIR: dataDir,
    EARSHOT_CONSOLE_LISTEN: `127.0.0.1:${consolePort}`,
    EARSHOT_PULL_REQUESTS_PER_MINUTE: '60000',
  };
  const succeed = (...argv: string[]) => expectEnd(spawnCommand(argv, { env, cwd }).ended, 0);
  return {
    dataDir,
    /** Runs a command of the real program, which must succeed. */
    succeed,
    register: (...flags: string[]) => succeed('register', '--pull', '--yes', ...flags),
    /** Starts the receiver, and does not wait until it is ready. */
    start: () => startReceiver(env, cwd),
  };
}

function startReceiver(env: Record<string, string>, cwd: string): PullReceiver {
  const child = spawn(process.execPath, [program, 'start'], {
    cwd,
    env: bareEnvironment(env),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const exited = once(child, 'exit');
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const stop = async () => {
    child.kill('SIGTERM');
    await exited;
    expect(child, log).toMatchObject({ exitCode: 0 });
  };
  return { child, pid: child.pid ?? 0, exited, log: () => log, stop };
}

/** State of a listening socket in /proc/net/tcp (Linux). */
const listening = '0A';

/** Returns the TCP ports on which a process listens. */
export function listeningPorts(pid: number): number[] {
  const opened = new Set(readdirSync(`/proc/${pid}/fd`).map((fd) => targetOf(pid, fd)));
  const lines = ['tcp', 'tcp6'].flatMap((kind) =>
    readFileSync(`/proc/${pid}/net/${kind}`, 'utf8').trim().split('\n').slice(1),
  );
  return lines.flatMap((line) => {
    const [, address = '', , state, , , , , , inode] = line.trim().split(/\s+/);
    const isOwn = state === listening && opened.has(`socket:[${inode}]`);
    return isOwn ? [Number.parseInt(address.split(':')[1] ?? '', 16)] : [];
  });
}

function targetOf(pid: number, fd: string): string | null {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    // Closed in between.
    return null;
  }
}

/** Returns the AckIds of the notifications of a subscription, in the order of publication. */
export function publishedTo({ entries }: Pick<Sandbox, 'entries'>, subscriptionId: string) {
  const own = entries().filter((entry) => entry.subscriptionId === subscriptionId);
  return own.map(({ ackId }) => ackId);
}
