/** Accepted licences, and the licences listed on the page. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isPermissive } from '../../scripts/licences.js';
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

  it('lists the name, version and licence that each installed package declares', () => {
    const there = lockedPackages(lock).flatMap(({ path, name, version, licence, isDev }) => {
      const file = join(root, path, 'package.json');
      if (isDev || !existsSync(file)) return [];
      const own = JSON.parse(readFileSync(file, 'utf8'));
      return [{ listed: { name, version, licence }, own: [own.name, own.version, own.license] }];
    });
    expect(there.length).toBeGreaterThan(80);
    for (const { listed, own } of there) expect(Object.values(listed)).toEqual(own);
    const page = readFileSync(join(root, 'docs/reference/licences.md'), 'utf8');
    for (const { listed } of there)
      expect(page).toContain(`| ${Object.values(listed).join(' | ')} |`);
  });
});
