/** An index from which pruned products were taken is the one that would be built from the log that is left. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pruneIndex, rebuildIndex } from '../../../src/store/products/index-maintenance.ts';
import { times } from '../../helpers/thorough.ts';
import { pruneBefore } from '../pruning/prune-to.ts';
import {
  created,
  generatedRecords,
  openProductContext,
  type ProductContext,
  type TestNews,
} from './product-context.ts';

const records = generatedRecords(12, 5);
const firstUs = Date.UTC(2026, 0, 1) * 1000;
const { signal } = new AbortController();

/** Something about one of a few products, so that most are told of on both sides of the horizon. */
const someNews: fc.Arbitrary<TestNews> = fc
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
    const names = { productId: record.Id, productName: String(record.Name) };
    return { event, ...names, record: hasRecord ? { ...record, ...dated } : null };
  });

/** All that is in the index, but for how it came there. */
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
  await rebuildIndex({ dataDir });
  expect(pruned).toEqual(contentOf(dataDir));
}

describe('an index of a pruned log', () => {
  it('holds what one that is built anew holds, whatever came and wherever it was cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(someNews, { minLength: 2, maxLength: 60 }),
        fc.nat(60),
        async (news, cut) => {
          const context = await openProductContext();
          await context.index(...news);
          const going = Math.min(cut, news.length - 1);
          const { notifications } = await pruneBefore(context.store, firstUs + going + 1);
          expect(notifications).toBe(going);
          expect(await pruneIndex({ dataDir: context.dataDir, signal })).toBe(going);
          await expectAsRebuilt(context);
        },
      ),
      { numRuns: times(6, 12) },
    );
  }, 120_000);

  it('loses products whose last notification went, and shows the others without a fault', async () => {
    const context = await openProductContext();
    const [gone, kept, bare] = records;
    if (gone === undefined || kept === undefined || bare === undefined) throw new Error('too few');
    const deleted = { event: 'deleted', record: null, productId: bare.Id };
    await context.index(
      ...created(gone, kept, bare),
      { event: 'modified', record: { ...kept, ModificationDate: '2027-01-01T00:00:00Z' } },
      { ...deleted, productName: String(bare.Name) },
    );
    await pruneBefore(context.store, firstUs + 4);
    // Before the index knows of it, its records are gone already.
    expect(await context.find('Products', "Collection/Name eq 'none'")).toEqual([]);
    expect((await context.find('Products')).map(({ record }) => record.Id)).toContain(gone.Id);
    await pruneIndex({ dataDir: context.dataDir, signal });
    const alive = await context.find('Products');
    expect(alive.map(({ record }) => record.ModificationDate)).toEqual(['2027-01-01T00:00:00Z']);
    const tombstones = await context.find('DeletedProducts');
    expect(tombstones.map(({ row }) => [row.productName, row.tile])).toEqual([[bare.Name, null]]);
    await expectAsRebuilt(context);
  });

  it('is pruned by the receiver that keeps it, while notifications arrive', async () => {
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

  it('is not made where there is none', async () => {
    const context = await openProductContext();
    await context.deliver(...created({ Id: 'one' }));
    expect(await pruneIndex({ dataDir: context.dataDir, signal })).toBe(0);
    expect(readdirSync(context.dataDir).filter((name) => name.startsWith('products'))).toEqual([]);
  });
});
