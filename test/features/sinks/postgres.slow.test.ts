/** PostgreSQL sinks: tables, states and bad items, on a real server. */

import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { toProductJson } from '../../../src/core/terms/read-models.ts';
import { catchUpIndex } from '../../../src/features/products/index-file/index-maintenance.ts';
import { openProducts } from '../../../src/features/products/index-file/products.ts';
import { generatedRecords, oddRecords } from '../products/index-file/product-context.ts';
import { createDatabase, query, useServer } from '../shared-log/shared-log-context.ts';
import {
  createSpatialDatabase,
  hasPostgis,
  type PostgresTarget,
  postgresTarget,
} from './postgres-database.ts';
import { openSinkContext } from './sink-context.ts';
import { definition } from './sink-definition.ts';

const at = (minute: number) =>
  new Date(Date.UTC(2026, 0, 1) + minute * 60_000).toISOString().replace('Z', '000Z');

const id = (number: number) => `00000000-0000-4000-8000-${String(number).padStart(12, '0')}`;

const polygon = (west: number) =>
  `POLYGON ((${west} 40, ${west + 10} 40, ${west + 10} 50, ${west} 50, ${west} 40))`;

function alive(ProductId: string, minute: number, more: object = {}) {
  const ProductName = 'S2A_MSIL2A_20260101T000000_N0511_R022_T32TQM_20260101T000000.SAFE';
  const dates = { PublicationDate: at(0), ModificationDate: at(minute) };
  const value = { Id: ProductId, Name: ProductName, ...dates, ContentLength: minute, ...more };
  return { SubscriptionEvent: 'modified', ProductId, ProductName, value };
}

function gone(ProductId: string, minute: number) {
  const { ProductName } = alive(ProductId, minute);
  const value = { Id: ProductId, Name: ProductName, DeletionDate: at(minute), DeletionCause: 'x' };
  return { SubscriptionEvent: 'deleted', ProductId, ProductName, value };
}

interface Row {
  [column: string]: unknown;
}

const rowsOf = (url: string, table = 'earshot_products') =>
  query<Row>(url, `SELECT * FROM ${table} ORDER BY 1`);

describe.skipIf(!hasPostgis)('a PostgreSQL sink (needs postgresql-postgis)', () => {
  const server = useServer({ fsync: 'off' });

  async function openContext(url: string, fields: Partial<PostgresTarget> = {}) {
    const context = await openSinkContext();
    const sink = definition(postgresTarget(url, fields), { concurrency: 16, attemptsMax: 1 });
    context.start(sink);
    const deliver = async (...notifications: object[]) => {
      for (const one of notifications) await context.accept({ ...one });
      await expect.poll(() => context.isDone(), { timeout: 20_000 }).toBe(true);
    };
    return { ...context, deliver };
  }

  it('has the same columns as the product index, for every form of a record', async () => {
    const url = await createSpatialDatabase(server());
    const { accept, deliver, dataDir } = await openContext(url);
    const flat = ['POLYGON ((1 2))', 'POLYGON ((1 2, 3 4, 1 2))', 'MULTIPOLYGON (((1 2, 3 4)))'];
    const thin = flat.map((text, i) => ({
      Id: id(50 + i),
      Name: 'thin',
      Footprint: `geography'SRID=4326;${text}'`,
    }));
    const records = [...generatedRecords(60, 3), ...oddRecords, ...thin];
    for (const value of records) {
      await accept({ ProductId: value.Id, ProductName: value.Name ?? 'a.SAFE', value });
    }
    await deliver();
    await catchUpIndex({ dataDir });
    const products = openProducts(dataDir);
    onTestFinished(() => products.close());
    const found = await Array.fromAsync(products.find({ entity: 'Products', filter: null }));
    const rows = new Map((await rowsOf(url)).map((row) => [row.product_id, row]));
    expect(rows.size).toBe(records.length);
    const snake = (name: string) => name.replaceAll(/[A-Z]/g, (one) => `_${one.toLowerCase()}`);
    for (const { row, record } of found) {
      const stored = rows.get(row.productId.toLowerCase()) ?? {};
      const { position: _, deletionDate: __, receivedAt, ...json } = toProductJson(row);
      for (const [field, value] of Object.entries({ ...json, receivedAt })) {
        const known = stored[snake(field)];
        const text = known instanceof Date ? known.toISOString().replace('Z', '') : known;
        const expected = known instanceof Date ? String(value).slice(0, 23) : value;
        const isId = field === 'productId';
        const asStored = typeof expected === 'number' ? Number(text) : text;
        expect(asStored, field).toEqual(isId ? row.productId.toLowerCase() : expected);
      }
      expect(stored.record).toMatchObject({ Id: record.Id });
    }
    const shapes = await query<Row>(
      url,
      `SELECT ST_AsText(footprint) AS line FROM earshot_products
       WHERE ST_Dimension(footprint) = 1 ORDER BY product_id DESC`,
    );
    expect(shapes.map(({ line }) => line)).toEqual([
      'MULTILINESTRING((170 -10,180 5),(-180 5,-170 20))',
      'GEOMETRYCOLLECTION(POINT(10 45),LINESTRING(11 45,12 47))',
    ]);
    const empty = "SELECT FROM earshot_products WHERE product_name = 'thin' AND footprint IS NULL";
    expect(await query(url, empty)).toHaveLength(3);
    const index = "SELECT FROM pg_indexes WHERE indexdef LIKE '%USING gist (footprint)%'";
    expect(await query(url, index)).toHaveLength(1);
  });

  it('has the states of the product index, in any order of notifications, and after a replay', async () => {
    const url = await createSpatialDatabase(server());
    const lengths = { minLength: 1, maxLength: 6 };
    const events = fc.uniqueArray(fc.integer({ min: 1, max: 40 }), lengths);
    const cases = fc.sample(events, { numRuns: 150, seed: 4 });
    const { accept, deliver, dataDir, store, replay } = await openContext(url);
    await Promise.all(
      cases.flatMap((minutes, i) =>
        // Every third state is a deletion; equal states are not compared, because the index does it otherwise.
        minutes.map((minute) =>
          accept(minute % 3 === 0 ? gone(id(i), minute) : alive(id(i), minute)),
        ),
      ),
    );
    await deliver();
    await catchUpIndex({ dataDir });
    const products = openProducts(dataDir);
    onTestFinished(() => products.close());
    const living = await Array.fromAsync(products.find({ entity: 'Products', filter: null }));
    const tombstones = await Array.fromAsync(
      products.find({ entity: 'DeletedProducts', filter: null }),
    );
    expect(Math.min(living.length, tombstones.length)).toBeGreaterThan(20);
    const stateOf = (row: Row) => [
      row.product_id,
      Number(row.size_bytes),
      row.deleted_at instanceof Date ? row.deleted_at.getTime() : null,
    ];
    const expected = [...living, ...tombstones].map(({ row }) => [
      row.productId,
      Number(row.sizeBytes),
      row.deletionDateUs === null ? null : row.deletionDateUs / 1_000,
    ]);
    const byId = (rows: unknown[][]) =>
      rows.toSorted(([a], [b]) => (String(a) < String(b) ? -1 : 1));
    const marked = await rowsOf(url);
    expect(byId(marked.map(stateOf))).toEqual(byId(expected));
    const { lastPosition } = await replay();
    const delivered = async () => (await store.sinks.counts()).map((one) => one.delivered);
    await expect.poll(delivered, { timeout: 20_000 }).toEqual([2 * lastPosition]);
    // Not even `updated_at` changes.
    expect(await rowsOf(url)).toEqual(marked);
  });

  it('keeps a record and a name until newer ones arrive; a deletion is newer than a record of its date', async () => {
    const url = await createSpatialDatabase(server());
    const { deliver } = await openContext(url);
    const bare = { value: null, NotificationDate: at(8), ProductName: 'a.SAFE' };
    await deliver(
      alive(id(1), 3),
      { ...bare, ProductId: id(1), SubscriptionEvent: 'deleted' },
      { ...bare, ProductId: id(2), SubscriptionEvent: 'created' },
      { ...bare, ProductId: id(3), SubscriptionEvent: 'created' },
      alive(id(3), 1),
      { ...bare, ProductId: id(3), SubscriptionEvent: 'created' },
      { ...gone(id(4), 3), ProductId: id(4).toUpperCase() },
      alive(id(4), 3),
    );
    expect(await rowsOf(url)).toMatchObject([
      { size_bytes: '3', deleted_at: new Date(at(8)), event: 'deleted' },
      { product_name: 'a.SAFE', record: null, state_at: null },
      { size_bytes: '1', event: 'modified', state_at: new Date(at(1)) },
      { deleted_at: new Date(at(3)), event: 'deleted', deletion_cause: 'x' },
    ]);
  });

  it('stores each notification once, also in a replay', async () => {
    const url = await createSpatialDatabase(server());
    const { deliver, store, replay } = await openContext(url, { notifications: 'events' });
    await deliver(alive(id(1), 3), alive(id(1), 2), gone(id(2), 2));
    const rows = await rowsOf(url, 'events');
    expect(rows).toMatchObject([
      { position: '1', product_id: id(1), event: 'modified', value: { ContentLength: 3 } },
      { position: '2', source: 'push', subscription: 'default', sink: 'sink' },
      { position: '3', event: 'deleted', value: { DeletionCause: 'x' } },
    ]);
    await replay();
    await expect.poll(async () => (await store.sinks.counts())[0]?.delivered).toBe(6);
    expect(await rowsOf(url, 'events')).toEqual(rows);
  });

  it('stores footprints as GeoJSON without PostGIS, cut at the antimeridian', async () => {
    const url = await createDatabase(server());
    const { deliver } = await openContext(url);
    await deliver(alive(id(1), 1, { Footprint: polygon(175) }), alive(id(2), 1));
    const [row, without] = await rowsOf(url);
    expect(row?.footprint).toMatchObject({ type: 'MultiPolygon' });
    expect(without?.footprint).toBeNull();
    const type = "SELECT data_type FROM information_schema.columns WHERE column_name = 'footprint'";
    expect(await query(url, type)).toEqual([{ data_type: 'jsonb' }]);
  });

  it('writes to a table in a schema, with PostGIS in another one', async () => {
    const url = await createDatabase(server());
    await query(url, 'CREATE SCHEMA gis; CREATE SCHEMA spatial');
    await query(url, 'CREATE EXTENSION postgis SCHEMA spatial');
    const { deliver } = await openContext(url, { products: 'gis.Scenes' });
    await deliver(alive(id(1), 1, { Footprint: polygon(10) }), gone(id(2), 9));
    const select = 'SELECT product_id, spatial.ST_AsText(footprint) AS area FROM gis."Scenes"';
    expect(await query(url, `${select} ORDER BY 1`)).toEqual([
      { product_id: id(1), area: 'POLYGON((10 40,20 40,20 50,10 50,10 40))' },
      { product_id: id(2), area: null },
    ]);
  });

  it('replaces what PostgreSQL cannot store, and refuses one item without the others', async () => {
    const url = await createSpatialDatabase(server());
    await query(url, 'CREATE SCHEMA gis');
    const { accept, deliver, items } = await openContext(url, { products: 'gis.short' });
    await deliver(alive(id(101), 101));
    await query(
      url,
      `ALTER TABLE gis.short ALTER product_name TYPE varchar(70), ADD CHECK (size_bytes <> 13)`,
    );
    const odd = { 'k\0': 'a\0b', list: ['\ud800', { deep: 'x\udc00' }], text: '\\u0000' };
    for (let i = 1; i <= 100; i += 1) {
      const name = i === 40 ? { Name: 'x'.repeat(71) } : {};
      await accept(alive(id(i), i, i === 1 ? odd : { ...name, Footprint: polygon(0) }));
    }
    await deliver();
    expect((await items('dead')).map(({ position, error }) => [position, error])).toEqual([
      [41, 'the database answered 22001: value too long for type character varying(70)'],
      [14, expect.stringMatching(/^the database answered 23514: new row for relation "short"/)],
    ]);
    const rows = await rowsOf(url, 'gis.short');
    expect(rows).toHaveLength(99);
    expect(rows[0]?.record).toMatchObject({
      'k\ufffd': 'a\ufffdb',
      list: ['\ufffd', { deep: 'x\ufffd' }],
      text: '\\u0000',
    });
  });

  it.each([
    ['no key', '42P10: there is no unique'],
    ['PRIMARY KEY (product_id), DROP deleted_at', '42703: column "deleted_at" of relation'],
    ['PRIMARY KEY (product_id), ALTER position TYPE text', '42804: COALESCE types text'],
  ])('waits while a table does not fit (%s)', async (change, fault) => {
    const url = await createSpatialDatabase(server());
    const first = await openContext(url);
    await first.deliver(alive(id(1), 1));
    await query(url, 'CREATE TABLE scenes (LIKE earshot_products)');
    if (change !== 'no key') await query(url, `ALTER TABLE scenes ADD ${change}`);
    const { accept, items } = await openContext(url, { products: 'scenes' });
    await accept(alive(id(1), 1));
    await expect
      .poll(async () => (await items('waiting'))[0]?.error)
      .toContain(`the database answered ${fault}`);
  });
});
