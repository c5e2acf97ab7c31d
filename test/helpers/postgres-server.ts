/** A temporary PostgreSQL server from the installed programs: for benchmarks and tests. */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { appendFileSync, chmodSync, chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

/** Folder of Debian's packages: one folder per version. */
const packagesFolder = '/usr/lib/postgresql';

/** The oldest version that the shared log supports. */
const versionMin = 15;

/** Maximum time for a server to start or stop. */
const readyMs = 30_000;

/** Returns the folder with the programs of the newest installed server; null when there is none. */
export function findPostgres(folder = packagesFolder): string | null {
  if (!existsSync(folder)) return null;
  const versions = readdirSync(folder)
    .map(Number)
    .filter((version) => version >= versionMin)
    .sort((a, b) => b - a);
  const programs = versions.map((version) => join(folder, String(version), 'bin'));
  return programs.find((path) => existsSync(join(path, 'initdb'))) ?? null;
}

export interface PostgresOptions {
  /** Empty folder for the data; the caller removes it. */
  folder: string;
  port: number;
  /** Settings, such as `max_connections`. */
  settings?: Readonly<Record<string, string>>;
  /** Called with the process of the server after each start. */
  onStart?: (server: ChildProcess) => void;
  /** Copies this server, and follows it under this name as its standby. */
  standbyOf?: { port: number; name: string };
}

export interface PostgresServer {
  /** URL of a database, for the superuser `postgres` without a password. */
  url(database: string): string;
  port: number;
  /** Data directory. */
  folder: string;
  /** Process id of the server; null while it is stopped. */
  pid(): number | null;
  start(): Promise<void>;
  /** Stops it at once, as a power failure does, or with SIGINT in order. */
  stop(signal?: 'SIGQUIT' | 'SIGINT'): Promise<void>;
  /** Runs a program of PostgreSQL as the user of the server. */
  run(program: string, args: readonly string[]): Promise<string>;
  /** Appends settings, which `pg_ctl reload` or a restart applies. */
  configure(settings: Readonly<Record<string, string>>): void;
}

/** Creates and starts a server on loopback. Rejects when no server is installed. */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const programs = findPostgres();
  if (programs === null) throw new Error('PostgreSQL is not installed.');
  const { folder, port, standbyOf } = options;
  const user = serverUser();
  const data = join(folder, 'data');
  mkdirSync(data, { recursive: true });
  chmodSync(data, 0o700);
  if (user !== null) for (const path of [folder, data]) chownSync(path, user.uid, user.gid);
  const as = user === null ? {} : { uid: user.uid, gid: user.gid };
  const env = { LC_ALL: 'C.UTF-8', PGUSER: 'postgres' };
  const run = async (program: string, args: readonly string[]) => {
    const { stdout } = await promisify(execFile)(join(programs, program), args, {
      ...{ ...as, env, cwd: folder },
    });
    return stdout;
  };
  if (standbyOf === undefined) {
    const auth = ['--auth=trust', '--username=postgres', '--encoding=UTF8', '--no-sync'];
    await run('initdb', ['--pgdata', data, ...auth]);
  } else {
    const from = `host=127.0.0.1 port=${standbyOf.port} user=postgres application_name=${standbyOf.name}`;
    await run('pg_basebackup', ['--pgdata', data, '-d', from, '-R', '--no-sync', '-c', 'fast']);
  }
  const configure = (settings: Readonly<Record<string, string>>) => {
    const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value}'\n`);
    appendFileSync(join(data, 'postgresql.conf'), lines.join(''));
  };
  configure({
    ...{ port: String(port), listen_addresses: '127.0.0.1', unix_socket_directories: folder },
    ...options.settings,
  });
  let server: ChildProcess | null = null;
  const start = async () => {
    const started = spawn(join(programs, 'postgres'), ['-D', data], {
      ...{ ...as, env, cwd: folder, stdio: 'ignore' },
    });
    server = started;
    options.onStart?.(started);
    started.once('exit', () => {
      if (server === started) server = null;
    });
    await ready(() => run('pg_isready', ['-h', '127.0.0.1', '-p', String(port)]));
  };
  await start();
  return {
    url: (database) => `postgres://postgres@127.0.0.1:${port}/${database}`,
    ...{ port, folder: data, start, run, configure },
    pid: () => server?.pid ?? null,
    stop: async (signal = 'SIGQUIT') => {
      const stopped = server;
      if (stopped === null) return;
      const exit = new Promise((resolve) => stopped.once('exit', resolve));
      stopped.kill(signal);
      await exit;
    },
  };
}

/** PostgreSQL refuses to run as root; then it runs as a user without rights. */
function serverUser(): { uid: number; gid: number } | null {
  if (userInfo().uid !== 0) return null;
  for (const name of ['postgres', 'nobody']) {
    try {
      const id = (flag: string) => Number(execFileSync('id', [flag, name], { encoding: 'utf8' }));
      return { uid: id('-u'), gid: id('-g') };
    } catch {
      // There is no user of this name.
    }
  }
  return null;
}

async function ready(check: () => Promise<unknown>): Promise<void> {
  const deadlineMs = performance.now() + readyMs;
  for (;;) {
    try {
      await check();
      return;
    } catch (error) {
      if (performance.now() > deadlineMs) throw error;
      await delay(50);
    }
  }
}
