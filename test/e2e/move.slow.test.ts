/** The move to another host of docs/operations.md, between two folders and two users: nothing received is lost. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { bareEnvironment } from '../helpers/bare-environment.ts';
import { notification } from '../helpers/deliveries.ts';
import { printedBy } from '../helpers/spawned-command.ts';
import { createClient, createReceiverContext, credentials } from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const program = join(import.meta.dirname, '../../scripts/earshot.js');

/** Only root can become other users, who must be able to read the program. Otherwise, both hosts have the same user. */
const isRoot = process.getuid?.() === 0 && isReadable(program);

function isReadable(path: string): boolean {
  const folder = dirname(path);
  return (lstatSync(path).mode & 0o005) >= 4 && (folder === path || isReadable(folder));
}

/** A host: a folder of a user, in which commands run as that user. */
function openHost(name: string, uid: number, settings: Record<string, string>) {
  const home = join(temporaryDirectory(), name);
  mkdirSync(home, { mode: 0o700 });
  chmodSync(join(home, '..'), 0o755);
  const owned = (path: string) => {
    if (isRoot) chownSync(path, uid, uid);
  };
  owned(home);
  const dataDir = join(home, 'data');
  const run = (...argv: string[]) => {
    const command = [process.execPath, program, ...argv];
    const user = isRoot ? ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups'] : [];
    const [first = '', ...rest] = [...user, ...command];
    const env = bareEnvironment({ EARSHOT_DATA_DIR: dataDir, ...settings });
    delete env.NODE_COMPILE_CACHE;
    const child = spawn(first, rest, { cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    const [out, err] = [printedBy(child.stdout), printedBy(child.stderr)];
    return { child, out, err, ended: once(child, 'close') };
  };
  const succeeds = async (...argv: string[]) => {
    const { out, err, ended } = run(...argv);
    const [code] = await ended;
    expect(code, err()).toBe(0);
    return out();
  };
  const start = async () => {
    const { child, err, ended } = run('start');
    const portOf = () => Number(/"url":"https:\/\/127\.0\.0\.1:(\d+)"/.exec(err())?.[1]);
    await expect.poll(portOf, { timeout: 60_000 }).toBeGreaterThan(0);
    const stop = async () => {
      child.kill('SIGTERM');
      expect(await ended, err()).toEqual([0, null]);
    };
    return { port: portOf(), stop };
  };
  return { home, dataDir, owned, succeeds, start };
}

it('moves the log, the credentials and nothing else with `backup`, a copy, and `restore`', {
  timeout: 120_000,
}, async () => {
  const folder = temporaryDirectory();
  chmodSync(folder, 0o755);
  const { ca } = await createReceiverContext(folder);
  // A key of a certificate outside of the data directory belongs to each host.
  const [cert, key] = [join(folder, 'certificate.pem'), join(folder, 'key.pem')];
  const settings = {
    ...{ EARSHOT_LISTEN: '127.0.0.1:0', EARSHOT_CONSOLE_LISTEN: '127.0.0.1:0' },
    ...{ EARSHOT_TLS_CERT: cert, EARSHOT_TLS_KEY: key },
  };
  const [old, fresh] = [openHost('old', 20_001, settings), openHost('new', 20_002, settings)];
  chmodSync(key, 0o644);
  const send = async ({ port }: { port: number }, numbers: readonly number[]) => {
    const post = createClient({ port, ca });
    const statuses: string[] = [];
    for (const number of numbers) {
      const body = JSON.stringify(notification(number));
      const { status, body: answer } = await post('POST', '/notifications/moved', body);
      expect(status).toBe(200);
      statuses.push(JSON.parse(answer).status);
    }
    return statuses;
  };

  mkdirSync(old.dataDir, { mode: 0o700 });
  old.owned(old.dataDir);
  const secret = join(old.dataDir, 'endpoint-credentials.json');
  writeFileSync(secret, JSON.stringify({ pairs: [credentials] }), { mode: 0o600 });
  old.owned(secret);
  const receiver = await old.start();
  await send(receiver, [1, 2, 3]);
  await receiver.stop();
  const path = (await old.succeeds('backup', join(old.home, 'backups'))).trim();

  // As `scp -r` does: the files belong to the other user, with other permissions.
  const copy = join(fresh.home, 'copy');
  execFileSync('cp', ['-r', path, copy]);
  for (const name of ['.', ...readdirSync(copy, { recursive: true, encoding: 'utf8' })]) {
    fresh.owned(join(copy, name));
    chmodSync(join(copy, name), lstatSync(join(copy, name)).isDirectory() ? 0o755 : 0o644);
  }
  await fresh.succeeds('restore', '--check', copy);
  await fresh.succeeds('restore', copy);
  const names = readdirSync(fresh.dataDir).filter((name) => !name.endsWith('.lock'));
  expect(names).toEqual(['earshot.db', 'endpoint-credentials.json']);
  const owner = lstatSync(fresh.home).uid;
  for (const name of ['.', ...names]) {
    const { uid, mode } = lstatSync(join(fresh.dataDir, name));
    expect({ uid, open: mode & 0o077 }, name).toEqual({ uid: owner, open: 0 });
  }

  const there = await fresh.start();
  expect(await send(there, [3, 4])).toEqual(['duplicate', 'stored']);
  const rows: { ackId: string }[] = JSON.parse(await fresh.succeeds('query', '--output', 'json'));
  expect(rows.map(({ ackId }) => ackId).toSorted()).toEqual(['ack-1', 'ack-2', 'ack-3', 'ack-4']);
  await there.stop();
});
