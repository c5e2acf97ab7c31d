/** A subscription with a filter is sent what matches it, and nothing else. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { productView } from '../../src/filter/product-view.ts';
import { createSubscriptions } from '../../src/sandbox/account.ts';
import { createSandboxClock } from '../../src/sandbox/clock.ts';
import { createRecipients } from '../../src/sandbox/delivery/recipients.ts';
import { createRandom } from '../../src/sandbox/random.ts';
import {
  createServiceKnobs,
  serviceSettingsSchema,
} from '../../src/sandbox/services/service-settings.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { endpoint, startMs } from './account-world.ts';
import { startDeliveryWorld as startWorld } from './delivery-world.ts';
import type { ReceivedRequest } from './recording-endpoint.ts';

const jsonOf = ({ body }: ReceivedRequest) => JSON.parse(body.toString());
const namesOf = (requests: readonly ReceivedRequest[]) =>
  requests.map((sent) => jsonOf(sent).ProductName).sort();

const square = (west: number, south: number) => [
  [west, south],
  [west + 1, south],
  [west + 1, south + 1],
  [west, south + 1],
  [west, south],
];

/** A record as a file would have it: a mission's name, and a square of one degree. */
function record(Name: string, [west, south]: [number, number] | []) {
  const ring = west === undefined || south === undefined ? null : square(west, south);
  return {
    Id: crypto.randomUUID(),
    Name,
    Footprint:
      ring && `geography'SRID=4326;POLYGON ((${ring.map((at) => at.join(' ')).join(', ')}))'`,
    GeoFootprint: ring && { type: 'Polygon', coordinates: [ring] },
  };
}

const records = [
  record('S2A_MSIL2A_alps', [7, 46]),
  record('S2A_MSIL2A_fiji', [179.5, -17]),
  record('S2A_MSIL2A_touching', [8, 45]),
  record('S1A_IW_GRDH_alps', [7, 46]),
  record('S2A_OPER_AUX_nowhere', []),
];

function recordsFile(): string {
  const file = join(temporaryDirectory(), 'records.jsonl');
  writeFileSync(file, records.map((one) => JSON.stringify(one)).join('\n'));
  return file;
}

const alps =
  "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((7.5 45.5,8 45.5,8 46.5,7.5 46.5,7.5 45.5))')";
const fiji = "OData.CSC.Intersects(area=geography'SRID=4326;POINT(-179.8 -16.5)')";
const cloudy =
  "Attributes/OData.CSC.DoubleAttribute/any(att:att/Name eq 'cloudCover' and att/OData.CSC.DoubleAttribute/Value gt 50)";

/** Judged by the body alone, in the words of the record. */
function isCloudy(sent: ReceivedRequest): boolean {
  const attributes: { Name: string; Value: unknown }[] = jsonOf(sent).value.Attributes;
  return attributes.some(({ Name, Value }) => Name === 'cloudCover' && Number(Value) > 50);
}

describe('a product that is published', () => {
  it.each([
    ['all', '', records.map(({ Name }) => Name).sort()],
    ['a collection', "Collection/Name eq 'SENTINEL-1'", ['S1A_IW_GRDH_alps']],
    ['a place', alps, ['S1A_IW_GRDH_alps', 'S2A_MSIL2A_alps', 'S2A_MSIL2A_touching']],
    ['both', `Collection/Name eq 'SENTINEL-1' and ${alps}`, ['S1A_IW_GRDH_alps']],
    ['a place beyond the antimeridian', fiji, ['S2A_MSIL2A_fiji']],
    [
      'a name',
      "startswith(Name,'S2') and not contains(Name,'AUX')",
      ['S2A_MSIL2A_alps', 'S2A_MSIL2A_fiji', 'S2A_MSIL2A_touching'],
    ],
    ['nothing there is', "Name eq 's2a_msil2a_alps'", []],
  ])('goes to whom it matches: %s', async (_, FilterParam, expected) => {
    const { subscribe, publishAll, requests, sandbox } = await startWorld({
      recordsFile: recordsFile(),
    });
    await subscribe('one', { FilterParam });
    await publishAll(records.length);
    expect(namesOf(requests)).toEqual(expected);
    const { length } = expected;
    expect(sandbox.totals()).toMatchObject({ published: length, delivered: length, pending: 0 });
    expect(
      sandbox
        .entries()
        .map(({ productName }) => productName)
        .sort(),
    ).toEqual(expected);
    expect(sandbox.holdings()).toEqual({ products: 5, deletedProducts: 0, events: 5 });
  });
});

describe('each event', () => {
  it('is judged by the record that it brings', async () => {
    const { subscribe, publishAll, sentTo, control } = await startWorld();
    const SubscriptionEvent = ['created', 'modified', 'deleted'];
    await subscribe('everything', { SubscriptionEvent });
    await subscribe('cloudy', { SubscriptionEvent, FilterParam: cloudy });
    await publishAll(60);
    const heldBefore = (await control('GET', '/holdings')).json;
    // Some become cloudy by a change, and some cease to be.
    for (const event of ['modified', 'modified', 'deleted']) await publishAll(60, event);
    const keyOf = (sent: ReceivedRequest) => {
      const { SubscriptionEvent: event, ProductId, value } = jsonOf(sent);
      return `${event} ${ProductId} ${value.ModificationDate}`;
    };
    const expected = sentTo('everything').filter(isCloudy);
    expect(sentTo('everything')).toHaveLength(240);
    expect(sentTo('cloudy').map(keyOf).sort()).toEqual(expected.map(keyOf).sort());
    const eventsOf = (sent: readonly ReceivedRequest[]) =>
      new Set(sent.map((one) => jsonOf(one).SubscriptionEvent));
    expect(eventsOf(sentTo('cloudy'))).toEqual(new Set(SubscriptionEvent));
    const productsOf = (event: string) =>
      new Set(
        sentTo('cloudy')
          .map(jsonOf)
          .filter((body) => body.SubscriptionEvent === event)
          .map(({ ProductId }) => ProductId),
      );
    const [first, last] = [productsOf('created'), productsOf('deleted')];
    expect([...first].filter((id) => !last.has(id)).length).toBeGreaterThan(0);
    expect([...last].filter((id) => !first.has(id)).length).toBeGreaterThan(0);
    expect(heldBefore).toEqual({ products: 60, deletedProducts: 0, events: 60 });
    expect((await control('GET', '/holdings')).json).toEqual({
      products: 0,
      deletedProducts: 60,
      events: 240,
    });
  });

  it('of a deletion is judged by its cause and date, too', async () => {
    const { subscribe, publishAll, sentTo } = await startWorld();
    const SubscriptionEvent = ['deleted'];
    await subscribe('everything', { SubscriptionEvent });
    const FilterParam = "DeletionCause eq 'Other' and DeletionDate gt 2026-01-01";
    await subscribe('other', { SubscriptionEvent, FilterParam });
    await publishAll(40);
    await publishAll(40, 'deleted');
    const causesOf = (name: string) => sentTo(name).map((one) => jsonOf(one).value.DeletionCause);
    const expected = causesOf('everything').filter((cause) => cause === 'Other');
    expect(expected.length).toBeGreaterThan(0);
    expect(causesOf('other')).toEqual(expected);
  });
});

describe('a filter', () => {
  it('is asked once about an event, however many subscriptions have it', () => {
    const clock = createSandboxClock({ now: () => startMs });
    const knobs = createServiceKnobs(serviceSettingsSchema.parse({ runningMax: 10 }));
    const random = createRandom(1);
    const subscriptions = createSubscriptions({ clock, knobs, endpointRules: {}, random });
    for (const filter of ["Name eq 'a'", "Name eq 'a'", "Name eq 'b'", "Name eq 'a'"]) {
      const address = { endpoint, username: null, password: null };
      const events = ['created'] as const;
      subscriptions.create({ status: 'running', events, filter, stageOrder: false, address });
    }
    const asked = vi.fn(() => 'a');
    const product = { ...productView({}), text: asked };
    expect(createRecipients(subscriptions, 1)('created', product)).toHaveLength(3);
    expect(asked).toHaveBeenCalledTimes(2);
  });
});

describe('a seed', () => {
  it('brings an unfiltered subscription the same, whatever is filtered beside it', async () => {
    const bodiesBeside = async (FilterParam: string | null) => {
      const { subscribe, publishAll, sentTo } = await startWorld({ faults: { ackIdAbsent: 0.5 } });
      if (FilterParam !== null) await subscribe('filtered', { FilterParam });
      await subscribe('one');
      await publishAll(20);
      const products = sentTo('one').map(jsonOf);
      return products.map(({ ProductId, AckId }) => [ProductId, AckId === undefined]).sort();
    };
    const alone = await bodiesBeside("Name eq 'nothing'");
    expect(await bodiesBeside("startswith(Name,'S2')")).toEqual(alone);
  });
});
