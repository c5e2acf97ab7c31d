/** The published package, installed into empty folders: the command, the library, and the example app. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { isBuiltin } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { noSettings } from '../../src/core/config/load.ts';
import { notification } from '../helpers/deliveries.ts';
import { credentials } from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const root = join(import.meta.dirname, '../..');
/** Folders of a checkout that a build creates, or that no build needs. */
const unneeded = /^\/(.*\/)?(node_modules|\.git|dist|data|test|bench)(\/|$)/;
/** Files that may exist in a developer's folder, and must never be published. */
const litter = [
  '.env',
  'earshot.config.ts',
  'data/endpoint-credentials.json',
  'test/some.test.ts',
  'bench/bench.ts',
  'dist/left-over.js',
  'examples/mounted-receiver/data/earshot.db',
  'examples/mounted-receiver/node_modules/x/index.js',
];

/** Runs a program with this Node first on the path, without npm's variables about the checkout. */
async function runWith(
  cwd: string,
  command: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<string> {
  const inherited = Object.entries(process.env).filter(
    ([name]) =>
      !/^npm_(config_(?!cache|registry|userconfig)|package|lifecycle)|^INIT_CWD$/i.test(name),
  );
  const PATH = `${dirname(process.execPath)}:${process.env.PATH}`;
  const { stdout } = await promisify(execFile)(command, args, {
    cwd,
    env: { ...Object.fromEntries(inherited), PATH, ...env },
    timeout: 100_000,
    maxBuffer: 2 ** 26,
  });
  return stdout;
}

/** Packs a copy of the checkout, because other tests may use the checkout at the same time. */
async function packPackage(folder: string): Promise<{ tarball: string; files: string[] }> {
  const copy = join(folder, 'checkout');
  const filter = (file: string) => !unneeded.test(file.slice(root.length));
  cpSync(root, copy, { recursive: true, filter });
  for (const path of litter) {
    mkdirSync(dirname(join(copy, path)), { recursive: true });
    writeFileSync(join(copy, path), '// must not be published\n');
  }
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  await runWith(copy, 'npm', ['run', 'build']);
  const printed = await runWith(copy, 'npm', ['pack', '--json', '--pack-destination', folder]);
  const [{ filename, files }] = JSON.parse(printed) as [
    { filename: string; files: { path: string }[] },
  ];
  return { tarball: join(folder, filename), files: files.map(({ path }) => path) };
}

const folder = mkdtempSync(join(tmpdir(), 'earshot-package-'));
/** Folder in which only the package is installed, and a copy of the example with its packages. */
const [installed, example] = [join(folder, 'installed'), join(folder, 'example')];
/** The package, and the paths of its files. */
let { tarball, files }: { tarball: string; files: string[] } = { tarball: '', files: [] };

beforeAll(async () => {
  ({ tarball, files } = await packPackage(folder));
  mkdirSync(installed);
  cpSync(join(root, 'examples/mounted-receiver'), example, {
    recursive: true,
    filter: (file) => !/node_modules|data$/.test(file),
  });
  const flags = ['--prefer-offline', '--no-audit', '--no-fund'];
  const install = (place: string) => runWith(place, 'npm', ['install', ...flags, tarball]);
  await Promise.all([installed, example].map(install));
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const own = (path: string) => join(installed, 'node_modules/@earshot-eo/earshot', path);
const manifest = () => JSON.parse(readFileSync(own('package.json'), 'utf8'));

describe('the tarball', () => {
  it('contains the build and files for the user, and nothing else', () => {
    const kinds = new Set(files.map((path) => path.replace(/^(dist|docs|deploy)\/.*/, '$1/')));
    expect([...kinds].toSorted()).toEqual([
      '.env.example',
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'SECURITY.md',
      'deploy/',
      'dist/',
      'docs/',
      'examples/airflow/README.md',
      'examples/airflow/earshot_product.py',
      'examples/airflow/start_dag_run.py',
      'examples/alerts/README.md',
      'examples/alerts/chat.py',
      'examples/alerts/mail.py',
      'examples/download/README.md',
      'examples/download/download.py',
      'examples/knative/README.md',
      'examples/knative/earshot.config.ts',
      'examples/knative/trigger.yaml',
      'examples/mounted-receiver/README.md',
      'examples/mounted-receiver/app.ts',
      'examples/mounted-receiver/package.json',
      'examples/pgstac/README.md',
      'examples/pgstac/earshot.config.ts',
      'examples/python/README.md',
      'examples/python/cloud_free.py',
      'examples/python/feed.py',
      'examples/typescript/README.md',
      'examples/typescript/app.ts',
      'examples/typescript/feed.ts',
      'examples/typescript/package.json',
      'package.json',
      'scripts/earshot.js',
      'scripts/fewer-messages.js',
      'scripts/require-node.js',
    ]);
    const dist = files.filter((path) => path.startsWith('dist/'));
    // Style sheets and the icon of the web page; its scripts are compiled.
    expect(dist.filter((path) => !/\.(js|css|d\.ts)$/.test(path))).toEqual([
      'dist/core/page/browser/icon.svg',
      'dist/features/odata/metadata.xml',
      'dist/features/products/places/names.json',
      'dist/features/products/places/seas.json',
      'dist/filter/product-contents.json',
      'dist/sandbox/products/collections.json',
      'dist/store/bodies/dictionary-1.json',
    ]);
    expect(dist).not.toContain('dist/left-over.js');
  });

  it('contains no Node, and declares every package that the build imports', () => {
    const { dependencies, optionalDependencies, peerDependencies, bundleDependencies } = manifest();
    expect({ optionalDependencies, peerDependencies, bundleDependencies }).toEqual({});
    const imported = new Set<string>();
    for (const path of files.filter((file) => /^dist\/.*\.(js|d\.ts)$/.test(file))) {
      const text = readFileSync(own(path), 'utf8');
      for (const [, name = ''] of text.matchAll(importedName)) {
        if (!name.startsWith('.') && !isBuiltin(name)) imported.add(packageOf(name));
      }
    }
    expect(imported.size).toBeGreaterThan(5);
    expect([...imported].filter((name) => !(name in dependencies))).toEqual([]);
  });
});

describe('the installed command', { timeout: 60_000 }, () => {
  const earshot = (args: string[], env = {}) =>
    runWith(installed, 'npx', ['earshot', ...args], env);

  it('prints its version and its help', async () => {
    expect(await earshot(['--version'])).toBe(`${manifest().version}\n`);
    expect(await earshot(['start', '--help'])).toMatch(/^Usage: earshot start/);
  });

  it('runs the demo with npx from the tarball, in an empty folder', async () => {
    // npx installs into its cache: downloads are those of the usual cache, the installation is removed.
    const [empty, cache] = [temporaryDirectory(), temporaryDirectory()];
    const usual = (await runWith(empty, 'npm', ['config', 'get', 'cache'])).trim();
    mkdirSync(join(usual, '_cacache'), { recursive: true });
    symlinkSync(join(usual, '_cacache'), join(cache, '_cacache'));
    const demo = ['earshot', 'demo', '--once', '--products', '200'];
    const args = ['--yes', '--prefer-offline', '--cache', cache, '--package', tarball, ...demo];
    const lines = (await runWith(empty, 'npx', args)).trim().split('\n');
    const all = { published: 200, delivered: 200, stored: 200 };
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ ...all, quarantined: 0 });
    expect(readdirSync(empty)).toEqual([]);
  });

  it('reads an earshot.config.ts in a folder that has no packages', async () => {
    const folder = temporaryDirectory();
    const text = `import { defineConfig } from 'earshot';
      export default defineConfig({ subscriptions: { alps: { events: ['created'] as const } } });\n`;
    writeFileSync(join(folder, 'earshot.config.ts'), text.replace(' as const', ''));
    const module = own('dist/core/config/subscriptions-file.js');
    const script = `import { loadSubscriptionsFile } from ${JSON.stringify(module)};
      console.log(JSON.stringify(await loadSubscriptionsFile(${JSON.stringify({ workingDir: folder, settings: noSettings })})));`;
    const args = ['--input-type=module', '--eval', script];
    const [found] = JSON.parse(await runWith(folder, process.execPath, args));
    expect(found).toMatchObject({ name: 'alps', events: ['created'] });
  });
});

describe('the installed library', { timeout: 60_000 }, () => {
  it('has types that a strict compiler accepts, in the example and in everything it imports', async () => {
    const compilerOptions = {
      // hono's types, which the compiler checks too, refer to those of browsers.
      ...{ target: 'es2024', lib: ['es2024', 'dom'], module: 'nodenext', noEmit: true },
      ...{ types: ['node'], typeRoots: [join(root, 'node_modules/@types')] },
      ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
    };
    writeFileSync(join(example, 'wrong.ts'), wrong);
    writeFileSync(join(example, 'tsconfig.json'), JSON.stringify({ compilerOptions }));
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    const compile = () => runWith(example, process.execPath, [tsc, '--pretty', 'false']);
    await expect(compile()).rejects.toMatchObject({
      stdout: expect.stringMatching(/^wrong\.ts\(2,48\): error TS2741: .*'store'.*\n$/),
    });
  });

  it('runs the example, which stores a notification, shows it, and exits with 0', async () => {
    const { username, password } = credentials;
    const settings = { PORT: '0', ENDPOINT_USERNAME: username, ENDPOINT_PASSWORD: password };
    const child = spawn(process.execPath, ['app.ts'], {
      cwd: example,
      env: { PATH: process.env.PATH, ...settings },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const [line] = await once(child.stdout.setEncoding('utf8'), 'data');
    const url = String(line).trim();
    const authorization = `Basic ${btoa(`${username}:${password}`)}`;
    const post = (headers: Record<string, string>) =>
      fetch(`${url}/notifications/alps`, {
        method: 'POST',
        headers,
        body: JSON.stringify(notification(1)),
      });
    expect((await post({})).status).toBe(401);
    expect(await (await post({ authorization })).json()).toEqual({ status: 'stored' });
    expect(await (await post({ authorization })).json()).toEqual({ status: 'duplicate' });
    const shown = await (await fetch(url)).json();
    expect(shown).toMatchObject([{ event: 'created', product: 'S2A_MSIL2A_000001.SAFE' }]);
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([0, null]);
  });
});

/** Matches the names in `from '…'`, `import '…'` and `import('…')`. */
const importedName = /^(?:[^'"`]*\bfrom |import |.*\bimport\()['"]([^'"\s]+)['"]/gm;

const wrong = `import { createReceiver } from '@earshot-eo/earshot';
export const incomplete = () => createReceiver({ credentials: [] });
`;

/** `@scope/name/file` belongs to `@scope/name`, `name/file` to `name`. */
function packageOf(name: string): string {
  return name.split('/', name.startsWith('@') ? 2 : 1).join('/');
}
