/** `earshot query products`: selection, order and paging. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, describe, expect, test } from 'vitest';
import {
  addProductFlags,
  compileFlags,
  type ProductFlags,
} from '../../../src/features/products/flags.ts';
import { catchUpIndex } from '../../../src/features/products/index-file/index-maintenance.ts';
import { openProducts } from '../../../src/features/products/index-file/products.ts';
import { defaultOrderOf } from '../../../src/filter/products.ts';
import { box, polygon } from '../../filter/geometry/places.ts';
import { rowsOf } from '../../filter/table.ts';
import { collect } from '../../helpers/deliveries.ts';
import { expectEnd, expectRefusal, nowUs } from '../../helpers/fake-io.ts';
import { filledContext } from '../../helpers/filled-store.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { createProductContext, deliveryOf, guid, samples } from './product-samples.ts';

const it = test.extend('context', () => createProductContext());

// These tests only read: they share one data directory and one open index, because opening takes the most time.
const context = await createProductContext(afterAll);
await catchUpIndex({ dataDir: context.dataDir });
const products = openProducts(context.dataDir);
afterAll(() => products.close());

/** Runs the query of these flags in the index; returns the last digits of the ids, newest received first. */
async function chosen(words: readonly string[]): Promise<string> {
  const nothing = { write: () => true, once: () => undefined };
  const io = { stderr: nothing, env: {}, readFile: (path: string) => readFileSync(path, 'utf8') };
  const command = addProductFlags(new Command(), { nowUs: () => nowUs }).exitOverride();
  command.parse(words, { from: 'user' });
  const question = compileFlags(command.opts<ProductFlags>(), io);
  const order = defaultOrderOf(question.entity);
  const found = await collect(products.find({ ...question, order, records: false }));
  return found.map(({ row }) => row.productId.slice(-1)).join('');
}

describe('query products', () => {
  it.each([
    ['', '4321'],
    ['--collection sentinel-2', '21'],
    ['--collection S1,S2', '321'],
    ['--type S2MSI1C,IW_GRDH_1S', '32'],
    ['--platform SENTINEL-2', '21'],
    ['--platform sentinel-1a,S2B', '32'],
    ['--cloud-below 80', '1'],
    ['--cloud-below 80.5%', '21'],
    ['--platform S2A --platform S1', '31'],
    ['--bbox 5.5,51.5,6,52', '1'],
    ['--bbox 170,0,-170,20', '3'],
    ['--bbox -170,0,170,60', '21'],
    ['--bbox -180,-90,180,90', '321'],
    ['--sensed 2d', '31'],
    ['--sensed 2026-05', '31'],
    ['--sensed 2026-05-01T10:30:21Z..', '31'],
    ['--sensed ..2026-05-01T10:30:21Z', '2'],
    ['--published ..2026-05-01', '21'],
    ['--name S2A_MSIL2A_20260501T103021_N0511_R108_T31UFR_20260501T140000.SAFE', '1'],
    ['--name S2*T32TQM*', '2'],
    ['--name *.SAFE', '4321'],
    ['--deleted', '5'],
    ['--deleted --bbox 5,51,6,52 --collection S2', '5'],
    ['--collection S2 --cloud-below 20 --sensed 7d', '1'],
  ])('%s selects %s', async (line, digits) => {
    expect(await chosen(line.split(' ').filter(Boolean))).toBe(digits);
  });

  it.each([
    [['--filter', 'Online eq true', '--tile', '32TQM'], '2'],
    [['--filter', "Name eq 'x' or Online eq true", '--platform', 'S1A'], '3'],
    [['--filter', ' '], '4321'],
    [['--filter', 'DeletionDate ge 2026-05-02', '--deleted'], '5'],
  ])('%j selects %s', async (words, digits) => {
    expect(await chosen(words)).toBe(digits);
  });

  it('selects by the area of a GeoJSON file', async () => {
    const file = join(temporaryDirectory(), 'area.geojson');
    const geometry = polygon(box(11.2, 45.2, 11.4, 45.4));
    writeFileSync(file, JSON.stringify({ type: 'Feature', properties: {}, geometry }));
    expect(await chosen(['--area', file])).toBe('2');
  });

  it('selects by the time at which the first notification was received', async ({
    context: own,
  }) => {
    const [one = expect.fail()] = samples;
    // A later notification about a known product does not make it newer.
    await own.fill([
      { ...deliveryOf({ ...one, id: guid('7') }), receivedAtUs: nowUs - 60e6 },
      { ...deliveryOf({ ...one, fields: { ContentLength: 5 } }), receivedAtUs: nowUs - 60e6 },
    ]);
    expect(await own.digits(['--since', '30m'])).toBe('7');
    expect(await own.digits(['--since', '90m', '--until', '30m', '--collection', 'S2'])).toBe('21');
    expect((await own.earshot('query products --since 30m --count')).out).toBe('1\n');
  });

  it.each<[string[], string]>([
    [['-n', '2'], '43'],
    [['--max-age', '4h'], '43'],
    [['--max-age', '5h', '-n', '3'], '432'],
    [['--max-age', '4h', '-n', '1', '--orderby', 'PublicationDate desc'], '3'],
    [['--orderby', 'contentdate/start', '--collection', 'S1,S2'], '213'],
    [['--orderby', 'PublicationDate  DESC', '--filter', 'Online eq true'], '312'],
  ])('as a command with %j prints %s', async (words, digits) => {
    expect(await context.digits(words)).toBe(digits);
  });

  it.each([['--count'], ['--name', 'none']])(
    'stops at the request of the user: %s',
    async (...words) => {
      const asking = context.start(['query', 'products', ...words]);
      asking.stop();
      expect(await asking.ended).toMatchObject({ code: 1, out: '' });
    },
  );

  it.each(
    rowsOf(`
      --collection S2 --name S2A_MSI ¦ No product matches this condition: Name = 'S2A_MSI'.
      --collection S1 --type S2MSI1C ¦ No product matches all conditions together
      --collection S2 --until 2020-01-01 ¦ this condition: received before 2020-01-01T00:00:00.000000Z.
      --max-age 4h --collection S2 ¦ No product matches all conditions together
      --deleted 2020 --collection S2 ¦ No deleted product matches this condition: DeletionDate <
    `),
  )('%s matches nothing: names the condition on stderr, and exits 0', async (flags, why = '') => {
    const { out, err } = await expectEnd(context.earshot(`query products ${flags}`), 0);
    expect(out).toBe('');
    expect(err).toContain(why);
  });

  it('names a maximum age that every product exceeds', async () => {
    const old = await filledContext(samples.slice(0, 2).map(deliveryOf));
    const { err } = await expectEnd(old.earshot('query products --max-age 4h'), 0);
    expect(err).toContain('matches this condition: published within 4 h of sensing.');
    expect((await old.earshot('query products --max-age 4h --count')).out).toBe('0\n');
  });
});

it('a record without attributes has the tile, orbit and level of its name, and --tile finds it, but no filter on an attribute', async ({
  context: own,
}) => {
  const name = 'S2C_MSIL1C_20260501T103021_N0511_R022_T33UVV_20260501T140000.SAFE';
  await own.fill([
    deliveryOf({ id: guid('7'), name, fields: { Attributes: undefined } }),
    deliveryOf({ id: guid('8'), name: 'unnamed', attributes: { tileId: '33UVV' } }),
  ]);
  const columns =
    'platform,productType,processingLevel,tile,relativeOrbitNumber,processingBaseline';
  const argv = ['query', 'products', '--output', 'csv', '--columns', columns];
  const { out } = await own.earshot([...argv, '--name', 'S2C_*']);
  expect(out.split('\n')[1]).toBe('SENTINEL-2C,S2MSI1C,S2MSI1C,33UVV,22,05.11');
  expect(await own.digits(['--tile', '31UFR,33UVV'])).toBe('871');
  const filter =
    "Attributes/OData.CSC.StringAttribute/any(a:a/Name eq 'tileId' and a/OData.CSC.StringAttribute/Value eq '33UVV')";
  expect(await own.digits(['--filter', filter])).toBe('8');
  expect(await own.digits(['--filter', `not ${filter}`, '--collection', 'S2'])).toBe('721');
});

it.each(
  rowsOf(String.raw`
    --collection SENTINEL2 ¦ ^warning: Unknown .* Did you mean 'SENTINEL-2'
    --type iw_grdh_1s ¦ ^warning: Unknown .* Did you mean 'IW_GRDH_1S'
    --type S2MSI2A,S2MSIA1C ¦ ^warning: Unknown .* Did you mean 'S2MSI1C'
    --bbox=48,6,45,11 ¦ warning: --bbox: The box spans 357 degrees .* use 6,45,11,48\.\n
    --bbox=170,-20,-170,20 ¦ ^$
  `),
)('%s warns on stderr: %s', async (flags, warning = '') => {
  const { err } = await expectEnd(context.earshot(`query products --count ${flags}`), 0);
  expect(err).toMatch(new RegExp(warning));
});

describe('usage errors', () => {
  it.each(
    rowsOf(String.raw`
      --bbox 1,2,3 ¦ west,south,east,north in degrees, such as
      --bbox 45,120,48,130 ¦ latitudes from -90 to 90; .* out of range.* order is west
      --bbox 5,48,11,45 ¦ South \(48\) is greater than north \(45\)\.
      --bbox 5,45,5,48 ¦ no area
      --bbox 180,0,-180,10 ¦ same meridian\.
      --area nowhere.geojson ¦ nowhere\.geojson cannot be read as GeoJSON: there is no such file
      --name S2?_* ¦ does not support "\?"\. Use \* for any text: 'S2\*_\*'
      --name * ¦ omit --name
      --sensed yesterday ¦ 24h or 7d .*2026-11
      --sensed 2026-05-02..2026-05-01 ¦ The range ends before it starts\. Put 2026-05-01 first
      --sensed 2026-05-01T10:00:00Z ¦ A single time is not a range\. Use 2026-05-01T10:00:00Z\.\.
      --tile 31U ¦ tiles such as 31UFR
      --tile 31UFR,61UFR ¦ 61UFR is not a tile\. A tile is a zone from 1 to 60
      --collection , ¦ one or more names, comma-separated
      --cloud-below many ¦ Cloud cover is a percentage\. .*such as 20
      --cloud-below 0 ¦ Cloud cover is never below 0 percent
      --deleted --published 7d ¦ no publication date for deleted products\. Use --deleted 7d
      --deleted --max-age 7d ¦ no publication date for deleted products
      --max-age 4 ¦ must be an age in
      --orderby Name ¦ not a sort order of products\. Use one of received, ContentDate/Start
      --deleted --orderby PublicationDate ¦ not a sort order of deleted products\. .*DeletionDate
      --output xml ¦ table, json, ndjson, csv, geojson, geoparquet, ids, stac
      --count --limit 3 ¦ cannot be used with
    `),
  )('%s exits 2 with a correction', async (line = '', message = '') => {
    const argv = ['query', 'products', ...line.split(' ')];
    await expectRefusal(context.earshot(argv), new RegExp(message));
  });

  it.each<[string, string[], RegExp]>([
    ["Nam eq 'x'", [], /Nam eq 'x'\n +\^/],
    ['DeletionDate gt 2026-01-01', [], /DeletedProducts/],
    ['Online eq true', ['--deleted'], /Online/],
  ])('the filter %s is refused with the position', async (filter, words, message) => {
    const argv = ['query', 'products', '--filter', filter, ...words];
    const err = await expectRefusal(context.earshot(argv), message);
    expect(err).toMatch(/^earshot: The filter is not valid for (Deleted)?Products\.\n {2}- /);
  });
});
