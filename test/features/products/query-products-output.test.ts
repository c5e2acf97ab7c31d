/** Output formats of `earshot query products`, for programs and for people. */
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterAll, describe, expect, test } from 'vitest';
import { writeProducts } from '../../../src/features/products/output.ts';
import type { FoundProduct } from '../../../src/filter/products.ts';
import { expectEnd, expectRefusal, printed, printedJson } from '../../helpers/fake-io.ts';
import { createContext } from '../../helpers/filled-store.ts';
import { realRecords } from './index-file/product-context.ts';
import {
  createProductContext,
  deliveryOf,
  guid,
  recordOf,
  type Sample,
  samples,
} from './product-samples.ts';

const it = test.extend('context', () => createProductContext());

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

const fields = Object.keys(columns);

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
    const [first, , , bare, ...more] = collection.features;
    expect([collection.type, more]).toEqual(['FeatureCollection', []]);
    const geometry = { type: 'Polygon', coordinates: [expect.any(Array)] };
    expect(first).toEqual({ type: 'Feature', id: guid('1'), geometry, properties: columns });
    expect(Object.keys(first.properties)).toEqual(fields);
    expect(bare).toMatchObject({ id: guid('4'), geometry: null });
  });

  it('are STAC items as stac, one per line, with links to the address of the console, but not when deleted', async () => {
    const argv = [...oldest, '--output', 'stac'];
    const env = { EARSHOT_CONSOLE_URL: 'https://example.org/ear' };
    const { out } = await context.earshot(argv, { env });
    const items = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(items.map(({ id }) => id)).toEqual(['1', '2', '3', '4'].map(guid));
    const root = { rel: 'root', href: `${env.EARSHOT_CONSOLE_URL}/stac` };
    expect(items[0].links).toContainEqual(expect.objectContaining(root));
    const deleted = context.earshot('query products --deleted --output stac');
    await expectRefusal(deleted, /A deleted product has no form in the format stac\./);
  });

  it.each<[string, string]>([
    ['json', '[]\n'],
    ['csv', `${fields.join(',')}\n`],
    ['geojson', '{"type":"FeatureCollection","features":[]}\n'],
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

  it('are all printed, beyond the 50 that a table shows', async ({ context: own }) => {
    const many = Array.from({ length: 60 }, (_, i) => ({ id: guid(`${100 + i}`), name: `N${i}` }));
    await own.fill(many.map(deliveryOf));
    const table = await own.earshot('query products');
    expect(table.out.trimEnd().split('\n')).toHaveLength(51);
    expect(table.err).toBe('50 rows. For more rows, set --limit.\n');
    const { out, err } = await own.earshot('query products --output ids');
    expect(out.trimEnd().split('\n')).toHaveLength(64);
    expect(err).toBe('');
  });
});

describe('--columns', () => {
  it('selects the columns of csv and of the table, in the given order, and shortens none', async () => {
    const argv = [...oldest, '--limit', '2', '--columns', 'tile, downloadUrl'];
    const env = { EARSHOT_CATALOGUE_URL: 'https://datahub.creodias.eu/odata/v1' };
    const urls = [1, 2].map((i) => `${env.EARSHOT_CATALOGUE_URL}/Products(${guid(`${i}`)})/$value`);
    const csv = await context.earshot([...argv, '--output', 'csv'], { env });
    expect(csv.out).toBe(`tile,downloadUrl\n31UFR,${urls[0]}\n32TQM,${urls[1]}\n`);
    const { out } = await context.earshot(argv, { env, isTTY: true, columns: 80 });
    expect(out).toBe(`tile   downloadUrl\n31UFR  ${urls[0]}\n32TQM  ${urls[1]}\n`);
  });

  it.each([
    ['tile,cloud', 'There is no column cloud. Did you mean cloudCoverPercent? Known: '],
    ['summary', 'There is no column summary.'],
    ['', 'There is no column .'],
    ['tile --output geojson', 'does not work with geojson output. Use --output csv'],
  ])('%s is refused with advice', async (line, advice) => {
    const [names = '', ...more] = line.split(' ');
    await expectRefusal(context.earshot([...oldest, '--columns', names, ...more]), advice);
  });
});

it('tables of real names fit a terminal of 80, 100 and 160 columns', async () => {
  const many = createContext();
  const real = realRecords(4).map((fields, i): Sample => {
    const event = i % 2 === 0 ? 'created' : 'deleted';
    return { id: fields.Id, name: `${fields.Name}`, event, fields };
  });
  await many.fill([...real, ...samples].map(deliveryOf));
  const commands = ['query --limit 400', 'query products', 'query products --deleted'];
  for (const columns of [80, 100, 160]) {
    for (const command of [...commands, 'tail --from start --no-follow']) {
      const { out } = await expectEnd(many.earshot(command, { isTTY: true, columns }), 0);
      const wide = out.split('\n').filter((line) => line.length > columns);
      expect(wide).toEqual([]);
      // The begin of a shortened name stays.
      expect(out).toContain(samples[command.includes('--deleted') ? 4 : 0]?.name.slice(0, 12));
    }
  }
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

  it('shows date and cause of deletions', async () => {
    const { out } = await context.earshot('query products --deleted');
    expect(out).toMatch(
      /^deleted \(UTC\) +product +cause +place .*\n2026-05-02 06:00 {2}S2A\S+\.SAFE {2}Duplicated product .* 31UFR R108\n$/,
    );
  });
});
