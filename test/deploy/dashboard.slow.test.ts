/** The dashboard in a real Prometheus that scrapes a real receiver: every panel shows data. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { installed } from '../helpers/thorough.ts';

const project = join(import.meta.dirname, '../..');
const script = join(project, 'scripts/bench.js');

/** Row and title of each panel, in a Markdown table. */
const panelsIn = (text: string) =>
  [...text.matchAll(/^\| ([^|]+) \| ([^|]+) \|$/gm)].map((cells) => cells.slice(1));

it.runIf(installed('/usr/bin/prometheus'))(
  'has data in every panel, and its page lists them',
  { timeout: 300_000 },
  async () => {
    // The script exits with 1 for a panel without data, or a rule that fails or fires.
    const { stdout, stderr } = await promisify(execFile)(process.execPath, [script, 'dashboard']);
    expect(stderr).toBe('');
    const panels = panelsIn(stdout);
    expect(panels.length).toBeGreaterThan(35);
    const page = readFileSync(join(project, 'docs/reference/dashboard.md'), 'utf8');
    const [table = ''] = page.slice(page.indexOf('| row | panel |')).split('\n\n');
    const listed = panelsIn(table);
    expect(listed).toEqual(panels);
  },
);
