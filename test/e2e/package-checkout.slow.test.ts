/** Parts of a checkout that the package lacks: the sources, and the bundled Node. */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const root = join(import.meta.dirname, '../..');

function write(folder: string, path: string, text: string, mode = 0o644): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), text);
  chmodSync(join(folder, path), mode);
}

describe('the command in a checkout', () => {
  it('runs the sources, even if a build exists', () => {
    const folder = temporaryDirectory();
    cpSync(join(root, 'scripts'), join(folder, 'scripts'), { recursive: true });
    write(folder, 'package.json', '{"type":"module","version":"1.2.3"}');
    const runModule = (by: string) => `export const run = (argv, io, version) => (console.log(
      '${by}', argv.join(), io, version), 3);`;
    for (const [place, type] of [
      ['src', 'ts'],
      ['dist', 'js'],
    ]) {
      write(folder, `${place}/cli/io.${type}`, 'export const createProcessIo = () => 7;');
      write(folder, `${place}/cli/run.${type}`, runModule(place ?? ''));
    }
    const earshot = () => {
      const args = ['--disable-warning=ExperimentalWarning', 'scripts/earshot.js', 'a', 'b'];
      const { status, stdout } = spawnSync(process.execPath, args, {
        cwd: folder,
        encoding: 'utf8',
      });
      return [status, stdout.trim()];
    };
    expect(earshot()).toEqual([3, 'src a,b 7 1.2.3']);
    rmSync(join(folder, 'src'), { recursive: true });
    expect(earshot()).toEqual([3, 'dist a,b 7 1.2.3']);
  });
});

describe('the bundled Node', () => {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  const packages: [string, { bin?: { node?: string }; resolved?: string }][] = Object.entries(
    lock.packages,
  );

  it('is not hoisted: npm 10 would remove the link node_modules/.bin/node', () => {
    const runtime = JSON.parse(readFileSync(join(root, 'runtime/package.json'), 'utf8'));
    const binaries = Object.keys(runtime.optionalDependencies);
    const withNode = packages
      .filter(([, { bin }]) => bin?.node !== undefined)
      .map(([path]) => path);
    expect(withNode.toSorted()).toEqual(
      ['runtime', ...binaries.map((name) => `runtime/node_modules/${name}`)].toSorted(),
    );
  });

  it('is locked without the address of a registry, like all packages', () => {
    const addresses = packages.flatMap(([, { resolved }]) => resolved ?? []);
    expect(addresses).toEqual(['runtime']);
  });

  /** Creates a checkout as after `npm ci`, with scripts that print their arguments instead of each Node. */
  function checkout() {
    const folder = temporaryDirectory();
    cpSync(join(root, 'runtime/node'), join(folder, 'runtime/node'));
    mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true });
    symlinkSync('../runtime', join(folder, 'node_modules/earshot-runtime'));
    symlinkSync('../earshot-runtime/node', join(folder, 'node_modules/.bin/node'));
    write(folder, 'machine/node', '#!/bin/sh\necho "the machine has $*"\n', 0o755);
    symlinkSync(join(folder, 'node_modules/.bin/node'), join(folder, 'elsewhere'));
    const node = (name: string, places: string[]) => {
      const PATH = places.map((place) => join(folder, place)).join(':');
      const ran = spawnSync(join(folder, name), ['a b', 'c'], {
        env: { PATH: `${PATH}:/usr/bin` },
      });
      return [ran.status, String(ran.stdout).trim()];
    };
    return { folder, node };
  }

  it('is run by npm scripts and by links to it', () => {
    const { folder, node } = checkout();
    const text = '#!/bin/sh\necho "$# arguments: $*"\nexit 5\n';
    write(folder, 'runtime/node_modules/node-here/bin/node', text, 0o755);
    for (const name of ['node_modules/.bin/node', 'elsewhere', 'runtime/node']) {
      expect(node(name, [])).toEqual([5, '2 arguments: a b c']);
    }
  });

  it('is replaced by the next Node on the path when no bundled one fits the machine', () => {
    const { node } = checkout();
    const path = ['node_modules/.bin', 'machine'];
    expect(node('node_modules/.bin/node', path)).toEqual([0, 'the machine has a b c']);
  });
});
