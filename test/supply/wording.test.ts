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

  it('refuses phrases with their places: over two lines, before a colon, in names, in comments', () => {
    const { status, stdout } = checkPage(
      'It is made anew.\nIt goes\non.\nThe user is told: wait.\nCalls `tellsOf`.\n\n/**\n * What it holds.\n */\n',
    );
    expect(status).toBe(1);
    const found = stdout.split('\n').filter((line) => line.includes('docs/page.md:'));
    const lines = found.map((line) => Number(line.match(/page\.md:(\d+)/)?.[1]));
    expect(lines.toSorted()).toEqual([1, 2, 4, 5, 7]);
    for (const phrase of ['anew', 'go on', 'tell, told', 'What']) expect(stdout).toContain(phrase);
  });
});
