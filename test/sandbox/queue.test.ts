/** Queues of pull subscriptions: their entries, maximum length, and control. */
import { describe, expect, it } from 'vitest';
import { SubscriptionRefusal } from '../../src/sandbox/account.ts';
import { SandboxConfigurationError } from '../../src/sandbox/live-settings.ts';
import {
  type Answer,
  ackIdsOf,
  dayMs,
  iso,
  productIdsOf,
  send,
  startDelivering,
  startMs,
  startPull,
  unknownId,
} from './set-up.ts';

const shape = ({ status, json }: Answer) => [status, json];

describe('a queue', () => {
  it('has an entry for each event that matches events and filter, oldest first', async () => {
    const SubscriptionEvent = ['created', 'deleted'];
    const FilterParam = "startswith(Name,'S2')";
    const { read, publish, sandbox, id } = await startPull({
      changes: { SubscriptionEvent, FilterParam },
    });
    await publish(12);
    await publish(5, 'modified');
    await publish(12, 'deleted');
    const matching = [...sandbox.events()].filter(
      ({ event, productName }) => event !== 'modified' && productName.startsWith('S2'),
    );
    expect(new Set(matching.map(({ event }) => event)).size).toBe(2);
    const { status, json } = await read(20);
    expect(status).toBe(200);
    const expected = matching.map(({ event, productId, productName }) => ({
      SubscriptionEvent: event,
      ProductId: productId,
      ProductName: productName,
      SubscriptionId: id,
      value: { Id: productId, Name: productName },
    }));
    expect(json).toMatchObject(expected.slice(0, 20));
  });

  it('has entries in the form of a notification, with the record of the event', async () => {
    const { read, publish, id, root, sandbox } = await startPull();
    await publish(1);
    const { value: records } = (
      await send(`${root}/Products?$expand=Attributes&$expand=Assets&$expand=Locations`)
    ).json;
    const [entry] = (await read()).json;
    const AckId = btoa(`${startMs}-0:${id}`);
    const { value, ...rest } = entry;
    expect(Object.keys(entry)).toEqual([
      '@odata.context',
      'SubscriptionEvent',
      'ProductId',
      'ProductName',
      'SubscriptionId',
      'NotificationDate',
      'AckId',
      'value',
    ]);
    expect(rest).toMatchObject({ SubscriptionEvent: 'created', SubscriptionId: id, AckId });
    expect(rest.NotificationDate).toMatch(/^2026-05-01T12:00:00\.000\d{0,3}Z$/);
    expect(value).toMatchObject(records[0]);
    expect(sandbox.entries()[0]).toMatchObject({ ackId: AckId, outcome: 'pending' });
    // A later change does not change the entry.
    await publish(1, 'modified');
    expect((await read()).json).toEqual([entry]);
  });

  it('is separate for each subscription', async () => {
    const { read, publish, subscribe, ackFirst, id } = await startPull();
    const other = await subscribe();
    await publish(3);
    const [one, two] = [await read(20), await read(20, other)];
    expect(productIdsOf(one)).toEqual(productIdsOf(two));
    expect(ackIdsOf(two)).toEqual(
      ackIdsOf(one).map((ackId) => btoa(atob(ackId).replace(id, other))),
    );
    await ackFirst(2);
    expect((await read(20, other)).json).toEqual(two.json);
    expect((await read(20)).json).toEqual(one.json.slice(2));
  });

  it('has no entries of the past before the start', async () => {
    const past = { durationMs: dayMs, productsPerDay: 20 };
    const { read, sandbox } = await startPull({ past });
    expect(sandbox.holdings().products).toBe(20);
    expect(shape(await read())).toEqual([200, []]);
  });

  it('keeps its entries while paused, but gets no new ones', async () => {
    const { id, read, publish, edit, sandbox } = await startPull();
    await publish(2);
    const before = await read(20);
    await edit(id, { Status: 'paused' });
    await publish(3);
    expect((await read(20)).json).toEqual(before.json);
    await edit(id, { Status: 'running' });
    await publish(1);
    expect((await read(20)).json).toHaveLength(3);
    const outcomes = [...sandbox.events()].map(({ subscriptions: [one] }) => one?.outcome);
    expect(outcomes).toEqual(['pending', 'pending', 'paused', 'paused', 'paused', 'pending']);
  });

  it('does not change the notifications of a push subscription', async () => {
    const bodiesNextTo = async (hasPull: boolean) => {
      const faults = { ackIdOfOther: 0.5, capitalValue: 0.5 };
      const { subscribe, publish, sandbox, sentTo } = await startDelivering({ faults });
      await subscribe('one');
      if (hasPull) sandbox.addSubscription({ type: 'pull' });
      await publish(20);
      await expect.poll(() => sentTo('one')).toHaveLength(20);
      return sentTo('one').map(({ body }) =>
        body.toString().replace(/"SubscriptionId":"[^"]*"/, ''),
      );
    };
    expect((await bodiesNextTo(true)).sort()).toEqual((await bodiesNextTo(false)).sort());
  });

  it('has the same entries for the same seed, with shapes at the configured rates', async () => {
    const pages = async (seed: number) => {
      const faults = { ackIdGuid: 0.3, capitalValue: 0.3, valueAbsent: 0.3, eventAbsent: 0.3 };
      const { read, publish } = await startPull({ faults, seed });
      await publish(20);
      return (await read(20)).text;
    };
    const first = await pages(3);
    expect(await pages(3)).toBe(first);
    expect(await pages(4)).not.toBe(first);
    const entries: object[] = JSON.parse(first);
    for (const field of ['value', 'Value', 'SubscriptionEvent', 'ProductName']) {
      const { length } = entries.filter((entry) => field in entry);
      expect(length, field).toBeGreaterThan(0);
      expect(length, field).toBeLessThan(20);
    }
  });

  it.each([
    ['eventAbsent', ['SubscriptionEvent', 'ProductId'], []],
    ['valueAbsent', ['value', 'ProductName'], []],
    ['capitalValue', ['value'], ['Value']],
    ['ackIdAbsent', [], ['AckId', 'value']],
  ])('has entries of the shape %s', async (fault, absent, present) => {
    const { read, publish } = await startPull({ faults: { [fault]: 1 } });
    await publish(1);
    const [entry] = (await read()).json;
    for (const field of absent) expect(entry).not.toHaveProperty(field);
    for (const field of [...present, 'AckId']) expect(entry).toHaveProperty(field);
  });

  it('drops the oldest entries beyond its maximum length', async () => {
    const { read, publish, sandbox, state, outcomes } = await startPull({
      service: { queueMax: 5 },
    });
    await publish(8);
    expect(outcomes()).toBe('lllppppp');
    const newest = sandbox.entries().slice(3);
    expect(productIdsOf(await read(20))).toEqual(newest.map(({ productId }) => productId));
    expect(sandbox.entries()[0]?.reason).toBe('dropped because the queue was full');
    sandbox.service.change({ queueMax: 2 });
    expect((await read(20)).json).toHaveLength(2);
    expect(state()).toMatchObject({ length: 2, lengthMax: 2, dropped: 6 });
  });

  it('is dropped with its subscription, by deletion and by expiry', async () => {
    for (const isExpired of [false, true]) {
      const { id, call, read, publish, list, sandbox, outcomes } = await startPull();
      await publish(3);
      if (isExpired) sandbox.clock.advance(365 * dayMs);
      else await call('DELETE', `/Subscriptions(${id})`);
      expect(await list()).toEqual([]);
      expect((await read()).status).toBe(404);
      expect([outcomes(), sandbox.queues()]).toEqual(['lll', []]);
      expect(sandbox.entries()[0]?.reason).toBe('the subscription was deleted');
    }
  });
});

describe('the control port', () => {
  it('shows length and totals of the queues of pull subscriptions', async () => {
    const { id, control, create, publish, ackFirst, subscribe, sandbox } = await startPull();
    await create({ Status: 'paused' });
    const paused = await subscribe({ Status: 'paused' });
    sandbox.clock.advance(1_000);
    await publish(5);
    await ackFirst(2);
    const none = {
      read: 0,
      acknowledged: 0,
      acknowledgedByOthers: 0,
      dropped: 0,
      reads: 0,
      acks: 0,
    };
    const lengthMax = 100_000;
    const own = { length: 3, oldestAt: iso(startMs + 1_000), read: 2, reads: 1 };
    const queues = [
      { ...none, subscriptionId: id, lengthMax, ...own, acknowledged: 2, acks: 1 },
      { ...none, subscriptionId: paused, lengthMax, length: 0, oldestAt: null },
    ];
    expect((await control('GET', '/queues')).json).toEqual({ queues });
    expect(sandbox.queues()).toEqual(queues);
  });

  it('drops entries, and acknowledges them as another reader', async () => {
    const { id, control, publish, sandbox, outcomes, list, state } = await startPull();
    await publish(10);
    const dropped = await control('POST', '/queues', { subscriptionId: id, drop: 2 });
    expect(dropped.json).toEqual(state());
    expect((await list())[0]).not.toHaveProperty('LastNotificationDate');
    const changed = sandbox.changeQueue({ subscriptionId: id.toUpperCase(), acknowledge: 3 });
    expect(changed).toMatchObject({ length: 5, dropped: 2, acknowledgedByOthers: 3 });
    expect((await list())[0].LastNotificationDate).toBe(iso(startMs));
    expect(outcomes()).toBe('lllllppppp');
    const reasons = sandbox.entries().map(({ reason }) => reason?.split(' ')[0]);
    expect(reasons.slice(0, 6)).toEqual([
      ...Array(2).fill('dropped'),
      ...Array(3).fill('acknowledged'),
      undefined,
    ]);
    await control('POST', '/queues', { subscriptionId: id, drop: 100 });
    expect(state()).toMatchObject({ length: 0, dropped: 7 });
  });

  it.each([
    [{ drop: 1 }, 'subscriptionId'],
    [{ subscriptionId: 'x', drop: 1 }, 'subscriptionId'],
    [{ subscriptionId: unknownId }, ''],
    [{ subscriptionId: unknownId, drop: 1, acknowledge: 1 }, ''],
    [{ subscriptionId: unknownId, drop: 0 }, 'drop'],
    [{ subscriptionId: unknownId, acknowledge: 1.5 }, 'acknowledge'],
    [{ subscriptionId: unknownId, drop: 1, remove: 1 }, 'remove'],
  ])('refuses the change %j', async (change, field) => {
    const { control, sandbox } = await startPull();
    const { status, json } = await control('POST', '/queues', change);
    expect(status).toBe(400);
    expect(json.errors).toEqual([{ field, message: expect.any(String) }]);
    // The cast permits invalid values that the types forbid.
    const invalid = change as Parameters<typeof sandbox.changeQueue>[0];
    expect(() => sandbox.changeQueue(invalid)).toThrow(SandboxConfigurationError);
  });

  it('refuses a change for an unknown id, and for a push subscription', async () => {
    const { control, create, sandbox } = await startPull();
    const { Id } = (await create()).json;
    for (const [subscriptionId, expected] of [
      [unknownId, 404],
      [Id, 400],
    ]) {
      const change = { subscriptionId, drop: 1 };
      const { status, json } = await control('POST', '/queues', change);
      expect([status, json.detail]).toEqual([expected, expect.stringContaining(subscriptionId)]);
      expect(() => sandbox.changeQueue(change)).toThrow(SubscriptionRefusal);
    }
  });
});

describe('the sandbox', () => {
  it('does not wait for queues before it finishes or is quiet', async () => {
    const { sandbox, subscribe } = await startDelivering({
      count: 3,
      ratePerSecond: 1_000,
      now: Date.now,
    });
    await subscribe('one');
    sandbox.addSubscription({ type: 'pull' });
    expect(await sandbox.finished).toMatchObject({ delivered: 3 });
    await sandbox.publishNow(2);
    await sandbox.quiet();
    expect(sandbox.queues()).toMatchObject([{ length: sandbox.totals().pending }]);
    expect(sandbox.totals().pending).toBeGreaterThanOrEqual(2);
  });
});
