/** A damaged index: queries report it, and a program that indexes replaces it and fills it again. */
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { catchUpIndex } from '../../../../src/features/products/index-file/index-maintenance.ts';
import { replaceProductFile } from '../../../../src/features/products/index-file/product-file.ts';
import { productTables } from '../../../../src/features/products/index-file/product-schema.ts';
import {
  isUpToDate,
  openStoredProducts,
} from '../../../../src/features/products/index-file/products.ts';
import { parseFilter } from '../../../../src/filter/parse.ts';
import { recordingLog } from '../../../helpers/recording-log.ts';
import { created, damageInside, openProductContext } from './product-context.ts';

const indexFiles = (dataDir: string) =>
  readdirSync(dataDir).filter((name) => /^products.*(\.db|-damaged)$/.test(name));

const records = (count: number) =>
  created(...Array.from({ length: count }, (_, i) => ({ Id: `p${i}`, Name: `p${i}.SAFE` })));

const anyName = "contains(Name,'SAFE')";

async function openDamaged() {
  const context = await openProductContext();
  await context.index(...records(400));
  damageInside(join(context.dataDir, 'products-1.db'));
  const query = { entity: 'Products', filter: parseFilter(anyName).tree } as const;
  return { ...context, ask: () => context.products.count(query) };
}

describe('a damaged index', () => {
  it('is reported by queries, and replaced once by the program that indexes', async () => {
    const { dataDir, ask } = await openDamaged();
    await expect(ask()).rejects.toThrow('The product index is damaged.');
    await expect(ask()).rejects.toMatchObject({ code: 'unavailable' });
    expect(indexFiles(dataDir)).toEqual(['products-1.db', 'products-1.db-damaged']);
    await catchUpIndex({ dataDir });
    expect(indexFiles(dataDir)).toEqual(['products-2.db']);
    expect(await ask()).toBe(400);
    damageInside(join(dataDir, 'products-2.db'));
    await expect(ask()).rejects.toThrow('is damaged');
    await expect(catchUpIndex({ dataDir })).rejects.toThrow('damaged again after a repair');
    expect(indexFiles(dataDir)).toEqual(['products-2.db', 'products-2.db-damaged']);
  });

  it('is replaced by a receiver, which logs it', async () => {
    const { dataDir, ask, follow } = await openDamaged();
    const { log, lines } = recordingLog();
    follow(log);
    await expect(ask()).rejects.toThrow('is damaged');
    await expect.poll(() => ask().catch(() => 0), { timeout: 5_000 }).toBe(400);
    const message = 'replaced the damaged product index';
    expect(lines).toEqual([{ level: 'warn', message, fields: {} }]);
    expect(indexFiles(dataDir)).toEqual(['products-2.db']);
  });

  it('is replaced by the library with the query after the one that reports it', async () => {
    const { dataDir } = await openDamaged();
    const opened = openStoredProducts(dataDir);
    onTestFinished(opened.close);
    const count = () => opened.ports.products.count({ filter: anyName });
    await expect(count()).rejects.toThrow('is damaged');
    expect(await count()).toBe(400);
  });
});

describe('a replaced index', () => {
  it('ends a query over several pages', async () => {
    const { dataDir, index, products } = await openProductContext();
    await index(...records(3_500));
    const found = products.find({ entity: 'Products', filter: null, records: false });
    const rest = found[Symbol.asyncIterator]();
    await rest.next();
    replaceProductFile(dataDir, join(dataDir, 'products-1.db'), productTables).close();
    await expect(Array.fromAsync({ [Symbol.asyncIterator]: () => rest })).rejects.toThrow(
      'was replaced',
    );
  });

  it('is not reported for damage in the old file', async () => {
    const { dataDir, index, products } = await openProductContext();
    await index(...records(5_000));
    const file = join(dataDir, 'products-1.db');
    const filter = parseFilter('OriginDate lt 2030-01-01').tree;
    const counted = products.count({ entity: 'Products', filter });
    // Answered when the count pauses.
    await products.indexedPosition();
    damageInside(file);
    replaceProductFile(dataDir, file, productTables).close();
    await expect(counted).rejects.toThrow('was replaced');
    expect(indexFiles(dataDir)).toEqual(['products-2.db']);
  });

  it('answers from the old file until the new one has tables', async () => {
    const { dataDir, index, products } = await openProductContext();
    await index(...records(3));
    writeFileSync(join(dataDir, 'products-2.db'), '');
    expect(await products.count({ entity: 'Products', filter: null })).toBe(3);
    await catchUpIndex({ dataDir });
    expect(await products.count({ entity: 'Products', filter: null })).toBe(3);
    expect(indexFiles(dataDir)).toEqual(['products-2.db']);
  });
});

it('an index is up to date at the last position only: a restored log may end before it', async () => {
  const indexed = (lastPosition: number) => ({
    indexProgress: async () => ({ indexedPosition: 2, lastPosition }),
  });
  expect(await isUpToDate(indexed(2))).toBe(true);
  expect(await isUpToDate(indexed(1))).toBe(false);
  expect(await isUpToDate(indexed(3))).toBe(false);
});
