/** What keeps others' code from changing unseen, or running before it was asked for. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lockedPackages } from '../../scripts/lock-file.js';

const root = join(import.meta.dirname, '../..');
const textOf = (path: string) => readFileSync(join(root, path), 'utf8');
const manifest = JSON.parse(textOf('package.json'));
const runtime = JSON.parse(textOf('runtime/package.json'));
const lock = JSON.parse(textOf('package-lock.json'));

describe('dependencies', () => {
  it('have exact versions, but for the two that an app of the user’s shares (decision 16)', () => {
    const all = {
      ...manifest.dependencies,
      ...manifest.devDependencies,
      ...runtime.optionalDependencies,
    };
    const loose = Object.keys(all).filter((name) => !/^\d+\.\d+\.\d+$/.test(all[name]));
    expect(loose).toEqual(['@hono/node-server', 'hono']);
  });

  it('are locked, each with a digest, and with no address that it would have to come from', () => {
    const packages = lockedPackages(lock);
    expect(packages.length).toBeGreaterThan(150);
    const loose = packages.filter(
      ({ integrity }) => !/^sha512-[\w+/]{86}==$/.test(integrity ?? ''),
    );
    expect(loose).toEqual([]);
    expect(textOf('package-lock.json').match(/"resolved": "(?!runtime")/g)).toBeNull();
  });

  it('run none of their install scripts', () => {
    expect(textOf('.npmrc')).toMatch(/^ignore-scripts=true$/m);
    expect(textOf('Dockerfile')).toMatch(/^COPY .*\.npmrc .*\n(.*\n)*RUN npm ci$/m);
  });

  it('are used, each of them', () => {
    const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' });
    const source = files
      .filter((file) => file.endsWith('.ts'))
      .map((file) => textOf(`src/${file}`));
    const isUsed = (name: string) =>
      source.some((text) => new RegExp(`['"]${name}(/[^'"]*)?['"]`).test(text));
    expect(Object.keys(manifest.dependencies).filter((name) => !isUsed(name))).toEqual([]);
  });
});
