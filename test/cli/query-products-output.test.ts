/** The forms in which `earshot query products` prints, for programs and for people. */
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, it } from 'vitest';
import type { ProductForm } from '../../src/cli/products/product-forms.ts';
import { writeProducts } from '../../src/cli/products/product-output.ts';
import type { FoundProduct } from '../../src/domain/products.ts';
import { createProductWorld, guid, recordOf, samples, told } from './product-samples.ts';

const fields = [
  'position',
  'productId',
  'productName',
  'collection',
  'platform',
  'productType',
  'processingLevel',
  'sensingStart',
  'sensingEnd',
  'publicationDate',
  'modificationDate',
  'sizeBytes',
  'online',
  'cloudCoverPercent',
  'orbitNumber',
  'relativeOrbitNumber',
  'orbitDirection',
  'tile',
  'processingBaseline',
  'receivedAt',
  'deletionDate',
  'deletionCause',
];

/** Sample 1 in columns. */
const columns = {
  position: 1,
  productId: guid('1'),
  productName: samples[0]?.name,
  collection: 'SENTINEL-2',
  platform: 'SENTINEL-2A',
  productType: 'S2MSI2A',
  processingLevel: null,
  sensingStart: '2026-05-01T10:30:21.000000Z',
  sensingEnd: '2026-05-01T10:30:21.000000Z',
  publicationDate: '2026-05-01T15:00:00.000000Z',
  modificationDate: '2026-05-01T15:00:00.000000Z',
  sizeBytes: 1_234_567_890,
  online: true,
  cloudCoverPercent: 12.5,
  orbitNumber: null,
  relativeOrbitNumber: null,
  orbitDirection: null,
  tile: '31UFR',
  processingBaseline: '05.11',
  receivedAt: '2026-05-02T11:00:00.000000Z',
  deletionDate: null,
  deletionCause: null,
};

// Most of these tests only read: they share one world, since filling it takes longer than a query.
let world: Awaited<ReturnType<typeof createProductWorld>>;
beforeAll(async () => {
  let cleanUp: () => void = () => undefined;
  world = await createProductWorld((remove) => {
    cleanUp = remove;
  });
  return () => cleanUp();
});

const oldest = ['query', 'products', '--orderby', 'received asc'];

describe('the products for programs', () => {
  it('are the records as received: in an array, or one a line', async () => {
    const records = samples.slice(0, 4).map(recordOf);
    const { code, out, err } = await world.earshot([...oldest, '--json']);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(JSON.parse(out)).toEqual(records);
    const lines = (await world.earshot([...oldest, '--output', 'ndjson'])).out.split('\n');
    expect(lines.slice(0, -1).map((line) => JSON.parse(line))).toEqual(records);
    expect(lines.at(-1)).toBe('');
  });

  it('are columns as csv, in which no name is a formula', async () => {
    const { out } = await world.earshot([...oldest, '--output', 'csv']);
    const lines = out.split('\n');
    expect(lines).toHaveLength(6);
    expect(lines[0]).toBe(fields.join(','));
    expect(lines[1]).toBe(Object.values(columns).join(','));
    expect(lines[4]).toContain(`,"'=odd ""one"",.SAFE",`);
    const gone = await world.earshot(['query', 'products', '--deleted', '--output', 'csv']);
    expect(gone.out).toMatch(/,2026-05-02T06:00:00\.000000Z,Duplicated product\n$/);
  });

  it('are features as geojson, with the columns as properties', async () => {
    const { out } = await world.earshot([...oldest, '--output', 'geojson']);
    const collection = JSON.parse(out);
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

  it('are cut at the antimeridian as geojson (RFC 7946, 3.1.9)', async () => {
    const own = await createProductWorld();
    const area = 'POLYGON ((179 0, -179 0, -179 1, 179 1, 179 0))';
    await own.fill([told({ id: guid('7'), name: 'S2A_ACROSS.SAFE', area })]);
    const argv = ['query', 'products', '--name', 'S2A_ACROSS*', '--output', 'geojson'];
    const [feature] = JSON.parse((await own.earshot(argv)).out).features;
    expect(feature.geometry.type).toBe('MultiPolygon');
    for (const [ring] of feature.geometry.coordinates) {
      const longitudes = ring.map(([longitude]: [number]) => longitude);
      expect(Math.max(...longitudes) - Math.min(...longitudes)).toBe(1);
    }
  });

  it.each<[ProductForm, string]>([
    ['json', '[]\n'],
    ['ndjson', ''],
    ['csv', `${fields.join(',')}\n`],
    ['geojson', '{"type":"FeatureCollection","features":[]}\n'],
    ['ids', ''],
    ['table', ''],
  ])('as %s are %j when nothing matches', async (form, expected) => {
    const stream = new PassThrough();
    const written = text(stream);
    const nothing = async function* (): AsyncGenerator<FoundProduct> {};
    expect(await writeProducts(stream, form, nothing())).toBe(0);
    stream.end();
    expect(await written).toBe(expected);
  });

  it('wait for a reader that takes one chunk at a time', async () => {
    for (const form of ['geojson', 'csv']) {
      const ended = await world.earshot([...oldest, '--output', form], { slowReader: true });
      expect(ended.code).toBe(0);
    }
  });

  it('are all there beyond the 50 that a person is shown', async () => {
    const own = await createProductWorld();
    const many = Array.from({ length: 60 }, (_, i) => ({ id: guid(`${100 + i}`), name: `N${i}` }));
    await own.fill(many.map(told));
    const table = await own.earshot(['query', 'products']);
    expect(table.out.trimEnd().split('\n')).toHaveLength(51);
    expect(table.err).toMatch(/^50 shown\. For what may follow: the same with --after \S+\n$/);
    const { out, err } = await own.earshot(['query', 'products', '--output', 'ids']);
    expect(out.trimEnd().split('\n')).toHaveLength(64);
    expect(err).toBe('');
  });
});

describe('the table', () => {
  it('has a line for each product', async () => {
    const { out } = await world.earshot([...oldest, '--limit', '4']);
    const names = samples.map(({ name }) => name);
    const width = Math.max(...names.map((name) => name.length));
    expect(out.split('\n')).toEqual([
      `sensed (UTC)      ${'name'.padEnd(width)}  type        cloud    size`,
      `2026-05-01 10:30  ${names[0]?.padEnd(width)}  S2MSI2A      13 %  1.2 GB`,
      `2026-04-30 10:30  ${names[1]?.padEnd(width)}  S2MSI1C      80 %  1.2 GB`,
      `2026-05-02 05:00  ${names[2]?.padEnd(width)}  IW_GRDH_1S      -  1.2 GB`,
      `-                 ${names[3]?.padEnd(width)}  -               -  1.2 GB`,
      '',
    ]);
  });

  it('shows date and cause of deletions', async () => {
    const { out } = await world.earshot(['query', 'products', '--deleted']);
    expect(out).toMatch(
      /^deleted \(UTC\) +name +cause\n2026-05-02 06:00 {2}S2A.* Duplicated product\n$/,
    );
  });

  it('fits a terminal of 80 columns, and lets no name steer it', async () => {
    const own = await createProductWorld();
    await own.fill([told({ id: guid('8'), name: 'S2A_\u001b[2J_\u202e.SAFE' })]);
    const terminal = { isTTY: true, columns: 80 };
    for (const form of ['table', 'json', 'csv']) {
      const argv = ['query', 'products', '--output', form];
      const { out } = await own.earshot(argv, terminal);
      expect(out).not.toMatch(/\p{Cc}(?<!\n)|\u202e/u);
      const lengths = out.split('\n').map((line) => line.length);
      if (form === 'table') expect(Math.max(...lengths)).toBe(80);
    }
  });
});
