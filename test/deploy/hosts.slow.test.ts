/**
 * The service of the last commit on a Debian host with systemd, and its move to another host: with the commands of the
 * pages, and pushes of a sandbox. The hosts share a network, in which each has an address.
 */
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { blocks, readPage } from '../docs/console-sessions.ts';
import { writeKeyPair } from '../helpers/key-pair.ts';
import { printedBy } from '../helpers/spawned-command.ts';
import {
  buildRoot,
  type Container,
  canRunContainers,
  type Network,
  npmOptions,
  openNetwork,
  outputOf,
  startContainer,
} from './debian.ts';

/** Returns the block of a page that contains a text, also of a block in a list. */
function blockWith(name: string, language: string, text: string): string {
  const all = blocks(readPage(name).replaceAll(/^ {2}/gm, ''), language);
  const block = all.find((one) => one.includes(text));
  if (block === undefined) throw new Error(`docs/${name} has no block with ${text}`);
  return block;
}

const [download = '', ...install] = blockWith('start.md', 'sh', '/opt/earshot &&').split('\n');
const [leave = '', arrive = ''] = blockWith('operations.md', 'sh', 'scp').split(
  '# on the new host',
);
const dropIn = blockWith('sinks.md', 'ini', 'LoadCredential');
const secretFile = blockWith('sinks.md', 'ts', 'CREDENTIALS_DIRECTORY').trim();

const checkout = join(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'earshot-hosts-'));
const [base, hosts, ca] = [join(folder, 'base'), join(folder, 'hosts'), join(folder, 'ca.pem')];
const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const closers: (() => unknown)[] = [];
let network: Network;

/** Starts a program in the network, which prints this text when it is ready. */
async function startProgram(command: readonly string[], ready: string) {
  const [first = '', ...rest] = [...network.enter, ...command];
  const child = spawn(first, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
  closers.push(() => child.kill());
  const printed = printedBy(child.stdout, child.stderr);
  await vi.waitFor(() => expect(printed()).toContain(ready), { timeout: 60_000 });
  return printed;
}

/** The home folder of root, the same on the hosts. */
const home = userInfo().homedir;

/** Runs a script on a host, as root in the folder of `.env`. */
function shell(container: Container, script: string): Promise<string> {
  const env = ['env', '-i', `--chdir=${home}/earshot`, `HOME=${home}`, `PATH=${path}`];
  return container.run([...env, 'bash', '-ec', script]);
}
const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** Starts a host with this address, on which only the program is downloaded. */
async function startHost(name: string, address: string, settings: string) {
  const root = join(folder, name);
  execFileSync('cp', ['-a', base, root]);
  writeFileSync(join(root, home, 'earshot/.env'), `${settings}EARSHOT_LISTEN=${address}:443\n`);
  writeFileSync(join(root, 'etc/ssh/sshd_config.d/address.conf'), `ListenAddress ${address}\n`);
  const container = startContainer(root, network, ['--boot', `--bind-ro=${hosts}:/etc/hosts`]);
  closers.push(container.kill);
  const isStarted = () => shell(container, 'systemctl is-active multi-user.target').catch(String);
  await expect.poll(isStarted, { timeout: 60_000 }).toBe('active\n');
  return { root, container, sh: (script: string) => shell(container, script) };
}

/** Changes the host to which the name in the public URL leads. */
const lead = (address: string) => writeFileSync(hosts, `${address} localhost\n127.0.0.2 OLD\n`);

/** Sends a request to the control interface of the sandbox; returns the answer. */
async function control(path: string, ...words: string[]) {
  const url = `http://127.0.0.1:8090/${path}`;
  const answer = await outputOf([...network.enter, 'curl', '--silent', '--fail', ...words, url]);
  return JSON.parse(answer);
}
const publish = (count: number) => control('publish', '--data', JSON.stringify({ count }));

const settings = `EARSHOT_PUBLIC_URL=https://localhost
EARSHOT_TLS_CERT=/etc/earshot/certificate.pem
EARSHOT_TLS_KEY=/etc/earshot/key.pem
EARSHOT_PROBE_CA=/etc/earshot/ca.pem
EARSHOT_CATALOGUE_URL=http://127.0.0.1:8091
EARSHOT_TOKEN_URL=http://127.0.0.1:8091/auth/realms/CDSE/protocol/openid-connect/token
EARSHOT_ACCOUNT_USERNAME=sandbox
EARSHOT_ACCOUNT_PASSWORD=sandbox
`;
const act =
  'cat > /var/lib/earshot/act.json; { touch /opt/x; ls /home; } 2> /var/lib/earshot/act.log';
const config = `import { defineConfig } from 'earshot';
export default defineConfig({
  sinks: {
    hook: { webhook: 'http://127.0.0.1:9000/', ${secretFile} from: 'start' },
    act: { command: ['sh', '-c', ${JSON.stringify(act)}], from: 'start' },
  },
});
`;
const hookServer = `require('node:http').createServer(async (request, response) => {
  const body = Buffer.concat(await request.toArray()).toString();
  console.log(JSON.stringify({ headers: request.headers, body }));
  response.end();
}).listen(9000, '127.0.0.1', () => console.log('ready'))`;

beforeAll(async () => {
  if (!canRunContainers) return;
  buildRoot(base, ['systemd', 'systemd-sysv', 'dbus', 'git', 'openssh-server', 'openssh-client']);
  execFileSync('git', ['clone', '--quiet', checkout, join(base, home, 'earshot')]);
  const command = [`--chdir=${home}/earshot`, ...npmOptions(), 'bash', '-ec', download];
  const { ended, printed } = startContainer(base, { enter: [] }, command);
  expect(await ended, printed()).toBe(0);
  const { caPem, files } = await writeKeyPair(folder);
  writeFileSync(ca, caPem);
  mkdirSync(join(base, 'etc/earshot'));
  for (const file of [ca, ...Object.values(files)]) {
    execFileSync('install', ['-m', '644', file, join(base, 'etc/earshot')]);
  }
  const key = `${home}/.ssh/id_ed25519`;
  execFileSync('chroot', [base, 'ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-f', key]);
  cpSync(join(base, `${key}.pub`), join(base, home, '.ssh/authorized_keys'));
  writeFileSync(join(base, home, '.ssh/config'), 'StrictHostKeyChecking accept-new\n');
  lead('127.0.0.2');
  network = await openNetwork();
  closers.push(network.close);
  const inHosts = ['unshare', '--mount', 'sh', '-c', `mount --bind ${hosts} /etc/hosts; exec "$@"`];
  const program = [process.execPath, join(checkout, 'scripts/earshot.js')];
  const sandbox = [...program, 'sandbox', '--trust', ca, '--rate', '0.001'];
  await startProgram([...inHosts, 'sh', ...sandbox], 'Waiting for a running');
}, 240_000);
afterAll(async () => {
  for (const close of closers.reverse()) await close();
  rmSync(folder, { recursive: true, force: true });
});

describe.runIf(canRunContainers)('a host with systemd', () => {
  let old: Awaited<ReturnType<typeof startHost>>;
  const storedOn = async ({ sh }: typeof old): Promise<{ productId: string }[]> =>
    JSON.parse(await sh('earshot query --output json'));
  /** Publishes, and waits until the old host has stored all that was published. */
  const deliver = async (count: number) => {
    await publish(count);
    const missing = async () => (await control('totals')).published - (await storedOn(old)).length;
    await expect.poll(missing, { timeout: 30_000 }).toBe(0);
  };

  it('runs the service as described, also with the secret of a sink', async () => {
    old = await startHost('old', '127.0.0.2', settings);
    const { sh, root } = old;
    await sh('/opt/earshot/earshot credentials create');
    await sh(install.join('\n'));
    await sh('earshot register --event created --yes');
    await deliver(5);
    expect(await sh('systemctl status earshot')).toContain('Active: active (running)');
    const hook = await startProgram([process.execPath, '--eval', hookServer], 'ready');
    writeFileSync(join(root, 'etc/earshot/hook-secret'), secret, { mode: 0o600 });
    writeFileSync(join(root, 'etc/earshot/earshot.config.ts'), config);
    await sh(`systemctl edit --stdin earshot <<'END'\n${dropIn}END`);
    await sh('systemctl restart earshot');
    await deliver(1);
    await expect.poll(hook, { timeout: 30_000 }).toContain('{');
    const { headers, body } = JSON.parse(hook().split('\n')[1] ?? '');
    expect(new Webhook(secret).verify(body, headers)).toMatchObject({ data: { sink: 'hook' } });
    await sh('earshot sinks test hook');
    const log = () => sh('cat /var/lib/earshot/act.log').catch(String);
    const refusals = /\/opt\/x.*Read-only file system\n.*\/home.*Permission denied/;
    await expect.poll(log, { timeout: 30_000 }).toMatch(refusals);
    await sh('systemctl stop earshot');
    const ended = await sh('systemctl show --property=ActiveState,Result,ExecMainStatus earshot');
    expect(ended.trim().split('\n').toSorted()).toEqual([
      'ActiveState=inactive',
      'ExecMainStatus=0',
      'Result=success',
    ]);
    await sh('systemctl start earshot && earshot doctor');
  });

  it('is replaced by another host, and nothing is missing', async () => {
    await deliver(20);
    await old.sh(leave);
    const [name = ''] = (await old.sh('ls /var/lib/earshot-backups')).trim().split('\n');
    // While no host answers: ten pushes are retried, ten are lost.
    await publish(10);
    await control('faults', '--request', 'PATCH', '--data', '{"lost":1}');
    await publish(10);
    await control('faults', '--request', 'PATCH', '--data', '{"lost":0}');

    const fresh = await startHost('new', '127.0.0.3', settings);
    for (const path of ['etc/earshot', 'etc/systemd/system/earshot.service.d']) {
      cpSync(join(old.root, path), join(fresh.root, path), { recursive: true });
    }
    const prepare = install
      .join('\n')
      .replace(/ && cp -a .*/, '')
      .replace(/ && systemctl enable.*/s, '');
    await fresh.sh(prepare);
    await fresh.sh(arrive.replaceAll(/earshot-\d{8}T\d{6}Z/g, name));
    lead('127.0.0.3');
    await publish(10);
    await fresh.sh('earshot doctor');
    const report = await fresh.sh('earshot reconcile --since 1h 2>&1');
    const [, recovered] = /Recovered (\d+) missing events/.exec(report) ?? [report];
    expect(Number(recovered), report).toBeGreaterThanOrEqual(10);
    await fresh.sh('earshot reconcile --since 1h --check');
    const { published } = await control('totals');
    const products = new Set((await storedOn(fresh)).map(({ productId }) => productId));
    expect(products.size).toBe(published);
    expect(await storedOn(fresh)).toHaveLength(published);
  });
});
