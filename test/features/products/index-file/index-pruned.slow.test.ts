/** After pruning, the index equals one that is built from the remaining log. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { recordingLog } from '../../../helpers/recording-log.ts';
import { replaceBody } from '../../../helpers/replace-body.ts';
import { times } from '../../../helpers/thorough.ts';
import { pruneBefore } from '../../pruning/prune-to.ts';
import {
  created,
  generatedRecords,
  openProductContext,
  type ProductContext,
  pruneIndex,
  rebuildIndex,
  type TestEvent,
} from './product-context.ts';

const records = generatedRecords(12, 5);
const firstUs = Date.UTC(2026, 0, 1) * 1000;

/** Events of a few products, so that most products have events on both sides of the horizon. */
const someEvent: fc.Arbitrary<TestEvent> = fc
  .record({
    which: fc.nat(records.length - 1),
    event: fc.constantFrom('created', 'modified', 'deleted'),
    hour: fc.nat(20),
    hasRecord: fc.boolean(),
  })
  .map(({ which, event, hour, hasRecord }) => {
    const record = records[which] ?? { Id: 'none' };
    const date = new Date(Date.UTC(2026, 5, 1, hour)).toISOString();
    const dated = event === 'deleted' ? { DeletionDate: date } : { ModificationDate: date };
    const Attributes = [{ Name: 'cloudCover', Value: hour, ValueType: 'Double' }];
    const names = { productId: record.Id, productName: String(record.Name) };
    return { event, ...names, record: hasRecord ? { ...record, ...dated, Attributes } : null };
  });

/** Content of the index, without how it was built. */
function contentOf(dataDir: string) {
  const names = readdirSync(dataDir).filter((name) => /^products-\d+\.db$/.test(name));
  expect(names).toHaveLength(1);
  const database = new Sqlite(join(dataDir, names[0] ?? ''), { readonly: true });
  const rows = (sql: string) => database.prepare(sql).all();
  const content = {
    progress: rows('SELECT position, mark FROM progress'),
    products: rows('SELECT * FROM product ORDER BY id'),
    events: rows('SELECT * FROM product_event ORDER BY position'),
    footprints: rows('SELECT * FROM product_footprint ORDER BY id'),
    boxes: rows('SELECT * FROM product_box ORDER BY id'),
    named: ['S1A', 'S2B', 'MSI', '_20', 'SAF'].map((part) =>
      rows(`SELECT rowid FROM product_name WHERE product_name MATCH '"${part}"' ORDER BY rowid`),
    ),
  };
  database.close();
  return content;
}

async function expectAsRebuilt({ dataDir }: ProductContext): Promise<void> {
  const pruned = contentOf(dataDir);
  await rebuildIndex(dataDir);
  expect(pruned).toEqual(contentOf(dataDir));
}

describe('the index of a pruned log', () => {
  it('equals a rebuilt index, whatever events came and wherever the log was pruned', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(someEvent, { minLength: 2, maxLength: 60 }),
        fc.nat(60),
        async (events, cut) => {
          const context = await openProductContext();
          await context.index(...events);
          const going = Math.min(cut, events.length - 1);
          const { notifications } = await pruneBefore(context.store, firstUs + going + 1);
          expect(notifications).toBe(going);
          await pruneIndex(context.dataDir);
          await expectAsRebuilt(context);
        },
      ),
      { numRuns: times(6, 12) },
    );
  }, 120_000);

  it('drops products whose last notification was removed, and shows them until then', async () => {
    const context = await openProductContext();
    const [gone = expect.fail(), kept = expect.fail()] = records;
    const modified = { ...kept, ModificationDate: '2027-01-01T00:00:00Z' };
    await context.index(...created(gone, kept), { event: 'modified', record: modified });
    await pruneBefore(context.store, firstUs + 3);
    // The records are already removed from the log, but the index is not updated yet.
    expect(await context.find('Products', "Collection/Name eq 'none'")).toEqual([]);
    expect((await context.find('Products')).map(({ record }) => record.Id)).toContain(gone.Id);
    await pruneIndex(context.dataDir);
    expect(await context.find('Products')).toMatchObject([{ record: modified }]);
  });

  it('lacks products whose other body is unreadable, which is logged', async () => {
    const context = await openProductContext();
    const [record = expect.fail()] = records;
    await context.index(...created(record, record));
    replaceBody(context.dataDir, 2, Buffer.from('not json'));
    await pruneBefore(context.store, firstUs + 2);
    const { log, lines } = recordingLog();
    context.follow(log);
    const message = 'skipped an unreadable notification';
    await expect
      .poll(() => lines, { timeout: 10_000 })
      .toEqual([{ level: 'warn', message, fields: { position: 2 } }]);
  });

  it('is pruned by the receiver that updates it, while notifications arrive', async () => {
    const context = await openProductContext();
    await context.index(...created(...records));
    context.follow();
    await pruneBefore(context.store, firstUs + records.length);
    await context.deliver(...created({ Id: 'one more' }));
    await expect
      .poll(async () => (await context.find('Products')).map(({ row }) => row.productId), {
        timeout: 10_000,
      })
      .toEqual(['one more', records.at(-1)?.Id]);
  });
});
