/** docs/sinks.md: PostgreSQL accepts its statements, and earshot its settings. */

import { describe, expect, it } from 'vitest';
import type { NotificationDocument } from '../../src/features/messages/document.ts';
import { loadEachSink } from '../../src/features/sinks/definitions.ts';
import { query, useServer } from '../features/shared-log/shared-log-context.ts';
import { createSpatialDatabase, hasPostgis } from '../features/sinks/postgres-database.ts';
import { openSinkContext } from '../features/sinks/sink-context.ts';
import { settings } from '../helpers/settings.ts';
import { blocks } from './console-sessions.ts';
import { createPageFolder, page } from './sink-page-context.ts';

const shown: NotificationDocument = JSON.parse(blocks(page, 'json')[0] ?? '');

describe.skipIf(!hasPostgis)('docs/sinks.md, PostgreSQL (needs postgresql-postgis)', () => {
  const server = useServer({ fsync: 'off' });

  it('has tables, a query and a view', async () => {
    const url = await createSpatialDatabase(server());
    const folder = createPageFolder([['postgres://earshot@127.0.0.1:5432/gis', url]]);
    folder.writeConfig('postgres: {');
    const { accept, start, isDone } = await openSinkContext();
    const Footprint = "geography'SRID=4326;POLYGON ((9 46, 10 46, 10 47, 9 47, 9 46))'";
    const Attributes = [{ Name: 'cloudCover', Value: 7.5, ValueType: 'Double' }];
    const value = { ...shown.value, Footprint, Attributes, ModificationDate: shown.receivedAt };
    await accept({ ProductId: shown.productId, value });
    const [gis] = (await loadEachSink({ workingDir: folder.folder, settings })).definitions;
    if (gis?.target.kind !== 'postgres') throw new Error('docs/sinks.md has no PostgreSQL sink.');
    start(gis);
    await expect.poll(() => isDone('gis')).toBe(true);
    const [tables = '', search = '', scenes = ''] = blocks(page, 'sql').filter(
      (text) => !text.includes('INTO seen'),
    );
    const name = shown.productName;
    expect(await query(url, search)).toMatchObject([{ product_name: name }]);

    await query(url, scenes);
    const geom = 'MULTIPOLYGON(((9 46,10 46,10 47,9 47,9 46)))';
    const view = 'SELECT id, ST_AsText(geom) AS geom FROM scenes';
    expect(await query(url, view)).toEqual([{ id: shown.productId, geom }]);
    await query(url, 'DROP VIEW scenes');

    // The statements of the page create the same tables.
    const columns = `SELECT table_name, column_name, udt_name FROM information_schema.columns
      WHERE table_schema = 'public' AND table_name LIKE 'earshot%' ORDER BY 1, ordinal_position`;
    const created = await query(url, columns);
    expect(created.length).toBeGreaterThan(40);
    await query(url, 'DROP TABLE earshot_products, earshot_notifications');
    await query(url, tables);
    const written = await query(url, columns);
    expect(written.filter((one) => one.table_name !== 'earshot_products_removed')).toEqual(created);
  });
});
