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

describe('a list of collections', () => {
  it('has the collections in a box or a time, by pages of which each leads to the next and previous', async (context) => {
    const { get, products } = await openConsole();
    const summary = (productType: string, changes: Partial<CollectionSummary> = {}) => ({
      ...{ mission: 'SENTINEL-2', productType, products: 1, box: null },
      ...{ sensingStartUs: null, sensingEndUs: null, cloudCoverMin: null, cloudCoverMax: null },
      ...{ constellations: [], platforms: [], orbitDirections: [], levels: [] },
      ...changes,
    });
    const year = (number: number) => Date.UTC(number, 0, 1) * 1_000;
    products.collections = async () => [
      summary('B', { box: { west: 5, south: 45, east: 11, north: 48 } }),
      summary('A', { box: { west: -180, south: -90, east: -170, north: -80 } }),
      summary('D', { sensingStartUs: year(2020), sensingEndUs: year(2022) }),
      summary('C', { sensingStartUs: year(2023), sensingEndUs: year(2024) }),
      summary('E'),
    ];
    const list = (parameters: Record<string, string> = {}) =>
      get(query('/collections', parameters));
    const idsIn = ({ json }: Answer) =>
      json.collections.map(({ id }: { id: string }) => id.replace('SENTINEL-2.', '')).join('');
    const found = async (parameters: Record<string, string>) => idsIn(await list(parameters));
    const whole = await list();
    expect(idsIn(whole)).toBe('ABCDE');
    expect(whole.json).toMatchObject({ numberMatched: 5, numberReturned: 5 });
    expect(relsOf(whole)).toEqual(['self', 'root', 'parent']);
    expect(whole.json.collections[0].itemType).toBe('feature');
    expect(await found({ bbox: '0,40,6,46' })).toBe('BCDE');
    expect(await found({ bbox: '0,40,0,6,46,9' })).toBe('BCDE');
    expect(await found({ bbox: '170,-90,-175,-80' })).toBe('ACDE');
    expect(await found({ bbox: '8,46,8,46' })).toBe('BCDE');
    expect(await found({ datetime: '2021-05-01' })).toBe('ABDE');
    expect(await found({ datetime: '2022-06-01/2023-06-01' })).toBe('ABCE');
    expect(await found({ datetime: '2024-06-01/..' })).toBe('ABE');
    expect(await found({ datetime: '../2022-06-01', bbox: '0,40,6,46' })).toBe('BDE');
    const pages = await follow({ get }, query('/collections', { limit: '2' }), nextOf);
    expect(pages.map(idsIn)).toEqual(['AB', 'CD', 'E']);
    expect(pages.map(({ json }) => json.numberMatched)).toEqual([5, 5, 5]);
    const back = await follow({ get }, linkOf({ json: pages[2]?.json }, 'self'), (json) =>
      linkOf({ json }, 'prev'),
    );
    expect(back.map(idsIn)).toEqual(['E', 'CD', 'AB']);
    const some = await follow(
      { get },
      query('/collections', { limit: '1', bbox: '8,46,9,47' }),
      nextOf,
    );
    expect(some.map(idsIn).join('')).toBe('BCDE');
    const parameters = (await get('/stac/api')).json.paths['/collections'].get.parameters;
    expect(parameters.map(({ name }: { name: string }) => name)).toEqual([
      'bbox',
      'datetime',
      'limit',
      'token',
      'f',
    ]);
    if (!existsSync(schemaFolder))
      context.skip('the folder ../shared/fixtures/stac-schemas is not there');
    const { faults } = await validateStac(whole.json.collections);
    expect(faults).toEqual([]);
  });
});
