/** Products and events of the sandbox: queries, publishing, late records, a past, and the recorded answers. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { SandboxOptions } from '../../src/sandbox/settings.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import {
  dayMs,
  iso,
  missing,
  recorded,
  send,
  startMs,
  startTestSandbox,
  unknownId,
} from './set-up.ts';

async function startCatalogue(options: Partial<SandboxOptions> = {}) {
  const test = await startTestSandbox(options);
  const get = (path: string) => send(`${test.sandbox.catalogueUrl}/odata/v1${path}`);
  const list = (query: Record<string, string> = {}, entity = 'Products') =>
    get(`/${entity}?${new URLSearchParams(query)}`);
  const ids = async (query: Record<string, string> = {}, entity = 'Products') =>
    (await list({ $top: '1000', ...query }, entity)).json.value.map(({ Id }: { Id: string }) => Id);
  const published = () => test.sandbox.events().map(({ productId }) => productId);
  return { ...test, get, list, ids, published };
}

describe('a list of products', () => {
  it('has pages in the order of publication, without a token', async () => {
    const { sandbox, list, published } = await startCatalogue();
    await sandbox.publishNow(25);
    const first = await list({ $count: 'true' });
    expect(first.json).toMatchObject({
      '@odata.count': 25,
      '@odata.context': '$metadata#Products',
    });
    const second = await send(first.json['@odata.nextLink']);
    const records = [...first.json.value, ...second.json.value];
    expect(records.map(({ Id }) => Id)).toEqual(published());
    const newest = (await list({ $orderby: 'ContentDate/Start desc', $top: '25' })).json.value;
    const dates = newest.map((one: { ContentDate: { Start: string } }) => one.ContentDate.Start);
    expect(dates).toEqual(dates.toSorted().toReversed());
    expect(new Set(dates).size).toBeGreaterThan(15);
    expect(second.json['@odata.nextLink']).toBeUndefined();
    expect(records[0]).not.toHaveProperty('Attributes');
  });

  it('with a filter has the matching ones', async () => {
    const { sandbox, ids } = await startCatalogue();
    await sandbox.publishNow(60);
    for (const [filter, pattern] of [
      ["Collection/Name eq 'SENTINEL-2'", /^S2/],
      ["contains(Name,'_GRDH_') and not contains(Name,'COG')", /_GRDH_(?!.*COG)/],
      [`PublicationDate lt ${iso(startMs - 1)} and startswith(Name,'S3')`, /^S3/],
      [`Online eq true and ModificationDate gt ${iso(startMs)}`, /^$/],
    ] as const) {
      const matching = sandbox.events().filter(({ productName }) => pattern.test(productName));
      expect(await ids({ $filter: filter }), filter).toEqual(
        matching.map(({ productId }) => productId),
      );
    }
  });

  it.each([
    ['%24top=-1', 422, 'products-422-1.json'],
    ['$filter=Nonsense', 400, null],
    ['$orderby=Name', 400, null],
    ['$expand=Nothing', 400, null],
  ])('with %s is refused with %i', async (query, status, file) => {
    const { get } = await startCatalogue();
    const { json, ...answer } = await get(`/Products?${query}`);
    expect([answer.status, json.detail]).toEqual([status, expect.anything()]);
    if (file === null || missing) return;
    expect(json).toEqual(recorded(`errors/${file}`).response.body);
  });

  it('equals a recorded answer, with its records from a file', async (context) => {
    if (missing) return context.skip('there is no folder with recorded answers');
    const shown = recorded('lists/products-page-1-count-nextlink.json');
    const more = { ...shown.value[0], Id: unknownId, ContentDate: { Start: '2014-04-13' } };
    const recordsFile = join(temporaryDirectory(), 'records.jsonl');
    const lines = [...shown.value.toReversed(), more].map((one) => JSON.stringify(one));
    writeFileSync(recordsFile, lines.join('\n'));
    const { sandbox } = await startCatalogue({ recordsFile });
    expect(await sandbox.publishNow(99)).toBe(11);
    const { pathname, search } = new URL(shown['@odata.nextLink']);
    const link = `${sandbox.catalogueUrl}${pathname}${search}`;
    const { json } = await send(link.replace(/&%24skip=\d+/, ''));
    const changed = { '@odata.nextLink': link, '@odata.count': 11 };
    expect(JSON.stringify(json)).toBe(JSON.stringify({ ...shown, ...changed }));
  });
});

describe('a product', () => {
  it('is found by its id, with its newest state, and after its deletion as a deleted product', async () => {
    const { sandbox, get, published } = await startCatalogue();
    await sandbox.publishNow(1);
    const [id = ''] = published();
    const created = (await get(`/Products(${id.toUpperCase()})?$expand=Attributes`)).json;
    expect(created.Attributes.length).toBeGreaterThan(4);
    sandbox.clock.advance(dayMs);
    await sandbox.publishNow(1, 'modified');
    const modified = (await get(`/Products(${id})`)).json;
    expect(Date.parse(modified.ModificationDate)).toBeGreaterThan(startMs);
    expect(modified.PublicationDate).toBe(created.PublicationDate);
    await sandbox.publishNow(1, 'deleted');
    expect((await get(`/Products(${id})`)).status).toBe(404);
    const { DeletionCause, DeletionDate } = (await get(`/DeletedProducts(${id})`)).json;
    expect([DeletionCause, Date.parse(DeletionDate) > startMs]).toEqual([expect.any(String), true]);
  });

  it('is published 46 to 48 s before its notification, and with a delay shown after it', async () => {
    const { sandbox, ids } = await startCatalogue({ lateShare: 1, lateMaxMs: 60_000 });
    await sandbox.publishNow(20);
    for (const { dateUs, at } of sandbox.events()) {
      const delayMs = Date.parse(at) - (dateUs ?? 0) / 1_000;
      expect([delayMs > 45_998, delayMs <= 48_000]).toEqual([true, true]);
    }
    expect(await ids()).toEqual([]);
    sandbox.clock.advance(30_000);
    const shown = sandbox.events().filter((one) => Date.parse(one.shownFrom) <= startMs + 30_000);
    expect(shown.every((one) => one.shown)).toBe(true);
    expect((await ids()).toSorted()).toEqual(shown.map(({ productId }) => productId).toSorted());
    expect(shown.length).toBeGreaterThan(0);
    sandbox.clock.advance(30_000);
    expect(await ids()).toHaveLength(20);
  });
});

it('publishing adds a past that ends now, with its changes, and passes time with products spread evenly', async () => {
  const past = { durationMs: 2 * dayMs, productsPerDay: 40 };
  const { sandbox, ids } = await startCatalogue({ past, modifiedShare: 0.5, deletedShare: 0.3 });
  const kinds = Map.groupBy(sandbox.events(), ({ event }) => event);
  expect(kinds.get('created')).toHaveLength(80);
  expect(kinds.get('modified')?.length).toBeGreaterThan(30);
  expect(await ids({}, 'DeletedProducts')).toHaveLength(kinds.get('deleted')?.length ?? 0);
  const times = sandbox.events().map(({ at }) => Date.parse(at));
  expect([times.at(-1), times.toSorted((a, b) => a - b)]).toEqual([startMs, times]);
  expect(sandbox.totals().published).toBe(0);
  await sandbox.pass({ durationMs: dayMs, products: 24 });
  const created = sandbox.events().filter(({ event }) => event === 'created');
  const hours = created.map(({ at }) => (Date.parse(at) - startMs) / 3_600_000);
  expect(hours.slice(80)).toEqual(Array.from({ length: 24 }, (_, index) => index + 1));
  expect(sandbox.clock.now()).toBe(startMs + dayMs);
});

it('query results have the newest state of each product, as a model of all events has', async () => {
  const event = fc.constantFrom('created' as const, 'modified' as const, 'deleted' as const);
  await fc.assert(
    fc.asyncProperty(fc.array(event, { maxLength: 12 }), async (kinds) => {
      const { sandbox, ids } = await startCatalogue();
      for (const kind of kinds) await sandbox.publishNow(2, kind);
      const events = sandbox.events();
      const gone = events.filter((one) => one.event === 'deleted').map((one) => one.productId);
      const created = events.filter((one) => one.event === 'created').map((one) => one.productId);
      expect(await ids()).toEqual(created.filter((id) => !gone.includes(id)));
      expect(await ids({}, 'DeletedProducts')).toEqual(gone);
      const filter = `ModificationDate ge ${iso(startMs - dayMs)}`;
      const shown = new Set(events.filter((one) => one.shown).map((one) => one.productId));
      expect((await ids({ $filter: filter })).every((id: string) => shown.has(id))).toBe(true);
    }),
    { numRuns: 12 },
  );
});
