/** The page of threats names files and tests: each is there. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const root = join(import.meta.dirname, '../..');

it('every file and test that the threat model names exists, and the page stays one page', () => {
  const page = readFileSync(join(root, 'docs/threat-model.md'), 'utf8');
  const quoted = [...page.matchAll(/`([^`\s]+)`/g)].map(([, name = '']) => name);
  const files = quoted.filter((name) =>
    /^(src|test|scripts|deploy|docs)\/|^(\.npmrc|Dockerfile)$/.test(name),
  );
  const linked = [...page.matchAll(/\]\(([^)#]+)[^)]*\)/g)].map(([, name = '']) =>
    join('docs', name),
  );
  expect(files.filter((name) => name.startsWith('test/')).length).toBeGreaterThan(30);
  expect([...files, ...linked].filter((name) => !existsSync(join(root, name)))).toEqual([]);
  expect(page.split('\n').length).toBeLessThanOrEqual(121);
});
