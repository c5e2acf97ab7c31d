/** Prevents unseen changes of dependencies, and code that runs before it is called. */
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lockedPackages } from '../../scripts/lock-file.js';

const root = join(import.meta.dirname, '../..');
const textOf = (path: string) => readFileSync(join(root, path), 'utf8');
const manifest = JSON.parse(textOf('package.json'));
const runtime = JSON.parse(textOf('runtime/package.json'));
const lock = JSON.parse(textOf('package-lock.json'));

describe('dependencies', () => {
  it('have exact versions, except the two that a user’s app shares (decision 16)', () => {
    const all = {
      ...manifest.dependencies,
      ...manifest.devDependencies,
      ...runtime.optionalDependencies,
    };
    const loose = Object.keys(all).filter((name) => !/^\d+\.\d+\.\d+(?:-[\w.]+)?$/.test(all[name]));
    expect(loose).toEqual(['@hono/node-server', 'hono']);
  });

  it('are locked, each with a digest, and without fixed download addresses', () => {
    const packages = lockedPackages(lock);
    expect(packages.length).toBeGreaterThan(150);
    const loose = packages.filter(
      ({ integrity }) => !/^sha512-[\w+/]{86}==$/.test(integrity ?? ''),
    );
    expect(loose).toEqual([]);
    expect(textOf('package-lock.json').match(/"resolved": "(?!runtime")/g)).toBeNull();
  });

  it('run no install scripts', () => {
    expect(textOf('.npmrc')).toMatch(/^ignore-scripts=true$/m);
    expect(textOf('Dockerfile')).toMatch(/^COPY .*\.npmrc .*\n(.*\n)*RUN npm ci$/m);
  });

  it('of an installation stay few and small (decision 42)', () => {
    const installed = lockedPackages(lock).filter(({ isDev, isOptional }) => !isDev && !isOptional);
    const bytes = installed.reduce((sum, { path }) => sum + bytesIn(join(root, path)), 0);
    expect(installed.length).toBeLessThanOrEqual(157);
    expect(bytes).toBeGreaterThan(20e6);
    expect(bytes).toBeLessThan(72e6);
  });

  it('are all used', () => {
    const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
    const source = files
      .filter((file) => file.endsWith('.ts'))
      .map((file) => textOf(`src/${file}`));
    const isUsed = (name: string) =>
      source.some((text) => new RegExp(`['"]${name}(/[^'"]*)?['"]`).test(text));
    expect(Object.keys(manifest.dependencies).filter((name) => !isUsed(name))).toEqual([]);
  });
});

/** Sizes of the files of one package, without nested packages. */
function bytesIn(folder: string): number {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => name !== 'node_modules')
    .map((entry) => join(folder, entry.name))
    .reduce((sum, path) => {
      const stats = lstatSync(path);
      return sum + (stats.isDirectory() ? bytesIn(path) : stats.size);
    }, 0);
}
