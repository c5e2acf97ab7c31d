import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.md'], {
  cwd: root,
  encoding: 'utf8',
});
const pages = listed.split('\n').filter((page) => page !== '' && existsSync(join(root, page)));
const textOf = (page: string) => readFileSync(join(root, page), 'utf8');

/** Returns the anchors that GitHub generates for the headings of a page. */
function anchorsOf(page: string): string[] {
  const text = textOf(page).replaceAll(/^```[\s\S]*?^```/gm, '');
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function brokenLinks(page: string): string[] {
  const targets = [...textOf(page).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target);
  return targets.filter((target) => {
    if (/^[a-z]+:/.test(target)) return false;
    const [path = '', anchor] = target.split('#');
    const file = path === '' ? page : relative(root, resolve(root, dirname(page), path));
    if (!existsSync(join(root, file))) return true;
    return anchor !== undefined && !anchorsOf(file).includes(anchor);
  });
}

it('every link between pages leads to an existing page and heading', () => {
  const broken = pages.flatMap((page) => brokenLinks(page).map((target) => `${page}: ${target}`));
  expect(pages.length).toBeGreaterThan(20);
  expect(broken).toEqual([]);
});
