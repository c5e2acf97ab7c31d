/**
 * `npm run sbom`: writes a CycloneDX 1.5 (JSON) document of the runtime packages to the given file (default:
 * earshot.cdx.json). Deterministic for a lock file. `npm sbom` of npm 10 and 11 omits packages that tests also use,
 * and writes the time.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import './require-node.js';
import { compare, dependenciesOf, lockedPackages } from './lock-file.js';

const { default: Sqlite } = await import('better-sqlite3');

const read = (/** @type {string} */ name) =>
  JSON.parse(readFileSync(new URL(`../${name}`, import.meta.url), 'utf8'));
const { name, version, description } = read('package.json');
/** @type {import('./lock-file.js').LockFile} */
const lock = read('package-lock.json');
const packages = lockedPackages(lock).filter(({ isDev }) => !isDev);
const names = new Set(packages.map(referenceOf));
const root = `${name}@${version}`;
// The runtime folder, which installs Node, is not a package: its dependencies are those of earshot.
const dependencies = [
  ...dependenciesOf('', lock.packages),
  ...dependenciesOf('runtime', lock.packages),
];
const sbom = {
  $schema: 'http://cyclonedx.org/schema/bom-1.5.schema.json',
  bomFormat: 'CycloneDX',
  specVersion: '1.5',
  version: 1,
  metadata: {
    component: {
      'bom-ref': root,
      type: 'application',
      name,
      version,
      description,
      ...licensed('MIT'),
      purl: purlOf({ name, version }),
    },
  },
  components: packages.map(componentOf),
  dependencies: [
    { ref: root, dependsOn: dependencies.sort(compare) },
    ...packages.map((one) => ({
      ref: referenceOf(one),
      dependsOn: one.dependencies.filter((name) => names.has(name)),
    })),
  ],
};
const [, , file = 'earshot.cdx.json'] = process.argv;
writeFileSync(file, `${JSON.stringify(sbom, null, 2)}\n`);
process.stderr.write(`${file}: ${packages.length} packages\n`);

/** @param {{ name: string, version: string }} one */
function referenceOf(one) {
  return `${one.name}@${one.version}`;
}

/** @param {{ name: string, version: string }} one */
function purlOf({ name, version }) {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`;
}

/** @param {import('./lock-file.js').LockedPackage} one */
function componentOf(one) {
  const { name, version, licence, integrity, isOptional } = one;
  const [alg, digest = ''] = integrity?.split('-') ?? [];
  return {
    'bom-ref': referenceOf(one),
    type: 'library',
    name,
    version,
    scope: isOptional ? 'optional' : 'required',
    hashes: [
      {
        alg: alg?.replace('sha', 'SHA-'),
        content: Buffer.from(digest, 'base64').toString('hex'),
      },
    ],
    ...licensed(licence),
    // Vulnerabilities of Node and SQLite are listed under their CPE names, not the package names.
    ...(one.path.startsWith('runtime/') && { cpe: cpeOf('nodejs:node.js', version) }),
    purl: purlOf(one),
    ...(name === 'better-sqlite3' && { components: [sqlite()] }),
  };
}

function sqlite() {
  const version = String(new Sqlite(':memory:').prepare('SELECT sqlite_version()').pluck().get());
  const cpe = cpeOf('sqlite:sqlite', version);
  const reference = `sqlite@${version}`;
  return {
    'bom-ref': reference,
    type: 'library',
    name: 'sqlite',
    version,
    ...licensed('blessing'),
    cpe,
  };
}

/**
 * @param {string} product
 * @param {string} version
 */
function cpeOf(product, version) {
  return `cpe:2.3:a:${product}:${version}:*:*:*:*:*:*:*`;
}

/** @param {string} licence An SPDX name or expression. */
function licensed(licence) {
  const isOne = /^[\w.-]+$/.test(licence);
  return { licenses: [isOne ? { license: { id: licence } } : { expression: licence }] };
}
