/** Effects of subscriptions on delivery and publishing: recipients, addresses, times and seeds. */
import { describe, expect, it, vi } from 'vitest';
import { productView } from '../../src/filter/product-view.ts';
import { createSubscriptions } from '../../src/sandbox/account.ts';
import { createRandom, createSandboxClock } from '../../src/sandbox/clock.ts';
import { createRecipients } from '../../src/sandbox/delivery/dispatcher.ts';
import {
  createLiveServiceSettings,
  serviceSettingsSchema,
} from '../../src/sandbox/live-settings.ts';
import {
  dayMs,
  type EndpointAnswer,
  endpoint,
  iso,
  jsonOf,
  type ReceivedRequest,
  recordsFileOf,
  startDelivering,
  startMs,
  startTestSandbox,
  startTrustedEndpoint,
  turn,
} from './set-up.ts';

const basicOf = ({ headers }: ReceivedRequest) =>
  Buffer.from(headers.authorization?.split(' ')[1] ?? '', 'base64').toString();
const allEvents = ['created', 'modified', 'deleted'];

describe('an event', () => {
  it('is sent to every running subscription that matches, with the id and credentials of each', async () => {
    const { subscribe, publishAll, sentTo, sandbox } = await startDelivering();
    const one = await subscribe('one', { SubscriptionEvent: ['created', 'modified'] });
    const other = await subscribe('other', { NotificationEpPassword: 'other-password' });
    await publishAll(3);
    await publishAll(2, 'modified');
    const sent = (name: string, field: string) => sentTo(name).map((it) => jsonOf(it)[field]);
    expect(sent('one', 'SubscriptionId')).toEqual(Array(5).fill(one));
    expect(sent('other', 'SubscriptionId')).toEqual(Array(3).fill(other));
    const events = [...Array(3).fill('created'), ...Array(2).fill('modified')];
    expect(sent('one', 'SubscriptionEvent').sort()).toEqual(events);
    const credentials = (name: string) => [...new Set(sentTo(name).map(basicOf))];
    expect(credentials('one')).toEqual(['user-one:hunter2-secret']);
    expect(credentials('other')).toEqual(['user-other:other-password']);
    expect(sandbox.totals()).toMatchObject({ published: 8, delivered: 8 });
    const ids = sandbox.entries().map(({ subscriptionId }) => subscriptionId);
    expect(ids.filter((id) => id === other)).toHaveLength(3);
  });

  it('has a separate number for each subscription', async () => {
    const { subscribe, publishAll, sentTo } = await startDelivering();
    const ids = [await subscribe('one'), await subscribe('other')];
    await publishAll(3);
    for (const [index, name] of ['one', 'other'].entries()) {
      const ackIds = sentTo(name).map((sent) => atob(jsonOf(sent).AckId));
      const expected = [0, 1, 2].map((number) => `${startMs}-${number}:${ids[index]}`);
      expect(ackIds.sort()).toEqual(expected);
    }
  });

  it('is not sent when no push subscription matches', async () => {
    const { subscribe, create, publish, sandbox, requests } = await startDelivering();
    await subscribe('one', { SubscriptionEvent: ['deleted'] });
    const { json } = await create({ SubscriptionType: 'pull', FilterParam: '' });
    await publish(2);
    await sandbox.quiet();
    expect(requests).toEqual([]);
    const ids = sandbox.entries().map(({ subscriptionId }) => subscriptionId);
    expect(ids).toEqual([json.Id, json.Id]);
  });

  it('is sent without credentials when none are registered', async () => {
    const { subscribe, publishAll, requests } = await startDelivering();
    await subscribe('one', { NotificationEpUsername: null, NotificationEpPassword: null });
    await publishAll(1);
    expect(requests[0]?.headers).not.toHaveProperty('authorization');
  });

  it('is not delayed by a hanging endpoint of another subscription', async () => {
    const answer: EndpointAnswer = (_, { path }) => (path?.endsWith('/one') ? 'hang' : 200);
    const { subscribe, publish, sentTo } = await startDelivering({}, answer);
    await subscribe('one');
    await subscribe('other');
    await publish(40);
    await vi.waitFor(() => expect(sentTo('other')).toHaveLength(40), 10_000);
    expect(sentTo('one')).toHaveLength(8);
  });
});

describe('a pause', () => {
  it('on request or for inactivity stops events, which are not sent later either', async () => {
    const { subscribe, edit, publishAll, requests, sandbox } = await startDelivering();
    const id = await subscribe('one');
    await publishAll(1);
    await edit(id, { Status: 'paused' });
    await publishAll(5);
    expect(requests).toHaveLength(1);
    await edit(id, { Status: 'running' });
    await publishAll(1);
    expect(requests).toHaveLength(2);
    sandbox.clock.advance(60 * dayMs);
    await publishAll(1);
    expect(requests).toHaveLength(2);
  });
});

describe('an edit between two attempts', () => {
  /** Publishes one product, whose first attempt fails; `retry` triggers the next attempt. */
  async function startRetry(changes: object, answer: EndpointAnswer) {
    const retryDelaysMs: [number, number, number] = [60_000, 60_000, 60_000];
    const test = await startDelivering({ retryDelaysMs }, answer);
    const id = await test.subscribe('one', { ...changes });
    await test.publish(1);
    await expect.poll(() => test.sandbox.totals().attempts).toBe(1);
    const retry = async () => {
      test.sandbox.clock.advance(60_000);
      await expect.poll(() => test.sandbox.totals()).toMatchObject({ delivered: 1, published: 1 });
    };
    return { ...test, id, retry };
  }

  it('of the credentials applies to the next attempt', async () => {
    const answer: EndpointAnswer = (_, sent) => (basicOf(sent).endsWith(':new') ? 200 : 401);
    const old = { NotificationEpPassword: 'old' };
    const { id, edit, requests, retry } = await startRetry(old, answer);
    await edit(id, { NotificationEpPassword: 'new' });
    await retry();
    expect(requests.map(basicOf)).toEqual(['user-one:old', 'user-one:new']);
  });

  it('of the endpoint applies to the next attempt', async () => {
    const answer: EndpointAnswer = (_, { path }) => (path?.endsWith('/other') ? 200 : 503);
    const { id, edit, sandbox, sentTo, retry } = await startRetry({}, answer);
    const address = sandbox.subscriptions()[0]?.endpoint;
    await edit(id, { NotificationEndpoint: address?.replace('/one', '/other') });
    await retry();
    expect([sentTo('one').length, sentTo('other').length]).toEqual([1, 1]);
  });

  it('that deletes the subscription does not stop open deliveries', async () => {
    const answer: EndpointAnswer = (nth) => (nth === 1 ? 503 : 200);
    const { id, call, publish, sandbox, requests, retry } = await startRetry({}, answer);
    await call('DELETE', `/Subscriptions(${id})`);
    await publish(3);
    await retry();
    expect(requests.map(basicOf)).toEqual(Array(2).fill('user-one:hunter2-secret'));
    expect(sandbox.subscriptions()).toEqual([]);
  });
});

describe('LastNotificationDate', () => {
  it('is absent at first, then the time of the last success', async () => {
    const { subscribe, publishAll, list, sandbox } = await startDelivering();
    const shown = async () => (await list())[0].LastNotificationDate;
    await subscribe('one');
    expect(await shown()).toBeUndefined();
    sandbox.clock.advance(5_000);
    await publishAll(1);
    expect(await shown()).toBe(iso(startMs + 5_000));
    sandbox.clock.advance(5_000);
    expect(await shown()).toBe(iso(startMs + 5_000));
    await publishAll(1);
    expect(await shown()).toBe(iso(startMs + 10_000));
  });

  it.each([
    ['a delivery that fails', {}, 503, 0],
    ['a success whose answer is lost', { answerLost: 1 }, 200, 1],
  ])('is not changed by %s', async (_, faults, status, accepted) => {
    const { subscribe, publishAll, list, sandbox } = await startDelivering(
      { faults },
      () => status,
    );
    await subscribe('one');
    await publishAll(1);
    expect(sandbox.totals()).toMatchObject({ lost: 1, accepted });
    expect((await list())[0]).not.toHaveProperty('LastNotificationDate');
  });

  it('postpones the pause and the deletion', async () => {
    const { subscribe, publishAll, list, sandbox } = await startDelivering();
    await subscribe('one');
    sandbox.clock.advance(59 * dayMs);
    await publishAll(1);
    sandbox.clock.advance(60 * dayMs - 1);
    expect((await list())[0].Status).toBe('running');
    sandbox.clock.advance(1);
    expect((await list())[0].Status).toBe('paused');
    sandbox.clock.advance(305 * dayMs - 1);
    expect(await list()).toHaveLength(1);
    sandbox.clock.advance(1);
    expect(await list()).toEqual([]);
  });
});

/** Returns a record as in a file: a name with a mission, and a square of one degree. */
function record(Name: string, west?: number, south = 0) {
  const Id = crypto.randomUUID();
  if (west === undefined) return { Id, Name, Footprint: null, GeoFootprint: null };
  const [east, north] = [west + 1, south + 1];
  // biome-ignore format: the corners of a square
  const ring = [[west, south], [east, south], [east, north], [west, north], [west, south]];
  const text = ring.map((at) => at.join(' ')).join(', ');
  const Footprint = `geography'SRID=4326;POLYGON ((${text}))'`;
  return { Id, Name, Footprint, GeoFootprint: { type: 'Polygon', coordinates: [ring] } };
}

describe('a filter', () => {
  const records = [
    record('S2A_MSIL2A_alps', 7, 46),
    record('S2A_MSIL2A_fiji', 179.5, -17),
    record('S2A_MSIL2A_touching', 8, 45),
    record('S1A_IW_GRDH_alps', 7, 46),
    record('S2A_OPER_AUX_nowhere'),
  ];
  const alps =
    "OData.CSC.Intersects(area=geography'SRID=4326;POLYGON((7.5 45.5,8 45.5,8 46.5,7.5 46.5,7.5 45.5))')";
  const fiji = "OData.CSC.Intersects(area=geography'SRID=4326;POINT(-179.8 -16.5)')";

  it.each([
    ['', records.map(({ Name }) => Name).sort()],
    ["Collection/Name eq 'SENTINEL-1'", ['S1A_IW_GRDH_alps']],
    [alps, ['S1A_IW_GRDH_alps', 'S2A_MSIL2A_alps', 'S2A_MSIL2A_touching']],
    [`Collection/Name eq 'SENTINEL-1' and ${alps}`, ['S1A_IW_GRDH_alps']],
    [fiji, ['S2A_MSIL2A_fiji']],
    [
      "startswith(Name,'S2') and not contains(Name,'AUX')",
      ['S2A_MSIL2A_alps', 'S2A_MSIL2A_fiji', 'S2A_MSIL2A_touching'],
    ],
    ["Name eq 's2a_msil2a_alps'", []],
  ])('selects the products that match it: %s', async (FilterParam, expected) => {
    const recordsFile = recordsFileOf(records);
    const { subscribe, publishAll, requests, sandbox } = await startDelivering({ recordsFile });
    await subscribe('one', { FilterParam });
    await publishAll(records.length);
    expect(requests.map((sent) => jsonOf(sent).ProductName).sort()).toEqual(expected);
    const { length } = expected;
    expect(sandbox.totals()).toMatchObject({ published: length, delivered: length, pending: 0 });
    const names = sandbox.entries().map(({ productName }) => productName);
    expect(names.sort()).toEqual(expected);
    expect(sandbox.holdings()).toEqual({ products: 5, deletedProducts: 0, events: 5 });
  });

  it('of deletions can use their cause and date', async () => {
    const { subscribe, publishAll, sentTo } = await startDelivering();
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

  it('is evaluated once per event, even if several subscriptions have it', () => {
    const clock = createSandboxClock({ now: () => startMs });
    const liveSettings = createLiveServiceSettings(serviceSettingsSchema.parse({ runningMax: 10 }));
    const random = createRandom(1);
    const subscriptions = createSubscriptions({ clock, liveSettings, endpointRules: {}, random });
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

describe('publishing by rate', () => {
  const byRate = { count: 5, ratePerSecond: 1_000, now: Date.now };

  it.each([
    ['push', { delivered: 5, pending: 0 }],
    ['pull', { delivered: 0, pending: 5 }],
  ])('waits until the first subscription runs: %s', async (SubscriptionType, outcomes) => {
    const { subscribe, edit, sandbox, requests } = await startDelivering(byRate);
    const id = await subscribe('one', { SubscriptionType, Status: 'paused' });
    await turn();
    expect([sandbox.totals().published, sandbox.holdings().events]).toEqual([0, 0]);
    await edit(id, { Status: 'running' });
    expect(await sandbox.finished).toMatchObject({ published: 5, ...outcomes });
    expect(requests).toHaveLength(outcomes.delivered);
  });

  it('still waits after a pause and resumption on the control port, but publishes on request', async () => {
    const { control, publish, sandbox, subscribe } = await startDelivering(byRate);
    await control('POST', '/pause');
    await control('POST', '/resume');
    expect((await publish(2)).json).toEqual({ published: 2 });
    expect(sandbox.totals().published).toBe(0);
    await subscribe('one');
    expect(await sandbox.finished).toMatchObject({ published: 5, delivered: 5 });
  });

  it('that has not begun ends when the sandbox is closed', async () => {
    const { sandbox } = await startDelivering(byRate);
    await sandbox.close();
    expect(await sandbox.finished).toMatchObject({ published: 0 });
  });

  it('sends the same to the first subscription, whether registered or configured', async () => {
    const outcomesOf = async (registered: boolean) => {
      const { url, trustedCaPems } = await startTrustedEndpoint();
      const faults = { duplicate: 0.2, lost: 0.2, ackIdAbsent: 0.5 };
      const retryDelaysMs: [number, number, number] = [0, 0, 0];
      const common = { ...byRate, trustedCaPems, faults, count: 40, retryDelaysMs };
      const given = registered ? {} : { endpoint: url.href, username: 'a', password: 'b' };
      const { sandbox, create } = await startTestSandbox({ ...common, ...given });
      const body = { NotificationEndpoint: url.href, FilterParam: '' };
      if (registered) expect((await create(body)).status).toBe(201);
      await sandbox.finished;
      const ids = sandbox.subscriptions().map(({ id }) => id);
      const outcomes = sandbox
        .entries()
        .map((one) => [one.productId, one.outcome, one.ackId === null, one.attempts.length]);
      return { ids, outcomes };
    };
    expect(await outcomesOf(true)).toEqual(await outcomesOf(false));
  });
});

describe('a seed', () => {
  it('gives another subscription different faults', async () => {
    const { subscribe, publishAll, sandbox } = await startDelivering({ faults: { lost: 0.5 } });
    const ids = [await subscribe('one'), await subscribe('other')];
    await publishAll(30);
    const byId = Map.groupBy(sandbox.entries(), ({ subscriptionId }) => subscriptionId);
    const [one, other] = ids.map((id) => byId.get(id)?.map(({ outcome }) => outcome));
    expect(other).toHaveLength(30);
    expect(other).not.toEqual(one);
  });

  it('gives an unfiltered subscription the same notifications, regardless of other filters', async () => {
    const bodiesNextTo = async (FilterParam: string) => {
      const faults = { ackIdAbsent: 0.5 };
      const { subscribe, publishAll, sentTo } = await startDelivering({ faults });
      await subscribe('filtered', { FilterParam });
      await subscribe('one');
      await publishAll(20);
      const products = sentTo('one').map(jsonOf);
      return products.map(({ ProductId, AckId }) => [ProductId, AckId === undefined]).sort();
    };
    const alone = await bodiesNextTo("Name eq 'nothing'");
    expect(await bodiesNextTo("startswith(Name,'S2')")).toEqual(alone);
  });
});

describe('a configured endpoint', () => {
  it('is a running push subscription for all events', async () => {
    const { url } = await startTrustedEndpoint();
    const subscriptionId = '7CA682C3-7b21-4e9b-952e-874798101340';
    const given = { endpoint: url, username: 'a', password: 'b', subscriptionId };
    const { sandbox, list } = await startTestSandbox(given);
    expect(sandbox.subscriptionId).toBe(subscriptionId);
    const known = { id: subscriptionId, type: 'push', status: 'running', events: allEvents };
    const dates = { statusDate: iso(startMs), submissionDate: iso(startMs) };
    expect(sandbox.subscriptions()).toEqual([
      { ...known, ...dates, filter: '', endpoint: url.href, lastNotificationDate: null },
    ]);
    expect(await list()).toMatchObject([{ Id: subscriptionId, Status: 'running' }]);
  });

  it.each([
    { endpoint: 'https://localhost:1/' },
    { endpoint: 'https://localhost:1/', username: 'a' },
    { username: 'a', password: 'b' },
    { subscriptionId: '7ca682c3-7b21-4e9b-952e-874798101340' },
  ])('is refused when incomplete: %j', async (options) => {
    await expect(startTestSandbox(options)).rejects.toThrow(/endpoint: requires username and/);
  });

  it('is optional', async () => {
    const { sandbox } = await startTestSandbox();
    expect([sandbox.subscriptionId, sandbox.subscriptions()]).toEqual([null, []]);
  });
});
