/** docs/operations.md: its table of quarantine reasons has each reason that there is, and no other. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { faultCodes } from '../../src/domain/notification.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8');

it('explains every quarantine reason, in the order of the code', () => {
  const table = page.slice(page.indexOf('| reason | meaning |'), page.indexOf('## When the disk'));
  const reasons = [...table.matchAll(/^\| `([\w-]+)` \| /gm)].map(([, reason]) => reason);
  expect(reasons).toEqual([...faultCodes]);
});

it('names the statuses that a push is answered with', () => {
  const table = page.slice(
    page.indexOf('| status | meaning |'),
    page.indexOf('| reason | meaning'),
  );
  for (const status of [200, 400, 401, 404, 405, 408, 413, 415, 429, 431, 500, 503]) {
    expect(table).toMatch(new RegExp(`^\\|[ \\d,]*\\b${status}\\b`, 'm'));
  }
});
