/** `--output geoparquet`: files that DuckDB, another implementation of Parquet and WKB, reads as they were meant. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterAll, describe, expect, it } from 'vitest';
import { writeGeoParquet } from '../../../src/features/products/geoparquet.ts';
import type { AnyGeometry } from '../../../src/filter/filter-tree.ts';
import { footprintOf } from '../../../src/filter/geometry/read-geometry.ts';
import { extentOf, positionsOf } from '../../../src/filter/geometry/ring.ts';
import type { FoundProduct } from '../../../src/filter/products.ts';
import { point } from '../../filter/geometry/places.ts';
import { bareEnvironment } from '../../helpers/bare-environment.ts';
import { expectRefusal, printed, printedJson } from '../../helpers/fake-io.ts';
import { foundProduct } from '../summary/found-product.ts';
import { realRecords } from './index-file/product-context.ts';
import { createProductContext, deliveryOf, guid, type Sample } from './product-samples.ts';

const folder = mkdtempSync(join(tmpdir(), 'earshot-parquet-'));
afterAll(() => rmSync(folder, { recursive: true }));
// No extension is loaded or downloaded: Parquet and geometries are in the core.
const instance = await DuckDBInstance.create(':memory:', { autoinstall_known_extensions: 'false' });
const duckDb = await instance.connect();
let files = 0;

/** Writes the bytes to a file, and queries it with SQL in which `FILE` is its name. */
async function query(bytes: Uint8Array, sql: string): Promise<Record<string, unknown>[]> {
  files += 1;
  const file = join(folder, `${files}.parquet`);
  writeFileSync(file, bytes);
  const reader = await duckDb.runAndReadAll(sql.replaceAll('FILE', `'${file}'`));
  return reader.getRowObjectsJS();
}

/** Returns the metadata `geo` of a file. */
async function geoOf(bytes: Uint8Array) {
  const sql = "SELECT decode(value) AS text FROM parquet_kv_metadata(FILE) WHERE key = 'geo'";
  const [row] = await query(bytes, sql);
  return JSON.parse(String(row?.text));
}

/** Reads well-known text as DuckDB writes it. */
const geometryOf = (text: unknown) => footprintOf({ Footprint: text });

function boxOf(geometry: AnyGeometry | null) {
  if (geometry === null) return null;
  const { west, south, east, north } = extentOf(positionsOf(geometry).flat());
  return { xmin: west, ymin: south, xmax: east, ymax: north };
}

const name = 'VARCHAR';
const time = 'TIMESTAMP WITH TIME ZONE';
const types = {
  ...{ position: 'BIGINT', productId: name, productName: name, collection: name, platform: name },
  ...{ productType: name, processingLevel: name, sensingStart: time, sensingEnd: time },
  ...{ publicationDate: time, modificationDate: time, sizeBytes: 'BIGINT', online: 'BOOLEAN' },
  ...{ cloudCoverPercent: 'DOUBLE', orbitNumber: 'BIGINT', relativeOrbitNumber: 'BIGINT' },
  ...{ orbitDirection: name, tile: name, processingBaseline: name, receivedAt: time },
  ...{ deletionDate: time, deletionCause: name, s3Path: name, downloadUrl: name },
  geometry: "GEOMETRY('OGC:CRS84')",
  bbox: 'STRUCT(xmin DOUBLE, ymin DOUBLE, xmax DOUBLE, ymax DOUBLE)',
};

const typesOf = async (bytes: Uint8Array) => {
  const columns = await query(bytes, 'DESCRIBE SELECT * FROM FILE');
  return Object.fromEntries(columns.map((one) => [one.column_name, one.column_type]));
};

/** Reads all columns in the form of JSON: numbers, and times as ISO 8601. */
async function rowsOf(bytes: Uint8Array): Promise<Record<string, unknown>[]> {
  const times = Object.entries(types).filter(([, type]) => type === time);
  const replaced = times.map(
    ([name]) => `strftime(timezone('UTC', ${name}), '%xT%X.%fZ') AS ${name}`,
  );
  const shown = replaced.join(', ').replaceAll('%x', '%Y-%m-%d').replaceAll('%X', '%H:%M:%S');
  const sql = `SELECT * REPLACE (${shown}, ST_AsText(geometry) AS geometry) FROM FILE`;
  return (await query(bytes, sql)).map((row) => ({
    ...Object.fromEntries(
      Object.entries(row).map(([name, one]) => [name, typeof one === 'bigint' ? Number(one) : one]),
    ),
    geometry: geometryOf(row.geometry),
  }));
}

interface Feature {
  geometry: AnyGeometry | null;
  properties: Record<string, unknown>;
}

const real = realRecords(1);

const farDates = { Start: '1600-02-29T00:00:00.001Z', End: '9999-12-31T23:59:59.999999Z' };

/** Footprints that are cut, and values that no column of a type accepts. */
const special = [
  { area: 'POLYGON ((179 0, -179 0, -179 1, 179 1, 179 0))' },
  { area: 'POLYGON ((0 80, 120 80, -120 80, 0 80))' },
  { area: 'POINT (7 51)' },
  { fields: { ContentDate: farDates } },
  { area: 'LINESTRING (179 0, -179 1)' },
  { area: 'GEOMETRYCOLLECTION (POINT (7 51), LINESTRING (7 5, 8 5))' },
  { fields: { Attributes: [orbit(12.5)] } },
  { fields: { ContentLength: 2 ** 53, Attributes: [orbit(1e300)] } },
].map((sample, i): Sample => ({ id: guid(`7${i}`), name: `SPECIAL_${i}.SAFE`, ...sample }));

function orbit(Value: number) {
  return { '@odata.type': '#OData.CSC.IntegerAttribute', Name: 'orbitNumber', Value };
}

const context = await createProductContext(afterAll);
await context.fill([
  ...real.map((fields) => deliveryOf({ id: fields.Id, name: `${fields.Name}`, fields })),
  ...special.map(deliveryOf),
]);

const file = ['query', 'products', '--output', 'geoparquet'];
const sensed = ['--orderby', 'ContentDate/Start asc'];

describe.skipIf(real.length === 0)('a file of real records (in ../shared/fixtures)', async () => {
  const { outBytes, code, err } = await context.earshot(file);
  const rows = await rowsOf(outBytes);

  it('has the columns of csv, typed, and the footprint', async () => {
    expect({ code, err }).toEqual({ code: 0, err: '' });
    const csv = await printed(context.earshot('query products --output csv'));
    const names = csv.split('\n')[0]?.split(',');
    expect(Object.keys(rows[0] ?? {})).toEqual([...(names ?? []), 'geometry', 'bbox']);
    expect(await typesOf(outBytes)).toEqual(types);
  });

  it('has the values of geojson, in the order of sensing', async () => {
    const argv = ['query', 'products', ...sensed, '--output', 'geojson'];
    const { features } = await printedJson(context.earshot(argv));
    expect(rows).toHaveLength(real.length + special.length + 4);
    const expected = features.map(({ geometry, properties }: Feature) => {
      const { orbitNumber, sizeBytes, sensingStart, sensingEnd } = properties;
      // Far dates have three digits in JSON.
      const microseconds = (date: unknown) =>
        typeof date === 'string' ? date.replace(/(\.\d{3})Z$/, '$1000Z') : date;
      return {
        ...properties,
        sensingStart: microseconds(sensingStart),
        sensingEnd: microseconds(sensingEnd),
        // Not integers of 64 bits that JSON can represent.
        orbitNumber: Number.isSafeInteger(orbitNumber) ? orbitNumber : null,
        sizeBytes: Number.isSafeInteger(sizeBytes) ? sizeBytes : null,
        geometry,
        bbox: boxOf(geometry),
      };
    });
    expect(rows).toEqual(expected);
  });

  it('describes its footprints (GeoParquet 1.1)', async () => {
    const covering = ['xmin', 'ymin', 'xmax', 'ymax'].map((name) => [name, ['bbox', name]]);
    const geometry = {
      ...{ encoding: 'WKB', orientation: 'counterclockwise' },
      geometry_types: 'GeometryCollection MultiLineString MultiPolygon Point Polygon'.split(' '),
      bbox: [-180, expect.any(Number), 180, 90],
      covering: { bbox: Object.fromEntries(covering) },
    };
    const geo = { version: '1.1.0', primary_column: 'geometry', columns: { geometry } };
    expect(await geoOf(outBytes)).toEqual(geo);
  });
});

describe('a file', () => {
  it('has the chosen columns and the footprint, deleted products, another order and a limit on request', async () => {
    const { outBytes } = await context.earshot([...file, '--columns', 'tile,sensingStart']);
    const names = ['tile', 'sensingStart', 'geometry', 'bbox'];
    expect(Object.keys(await typesOf(outBytes))).toEqual(names);
    const gone = await context.earshot([...file, '--deleted']);
    const causes = await query(gone.outBytes, 'SELECT deletionCause FROM FILE');
    expect(causes).toEqual([{ deletionCause: 'Duplicated product' }]);
    const newest = await context.earshot([...file, '--orderby', 'received desc', '--limit', '2']);
    const ids = await query(newest.outBytes, 'SELECT productId FROM FILE');
    expect(ids).toEqual(['77', '76'].map((digits) => ({ productId: guid(digits) })));
    expect(newest.err).toBe('2 rows. For more rows, set --limit.\n');
  });

  it('is valid and has all columns when nothing matches', async () => {
    const { code, outBytes } = await context.earshot([...file, '--name', 'no such product']);
    expect(code).toBe(0);
    expect(await typesOf(outBytes)).toEqual(types);
    expect(await query(outBytes, 'SELECT count(*)::INT AS n FROM FILE')).toEqual([{ n: 0 }]);
    const { geometry } = (await geoOf(outBytes)).columns;
    expect(geometry).toMatchObject({ geometry_types: [] });
    expect(geometry).not.toHaveProperty('bbox');
  });

  it('is not written to a terminal', async () => {
    const refused = context.earshot(file, { isTTY: true, columns: 200 });
    await expectRefusal(refused, /binary file.* Add > products\.parquet/);
  });

  it('ends the command quietly when the reader closes the pipe, and with a reason on a full disk', async () => {
    const env = bareEnvironment({ EARSHOT_DATA_DIR: context.dataDir });
    const program = join(import.meta.dirname, '../../../scripts/earshot.js');
    const start = (stdout: 'pipe' | number) =>
      spawn(process.execPath, [program, ...file], { env, stdio: ['ignore', stdout, 'pipe'] });
    const endOf = async (child: ReturnType<typeof start>) => {
      const [err, [code]] = await Promise.all([
        child.stderr === null ? '' : text(child.stderr),
        once(child, 'close'),
      ]);
      return { code, err };
    };
    const closed = start('pipe');
    closed.stdout?.destroy();
    const full = start(openSync('/dev/full', 'w'));
    expect(await Promise.all([endOf(closed), endOf(full)])).toEqual([
      { code: 0, err: '' },
      { code: 1, err: expect.stringMatching(/^earshot: The output cannot be written: .*ENOSPC/) },
    ]);
  });
});

it('DuckDB runs the query of the documentation on a file', async () => {
  const page = readFileSync(new URL('../../../docs/queries.md', import.meta.url), 'utf8');
  const [, sql = ''] = /```sql\n([^`]+)```/.exec(page) ?? [];
  expect(sql).toContain("FROM 'products.parquet'");
  const { outBytes } = await context.earshot(file);
  const earlier = sql.replace("'products.parquet'", 'FILE').replace(/'2026.*?'/, "'2000-01-01'");
  const found = await query(outBytes, earlier);
  const expected = (await rowsOf(outBytes)).filter(({ bbox, sensingStart }) => {
    const { xmin = 0, ymin = 0, xmax = 0, ymax = 0 } = Object(bbox);
    return sensingStart !== null && xmin < 11 && xmax > 5.5 && ymin < 48 && ymax > 45;
  });
  const names = (rows: typeof found) => rows.map(({ productName }) => productName).toSorted();
  expect(names(found)).toEqual(names(expected));
});

/** Collects a file. */
function createOutput() {
  const chunks: Uint8Array[] = [];
  const write = (chunk: string | Uint8Array) => chunks.push(Buffer.from(chunk)) > 0;
  return { chunks, bytes: () => Buffer.concat(chunks), write, once: () => undefined };
}

const options = { fields: ['position', 'sensingStart'], catalogueUrl: '', version: '1.2.3' };

const { row } = foundProduct({});

/** Yields products, each at a second and a place of its own. */
async function* products(count: number, fault?: Error): AsyncGenerator<FoundProduct> {
  for (let position = 0; position < count; position += 1) {
    const footprint = point(position / 1_000, position / 1_000 + 1);
    yield { row: { ...row, position, sensingStartUs: position * 1e6 }, record: {}, footprint };
  }
  if (fault !== undefined) throw fault;
}

describe('the row groups', () => {
  it('have statistics of time and box, and are written when they are complete', async () => {
    const output = createOutput();
    await writeGeoParquet(output, products(25_000), options);
    expect(output.chunks).toHaveLength(4);
    const sql = `SELECT row_group_id::INT AS id, path_in_schema AS path, stats_min_value AS least,
      stats_max_value AS most, stats_null_count::INT AS nulls FROM parquet_metadata(FILE)`;
    const found = await query(output.bytes(), sql);
    const rangesOf = (name: string) =>
      found.flatMap(({ path, least, most, nulls }) => {
        return path === name ? [`${least} ${most} ${nulls}`] : [];
      });
    expect(rangesOf('position')).toEqual(['0 9999 0', '10000 19999 0', '20000 24999 0']);
    expect(rangesOf('bbox, ymin')).toEqual(['1.0 10.999 0', '11.0 20.999 0', '21.0 25.999 0']);
    expect(rangesOf('sensingStart')[1]).toMatch(/^1970-01-01 02:46:40\S* 1970-01-01 05:33:19/);
    const where = 'SELECT count(*)::INT AS n FROM FILE WHERE bbox.ymin >= 6 AND bbox.ymax < 16';
    expect(await query(output.bytes(), where)).toEqual([{ n: 10_000 }]);
  });

  it('are no valid file when the query fails or is interrupted', async () => {
    const output = createOutput();
    const fault = new Error('interrupted');
    await expect(writeGeoParquet(output, products(11_000, fault), options)).rejects.toBe(fault);
    expect(output.chunks).toHaveLength(1);
    await expect(query(output.bytes(), 'SELECT * FROM FILE')).rejects.toThrow(/magic|footer/i);
  });
});
