/** Output formats of `earshot query products`, for programs and for people. */
import { existsSync, readFileSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { writeProducts } from '../../../src/features/products/output.ts';
import type { FoundProduct } from '../../../src/filter/products.ts';
import { expectRefusal, printed, printedJson } from '../../helpers/fake-io.ts';
import { foundProduct } from '../summary/found-product.ts';
import {
  createProductContext,
  deliveryOf,
  guid,
  recordOf,
  type Sample,
  samples,
} from './product-samples.ts';

const it = test.extend('context', () => createProductContext());

const fields = [
  ...'position productId productName collection platform productType processingLevel'.split(' '),
  ...'sensingStart sensingEnd publicationDate modificationDate sizeBytes online'.split(' '),
  ...'cloudCoverPercent orbitNumber relativeOrbitNumber orbitDirection tile'.split(' '),
  ...'processingBaseline receivedAt deletionDate deletionCause s3Path downloadUrl'.split(' '),
];

/** Sample 1 as columns. */
const columns = {
  position: 1,
  productId: guid('1'),
  productName: samples[0]?.name,
  collection: 'SENTINEL-2',
  platform: 'SENTINEL-2A',
  productType: 'S2MSI2A',
  // Read from the name, because the record has no such attribute.
  processingLevel: 'S2MSI2A',
  sensingStart: '2026-05-01T10:30:21.000000Z',
  sensingEnd: '2026-05-01T10:30:21.000000Z',
  publicationDate: '2026-05-01T15:00:00.000000Z',
  modificationDate: '2026-05-01T15:00:00.000000Z',
  sizeBytes: 1_234_567_890,
  online: true,
  cloudCoverPercent: 12.5,
  orbitNumber: null,
  relativeOrbitNumber: 108,
  orbitDirection: null,
  tile: '31UFR',
  processingBaseline: '05.11',
  receivedAt: '2026-05-02T11:00:00.000000Z',
  deletionDate: null,
  deletionCause: null,
  s3Path: '/eodata/Sentinel-2/one.SAFE',
  downloadUrl: `https://catalogue.dataspace.copernicus.eu/odata/v1/Products(${guid('1')})/$value`,
};

// Most of these tests only read: they share one data directory, since filling it takes longer than a query.
const context = await createProductContext(afterAll);

const oldest = ['query', 'products', '--orderby', 'received asc'];

describe('the products for programs', () => {
  it('are the records as received: in an array, or one per line', async () => {
    const records = samples.slice(0, 4).map(recordOf);
    const out = await printed(context.earshot([...oldest, '--json']));
    expect(JSON.parse(out)).toEqual(records);
    const lines = (await context.earshot([...oldest, '--output', 'ndjson'])).out.split('\n');
    expect(lines.slice(0, -1).map((line) => JSON.parse(line))).toEqual(records);
    expect(lines.at(-1)).toBe('');
  });

  it('are columns as csv, without formulas', async () => {
    const { out } = await context.earshot([...oldest, '--output', 'csv']);
    const lines = out.split('\n');
    expect(lines).toHaveLength(6);
    expect(lines[0]).toBe(fields.join(','));
    expect(lines[1]).toBe(Object.values(columns).join(','));
    expect(lines[4]).toContain(`,"'=odd ""one"",.SAFE",`);
    const gone = await context.earshot('query products --deleted --output csv');
    expect(gone.out).toMatch(/,2026-05-02T06:00:00\.000000Z,Duplicated product,,\n$/);
  });

  it('are features as geojson, with the columns as properties', async () => {
    const collection = await printedJson(context.earshot([...oldest, '--output', 'geojson']));
    expect(collection).toMatchObject({ type: 'FeatureCollection' });
    const [first, , , bare, ...more] = collection.features;
    expect(more).toEqual([]);
    expect(first).toEqual({
      type: 'Feature',
      id: guid('1'),
      geometry: { type: 'Polygon', coordinates: [expect.any(Array)] },
      properties: columns,
    });
    expect(Object.keys(first.properties)).toEqual(fields);
    expect(first.geometry.coordinates[0]).toHaveLength(5);
    expect(bare).toMatchObject({ id: guid('4'), geometry: null });
  });

  it('are STAC items as stac, one per line, but not when deleted', async () => {
    const { out } = await context.earshot([...oldest, '--output', 'stac', '--summaries']);
    const items = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(items.map(({ id }) => id)).toEqual(['1', '2', '3', '4'].map(guid));
    expect(items[0]).toMatchObject({
      type: 'Feature',
      collection: 'SENTINEL-2.S2MSI2A',
      properties: { 'eo:cloud_cover': 12.5, 'grid:code': 'MGRS-31UFR' },
      assets: { s3: { href: 's3://eodata/Sentinel-2/one.SAFE' } },
    });
    const links = items[0].links.map(({ rel, href }: { rel: string; href: string }) => [rel, href]);
    expect(Object.fromEntries(links)).toMatchObject({
      collection: 'http://127.0.0.1:8080/stac/collections/SENTINEL-2.S2MSI2A',
      via: columns.downloadUrl.replace('/$value', ''),
    });
    expect(items[0].properties.description).toContain('Sentinel-2A');
    const env = { EARSHOT_CONSOLE_URL: 'https://example.org/ear' };
    const proxied = await context.earshot([...oldest, '--output', 'stac', '--limit', '1'], { env });
    expect(JSON.parse(proxied.out).links).toContainEqual(
      expect.objectContaining({ rel: 'root', href: 'https://example.org/ear/stac' }),
    );
    const deleted = context.earshot('query products --deleted --output stac');
    await expectRefusal(deleted, /A deleted product has no form in the format stac\./);
  });

  it('are split at the antimeridian as geojson (RFC 7946, 3.1.9)', async ({ context: own }) => {
    const area = 'POLYGON ((179 0, -179 0, -179 1, 179 1, 179 0))';
    await own.fill([deliveryOf({ id: guid('7'), name: 'S2A_ACROSS.SAFE', area })]);
    const argv = ['query', 'products', '--name', 'S2A_ACROSS*', '--output', 'geojson'];
    const [feature] = JSON.parse((await own.earshot(argv)).out).features;
    expect(feature.geometry.type).toBe('MultiPolygon');
    for (const [ring] of feature.geometry.coordinates) {
      const longitudes = ring.map(([longitude]: [number]) => longitude);
      expect(Math.max(...longitudes) - Math.min(...longitudes)).toBe(1);
    }
  });

  it.each([
    ['json', '[]\n'],
    ['ndjson', ''],
    ['csv', `${fields.join(',')}\n`],
    ['geojson', '{"type":"FeatureCollection","features":[]}\n'],
    ['stac', ''],
    ['ids', ''],
    ['table', ''],
  ])('as %s are %j when nothing matches', async (form, expected) => {
    const stream = new PassThrough();
    const written = text(stream);
    const nothing = async function* (): AsyncGenerator<FoundProduct> {};
    expect(await writeProducts(stream, form, nothing())).toEqual({ count: 0, last: undefined });
    stream.end();
    expect(await written).toBe(expected);
  });

  it.each(['ndjson', 'stac', 'geoparquet'])(
    'as %s report the number of written products',
    async (form) => {
      const stream = new PassThrough().resume();
      const many = async function* (): AsyncGenerator<FoundProduct> {
        for (let i = 0; i < 25_000; i += 1) yield foundProduct({ position: i });
      };
      const counts: number[] = [];
      const onProgress = (count: number) => counts.push(count);
      await writeProducts(stream, form, many(), { onProgress });
      expect(counts).toEqual([10_000, 20_000]);
    },
  );

  it('wait for a reader that accepts one chunk at a time', async () => {
    for (const form of ['json', 'geojson', 'csv']) {
      const ended = await context.earshot([...oldest, '--output', form], { slowReader: true });
      expect(ended.code).toBe(0);
    }
  });

  it('are all printed, beyond the 50 that a table shows', async ({ context: own }) => {
    const many = Array.from({ length: 60 }, (_, i) => ({ id: guid(`${100 + i}`), name: `N${i}` }));
    await own.fill(many.map(deliveryOf));
    const table = await own.earshot('query products');
    expect(table.out.trimEnd().split('\n')).toHaveLength(51);
    expect(table.err).toMatch(/^50 rows\. Next page: --after \S+\n$/);
    const { out, err } = await own.earshot('query products --output ids');
    expect(out.trimEnd().split('\n')).toHaveLength(64);
    expect(err).toBe('');
  });
});

describe('download URLs', () => {
  it('start with the configured catalogue', async () => {
    const env = { EARSHOT_CATALOGUE_URL: 'https://datahub.creodias.eu/odata/v1' };
    const argv = [...oldest, '--limit', '1', '--columns', 'downloadUrl', '--output', 'csv'];
    const { out } = await context.earshot(argv, { env });
    const url = `https://datahub.creodias.eu/odata/v1/Products(${guid('1')})/$value`;
    expect(out).toBe(`downloadUrl\n${url}\n`);
  });
});

describe('--columns', () => {
  it('selects the columns of csv, in the given order', async () => {
    const argv = [...oldest, '--limit', '2', '--output', 'csv', '--columns', 'tile, s3Path'];
    expect(await context.earshot(argv)).toMatchObject({
      code: 0,
      out: 'tile,s3Path\n31UFR,/eodata/Sentinel-2/one.SAFE\n32TQM,\n',
    });
  });

  it('selects the columns of the table, and shortens none of them', async () => {
    const argv = [...oldest, '--limit', '2', '--columns', 'tile,downloadUrl'];
    const { out } = await context.earshot(argv, { isTTY: true, columns: 80 });
    const urls = [1, 2].map((digit) => columns.downloadUrl.replace(guid('1'), guid(`${digit}`)));
    expect(out).toBe(`tile   downloadUrl\n31UFR  ${urls[0]}\n32TQM  ${urls[1]}\n`);
  });

  it.each([
    [
      'tile,cloud',
      `unknown column "cloud". Did you mean cloudCoverPercent? Use names from: ${fields.join(', ')}.`,
    ],
    ['summary', 'unknown column "summary"'],
    ['', 'unknown column ""'],
    ['tile --output geojson', 'does not work with geojson output. Use --output csv'],
  ])('%s is refused with advice', async (line, advice) => {
    const [names = '', ...more] = line.split(' ');
    await expectRefusal(context.earshot([...oldest, '--columns', names, ...more]), advice);
  });
});

/** A name of each mission. */
const named: readonly string[] = [
  'S1C_IW_GRDH_1SDV_20260101T001022_20260101T001052_005702_00B654_2A4D.SAFE',
  'S1A_IW_GRDH_1SDV_20260502T050000_20260502T050025_060000_077000_ABCD_COG.SAFE',
  'S2A_MSIL1C_20260430T103021_N0511_R108_T32TQM_20260430T120000.SAFE',
  'S3B_OL_1_EFR____20260501T093000_20260501T093300_20260501T113000_0179_106_136_2160_PS2_O_NR_004.SEN3',
  'S5P_OFFL_L2__NO2____20260501T101031_20260501T115201_40001_03_020600_20260503T020000.nc',
  'S6A_P4_2__LR_STD__20260501T101031_20260501T110644_20260502T120000_0038_136_136_068_EUM__OPE_ST_F09.SEN6',
  'LC09_L1TP_193027_20260501_20260501_02_T1',
  'S1A_OPER_AUX_POEORB_OPOD_20260501T120000_V20260410T225942_20260412T005942.EOF',
];

const realFile = new URL('../../../../shared/fixtures/products.jsonl', import.meta.url);
const realRecords: Record<string, unknown>[] = existsSync(realFile)
  ? readFileSync(realFile, 'utf8')
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
  : [];

describe('tables of real names', async () => {
  const many = await createProductContext(afterAll);
  beforeAll(async () => {
    const products = named.map((name, i) => ({
      id: guid(`${100 + i}`),
      name,
      sensed: '2026-05-01T10:10:31Z',
    }));
    const real = realRecords
      .filter((_, i) => i % 4 === 0)
      .map((fields, i) => {
        const event = i % 2 === 0 ? 'created' : 'deleted';
        return { id: `${fields.Id}`, name: `${fields.Name}`, event, fields };
      });
    await many.fill([...real, ...products].map((sample) => deliveryOf(sample as Sample)));
  });

  it.each([80, 100, 160])('fit %i columns, with each name, whole if it fits', async (columns) => {
    const commands = [
      ['query'],
      ['query', 'products'],
      ['query', 'products', '--deleted'],
      ['tail', '--from', 'start', '--no-follow'],
    ];
    for (const command of commands) {
      const limit = command[0] === 'tail' ? [] : ['--limit', '400'];
      const { code, out } = await many.earshot([...command, ...limit], { isTTY: true, columns });
      expect(code).toBe(0);
      const widest = out.split('\n').toSorted((a, b) => b.length - a.length)[0] ?? '';
      expect(widest.length, widest).toBeLessThanOrEqual(columns);
      if (command.includes('--deleted')) continue;
      for (const name of named) {
        // The begin and the end of a shortened name stay.
        const shown = out.split('\n').some((line) => line.includes(name.slice(0, 12)));
        expect(shown, `${name} in ${out}`).toBe(true);
        if (columns === 160) expect(out).toContain(name);
      }
    }
  });
});

describe('the table', () => {
  it('has one line per product, starting with the sort column', async () => {
    const { out } = await context.earshot([...oldest, '--limit', '4']);
    const names = samples.map(({ name }) => name);
    const [title, first = '', , third = ''] = out.split('\n');
    expect(title?.split(/ {2,}/)).toEqual([
      ...['received (UTC)', 'product', 'cloud', 'place', 'sensed (UTC)', 'type', 'tile/orbit'],
      'size',
    ]);
    expect(first.split(/ {2,}/)).toEqual([
      ...['2026-05-02 11:00', names[0], '12.5 %', 'Netherlands and Belgium'],
      ...['2026-05-01 10:30', 'S2MSI2A', '31UFR R108', '1.2 GB'],
    ]);
    expect(third.split(/ {2,}/)).toEqual([
      ...['2026-05-02 11:00', names[2], '-', 'North Pacific Ocean', '2026-05-02 05:00'],
      ...['IW_GRDH_1S', '60000', '1.2 GB'],
    ]);
  });

  it.each([
    ['received', 'received (UTC)'],
    ['PublicationDate', 'published (UTC)'],
    ['ModificationDate', 'modified (UTC)'],
    ['ContentDate/Start', 'sensed (UTC)'],
    ['ContentDate/End', 'sensing end (UTC)'],
  ])('sorted by %s starts with %s, then the name', async (order, title) => {
    const argv = ['query', 'products', '--orderby', order];
    expect((await context.earshot(argv)).out.split(/ {2,}/).slice(0, 2)).toEqual([
      title,
      'product',
    ]);
  });

  it('rounds cloud cover down, so that it stays below --cloud-below', async ({ context: own }) => {
    const covers = [19.6, 19.96, 19.999, 19.04, 0.04];
    await own.fill(
      covers.map((cloud, i) => deliveryOf({ id: guid(`${20 + i}`), name: `N${i}`, cloud })),
    );
    const argv = ['query', 'products', '--cloud-below', '20', '--name', 'N*'];
    const { out } = await own.earshot([...argv, '--orderby', 'received asc']);
    expect(out.match(/[\d.]+ %/g)).toEqual(['19.6 %', '19.9 %', '19.9 %', '19.0 %', '0.0 %']);
  });

  it('shows date and cause of deletions', async () => {
    const { out } = await context.earshot('query products --deleted');
    expect(out).toMatch(
      /^deleted \(UTC\) +product +cause +place .*\n2026-05-02 06:00 {2}S2A\S+\.SAFE {2}Duplicated product .* 31UFR R108\n$/,
    );
  });

  it('fits a terminal of 80 columns, and removes control characters of names', async ({
    context: own,
  }) => {
    await own.fill([deliveryOf({ id: guid('8'), name: 'S2A_\u001b[2J_\u202e.SAFE' })]);
    const terminal = { isTTY: true, columns: 80 };
    for (const form of ['table', 'json', 'csv']) {
      const argv = ['query', 'products', '--output', form];
      const { out } = await own.earshot(argv, terminal);
      expect(out).not.toMatch(/\p{Cc}(?<!\n)|\u202e/u);
      const lengths = out.split('\n').map((line) => line.length);
      if (form === 'table') expect(Math.max(...lengths)).toBeLessThanOrEqual(80);
    }
  });
});
