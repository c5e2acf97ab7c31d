/** docs/operations.md explains all quarantine reasons, docs/reference/http.md all public statuses. */
import { expect, it } from 'vitest';
import { faultCodes } from '../../src/core/terms/notification.ts';
import { readPage } from './console-sessions.ts';

/** Returns the rows of the first table in a section, without its heading. */
function rowsOf(page: string, heading: string): string[] {
  const [, section = ''] = readPage(page).split(`\n## ${heading}\n`);
  const [table = ''] = section.match(/(^\|.*\n)+/m) ?? [];
  return table.split('\n').slice(2);
}

it('explains every quarantine reason, in the order of the code', () => {
  const reasons = rowsOf('operations.md', 'Quarantine').flatMap((row) => {
    return row.match(/(?<=^\| `)[\w-]+(?=` \| )/) ?? [];
  });
  expect(reasons).toEqual([...faultCodes]);
});

it('lists the statuses of responses to a push', () => {
  const statuses = rowsOf('reference/http.md', 'Public listener').flatMap((row) => {
    return row.split('|')[1]?.match(/\d+/g)?.map(Number) ?? [];
  });
  expect(statuses).toEqual([200, 400, 401, 404, 405, 408, 413, 415, 429, 431, 500, 503]);
});
