import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, it } from 'vitest';
import { openForWriting, schemaVersion } from '../../src/store/engine/database.ts';
import { delivery, notification } from '../helpers/deliveries.ts';
import { expectRefused } from '../helpers/refusals.ts';
import { openStore } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { openFile, openReader, openSqliteStore } from './sqlite-store.ts';

describe('opening the store', () => {
  it.each(['writing', 'reading'])('for %s refuses a file of a newer version', async (purpose) => {
    const { store, dataDir } = await openSqliteStore();
    await store.close();
    openFile(dataDir).pragma(`user_version = ${schemaVersion + 1}`);
    const refused =
      purpose === 'writing' ? openStore({ dataDir }) : openReader(dataDir).lastPosition();
    await expect(refused).rejects.toMatchObject({
      code: 'configuration',
      text: expect.stringMatching(
        /a newer version of earshot \(schema 2; this version supports up to 1\)/,
      ),
    });
  });

  it('creates one fresh file when several processes start in the same millisecond', async () => {
    const child = join(import.meta.dirname, 'open-files-child.ts');
    const children = [1, 2, 3, 4].map(() => spawn(process.execPath, [child], { stdio: 'pipe' }));
    const answers = children.map(({ stdout }) =>
      createInterface({ input: stdout })[Symbol.asyncIterator](),
    );
    const rounds = 40;
    const seen: (string | undefined)[] = [];
    for (let round = 0; round < rounds; round += 1) {
      const dataDir = temporaryDirectory();
      for (const { stdin } of children) stdin.write(`${dataDir}\n`);
      seen.push(...(await Promise.all(answers.map(async (one) => (await one.next()).value))));
    }
    for (const { stdin } of children) stdin.end();
    expect(seen).toEqual(Array.from({ length: rounds * children.length }, () => 'opened'));
  });

  it('stores a notification once that two processes receive at the same moment', async () => {
    const { store, dataDir } = await openSqliteStore();
    const other = await openStore({ dataDir });
    const numbers = Array.from({ length: 300 }, (_, i) => i);
    const receipts = await Promise.all(
      numbers.flatMap((n) => [store, other].map((one) => one.accept(delivery(notification(n))))),
    );
    await other.close();
    expect(receipts.filter(({ outcome }) => outcome === 'stored')).toHaveLength(300);
    expect(await store.counts()).toMatchObject({ notifications: 300, duplicates: 300 });
  });

  it('sets durability and concurrent reading on the writing connection', () => {
    const dataDir = temporaryDirectory();
    openForWriting({ dataDir }).close();
    const database = openForWriting({ dataDir });
    const setting = (name: string) => database.pragma(name, { simple: true });
    expect(setting('journal_mode')).toBe('wal');
    // 2 is FULL. The second opening is the one that would fall back to NORMAL.
    expect(setting('synchronous')).toBe(2);
    expect(setting('page_size')).toBe(8_192);
    database.close();
  });
});

it('closing the store commits and answers earlier deliveries', async () => {
  const { store, reopen } = await openSqliteStore();
  const receipts = Promise.all(
    Array.from({ length: 500 }, (_, i) => store.accept(delivery(notification(i)))),
  );
  const again = await reopen();
  expect(await receipts).toHaveLength(500);
  expect(await again.counts()).toMatchObject({ notifications: 500 });
  await again.close();
  const refused = again.accept(delivery(notification(1)));
  await expectRefused(refused, 'unavailable');
});
