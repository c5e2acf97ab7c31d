/** Pictures of the web page in the documentation: each is used, and their size is limited. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const bytesOf = (file: string) => statSync(resolve(root, file)).size;
const picturesOf = (page: string) =>
  [...readFileSync(resolve(root, page), 'utf8').matchAll(/!\[[^\]]+\]\(([^)]+\.webp)\)/g)].map(
    ([, file = '']) => file,
  );

it('the README shows overview and map, with less than 300 kB', () => {
  const shown = picturesOf('README.md');
  expect(shown).toEqual(['docs/page/overview.webp', 'docs/page/map.webp']);
  expect(shown.reduce((sum, file) => sum + bytesOf(file), 0)).toBeLessThan(300_000);
});

it('the page about the web page shows all pictures, with less than 1.2 MB', () => {
  const files = readdirSync(resolve(root, 'docs/page')).map((name) => `page/${name}`);
  expect(picturesOf('docs/page.md').toSorted()).toEqual(files.toSorted());
  expect(files.reduce((sum, file) => sum + bytesOf(`docs/${file}`), 0)).toBeLessThan(1_200_000);
});
