/** The image, run with the settings and the restrictions of compose.yaml. */
import { execFileSync } from 'node:child_process';
import { chownSync, lstatSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { notification } from '../helpers/deliveries.ts';
import { writeKeyPair } from '../helpers/key-pair.ts';
import { buildImage } from './build-image.ts';
import { canRunContainers, openNetwork, outputOf, startContainer } from './debian.ts';
import { environmentOf, wordsOf } from './dockerfile.ts';

const compose = readFileSync(join(import.meta.dirname, '../../compose.yaml'), 'utf8');
const { environment } = parse(compose).services.earshot;
const folder = mkdtempSync(join(tmpdir(), 'earshot-image-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A volume, secrets and a network, with which the commands of the image run as its user. */
async function openService() {
  const { root, stage, workdir, user, volumes } = await buildImage(folder);
  const [uid = 0, gid = 0] = user.split(':').map(Number);
  expect(volumes).toEqual([environment.EARSHOT_DATA_DIR]);
  const [data, secret] = [join(folder, 'data'), join(folder, 'account-password')];
  // Docker creates a volume from the folder of the image.
  execFileSync('cp', ['-a', join(root, ...volumes), data]);
  writeFileSync(secret, 'a-password-of-an-account\n', { mode: 0o400 });
  const { caPem, files } = await writeKeyPair(folder);
  for (const path of [secret, files.key]) chownSync(path, uid, gid);
  const settings = {
    ...{ ...environmentOf(stage), ...environment, EARSHOT_ACCOUNT_USERNAME: 'me' },
    ...{ EARSHOT_TLS_CERT: '/run/tls/certificate', EARSHOT_TLS_KEY: '/run/tls/key' },
    EARSHOT_PUBLIC_URL: 'https://localhost',
  };
  const variables = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  const mounts = {
    ...{ [environment.EARSHOT_ACCOUNT_PASSWORD_FILE]: secret },
    ...{ [settings.EARSHOT_TLS_CERT]: files.cert, [settings.EARSHOT_TLS_KEY]: files.key },
  };
  const network = await openNetwork();
  onTestFinished(network.close);
  /** As `docker run` with the arguments of a command, or with those of CMD. */
  const run = (command = wordsOf(stage, 'CMD')) => {
    const container = startContainer(root, network, [
      ...['--read-only', '--drop-capability=all', '--no-new-privileges=yes', `--user=${uid}`],
      ...[`--chdir=${workdir}`, `--bind=${data}:${volumes}`],
      ...Object.entries(mounts).map(([path, file]) => `--bind-ro=${file}:${path}`),
      ...variables.map((variable) => `--setenv=${variable}`),
      ...[...wordsOf(stage, 'ENTRYPOINT'), ...command],
    ]);
    onTestFinished(container.kill);
    /** As `docker exec`. */
    const exec = (...words: string[]) =>
      container.run(
        ['env', `--chdir=${workdir}`, ...variables, ...words],
        [`--setuid=${uid}`, `--setgid=${gid}`],
      );
    return { ...container, exec };
  };
  const start = async () => {
    const container = run();
    const health = () => container.exec(...wordsOf(stage, 'HEALTHCHECK')).then(() => true, String);
    await expect.poll(health, { timeout: 60_000 }).toBe(true);
    return container;
  };
  return { ...{ uid, data, caPem, network, run, start } };
}

it.runIf(canRunContainers)('the image receives, keeps and shows notifications', async () => {
  const { uid, data, caPem, network, run, start } = await openService();
  const { uid: owner, mode } = lstatSync(data);
  expect({ owner, open: mode & 0o077 }).toEqual({ owner: uid, open: 0 });
  expect(await run(['credentials', 'create']).ended).toBe(0);
  const { pairs } = JSON.parse(readFileSync(join(data, 'endpoint-credentials.json'), 'utf8'));

  const first = await start();
  const status = await first.exec('cat', '/proc/1/status');
  expect(status).toMatch(new RegExp(`^Uid:\\t${uid}\\t.*^CapBnd:\\t0+$.*^NoNewPrivs:\\t1$`, 'ms'));
  await expect(first.exec('touch', '/opt/earshot/file')).rejects.toThrow('Read-only file system');
  const ca = join(folder, 'ca.pem');
  writeFileSync(ca, caPem);
  const login = `${pairs[0].username}:${pairs[0].password}`;
  const curl = ['curl', '--silent', '--fail', '--cacert', ca, '--user', login, '--data'];
  const words = [...curl, JSON.stringify(notification(1)), 'https://localhost/notifications/alps'];
  expect(JSON.parse(await outputOf([...network.enter, ...words]))).toEqual({ status: 'stored' });
  first.signal('SIGTERM');
  expect(await first.ended, first.printed()).toBe(0);

  const second = await start();
  const rows = await second.exec('earshot', 'query', '--output', 'json');
  expect(JSON.parse(rows)).toMatchObject([{ ackId: 'ack-1', subscription: 'alps' }]);
  second.signal('SIGTERM');
  expect(await second.ended, second.printed()).toBe(0);
});
