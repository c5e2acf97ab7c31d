/** Pages of the STAC API over real sockets: items and collections. */
import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { CollectionSummary } from '../../../src/filter/products.ts';
import {
  type Answer,
  follow,
  generatedProducts,
  openConsole,
  openFilled,
} from '../../core/api/console-context.ts';
import { schemaFolder, validateStac } from './schemas.ts';
import { followPosts, idsOf, linkOf, nextOf, query, relsOf } from './stac-answers.ts';

describe('a list of items', () => {
  it.each<[name: string, parameters: Record<string, string>, body: object]>([
    ['the default order', {}, {}],
    ['ascending order', { sortby: 'datetime' }, { sortby: [{ field: 'datetime' }] }],
    [
      'descending order, and a condition',
      { sortby: '-updated', filter: "title LIKE 'S2%'" },
      { sortby: [{ field: 'updated', direction: 'desc' }], filter: "title LIKE 'S2%'" },
    ],
  ])('walks back to the first page in %s', async (_name, parameters, body) => {
    const context = await openFilled();
    const pagesOf = (answers: readonly Answer[]) => answers.map((one) => idsOf([one]));
    const first = query('/search', { ...parameters, limit: '4' });
    const pages = await follow(context, first, nextOf);
    expect(pages.length).toBeGreaterThan(3);
    expect(relsOf(pages[0])).not.toContain('prev');
    const prevOf = (json: Answer['json']) => linkOf({ json }, 'prev');
    const back = await follow(context, linkOf({ json: pages.at(-1)?.json }, 'self'), prevOf);
    expect(pagesOf(back)).toEqual(pagesOf(pages).toReversed());
    const again = await follow(context, linkOf({ json: back.at(-1)?.json }, 'self'), nextOf);
    expect(pagesOf(again)).toEqual(pagesOf(pages));
    const posted = await followPosts(context, { ...body, limit: 4 });
    expect(pagesOf(posted)).toEqual(pagesOf(pages));
    const { token } = posted.at(-2)?.json.links.at(-1).body ?? {};
    const postedBack = await followPosts(context, { ...body, limit: 4, token }, 'prev');
    expect(pagesOf(postedBack)).toEqual(pagesOf(pages).toReversed());
  });

  it('finds newer items before the first page; an empty page leads to no other', async () => {
    const context = await openFilled(6);
    const [first, second] = await follow(context, '/stac/search?limit=3', nextOf);
    const newer = generatedProducts(7).products.slice(6);
    context.products.add('Products', ...newer);
    const back = await context.get(linkOf({ json: second?.json }, 'prev'));
    expect(idsOf([back])).toEqual(first && idsOf([first]));
    const newest = await context.get(linkOf(back, 'prev'));
    expect(idsOf([newest])).toEqual(newer.map(({ Id }) => Id));
    expect(relsOf(newest)).not.toContain('prev');
    const empty = await context.get(`${linkOf(back, 'prev')}&ids=no-such`);
    expect([idsOf([empty]), relsOf(empty)]).toEqual([[], ['self', 'root']]);
  });
});

it('a list of collections has all of them, each valid', async (context) => {
  const { get, products } = await openConsole();
  const summary: CollectionSummary = {
    ...{ mission: 'SENTINEL-2', productType: 'A', products: 1, box: null },
    ...{ sensingStartUs: null, sensingEndUs: null, cloudCoverMin: null, cloudCoverMax: null },
    ...{ constellations: [], platforms: [], orbitDirections: [], levels: [] },
  };
  const box = { west: 5, south: 45, east: 11, north: 48 };
  products.collections = async () => [summary, { ...summary, productType: 'B', box }];
  const { json } = await get('/stac/collections');
  expect(json).toMatchObject({ numberMatched: 2, numberReturned: 2 });
  expect(json.collections[0].itemType).toBe('feature');
  if (!existsSync(schemaFolder))
    context.skip('the folder ../shared/fixtures/stac-schemas is not there');
  expect((await validateStac(json.collections)).faults).toEqual([]);
});
