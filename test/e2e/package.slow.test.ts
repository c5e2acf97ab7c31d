/** The published package, installed into empty folders: the command, the library, and the example app. */

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { noSettings } from '../../src/core/config/load.ts';
import { notification } from '../helpers/deliveries.ts';
import { createClient, createReceiverContext, credentials } from '../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { installPackage, type PackedPackage, packPackage, runWith } from './packed-package.ts';

const root = join(import.meta.dirname, '../..');
let packed: PackedPackage;
/** Folder in which only the package is installed. */
let installed: string;
/** Copy of the example, with its packages. */
let example: string;

beforeAll(async () => {
  packed = await packPackage();
  installed = join(packed.folder, 'installed');
  example = join(packed.folder, 'example');
  mkdirSync(installed);
  cpSync(join(root, 'examples/mounted-receiver'), example, {
    recursive: true,
    filter: (file) => !/node_modules|data$/.test(file),
  });
  await Promise.all([installed, example].map((folder) => installPackage(folder, packed.tarball)));
}, 120_000);
afterAll(() => packed?.remove());

const own = (path: string) => join(installed, 'node_modules/earshot', path);
const manifest = () => JSON.parse(readFileSync(own('package.json'), 'utf8'));

describe('the tarball', () => {
  it('contains the build and files for the user, and nothing else', () => {
    const kinds = new Set(
      packed.files.map((path) => path.replace(/^(dist|docs|deploy)\/.*/, '$1/')),
    );
    expect([...kinds].toSorted()).toEqual([
      '.env.example',
      'CHANGELOG.md',
      'LICENSE',
      'README.md',
      'SECURITY.md',
      'deploy/',
      'dist/',
      'docs/',
      'examples/mounted-receiver/README.md',
      'examples/mounted-receiver/app.ts',
      'examples/mounted-receiver/package.json',
      'examples/python/README.md',
      'examples/python/cloud_free.py',
      'examples/typescript/README.md',
      'examples/typescript/app.ts',
      'examples/typescript/package.json',
      'package.json',
      'scripts/earshot.js',
      'scripts/require-node.js',
    ]);
    const dist = packed.files.filter((path) => path.startsWith('dist/'));
    // Style sheets and the icon of the web page; its scripts are compiled.
    const page = dist.filter((path) => path.includes('/browser/'));
    expect(page.filter((path) => !/\.(js|css|d\.ts)$/.test(path))).toEqual([
      'dist/core/page/browser/icon.svg',
    ]);
    expect(page).toContain('dist/core/page/browser/base.css');
    const others = dist.filter((path) => !page.includes(path));
    expect(others.filter((path) => !/\.(js|d\.ts)$/.test(path))).toEqual([
      'dist/features/products/places/names.json',
      'dist/features/products/places/seas.json',
      'dist/sandbox/products/collections.json',
      'dist/store/bodies/dictionary-1.json',
    ]);
    expect(dist).not.toContain('dist/left-over.js');
    for (const name of [
      'index.js',
      'index.d.ts',
      'core/cli/run.js',
      'store/log/writer-thread.js',
    ]) {
      expect(dist).toContain(`dist/${name}`);
    }
  });

  it('contains no Node, and declares every package that the build imports', () => {
    const { dependencies, optionalDependencies, peerDependencies, bundleDependencies } = manifest();
    expect({ optionalDependencies, peerDependencies, bundleDependencies }).toEqual({});
    const imported = new Set<string>();
    for (const path of packed.files.filter((file) => /^dist\/.*\.(js|d\.ts)$/.test(file))) {
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

  it('prints its version and its help, and runs the demo', async () => {
    expect(await earshot(['--version'])).toBe(`${manifest().version}\n`);
    expect(await earshot(['start', '--help'])).toMatch(/^Usage: earshot start/);
    const lines = (await earshot(['demo', '--once', '--products', '20'])).trim().split('\n');
    const all = { published: 20, delivered: 20, stored: 20 };
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ ...all, quarantined: 0 });
  });

  it('stores a notification over HTTPS, and another process can query it', async () => {
    const context = await createReceiverContext(
      temporaryDirectory(),
      join(installed, 'node_modules/.bin/earshot'),
    );
    const receiver = await context.start();
    const client = createClient({ port: receiver.port, ca: context.ca });
    const body = JSON.stringify(notification(1));
    expect(await client('POST', '/notifications/alps', body)).toMatchObject({ status: 200 });
    const query = ['query', '--output', 'ndjson', '--subscription', 'alps'];
    const rows = await earshot(query, { EARSHOT_DATA_DIR: context.dataDir });
    expect(JSON.parse(rows)).toMatchObject({ ackId: 'ack-1', productId: 'product-1' });
    receiver.child.kill('SIGTERM');
    expect(await once(receiver.child, 'exit')).toEqual([0, null]);
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

  it('reports a package that contains no build', async () => {
    const folder = temporaryDirectory();
    cpSync(own('scripts'), join(folder, 'scripts'), { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}');
    const ran = runWith(folder, process.execPath, ['scripts/earshot.js', '--version']);
    await expect(ran).rejects.toMatchObject({
      code: 1,
      stderr: 'earshot: the package contains no build. Run: npm run package\n',
    });
  });
});

describe('the installed library', { timeout: 60_000 }, () => {
  it('has types that a strict compiler accepts, in the example and in everything it imports', async () => {
    const compilerOptions = {
      target: 'es2024',
      // hono's types, which the compiler checks too, refer to those of browsers.
      lib: ['es2024', 'dom'],
      module: 'nodenext',
      types: ['node'],
      typeRoots: [join(root, 'node_modules/@types')],
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      noEmit: true,
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
    const child = spawn(process.execPath, ['app.ts'], {
      cwd: example,
      env: {
        PATH: process.env.PATH,
        PORT: '0',
        ENDPOINT_USERNAME: credentials.username,
        ENDPOINT_PASSWORD: credentials.password,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const [line] = await once(child.stdout.setEncoding('utf8'), 'data');
    const url = String(line).trim();
    const { username, password } = credentials;
    const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
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

const wrong = `import { createReceiver } from 'earshot';
export const incomplete = () => createReceiver({ credentials: [] });
`;

/** `@scope/name/file` belongs to `@scope/name`, `name/file` to `name`. */
function packageOf(name: string): string {
  return name.split('/', name.startsWith('@') ? 2 : 1).join('/');
}
