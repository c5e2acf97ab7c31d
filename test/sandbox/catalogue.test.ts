/** Products and events of the sandbox: queries, publishing, late records, a past, and the recorded answers. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { SandboxOptions } from '../../src/sandbox/sandbox-options.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { dayMs, iso, send, startMs, startTestSandbox, unknownId } from './set-up.ts';

const fixtures = new URL('../../../shared/fixtures/', import.meta.url);
const missing = !existsSync(fixtures);
const fixture = (name: string) => JSON.parse(readFileSync(new URL(name, fixtures), 'utf8'));

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
    expect(second.json['@odata.nextLink']).toBeUndefined();
    expect(records[0]).not.toHaveProperty('Attributes');
    sandbox.service.change({ queriesNeedToken: true });
    expect((await list()).status).toBe(401);
  });

  it.each([
    ["Collection/Name eq 'SENTINEL-2'", (name: string) => name.startsWith('S2')],
    [
      "contains(Name,'_GRDH_') and not contains(Name,'COG')",
      (name: string) => /_GRDH_(?!.*COG)/.test(name),
    ],
    [
      `PublicationDate lt ${iso(startMs - 1)} and startswith(Name,'S3')`,
      (name: string) => /^S3/.test(name),
    ],
    [`Online eq true and ModificationDate gt ${iso(startMs)}`, () => false],
  ])('with the filter %s has the matching ones', async (filter, matches) => {
    const { sandbox, ids } = await startCatalogue();
    await sandbox.publishNow(60);
    const expected = sandbox.events().filter(({ productName }) => matches(productName));
    expect(await ids({ $filter: filter })).toEqual(expected.map(({ productId }) => productId));
  });

  it.each([
    ['PublicationDate desc', 'PublicationDate', true],
    ['ContentDate/Start', 'ContentDate.Start', false],
  ])('is in the order %s', async (order, path, isDescending) => {
    const { sandbox, list } = await startCatalogue();
    await sandbox.publishNow(40);
    const { value } = (await list({ $orderby: order, $top: '40' })).json;
    const [first, second = ''] = path.split('.');
    const dates = value.map(
      (one: Record<string, never>) => one[first ?? '']?.[second] ?? one[first ?? ''],
    );
    const sorted = dates.toSorted();
    expect(dates).toEqual(isDescending ? sorted.toReversed() : sorted);
    expect(new Set(dates).size).toBeGreaterThan(20);
  });

  it.each([
    ['%24top=-1', 422, 'products-422-1.json'],
    ['$filter=Nonsense', 400, null],
    ['$orderby=Name', 400, null],
    ['$expand=Nothing', 400, null],
  ])('with %s is refused with %i', async (query, status, recorded) => {
    const { get } = await startCatalogue();
    const { json, ...answer } = await get(`/Products?${query}`);
    expect([answer.status, json.detail]).toEqual([status, expect.anything()]);
    if (recorded === null || missing) return;
    expect(json).toEqual(fixture(`errors/${recorded}`).response.body);
  });

  it('equals a recorded answer, with its records from a file', async (context) => {
    if (missing) return context.skip('there is no folder with recorded answers');
    const shown = fixture('lists/products-page-1-count-nextlink.json');
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
    expect(sandbox.events().map(({ event, shown }) => [event, shown])).toEqual([
      ...[
        ['created', false],
        ['modified', false],
      ],
      ['deleted', true],
    ]);
    expect(sandbox.holdings()).toEqual({ products: 0, deletedProducts: 1, events: 3 });
  });

  it('is published 46 to 48 seconds before its notification', async () => {
    const { sandbox } = await startCatalogue();
    await sandbox.publishNow(20);
    for (const { dateUs, at } of sandbox.events()) {
      const delayMs = Date.parse(at) - (dateUs ?? 0) / 1_000;
      expect(delayMs).toBeGreaterThan(45_998);
      expect(delayMs).toBeLessThanOrEqual(48_000);
    }
  });

  it('with a delay appears in query results after its notification', async () => {
    const { sandbox, ids } = await startCatalogue({ lateShare: 1, lateMaxMs: 60_000 });
    await sandbox.publishNow(20);
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

describe('publishing', () => {
  it('adds a past that ends now, without notifications, with its changes', async () => {
    const past = { durationMs: 2 * dayMs, productsPerDay: 40 };
    const shares = { modifiedShare: 0.5, deletedShare: 0.3 };
    const { sandbox, ids } = await startCatalogue({ past, ...shares });
    const events = sandbox.events();
    const kinds = Map.groupBy(events, ({ event }) => event);
    expect(kinds.get('created')).toHaveLength(80);
    expect(kinds.get('modified')?.length).toBeGreaterThan(30);
    const deleted = kinds.get('deleted') ?? [];
    expect((await ids({}, 'DeletedProducts')).length).toBe(deleted.length);
    const times = events.map(({ at }) => Date.parse(at));
    expect([times.at(-1), times.toSorted((a, b) => a - b)]).toEqual([startMs, times]);
    expect(times[0]).toBeLessThan(startMs - 1.9 * dayMs);
    expect(sandbox.totals().published).toBe(0);
  });

  it('passes simulated time, and publishes products spread evenly', async () => {
    const { sandbox } = await startCatalogue();
    await sandbox.pass({ durationMs: dayMs, products: 24 });
    const times = sandbox.events().map(({ at }) => (Date.parse(at) - startMs) / 3_600_000);
    expect(times).toEqual(Array.from({ length: 24 }, (_, index) => index + 1));
    expect(sandbox.clock.now()).toBe(startMs + dayMs);
  });

  it('by rate begins with the first running subscription, and ends with its changes', async () => {
    const options = { count: 12, ratePerSecond: 1_000, modifiedShare: 1, now: Date.now };
    const { sandbox } = await startCatalogue(options);
    expect(sandbox.holdings().events).toBe(0);
    sandbox.pause();
    sandbox.addSubscription({ type: 'pull', events: ['created', 'modified'] });
    sandbox.resume();
    expect(await sandbox.finished).toMatchObject({ published: 24, pending: 24 });
  });

  it('with the same seed publishes the same', async () => {
    const publish = async (seed: number) => {
      const { sandbox } = await startCatalogue({ seed, modifiedShare: 0.5, deletedShare: 0.5 });
      await sandbox.pass({ durationMs: dayMs, products: 30 });
      return sandbox.events();
    };
    expect(await publish(7)).toEqual(await publish(7));
    expect(await publish(8)).not.toEqual(await publish(7));
  });

  it('keeps the newest events with their products, within a maximum', async () => {
    const { sandbox, ids } = await startCatalogue({ eventsMax: 20 });
    await sandbox.publishNow(100);
    const events = sandbox.events();
    expect(events.length).toBeLessThanOrEqual(22);
    expect(await ids()).toEqual(events.map(({ productId }) => productId));
    expect(sandbox.holdings().events).toBe(100);
  });
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
