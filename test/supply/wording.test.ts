/** The wording check of `npm run check`, run on a repository of its own. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const script = resolve(import.meta.dirname, '../../scripts/wording.js');

function checkPage(text: string) {
  const cwd = temporaryDirectory();
  mkdirSync(join(cwd, 'docs'));
  writeFileSync(join(cwd, 'docs/page.md'), text);
  spawnSync('git', ['init', '-q'], { cwd });
  const { status, stdout } = spawnSync(process.execPath, [script, '--list', 'docs'], {
    cwd,
    encoding: 'utf8',
  });
  return { status, stdout };
}

describe('the wording check', () => {
  it('accepts plain text and names of the interface contract', () => {
    expect(checkPage('Retries the request.\nSee `nextTryAt`.\n')).toEqual({
      status: 0,
      stdout: '',
    });
  });

  it.each([
    ['a phrase', 'It is made anew.\n', 'docs/page.md:1', 'anew'],
    ['a phrase over two lines', 'Text.\nIt goes\non.\n', 'docs/page.md:2', 'go on'],
    ['a phrase before a colon', 'The user is told: wait.\n', 'docs/page.md:1', 'tell, told'],
    ['a phrase in a name', 'Calls `tellsOf`.\n', 'docs/page.md:1', 'tell, told'],
    ['a comment that begins with What', '/**\n * What it holds.\n */\n', 'docs/page.md:1', 'What'],
  ])('refuses %s, with its place', (_, text, place, phrase) => {
    const { status, stdout } = checkPage(text);
    expect(status).toBe(1);
    expect(stdout).toContain(place);
    expect(stdout).toContain(phrase);
  });
});
