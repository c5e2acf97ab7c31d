import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const root = join(import.meta.dirname, '../..');
const records = join(root, '../shared/fixtures/products.jsonl');

function demo(...args: string[]) {
  const TMPDIR = temporaryDirectory();
  const command = [join(root, 'scripts/earshot.js'), 'demo', '--once', ...args];
  const ran = spawnSync(process.execPath, command, {
    encoding: 'utf8',
    timeout: 40_000,
    env: { ...process.env, TMPDIR },
  });
  const left = readdirSync(TMPDIR);
  const lastLine = ran.stdout.trimEnd().split('\n').at(-1) ?? '';
  const told = /matched {2}(\d+) of (\d+).*stored {3}(\d+).*found {4}(\d+) by the filter, (\d+) /s;
  const [matched, of, stored, byFilter, byPlace] = (told.exec(ran.stdout) ?? [])
    .slice(1)
    .map(Number);
  const filtered = { matched, of, stored, byFilter, byPlace };
  return { status: ran.status, stderr: ran.stderr, left, filtered, count: JSON.parse(lastLine) };
}

describe('the demo', { timeout: 60_000 }, () => {
  it('stores every product of 200 once, and leaves nothing behind', () => {
    const { status, stderr, left, filtered, count } = demo('--products', '200');
    expect(stderr).toBe('');
    expect(status).toBe(0);
    const all = { published: 200, delivered: 200, stored: 200 };
    expect(count).toEqual({ ...all, duplicates: 0, quarantined: 0, summaries: 200 });
    expect(left).toEqual([]);
    // Only what matches arrived there, and it is found by its place.
    const { matched } = filtered;
    expect(filtered).toEqual({
      matched,
      of: 200,
      stored: matched,
      byFilter: matched,
      byPlace: matched,
    });
    expect(matched).toBeGreaterThan(0);
    expect(matched).toBeLessThan(200);
  });

  it('stores everything delivered once on a faulty way, and lists each loss', () => {
    const { status, stderr, count } = demo('--products', '300', '--faults');
    expect(status).toBe(0);
    expect(count.published).toBe(300);
    expect(count.stored).toBe(count.delivered);
    expect(count.delivered).toBeLessThan(300);
    expect(count.duplicates).toBeGreaterThan(0);
    expect(count.quarantined).toBe(0);
    expect(stderr.match(/^ {2}created /gm)).toHaveLength(count.published - count.delivered);
    // More products than summaries may be asked for in an hour.
    expect(count.summaries).toBe(250);
    expect(stderr).toMatch(/^\d+ summaries wait for the budget of 250 requests an hour\.$/m);
  });

  it('stores all 132 real records', (context) => {
    if (!existsSync(records)) return context.skip('there is no folder with real records');
    const { status, filtered, count } = demo('--records', records);
    expect(status).toBe(0);
    const all = { published: 132, delivered: 132, stored: 132 };
    expect(count).toMatchObject({ ...all, quarantined: 0, summaries: 132 });
    expect(filtered).toEqual({ matched: 77, of: 132, stored: 77, byFilter: 77, byPlace: 77 });
  });
});
