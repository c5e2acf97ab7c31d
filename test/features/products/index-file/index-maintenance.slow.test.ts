/** The index can be lost, damaged, and filled by several programs: it is restored from the log. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { describe, expect, it, onTestFinished } from 'vitest';
import { catchUpIndex } from '../../../../src/features/products/index-file/index-maintenance.ts';
import { openStoredProducts } from '../../../../src/features/products/index-file/products.ts';
import { parseFilter } from '../../../../src/filter/parse.ts';
import { deliveryOf, samples } from '../product-samples.ts';
import {
  created,
  damageInside,
  openProductContext,
  type ProductContext,
  type TestEvent,
} from './product-context.ts';

const child = new URL('index-child.ts', import.meta.url).pathname;

/** Events of `count` products: each is created, every third modified, every seventh deleted. */
function eventsOf(count: number): TestEvent[] {
  return Array.from({ length: count }, (_, i): TestEvent[] => {
    const Id = `product-${i}`;
    const record = { Id, Name: `${Id}.SAFE`, ModificationDate: '2026-01-01T00:00:00Z' };
    const modified = { ...record, ModificationDate: '2026-01-02T00:00:00Z', Online: true };
    const deleted = { Id, Name: record.Name, DeletionDate: '2026-01-03T00:00:00Z' };
    return [
      { event: 'created', record },
      ...(i % 3 === 0 ? [{ event: 'modified', record: modified }] : []),
      ...(i % 7 === 0 ? [{ event: 'deleted', record: deleted }] : []),
    ];
  }).flat();
}

const online = parseFilter('Online eq true').tree;

async function countsOf({ products }: ProductContext) {
  return {
    alive: await products.count({ entity: 'Products', filter: null }),
    online: await products.count({ entity: 'Products', filter: online }),
    gone: await products.count({ entity: 'DeletedProducts', filter: null }),
  };
}

function expectedCounts(count: number) {
  const all = Array.from({ length: count }, (_, i) => i);
  const alive = all.filter((i) => i % 7 !== 0);
  return {
    alive: alive.length,
    online: alive.filter((i) => i % 3 === 0).length,
    gone: count - alive.length,
  };
}

const countsAndOne = (count: number) => {
  const { alive, ...others } = expectedCounts(count);
  return { alive: alive + 1, ...others };
};

const indexFiles = (dataDir: string) =>
  readdirSync(dataDir).filter((name) => /^products.*\.db$/.test(name));

describe('the index', () => {
  it('is complete and counts nothing twice after repeated kills of its program', async () => {
    const context = await openProductContext();
    const count = 6_000;
    await context.deliver(...eventsOf(count));
    let kills = 0;
    for (let round = 0; round < 3; round += 1) {
      const program = spawn(process.execPath, [child, context.dataDir]);
      const exited = once(program, 'exit');
      await Promise.race([once(program.stdout, 'data'), exited]);
      if (program.kill('SIGKILL')) kills += 1;
      await exited;
    }
    expect(kills).toBeGreaterThan(0);
    const { indexedPosition } = await catchUpIndex({ dataDir: context.dataDir });
    expect(indexedPosition).toBe(eventsOf(count).length);
    expect(await countsOf(context)).toEqual(expectedCounts(count));
  }, 60_000);

  it('is rebuilt when the file is damaged, missing, or of another version', async () => {
    for (const harm of [damage, damageInside, giveOtherVersion, rmSync]) {
      const context = await openProductContext();
      await context.index(...eventsOf(400));
      // Also for programs that have the old file open.
      expect(await countsOf(context), harm.name).toEqual(expectedCounts(400));
      harm(join(context.dataDir, 'products-1.db'));
      await context.index(...eventsOf(420).slice(eventsOf(400).length));
      expect(await countsOf(context), harm.name).toEqual(expectedCounts(420));
      expect(indexFiles(context.dataDir), harm.name).toHaveLength(1);
    }
  });

  it('is rebuilt after a backup of the log was restored, even if the log has grown since', async () => {
    const context = await openProductContext();
    await context.index(...eventsOf(40));
    const other = await openProductContext();
    await other.deliver(...created({ Id: 'of the other log' }), ...eventsOf(60));
    await context.store.close();
    await other.store.close();
    for (const name of readdirSync(context.dataDir)) {
      if (name.startsWith('earshot.db')) rmSync(join(context.dataDir, name));
    }
    copyFileSync(join(other.dataDir, 'earshot.db'), join(context.dataDir, 'earshot.db'));
    await catchUpIndex({ dataDir: context.dataDir });
    expect(await countsOf(context)).toEqual(countsAndOne(60));
  });

  it('is filled by two programs like by one', async () => {
    const context = await openProductContext();
    const { dataDir } = context;
    await context.deliver(...eventsOf(1_500));
    await Promise.all([catchUpIndex({ dataDir }), catchUpIndex({ dataDir })]);
    expect(await countsOf(context)).toEqual(expectedCounts(1_500));
  });

  it('is updated by the library before a query', async () => {
    const { store, dataDir } = await openProductContext();
    const opened = openStoredProducts(dataDir);
    onTestFinished(opened.close);
    for (const sample of samples.slice(0, 2)) await store.accept(deliveryOf(sample));
    expect(await opened.ports.products.count()).toBe(2);
    for (const sample of samples.slice(2, 4)) await store.accept(deliveryOf(sample));
    expect(await opened.ports.products.count()).toBe(4);
  });
});

function damage(file: string): void {
  rmSync(`${file}-wal`, { force: true });
  writeFileSync(file, Buffer.alloc(20_000, 'x'));
}

function giveOtherVersion(file: string): void {
  const index = new Sqlite(file);
  index.pragma('user_version = 999');
  index.close();
}
