/** docs/security.md names files and tests: each exists. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');

it('every file and test that the threat model names exists', () => {
  const page = readFileSync(join(root, 'docs/security.md'), 'utf8');
  const quoted = [...page.matchAll(/`([^`\s]+)`/g)].map(([, name = '']) => name);
  const files = quoted.filter((name) =>
    /^(src|test|scripts|deploy|docs)\/|^(\.npmrc|Dockerfile)$/.test(name),
  );
  const linked = [...page.matchAll(/\]\(([^)#]+)[^)]*\)/g)].map(([, name = '']) =>
    join('docs', name),
  );
  expect(files.filter((name) => name.startsWith('test/')).length).toBeGreaterThan(30);
  expect([...files, ...linked].filter((name) => !existsSync(join(root, name)))).toEqual([]);
});
