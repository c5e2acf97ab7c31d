/** Which licences pass, and that packages have those that the page tells. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isPermissive, licencesPage } from '../../scripts/licences.js';
import { lockedPackages } from '../../scripts/lock-file.js';

const root = join(import.meta.dirname, '../..');
const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));

describe('the page of licences', () => {
  it.each([
    ['MIT', true],
    ['(BSD-3-Clause OR GPL-2.0)', true],
    ['GPL-2.0 OR MIT', true],
    ['MIT AND ISC', true],
    ['MIT AND GPL-3.0-only', false],
    ['LGPL-3.0-only', false],
    ['AGPL-3.0-only OR MPL-2.0', false],
    ['SEE LICENSE IN LICENSE.md', false],
    ['unknown', false],
  ])('%s: %s', (expression, expected) => {
    expect(isPermissive(expression)).toBe(expected);
  });

  it('is not written while a package that runs asks for more; one that tests may', () => {
    const withOne = (entry: object) => ({
      packages: { ...lock.packages, 'node_modules/other': { version: '1.0.0', ...entry } },
    });
    const why = /^Licences not permitted: other \(GPL-3\.0-only\)\. /;
    expect(() => licencesPage(withOne({ license: 'GPL-3.0-only' }))).toThrow(why);
    expect(() => licencesPage(withOne({}))).toThrow('other (unknown)');
    const page = licencesPage(withOne({ license: 'GPL-3.0-only', dev: true }));
    expect(page).toMatch(/, 1 GPL-3\.0-only[,.]/);
  });

  it('tells of each package that is installed what the package itself tells', () => {
    const there = lockedPackages(lock).flatMap(({ path, name, version, licence, isDev }) => {
      const file = join(root, path, 'package.json');
      if (isDev || !existsSync(file)) return [];
      const own = JSON.parse(readFileSync(file, 'utf8'));
      return [{ told: { name, version, licence }, own: [own.name, own.version, own.license] }];
    });
    expect(there.length).toBeGreaterThan(80);
    for (const { told, own } of there) expect(Object.values(told)).toEqual(own);
    const page = readFileSync(join(root, 'docs/reference/licences.md'), 'utf8');
    for (const { told } of there) expect(page).toContain(`| ${Object.values(told).join(' | ')} |`);
  });
});
