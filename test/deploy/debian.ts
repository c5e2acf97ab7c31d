/** Debian roots and containers, for tests of the image and of the service. Need root, mmdebstrap and systemd-nspawn. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readFileSync, realpathSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { printedBy } from '../helpers/spawned-command.ts';

/** In CI, containers are required. */
export const canRunContainers =
  process.env.CI !== undefined ||
  (process.getuid?.() === 0 &&
    ['mmdebstrap', 'systemd-nspawn'].every((name) => existsSync(`/usr/bin/${name}`)));

const npm = (...words: string[]) => execFileSync('npm', words, { encoding: 'utf8' }).trim();

/** Builds a root from Debian packages, with the Node and the npm that run the test. */
export function buildRoot(root: string, packages: readonly string[] = []): void {
  const included = packages.length === 0 ? [] : [`--include=${packages}`];
  const options = ['--quiet', '--variant=minbase', '--dpkgopt=force-unsafe-io', ...included];
  execFileSync('mmdebstrap', [...options, 'trixie', root], { stdio: ['ignore', 'pipe', 'pipe'] });
  const local = join(root, 'usr/local');
  cpSync(process.execPath, join(local, 'bin/node'));
  const program = execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim();
  const library = dirname(dirname(realpathSync(program)));
  cpSync(library, join(local, 'lib/node_modules/npm'), { recursive: true });
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(local, 'bin/npm'));
}

/** Options of a container in which npm has the registry, the cache and the certificates of this machine. */
export function npmOptions(): string[] {
  const [cache, userconfig] = [npm('config', 'get', 'cache'), npm('config', 'get', 'userconfig')];
  const { NODE_EXTRA_CA_CERTS: certificates = '', HTTPS_PROXY = '' } = process.env;
  mkdirSync(cache, { recursive: true });
  const variables = {
    ...{ npm_config_cache: cache, npm_config_userconfig: userconfig },
    ...{ npm_config_registry: npm('config', 'get', 'registry'), npm_config_prefer_offline: 'true' },
    ...{ NODE_EXTRA_CA_CERTS: certificates, HTTPS_PROXY },
  };
  return [
    ...[cache, userconfig, certificates].filter(existsSync).map((path) => `--bind=${path}`),
    ...Object.entries(variables).flatMap(([name, value]) =>
      value === '' ? [] : [`--setenv=${name}=${value}`],
    ),
  ];
}

export interface Network {
  /** Words before a command that runs in the network. */
  enter: readonly string[];
  close(): void;
}

/** Opens a network that has only the loopback addresses, with all ports permitted, as in a container of Docker. */
export async function openNetwork(): Promise<Network> {
  const script = `ip link set lo up && echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start &&
    echo ready && exec cat`;
  const child = spawn('unshare', ['--net', 'sh', '-c', script], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  await once(child.stdout, 'data');
  const enter = ['nsenter', `--net=/proc/${child.pid}/ns/net`, '--'];
  return { enter, close: () => child.stdin.end() };
}

export interface Container {
  /** Runs a command in the container; rejects, with what it printed, if it fails. */
  run(command: readonly string[], options?: readonly string[]): Promise<string>;
  printed(): string;
  /** Sends a signal to the first process, as `docker stop` does. */
  signal(name: NodeJS.Signals): void;
  /** Ends the container at once if it still runs. */
  kill(): Promise<void>;
  /** Resolves with the exit code. */
  ended: Promise<number | null>;
}

/** In a control group of its own, which containers at the same time need. */
const nspawn = `group=$(findmnt -n -o TARGET -t cgroup2 | head -n 1)/earshot-test-$$
mkdir "$group"
(sh -c 'echo $PPID' > "$group/cgroup.procs"; exec systemd-nspawn --quiet --register=no --keep-unit "$@")
code=$?
find "$group" -depth -type d -exec rmdir {} +
exit $code`;

/** Starts a container in a root; without a network, it has that of this machine. */
export function startContainer(
  root: string,
  network: Pick<Network, 'enter'>,
  words: readonly string[],
): Container {
  const [first = '', ...rest] = [...network.enter, 'sh', '-c', nspawn, 'sh', '-D', root, ...words];
  const env = {
    ...process.env,
    SYSTEMD_NSPAWN_UNIFIED_HIERARCHY: '1',
    SYSTEMD_NSPAWN_TMPFS_TMP: '0',
  };
  const child = spawn(first, rest, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const printed = printedBy(child.stdout, child.stderr);
  const ended = once(child, 'close').then(([code]) => code as number | null);
  /** The shell starts a subshell, which becomes systemd-nspawn, which starts the first process. */
  const firstProcess = () => childOf(childOf(child.pid ?? 0));
  return {
    printed,
    ended,
    signal: (name) => process.kill(firstProcess(), name),
    kill: async () => {
      if (child.exitCode === null) process.kill(firstProcess(), 'SIGKILL');
      await ended;
    },
    run: (command, options = []) =>
      outputOf(['nsenter', `--target=${firstProcess()}`, '--all', ...options, '--', ...command]),
  };
}

function childOf(pid: number): number {
  const [child] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ');
  if (!child) throw new Error(`Process ${pid} has no child.`);
  return Number(child);
}

/** Runs a command; rejects, with what it printed, if it fails. */
export async function outputOf(command: readonly string[]): Promise<string> {
  const [first = '', ...rest] = command;
  const child = spawn(first, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
  const [out, err] = [printedBy(child.stdout), printedBy(child.stderr)];
  const [code] = await once(child, 'close');
  expect(code, `${command.join(' ')}\n${out()}${err()}`).toBe(0);
  return out();
}
