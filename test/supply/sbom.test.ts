/** `npm run sbom`, compared with the installed packages. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it } from 'vitest';

interface Component {
  'bom-ref': string;
  name: string;
  version: string;
  scope: string;
  purl?: string;
  cpe?: string;
  hashes: { alg: string; content: string }[];
  licenses: unknown[];
  components?: Component[];
}

interface Sbom {
  specVersion: string;
  metadata: { component: Component };
  components: Component[];
  dependencies: { ref: string; dependsOn: string[] }[];
}

const root = join(import.meta.dirname, '../..');

function written(): string {
  const folder = mkdtempSync(join(tmpdir(), 'earshot-sbom-'));
  const file = join(folder, 'earshot.cdx.json');
  execFileSync(process.execPath, [join(root, 'scripts/sbom.js'), file], { stdio: 'pipe' });
  const document = readFileSync(file, 'utf8');
  rmSync(folder, { recursive: true });
  return document;
}

const text = written();
const { specVersion, metadata, components, dependencies } = JSON.parse(text) as Sbom;

/** `name@version` of all packages that npm finds installed, without development packages. */
function installed(): Set<string> {
  const options = ['ls', '--all', '--omit=dev', '--long', '--parseable'];
  const lines = execFileSync('npm', options, { cwd: root, encoding: 'utf8' }).trim().split('\n');
  const isPackage = /\/node_modules\/(?!earshot-runtime:)/;
  const packages = lines.filter((line) => isPackage.test(line));
  return new Set(packages.map((line) => line.split(':')[1] ?? ''));
}

describe('the software bill of materials', () => {
  it('names every package installed to run, and in addition only the Node of other platforms', () => {
    const there = installed();
    expect(there.size).toBeGreaterThan(80);
    const named = components.map((one) => one['bom-ref']);
    expect([...there].filter((one) => !named.includes(one))).toEqual([]);
    const others = components.filter((one) => !there.has(one['bom-ref']));
    expect(
      others.filter(({ name, scope }) => !/^node-/.test(name) || scope !== 'optional'),
    ).toEqual([]);
  });

  it('has digest, licence and address of each, and its dependencies', () => {
    for (const { name, version, hashes, licenses, purl } of components) {
      expect(hashes).toEqual([
        { alg: 'SHA-512', content: expect.stringMatching(/^[0-9a-f]{128}$/) },
      ]);
      expect(licenses).toHaveLength(1);
      expect(purl).toBe(`pkg:npm/${name.replace('@', '%40')}@${version}`);
    }
    const references = new Set(components.map((one) => one['bom-ref']));
    expect(references.size).toBe(components.length);
    const referenced = new Set(dependencies.flatMap(({ dependsOn }) => dependsOn));
    expect([...references].filter((one) => !referenced.has(one))).toEqual([]);
    expect([...referenced].filter((one) => !references.has(one))).toEqual([]);
  });

  it('names Node and SQLite as vulnerability databases do', () => {
    const bundledNode = components.find(
      ({ name }) => name === `node-${process.platform}-${process.arch}`,
    );
    const runtime = JSON.parse(readFileSync(join(root, 'runtime/package.json'), 'utf8'));
    const version = runtime.optionalDependencies[bundledNode?.name ?? ''];
    expect(bundledNode?.cpe).toBe(`cpe:2.3:a:nodejs:node.js:${version}:*:*:*:*:*:*:*`);
    const database = new Sqlite(':memory:');
    const sqlite = database.prepare('SELECT sqlite_version()').pluck().get();
    database.close();
    const inside = components.find(({ name }) => name === 'better-sqlite3')?.components;
    expect(inside).toMatchObject([{ cpe: `cpe:2.3:a:sqlite:sqlite:${sqlite}:*:*:*:*:*:*:*` }]);
  });

  it('is reproducible, and reveals nothing of the machine that made it', () => {
    expect(written()).toBe(text);
    expect(specVersion).toBe('1.5');
    const purl = expect.stringMatching(/^pkg:npm\/%40earshot-eo\/earshot@\d/);
    const own = { name: '@earshot-eo/earshot', purl };
    expect(metadata).toEqual({ component: expect.objectContaining(own) });
    const addresses = text.match(/https?:\/\/[^"]*/g);
    expect(addresses).toEqual(['http://cyclonedx.org/schema/bom-1.5.schema.json']);
    expect(text).not.toContain(root);
  });
});
