/** What a FilterParam must be for the sandbox to take it, and how it refuses another. */
import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { startAccountWorld } from './account-world.ts';

const fixtures = new URL('../../../shared/fixtures/', import.meta.url);
const missing = existsSync(fixtures) ? false : 'the folder ../shared/fixtures is not there';

/** An account in which every filter has room. */
async function startWorld() {
  const world = await startAccountWorld({ service: { totalMax: 1_000 } });
  const subscribe = (FilterParam: string, SubscriptionEvent = ['created'], changes = {}) =>
    world.create({ FilterParam, SubscriptionEvent, Status: 'paused', ...changes });
  return { ...world, subscribe };
}

describe('a filter is taken', () => {
  it.each([
    ['empty', ''],
    ['blank', '   '],
    ['with a quote in a text', "Name eq 'it''s (one) of foo'"],
    ['in any case', "startswith(NAME,'S2') and COLLECTION/NAME ne 'X' or not (online eq true)"],
    [
      'with a short lambda',
      "attributes/OData.CSC.StringAttribute/any(i0:i0/Name eq 'a' and i0/Value eq 'b')",
    ],
    ['with a place', "OData.CSC.Intersects(Footprint=geography'SRID=4326;POINT(4 50)')"],
  ])('%s', async (_, filter) => {
    const { subscribe } = await startWorld();
    const { status, json } = await subscribe(filter);
    expect([status, json.FilterParam]).toEqual([201, filter]);
  });

  it('when the real service takes it', async (context) => {
    if (missing) return context.skip(missing);
    const { subscribe } = await startWorld();
    const text = readFileSync(new URL('filters-valid.json', fixtures), 'utf8');
    const filters: { entity: string; filter: string }[] = JSON.parse(text);
    expect(filters.length).toBeGreaterThan(50);
    for (const { entity, filter } of filters) {
      const event = entity === 'DeletedProducts' ? 'deleted' : 'created';
      expect((await subscribe(filter, [event])).status, filter).toBe(201);
    }
  });

  it.each([
    ['Online eq true', [201, 201, 400, 400]],
    ["DeletionCause eq 'Other'", [400, 400, 201, 400]],
    ["Name ne 'x'", [201, 201, 201, 201]],
  ])('when the products of all its events have its fields: %s', async (filter, expected) => {
    const { subscribe } = await startWorld();
    const statuses: number[] = [];
    for (const events of [['created'], ['modified'], ['deleted'], ['created', 'deleted']]) {
      statuses.push((await subscribe(filter, events)).status);
    }
    expect(statuses).toEqual(expected);
  });
});

describe('a filter is refused', () => {
  it.each([
    ["foo eq 'bar'", 'Invalid filter: Invalid field: foo'],
    [
      "Name eq 'x' and Collection/name/x eq 'y'",
      'Invalid filter: Invalid field: Collection/name/x',
    ],
    ['BurstId eq 15804', 'Invalid filter: Invalid field: BurstId'],
    ['DeletionDate gt 2023-04-01T00:00:00.000Z', 'Invalid filter: Invalid field: DeletionDate'],
    ["Name eq 'x", /^Invalid filter: /],
    ["(Name eq 'x'", /^Invalid filter: /],
    ['Collection/Name eq SENTINEL-2', /^Invalid filter: .*SENTINEL-2/],
    ["substringof('IW_GRDH',Name)", /^Invalid filter: .*substringof/],
    ["OData.CSC.Intersects(area=geography'SRID=3857;POINT(4 50)')", /^Invalid filter: .*3857/],
    [
      "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((4 50,5 50,5 51,4 51))')",
      /^Invalid filter: .*clos/,
    ],
  ])('%s', async (filter, problem) => {
    const { subscribe, list } = await startWorld();
    for (const changes of [{}, { SubscriptionType: 'pull', NotificationEndpoint: undefined }]) {
      const { status, json } = await subscribe(filter, ['created'], changes);
      expect(status).toBe(400);
      expect(Object.keys(json)).toEqual(['detail']);
      expect(json.detail).toEqual(
        typeof problem === 'string' ? problem : expect.stringMatching(problem),
      );
    }
    expect(await list()).toEqual([]);
  });

  it('when the catalogue is told to, unless it is empty', async () => {
    const { subscribe, control } = await startWorld();
    await control('PATCH', '/service', { filterRefusal: 'Invalid field: Name' });
    const { status, json } = await subscribe("Name eq 'x'");
    expect([status, json.detail]).toEqual([400, 'Invalid filter: Invalid field: Name']);
    expect((await subscribe('')).status).toBe(201);
  });

  it.each([
    ['deep', `${'('.repeat(5_000)}Name eq 'x'${')'.repeat(5_000)}`],
    ['long', `Name eq '${'x'.repeat(1_000_000)}'`],
    ['wide', Array(7_000).fill("Name eq 'a'").join(' or ')],
  ])('when it is too %s, whoever adds it', async (_, filter) => {
    const { sandbox } = await startWorld();
    expect(() => sandbox.addSubscription({ type: 'pull', filter })).toThrow('Invalid filter: ');
    expect(sandbox.subscriptions()).toEqual([]);
  });
});
