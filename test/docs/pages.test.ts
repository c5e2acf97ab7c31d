/** Facts on the pages that other files determine: links, tests, files, pictures, reasons, statuses and commands. */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect, it } from 'vitest';
import { faultCodes } from '../../src/core/terms/notification.ts';
import { runCommand } from '../helpers/fake-io.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { promises } from '../promises.ts';
import { blocks, readPage, words } from './console-sessions.ts';

const root = resolve(import.meta.dirname, '../..');
const textOf = (page: string) => readFileSync(join(root, page), 'utf8');
const all = (text: string, pattern: RegExp) =>
  [...text.matchAll(pattern)].map(([, part = '']) => part);

/** Returns the anchors that GitHub generates for the headings of a page. */
function anchorsOf(page: string): string[] {
  const text = textOf(page).replaceAll(/^```[\s\S]*?^```/gm, '');
  return all(text, /^#+ (.*)$/gm).map((heading) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

function brokenLinks(page: string): string[] {
  return all(textOf(page), /\]\(([^)\s]+)\)/g).filter((target) => {
    if (/^[a-z]+:/.test(target)) return false;
    const [path = '', anchor] = target.split('#');
    const file = path === '' ? page : relative(root, resolve(root, dirname(page), path));
    if (!existsSync(join(root, file))) return true;
    return anchor !== undefined && !anchorsOf(file).includes(anchor);
  });
}

it('every link between pages leads to an existing page and heading', () => {
  const list = ['ls-files', '-co', '--exclude-standard', '*.md'];
  const listed = execFileSync('git', list, { cwd: root, encoding: 'utf8' }).split('\n');
  const pages = listed.filter((page) => page !== '' && existsSync(join(root, page)));
  expect(pages.length).toBeGreaterThan(20);
  const broken = pages.flatMap((page) => brokenLinks(page).map((target) => `${page}: ${target}`));
  expect(broken).toEqual([]);
});

it('every file and test that the threat model names exists', () => {
  const files = all(textOf('docs/security.md'), /`([^`\s]+)`/g).filter((name) =>
    /^(src|test|scripts|deploy|docs)\/|^(\.npmrc|Dockerfile)$/.test(name),
  );
  expect(files.filter((name) => name.startsWith('test/')).length).toBeGreaterThan(30);
  expect(files.filter((name) => !existsSync(join(root, name)))).toEqual([]);
});

it('the table of promises names the tests of .ci/run', () => {
  const listed = all(textOf('CONTRIBUTING.md'), /^\| .+ \| `(test\/\S+)` \| `\.ci\/run` \|$/gm);
  expect(listed).toEqual(promises);
});

it('each picture of the web page is shown, and their size is limited', () => {
  const shownOn = (page: string) => all(textOf(page), /!\[[^\]]+\]\(([^)]+\.webp)\)/g);
  const bytes = (files: string[]) =>
    files.reduce((sum, file) => sum + statSync(join(root, file)).size, 0);
  const first = shownOn('README.md');
  expect(first).toEqual(['docs/page/overview.webp', 'docs/page/map.webp']);
  expect(bytes(first)).toBeLessThan(300_000);
  const files = readdirSync(join(root, 'docs/page')).map((name) => `page/${name}`);
  expect(shownOn('docs/page.md').toSorted()).toEqual(files.toSorted());
  expect(bytes(files.map((file) => `docs/${file}`))).toBeLessThan(1_200_000);
});

/** Returns the rows of the first table in a section, without its heading. */
function rowsOf(page: string, heading: string): string[] {
  const [, section = ''] = readPage(page).split(`\n## ${heading}\n`);
  const [table = ''] = section.match(/(^\|.*\n)+/m) ?? [];
  return table.split('\n').slice(2);
}

it('every quarantine reason and every status of a push is explained, in order', () => {
  const reasons = rowsOf('operations.md', 'Quarantine').flatMap(
    (row) => row.match(/(?<=^\| `)[\w-]+(?=` \| )/) ?? [],
  );
  expect(reasons).toEqual([...faultCodes]);
  const statuses = rowsOf('reference/http.md', 'Public listener').flatMap(
    (row) => row.split('|')[1]?.match(/\d+/g)?.map(Number) ?? [],
  );
  expect(statuses).toEqual([200, 400, 401, 404, 405, 408, 413, 415, 429, 431, 500, 503]);
});

/** Returns the commands of the shell blocks of a page. */
const commandsOf = (page: string) =>
  blocks(textOf(page).replaceAll('\\\n', ' '), 'sh')
    .flatMap((block) => block.match(/^\.\/earshot .*$/gm) ?? [])
    .map((line) => line.split(/ #| \||\d?>| \(/)[0]?.replace('./earshot ', '') ?? '');

const pages = ['README.md', 'docs/start.md', 'docs/monitoring.md', 'docs/operations.md'];
const commands = [...new Set(pages.flatMap(commandsOf))];

it.each(commands)('the command has valid flags: %s', async (command) => {
  const argv = words(command);
  const isLong = ['setup', 'demo', 'start'].includes(argv[0] ?? '');
  const workingDir = temporaryDirectory();
  writeFileSync(join(workingDir, 'account-password'), 'secret');
  const env = { EARSHOT_DATA_DIR: join(workingDir, 'data') };
  const { err } = await runCommand(isLong ? [...argv, '--help'] : argv, { env, workingDir });
  expect(err).not.toMatch(/^error: /m);
});
