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
import { defaultOrderOf } from '../../../src/filter/product-order.ts';
import { collect } from '../../helpers/deliveries.ts';
import { expectEnd, expectRefusal, nowUs, printedJson } from '../../helpers/fake-io.ts';
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
    ['--collection SENTINEL-2', '21'],
    ['--collection sentinel-2', '21'],
    ['--collection S1', '3'],
    ['--collection S1,S2', '321'],
    ['--type S2MSI1C', '2'],
    ['--type S2MSI1C,IW_GRDH_1S', '32'],
    ['--type GRD', '3'],
    ['--platform S2A', '1'],
    ['--platform SENTINEL-2', '21'],
    ['--platform sentinel-1a,S2B', '32'],
    ['--tile 31UFR', '1'],
    ['--tile T32TQM', '2'],
    ['--tile t32tqm,31ufr', '21'],
    ['--cloud-below 20', '1'],
    ['--cloud-below 80', '1'],
    ['--cloud-below 80.5%', '21'],
    ['--type S2MSI2A --type S2MSI1C', '21'],
    ['--collection S2 --collection S1 --tile 31UFR --tile T32TQM,31UFR', '21'],
    ['--platform S2A --platform S1', '31'],
    ['--bbox 5.5,51.5,6,52', '1'],
    ['--bbox -10,40,20,60', '21'],
    ['--bbox 5.5,51.5,5.5,51.5', '1'],
    ['--bbox 170,0,-170,20', '3'],
    ['--bbox 180,10.5,-180,10.5', '3'],
    ['--bbox 20,0,-179.5,20', '3'],
    ['--bbox -170,0,170,60', '21'],
    ['--bbox -180,-90,180,90', '321'],
    ['--sensed 24h', '3'],
    ['--sensed 2d', '31'],
    ['--sensed 2026', '321'],
    ['--sensed 2026-05', '31'],
    ['--sensed 2026-05-01', '1'],
    ['--sensed 2026-04-30..2026-05-01', '21'],
    ['--sensed 2026-04..2026-04-30', '2'],
    ['--sensed 2026-05-01T10:30:21Z..', '31'],
    ['--sensed ..2026-05-01T10:30:21Z', '2'],
    ['--sensed 3d..1d', '21'],
    ['--published 2026-05-01', '1'],
    ['--published ..2026-05-01', '21'],
    ['--name S2A_MSIL2A_20260501T103021_N0511_R108_T31UFR_20260501T140000.SAFE', '1'],
    ['--name S2A_MSIL2A', ''],
    ['--name S2A_*', '1'],
    ['--name *_T31UFR_*', '1'],
    ['--name S2*T32TQM*', '2'],
    ['--name *.SAFE', '4321'],
    ['--name S1*_ABCD.SAFE', '3'],
    ['--name s1*', ''],
    ['--name *_2026050*T31*', '1'],
    ['--deleted', '5'],
    ['--deleted 2026-05-02', '5'],
    ['--deleted 1h', ''],
    ['--deleted --tile 31UFR', '5'],
    ['--deleted --bbox 5,51,6,52 --collection S2', '5'],
    ['--collection S2 --cloud-below 20 --sensed 7d', '1'],
  ])('%s selects %s', async (line, digits) => {
    expect(await chosen(line.split(' ').filter(Boolean))).toBe(digits);
  });

  it.each([
    [['--filter', "Collection/Name eq 'SENTINEL-2'"], '21'],
    [['--filter', 'Online eq true', '--tile', '32TQM'], '2'],
    [['--filter', "Name eq 'x' or Online eq true", '--platform', 'S1A'], '3'],
    [['--filter', ' '], '4321'],
    [['--filter', 'DeletionDate ge 2026-05-02', '--deleted'], '5'],
  ])('%j selects %s', async (words, digits) => {
    expect(await chosen(words)).toBe(digits);
  });

  it('selects by the area of a GeoJSON file', async () => {
    const file = join(temporaryDirectory(), 'area.geojson');
    const coordinates = [
      [
        [11.2, 45.2],
        [11.4, 45.2],
        [11.4, 45.4],
        [11.2, 45.2],
      ],
    ];
    const geometry = { type: 'Polygon', coordinates };
    const feature = { type: 'Feature', properties: {}, geometry };
    for (const value of [geometry, feature, { type: 'FeatureCollection', features: [feature] }]) {
      writeFileSync(file, JSON.stringify(value));
      expect(await chosen(['--area', file])).toBe('2');
    }
  });

  it('selects by the time at which the first notification was received', async ({
    context: own,
  }) => {
    const [one] = samples;
    if (one === undefined) throw new Error('there are no samples');
    // A later notification about a known product does not make it newer.
    await own.fill([
      { ...deliveryOf({ ...one, id: guid('7') }), receivedAtUs: nowUs - 60e6 },
      { ...deliveryOf({ ...one, fields: { ContentLength: 5 } }), receivedAtUs: nowUs - 60e6 },
    ]);
    expect(await own.digits(['--since', '30m'])).toBe('7');
    expect(await own.digits(['--until', '30m'])).toBe('4321');
    expect(await own.digits(['--since', '90m', '--until', '30m', '--collection', 'S2'])).toBe('21');
    const count = await own.earshot('query products --since 30m --count');
    expect(count.out).toBe('1\n');
    const explained = await own.earshot('query products --since 30m --explain');
    expect(explained.out).toContain('1 of 5 products: received from 2026-05-02T11:30:00.000000Z');
  });

  it.each<[string[], string]>([
    [['--limit', '2'], '43'],
    [['-n', '2'], '43'],
    [['--orderby', 'contentdate/start', '--collection', 'S1,S2'], '213'],
    [['--orderby', 'PublicationDate  DESC', '--filter', 'Online eq true'], '312'],
    [['--deleted', '2026-05-02', '--tile', '31UFR'], '5'],
  ])('as a command with %j prints %s', async (words, digits) => {
    expect(await context.digits(words)).toBe(digits);
  });

  it('prints the count with --count', async () => {
    const counted = await context.earshot('query products --collection S2 --count');
    expect(counted).toMatchObject({ code: 0, out: '2\n', err: '' });
    const gone = await context.earshot('query products --deleted --count');
    expect(gone.out).toBe('1\n');
  });

  it('--explain prints the filter of the flags, and the query plan', async () => {
    const argv = ['query', 'products', '--platform', 'S2A', '--sensed', '2026-05', '--explain'];
    const explained = await printedJson(expectEnd(context.earshot([...argv, '--json']), 0));
    expect(Object.keys(explained)).toEqual(
      'entity filter orderby conditions matches products narrowedBy byColumns byRecords plan'.split(
        ' ',
      ),
    );
    expect(explained.filter).toContain("'platformSerialIdentifier'");
    expect(explained.filter).toMatch(/ContentDate\/Start ge 2026-05-01.* lt 2026-06-01/);
    expect(explained).toMatchObject({
      entity: 'Products',
      orderby: 'received desc',
      byRecords: [],
    });
    const text = (await context.earshot(argv)).out;
    expect(text).toContain(explained.filter);
    expect(text).toMatch(/^plan {8}/m);
  });

  it('--explain counts the products that match each condition, and all of them', async () => {
    const argv = ['query', 'products', '--collection', 'S2', '--type', 'S2MSI1C,IW_GRDH_1S'];
    const { out } = await expectEnd(
      context.earshot([...argv, '--since', '2025-05-02', '--explain']),
      0,
    );
    const lines = out.split('\n').filter((line) => /of 4 products: /.test(line));
    expect(lines.map((line) => line.slice(13))).toEqual([
      '4 of 4 products: received from 2025-05-02T00:00:00.000000Z',
      '2 of 4 products: collection is SENTINEL-2',
      '2 of 4 products: any of: productType is S2MSI1C, productType is IW_GRDH_1S',
      '1 of 4 products: all conditions together',
    ]);
    const { conditions, matches, products } = await printedJson(
      context.earshot([...argv, '--explain', '--json']),
    );
    expect(conditions[0]).toEqual({
      condition: 'collection is SENTINEL-2',
      count: 2,
      isMinimum: false,
    });
    expect([matches.count, products.count]).toEqual([1, 4]);
  });

  it('finds products that arrived since the last query', async ({ context: own }) => {
    expect(await own.digits(['--limit', '1'])).toBe('4');
    await own.fill([deliveryOf({ id: guid('6'), name: 'S2C_NEW.SAFE' })]);
    expect(await own.digits(['--limit', '1'])).toBe('6');
  });

  it.each([
    ['received desc', '4321'],
    // A product without a date counts as the oldest.
    ['ContentDate/Start asc', '4213'],
  ])('prints a key for the next page, ordered by %s', async (orderby, digits) => {
    const page = (form: string, ...words: string[]) =>
      context.earshot(['query', 'products', '--orderby', orderby, '--output', form, ...words]);
    const first = await page('ids', '--limit', '1');
    const keyOf = ({ err }: { err: string }) => /Next page: --after (\S+)\n$/.exec(err)?.[1] ?? '';
    const rest = await page('ids', '--limit', '3', '--after', keyOf(first));
    const ids = (first.out + rest.out).trimEnd().split('\n');
    expect(ids.map((id) => id.slice(-1)).join('')).toBe(digits);
    const beyond = await page('table', '--after', keyOf(rest));
    expect(beyond).toMatchObject({ code: 0, out: '', err: 'No more rows.\n' });
  });

  it.each([['--count'], ['--name', 'none']])(
    'stops at the request of the user: %s',
    async (...words) => {
      const asking = context.start(['query', 'products', ...words]);
      asking.stop();
      expect(await asking.ended).toMatchObject({ code: 1, out: '' });
    },
  );

  it.each([
    [
      '--collection S2 --name S2A_MSI',
      'No product matches this condition: product name is S2A_MSI.',
    ],
    [
      '--collection S1 --type S2MSI1C',
      'No product matches all conditions together; each condition alone matches some.',
    ],
    [
      '--collection S2 --until 2020-01-01',
      'No product matches this condition: received before 2020-01-01T00:00:00.000000Z.',
    ],
    [
      '--deleted 2020 --collection S2',
      'No deleted product matches this condition: deletion date is before 2021-01-01 00:00:00 UTC.',
    ],
  ])('%s matches nothing: reports the condition on stderr, and exits 0', async (flags, why) => {
    expect(await context.earshot(`query products ${flags}`)).toMatchObject({
      code: 0,
      out: '',
      err: `${why}\n`,
    });
  });

  it('notes on stderr that a share was probably meant as percent', async () => {
    const note = 'Cloud cover is in percent: 0.2 means 0.2 %. For 20 %, use --cloud-below 20.\n';
    const query = 'query products --count --cloud-below';
    expect(await context.earshot(`${query} 0.2`)).toMatchObject({ code: 0, err: note });
    expect(await context.earshot(`${query} 1`)).toMatchObject({ code: 0, err: '' });
  });
});

describe('a box', () => {
  it.each([
    ['48,6,45,11', 357, '6,45,11,48'],
    ['-30,15,-35,20', 355, '15,-35,20,-30'],
  ])('%s that starts with a latitude causes a warning', async (box, degrees, corrected) => {
    const { err } = await expectEnd(context.earshot(['query', 'products', `--bbox=${box}`]), 0);
    expect(err).toContain(
      `warning: --bbox: The box spans ${degrees} degrees of longitude, across the antimeridian. The order is west,south,east,north. If you wrote latitudes first, use ${corrected}.\n`,
    );
  });

  it.each(['6,45,11,48', '170,-20,-170,20', '100,0,-80,20'])('%s causes none', async (box) => {
    const { err } = await context.earshot(['query', 'products', `--bbox=${box}`]);
    expect(err).not.toContain('warning');
  });
});

describe('a record without attributes', () => {
  const name = 'S2C_MSIL1C_20260501T103021_N0511_R022_T33UVV_20260501T140000.SAFE';
  const query = ['query', 'products'];

  it('has the tile, orbit and level of its name, and --tile finds it', async ({ context: own }) => {
    const [id, other] = [guid('7'), guid('8')];
    await own.fill([deliveryOf({ id, name, fields: { Attributes: undefined } })]);
    const attributes = { tileId: '33UVV' };
    await own.fill([deliveryOf({ id: other, name: 'unnamed', attributes })]);
    const columns =
      'platform,productType,processingLevel,tile,relativeOrbitNumber,processingBaseline';
    const csv = [...query, '--output', 'csv', '--columns', columns];
    const { out } = await own.earshot([...csv, '--name', 'S2C_*']);
    expect(out.split('\n')[1]).toBe('SENTINEL-2C,S2MSI1C,S2MSI1C,33UVV,22,05.11');
    expect(await own.digits(['--tile', 'T33UVV'])).toBe('87');
    expect(await own.digits(['--tile', '31UFR,33UVV'])).toBe('871');
  });

  it('matches no filter on an attribute, as in the catalogue', async ({ context: own }) => {
    await own.fill([deliveryOf({ id: guid('7'), name, fields: { Attributes: undefined } })]);
    const filter =
      "Attributes/OData.CSC.StringAttribute/any(a:a/Name eq 'tileId' and a/OData.CSC.StringAttribute/Value eq '33UVV')";
    expect(await own.digits(['--filter', filter])).toBe('');
    expect(await own.digits(['--filter', `not ${filter}`, '--collection', 'S2'])).toBe('721');
  });
});

describe('an unknown name', () => {
  it.each([
    ['--collection', 'SENTINEL2', 'SENTINEL-2'],
    ['--type', 'grd', 'GRD'],
    ['--type', 'iw_grdh_1s', 'IW_GRDH_1S'],
    ['--type', 'S2MSI2A,S2MSIA1C', 'S2MSI1C'],
    ['--type', 'MSIL2A', 'S2MSI2A'],
  ])('%s %s causes a warning with a similar name', async (flag, name, similar) => {
    const { code, err } = await context.earshot(['query', 'products', flag, name, '--count']);
    expect(code).toBe(0);
    expect(err).toMatch(new RegExp(`^warning: Unknown .* Did you mean '${similar}'.*\\?\\n$`));
  });
});

describe('usage errors', () => {
  it.each<[string, RegExp]>([
    ['--bbox 1,2,3', /west,south,east,north in degrees, such as/],
    [
      '--bbox 45,120,48,130',
      /latitudes from -90 to 90; 45,120,48,130 is out of range\. .* Did you mean 120,45,130,48\?\n/,
    ],
    [
      '--bbox 6,95,11,99',
      /out of range\. The order is west,south,east,north\. Did you mean 95,6,99,11\?\n/,
    ],
    [
      '--bbox 6,45,11,99',
      /latitudes from -90 to 90; .* out of range\. .*Did you mean 45,6,99,11\?\n/,
    ],
    [
      '--bbox 5,48,11,45',
      /South \(48\) is greater than north \(45\)\. .*Did you mean 5,45,11,48\?\n/,
    ],
    ['--bbox 200,0,210,1', /Longitudes are from -180 to 180, .*; 200,0,210,1 is out of range\./],
    ['--bbox 5,45,5,48', /no area/],
    ['--bbox 5,45,6,45', /no area/],
    ['--bbox 180,0,-180,10', /same meridian\. For all longitudes, use -180,0,180,10\./],
    ['--bbox 0,0,1e-320,1', /too small/],
    ['--bbox ,,,', /west,south,east,north/],
    [
      '--area nowhere.geojson',
      /: nowhere\.geojson cannot be read as GeoJSON: there is no such file/,
    ],
    ['--name S2?_*', /does not support "\?"\. Use \* for any text: 'S2\*_\*'/],
    ['--name *', /omit --name/],
    ['--sensed yesterday', /24h or 7d .*2026-11/],
    ['--sensed 2026-13', /24h or 7d/],
    ['--sensed ..', /24h or 7d/],
    ['--sensed 2026-05-02..2026-05-01', /The range ends before it starts\. Put 2026-05-01 first/],
    [
      '--sensed 2026-05-01T10:00:00Z',
      /A single time is not a range\. Use 2026-05-01T10:00:00Z\.\./,
    ],
    ['--tile 31U', /tiles such as 31UFR/],
    ['--tile 99ZZZ', /99ZZZ is not a tile\. A tile is a zone from 1 to 60, .* C to X .*31UFR/],
    ['--tile 31UFR,61UFR', /61UFR is not a tile\. A tile is a zone from 1 to 60/],
    ['--tile 31UFI', /31UFI is not a tile\. .*without I and O/],
    ['--collection ,', /one or more names, comma-separated/],
    ['--cloud-below many', /'many' is invalid\. Cloud cover is a percentage\. .*such as 20/],
    ['--cloud-below 200', /'200' is invalid\. Cloud cover is a percentage/],
    ['--cloud-below -5', /Cloud cover .*at most 100/],
    ['--cloud-below 0', /Cloud cover is never below 0 percent/],
    ['--deleted --published 7d', /no publication date for deleted products\. Use --deleted 7d/],
    ['--orderby Name', /not a sort order of products\. Use one of received, ContentDate\/Start/],
    ['--orderby DeletionDate', /not a sort order of products/],
    [
      '--deleted --orderby PublicationDate',
      /not a sort order of deleted products\. .*DeletionDate/,
    ],
    ['--orderby received,down', /not a sort order of products/],
    ['--after nonsense', /--after nonsense is not a valid key/],
    ['--limit 0', /whole number, 1 or more/],
    [
      '--output xml',
      /Allowed choices are table, json, ndjson, csv, geojson, geoparquet, ids, stac/,
    ],
    ['--count --limit 3', /cannot be used with/],
    ['--count --output csv', /cannot be used with/],
    ['--explain --count', /cannot be used with/],
    ['--cloudy 3', /unknown option '--cloudy'/],
  ])('%s exits 2 with a correction', async (line, message) => {
    await expectRefusal(context.earshot(['query', 'products', ...line.split(' ')]), message);
  });

  it.each<[string, string[], RegExp]>([
    ["Nam eq 'x'", [], /Nam eq 'x'\n +\^/],
    ["Name eq 'x", [], /Name eq 'x\n +/],
    ['DeletionDate gt 2026-01-01', [], /DeletedProducts/],
    ['Online eq true', ['--deleted'], /Online/],
    ['Collection/Name eq SENTINEL-2', [], /'SENTINEL-2'/],
  ])('the filter %s is refused with the position', async (filter, words, message) => {
    const argv = ['query', 'products', '--filter', filter, ...words];
    const { code, out, err } = await context.earshot(argv);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(/^earshot: The filter is not valid for (Deleted)?Products\.\n {2}- /);
    expect(err).toMatch(message);
  });

  it('a key of another order is refused with the order it belongs to', async () => {
    const first = await context.earshot('query products --limit 1');
    const key = /--after (\S+)/.exec(first.err)?.[1] ?? '';
    const argv = ['query', 'products', '--orderby', 'received asc', '--after', key];
    await expectEnd(
      context.earshot(argv),
      2,
      'belongs to another query. Add --orderby "received desc"',
    );
  });

  it.each<[string, string, RegExp]>([
    ['no JSON', 'Polygon', /cannot be read as GeoJSON: .*JSON/],
    ['no GeoJSON', '{"type":"Circle"}', /cannot be read as GeoJSON: .*Circle/],
    [
      'a line',
      '{"type":"LineString","coordinates":[[1,2],[3,4]]}',
      /cannot be read as GeoJSON: .*LineString/,
    ],
    [
      'an open ring',
      '{"type":"Polygon","coordinates":[[[4,50],[5,50],[5,51],[4,51]]]}',
      /area\.geojson cannot be used: .*\n {2}- /,
    ],
  ])('a file with %s is refused with the reason', async (_title, text, message) => {
    const file = join(temporaryDirectory(), 'area.geojson');
    writeFileSync(file, text);
    await expectRefusal(context.earshot(['query', 'products', '--area', file]), message);
  });
});
