/** Clients of STAC and OGC API Features on the private listener: GDAL with a password, OWSLib, and recorded requests. */
import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import {
  follow,
  generatedProducts,
  openFilled,
  openWithPassword,
} from '../core/api/console-context.ts';
import { followPosts, idsOf, nextOf } from '../features/stac/stac-answers.ts';

const run = promisify(execFile);
const page = readFileSync(join(import.meta.dirname, '../../docs/stac.md'), 'utf8');

/** In CI, a missing program is a failure. */
const has = (path: string) => process.env.CI !== undefined || existsSync(path);

it.skipIf(!has('/usr/bin/ogrinfo'))('GDAL reads with a password, as the page shows', async () => {
  const { products, origin } = await openWithPassword();
  products.add('Products', ...generatedProducts(12).products);
  const [command = ''] = /^ogrinfo .*USERPWD=.*$/m.exec(page) ?? [];
  expect(command).toContain('-oo USERPWD=earshot:<password>');
  const used = command.replace('http://127.0.0.1:8080', origin);
  const { stdout } = await run('sh', ['-c', used.replace('<password>', "'a: word'")]);
  expect(stdout).toContain('Feature Count: ');
  const inside = /`(GDAL_HTTP_USERPWD=earshot:)<password>`/.exec(page)?.[1];
  const set = `${inside}'a: word' ${used.replace(/ -oo USERPWD=\S+/, '')}`;
  expect((await run('sh', ['-c', set])).stdout).toBe(stdout);
  const wrong = await run('sh', ['-c', used.replace('<password>', 'wrong')]).catch((one) => one);
  expect(`${wrong.stdout}${wrong.stderr}`).toContain(
    'A valid user name and password are required.',
  );
});

/** Reads items of a collection, and prints the collections of features. */
const owslibScript = `
import sys
from owslib.ogcapi.features import Features
api = Features(sys.argv[1])
names = api.feature_collections()
name = "SENTINEL-2.S2MSI1C"
first = api.collection_items(name, limit=1000, bbox=[-180, -90, 180, 90])["features"][0]
assert api.collection_item(name, first["id"]) == first
assert api.collection_items(name, datetime="1990-01-01/1990-01-02")["features"] == []
assert "/collections/{collectionId}/items" in api.api()["paths"]
assert "eo:cloud_cover" in api.collection_queryables(name)["properties"]
print(*names)
`;

it.skipIf(!has('/usr/lib/python3/dist-packages/owslib/__init__.py'))(
  'OWSLib lists the collections, and reads items',
  async () => {
    const { origin, get } = await openFilled(12);
    const { collections } = (await get('/stac/collections')).json;
    const env = { PATH: '/usr/bin:/bin' };
    const { stdout } = await run('/usr/bin/python3', ['-c', owslibScript, `${origin}/stac`], {
      env,
    });
    const ids = collections.map(({ id }: { id: string }) => id);
    expect(stdout.trimEnd().split(' ')).toEqual(ids);
  },
);

/** Requests of clients that are neither in Debian nor in npm, with their parameters in the same order. */
const recorded: [client: string, target: string, body?: object][] = [
  ['pystac-client 0.6, get_items', '/collections/<X>/items?limit=100&collections=<X>'],
  ['pystac-client 0.9, get_items', '/collections/<X>/items?collections=<X>'],
  ['pystac-client 0.9, get_items of ids', '/search?ids=<id>&collections=<X>'],
  [
    'pystac-client 0.8, search',
    '/search',
    {
      ...{
        limit: 100,
        bbox: [-180, -90, 180, 90],
        datetime: '2026-01-01T00:00:00Z/2026-12-31T23:59:59Z',
      },
      ...{ collections: ['<X>'], sortby: [{ field: 'properties.datetime', direction: 'desc' }] },
    },
  ],
  [
    'pystac-client 0.9, search with a filter',
    '/search',
    {
      ...{ collections: ['<X>'], 'filter-lang': 'cql2-json' },
      filter: { op: '<=', args: [{ property: 'eo:cloud_cover' }, 100] },
      fields: { include: ['properties.title'], exclude: ['assets'] },
    },
  ],
  [
    'pystac-client 0.8, collection_search',
    '/collections?limit=100&bbox=-180,-90,180,90&datetime=2026-01-01T00:00:00Z/2026-12-31T23:59:59Z',
  ],
  ['rstac, collections', '/collections?limit=10'],
  [
    'rstac, items',
    '/collections/<X>/items?bbox=-180,-90,180,90&datetime=2026-01-01/2026-12-31&limit=5',
  ],
  [
    'rstac, stac_search',
    '/search?bbox=-180,-90,180,90&datetime=2026-01-01/2026-12-31&collections=<X>&limit=5',
  ],
  [
    'rstac, ext_filter',
    '/search',
    {
      'filter-lang': 'cql2-json',
      filter: { op: '=', args: [{ property: 'collection' }, '<X>'] },
      limit: 5,
    },
  ],
  [
    'all members of a search, most of them null',
    '/search',
    {
      ...{ collections: ['<X>'], ids: null, bbox: null, intersects: null, datetime: null },
      ...{ limit: 5, filter: null, 'filter-lang': null, sortby: null, fields: null, token: null },
    },
  ],
];

it.each(recorded)('%s: finds all pages', async (_client, target, body) => {
  const context = await openFilled();
  const collection = 'SENTINEL-2.S2MSI1C';
  const all = idsOf([await context.get(`/stac/search?limit=1000&collections=${collection}`)]);
  const filled = (text: string) =>
    text.replaceAll('<X>', collection).replaceAll('<id>', all[0] ?? '');
  const answers =
    body === undefined
      ? await follow(context, filled(`/stac${target}`), nextOf)
      : await followPosts(context, JSON.parse(filled(JSON.stringify(body))));
  const found = answers.flatMap(({ json }) => json.features ?? json.collections);
  const ids = found.map(({ id }: { id: string }) => id);
  if (target.startsWith('/collections?')) expect(ids).toContain(collection);
  else expect(ids.toSorted()).toEqual(target.includes('<id>') ? all.slice(0, 1) : all.toSorted());
});
