import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDateUs } from '../../src/core/terms/dates.ts';
import type { MissingEvent } from '../../src/core/terms/subscription.ts';
import { collect, delivery, notification } from '../helpers/deliveries.ts';
import { expectRefused } from '../helpers/refusals.ts';
import { atUs, hour, missing, modified, push, pushed, subscription } from './catalogue-events.ts';
import { type LocalStore, openLocalStore } from './local-store.ts';

/** An hour after the events. */
const recover = (store: LocalStore, events: readonly MissingEvent[], knownUpTo = 0) =>
  store.completeness.recover({ events, knownUpTo, atUs: atUs + hour });

const rowsOf = (store: LocalStore) => collect(store.find({ order: 'oldest' }));

describe('recovering events', () => {
  it('writes them into the log with their bodies, and finds them again', async () => {
    const { store } = await openLocalStore();
    await store.accept(delivery(notification(7)));
    const events = [missing(1), missing(2, { event: 'deleted' })];
    expect(await recover(store, events, 1)).toEqual([2, 3]);
    expect((await rowsOf(store))[1]).toEqual({
      position: 2,
      ackId: null,
      productId: 'product-1',
      productName: 'S2A_MSIL2A_000001.SAFE',
      event: 'created',
      subscription,
      subscriptionId: 'c06f2e68-fb9e-4e22-ac57-49566e8621fb',
      notificationDateUs: null,
      receivedAtUs: atUs + hour,
      source: 'reconcile',
      timesSeen: 1,
      lastSeenAtUs: atUs + hour,
      bodyIndex: 0,
    });
    expect(Buffer.from(await store.body(3)).equals(events[1]?.body ?? Buffer.alloc(0))).toBe(true);
    const productIds = ['PRODUCT-2', 'product-2', 'product-7', 'product-9'];
    const { body: _, ...event } = missing(2, { event: 'deleted' });
    const recovered = { ...event, position: 3, pushedAtUs: null };
    const ask = (of: string) =>
      store.completeness.recoveredEvents({ subscription: of, productIds });
    expect(await ask(subscription)).toEqual([recovered]);
    expect(await ask('andes')).toEqual([]);
    expect(await store.drift()).toEqual([]);
  });

  it('adds nothing for events recovered before, even with ids in another case or within one call', async () => {
    const { store } = await openLocalStore();
    const upper = { ...missing(1), productId: 'PRODUCT-1', eventUs: atUs };
    const first = missing(2, modified(atUs));
    const sameMs = missing(2, modified(atUs + 999));
    const events = [missing(1), upper, first, sameMs, missing(2, modified(atUs + 1_000))];
    expect(await recover(store, events)).toEqual([1, null, 2, null, 3]);
    expect(await recover(store, events)).toEqual([null, null, null, null, null]);
    expect(await recover(store, [missing(1, { subscription: 'andes' })])).toEqual([4]);
    expect(await recover(store, [])).toEqual([]);
    expect(await recover(store, [missing(3, modified(atUs + 1_999))])).toEqual([5]);
    expect(await recover(store, [missing(3, modified(atUs + 1_000))])).toEqual([null]);
    expect(await rowsOf(store)).toHaveLength(5);
    const productIds = ['product-3'];
    expect(await store.completeness.recoveredEvents({ subscription, productIds })).toMatchObject([
      { eventUs: atUs + 1_000 },
    ]);
  });

  it('updates the counts of the hour: missing events decrease; without missing events, expected ones increase', async () => {
    const { store } = await openLocalStore();
    const { completeness } = store;
    const counts = { expected: 9, pushed: 7, late: 1, recovered: 0, missing: 1 };
    const created = { subscription, event: 'created', ...counts, comparedAtUs: atUs } as const;
    const others = [
      { ...created, hourUs: atUs, subscription: 'andes' },
      { ...created, hourUs: atUs, event: 'modified' } as const,
      { ...created, hourUs: atUs + hour },
    ];
    await completeness.saveCoverage([{ ...created, hourUs: atUs }, ...others]);
    const expectHour = async (changed: Partial<typeof counts>) => {
      const found = await completeness.coverage({ sinceUs: 0, untilUs: atUs + 9 * hour });
      expect(found).toHaveLength(4);
      const expected = [{ ...created, hourUs: atUs, ...changed }, ...others];
      expect(found).toEqual(expect.arrayContaining(expected));
    };
    await recover(store, [missing(1)]);
    await expectHour({ recovered: 1, missing: 0 });
    // Known events change nothing, nor do events of an hour that was not compared.
    await recover(store, [missing(1), missing(2, { eventUs: atUs - hour })]);
    await expectHour({ recovered: 1, missing: 0 });
    await recover(store, [missing(3), missing(4, { eventUs: atUs + hour - 1 })]);
    await expectHour({ expected: 11, recovered: 3, missing: 0 });
  });

  it('stores nothing of a call with an invalid body', async () => {
    const { store } = await openLocalStore();
    const bodies = ['{', '[]', JSON.stringify(pushed(2)), JSON.stringify([pushed(1), pushed(1)])];
    for (const body of bodies) {
      const events = [missing(3), { ...missing(1), body: Buffer.from(body) }];
      await expectRefused(recover(store, events), 'internal');
    }
    expect(await store.lastPosition()).toBe(0);
  });
});

it('a push with the state of a modification, or a later state, is its notification', async () => {
  const { store } = await openLocalStore();
  const asCreated = { SubscriptionEvent: 'created' };
  const bare = { NotificationDate: formatDateUs(atUs + 5_000), value: undefined };
  await store.accept(
    push([notification(8), { ...pushed(1, modified(atUs + 5_000)), ...asCreated }]),
  );
  await store.accept(push(pushed(2, modified(atUs + 5_000))));
  await store.accept(push({ ...pushed(3, modified(atUs)), ...bare }));
  await store.accept(push({ ...pushed(4, modified(atUs)), ...bare, ...asCreated }));
  const at = (us: number, numbers: number[]) =>
    numbers.map((number) => missing(number, modified(atUs + us)));
  const known = [...at(5_999, [1, 2, 3]), ...at(4_000, [1, 2, 3])];
  expect(await recover(store, known)).toEqual(known.map(() => null));
  expect(await recover(store, [...at(6_000, [1, 2, 3]), ...at(0, [4])])).toEqual([6, 7, 8, 9]);
});

const step = fc.record({
  kind: fc.constantFrom('push', 'recover'),
  number: fc.nat({ max: 2 }),
  event: fc.constantFrom('created', 'modified', 'deleted'),
});

it('pushes and recoveries in any order store each event once, and count its receipts', async () => {
  const { store } = await openLocalStore();
  let run = 0;
  const property = fc.asyncProperty(
    fc.array(step, { maxLength: 20 }),
    fc.boolean(),
    async (steps, isTogether) => {
      run += 1;
      const from = await store.lastPosition();
      const keys = steps.map(({ number, event }) => `${event} product-${run * 10 + number}`);
      const apply = ({ kind, number, event }: (typeof steps)[number]) => {
        const product = run * 10 + number;
        if (kind === 'recover') return recover(store, [missing(product, { event })], from);
        return store.accept(push(pushed(product, { event, AckId: `${event} ${product}` })));
      };
      if (isTogether) await Promise.all(steps.map(apply));
      else for (const one of steps) await apply(one);
      const rows = await collect(store.find({ afterPosition: from }));
      const found = rows.map(({ event, productId }) => `${event} ${productId}`);
      expect(found.toSorted()).toEqual([...new Set(keys)].toSorted());
      const pushes = steps.flatMap(({ kind }, i) => (kind === 'push' ? [keys[i]] : []));
      for (const [i, { timesSeen, source }] of rows.entries()) {
        const times = pushes.filter((key) => key === found[i]).length;
        expect(timesSeen).toBe(times + (source === 'reconcile' ? 1 : 0));
      }
    },
  );
  await fc.assert(property, { numRuns: 60 });
});

describe('a push of a recovered event', () => {
  it('is counted on the row of the event, which keeps its body and takes all other fields', async () => {
    const { store } = await openLocalStore();
    const event = missing(1);
    await recover(store, [event]);
    const late = pushed(1, { ProductId: 'PRODUCT-1', SubscriptionId: 'another' });
    const receivedAtUs = atUs + 2 * hour;
    const duplicate = { outcome: 'duplicate', duplicates: 1 };
    expect(await store.accept(push(late, { receivedAtUs }))).toEqual(duplicate);
    expect(await rowsOf(store)).toMatchObject([
      {
        position: 1,
        ackId: 'ack-1',
        productId: 'product-1',
        subscriptionId: 'another',
        notificationDateUs: atUs + 90_000_000,
        receivedAtUs: atUs + hour,
        source: 'reconcile',
        timesSeen: 2,
        lastSeenAtUs: receivedAtUs,
      },
    ]);
    expect(Buffer.from(await store.body(1)).equals(event.body)).toBe(true);
    const productIds = ['product-1'];
    expect(await store.completeness.recoveredEvents({ subscription, productIds })).toMatchObject([
      { pushedAtUs: receivedAtUs, eventUs: event.eventUs },
    ]);
    expect(await collect(store.find({ ackId: 'ack-1' }))).toHaveLength(1);
  });

  it('gets its own row when the event was already pushed, even in the same body', async () => {
    const { store } = await openLocalStore();
    await recover(store, [missing(1)]);
    const body = [pushed(1), pushed(1, { AckId: 'ack-other' })];
    const receipt = await store.accept(push(body));
    expect(receipt).toEqual({ outcome: 'stored', stored: 1, duplicates: 1 });
    expect(await rowsOf(store)).toMatchObject([
      { ackId: 'ack-1', source: 'reconcile' },
      { ackId: 'ack-other', source: 'push', timesSeen: 1 },
    ]);
    expect(JSON.parse(Buffer.from(await store.body(2)).toString())).toHaveLength(2);
  });

  it('is not confused with other events', async () => {
    const { store } = await openLocalStore();
    await recover(store, [missing(1), missing(2, { event: 'deleted' })]);
    const others = [
      push(pushed(1), { subscription: 'andes' }),
      push(pushed(1, { AckId: 'b' }), { subscription: null }),
      push(pushed(1, { AckId: 'c', event: 'deleted' })),
      push(pushed(2, { AckId: 'd' })),
      push(pushed(3)),
      push(pushed(1, { AckId: 'e' }), { source: 'reconcile' }),
    ];
    for (const other of others) {
      expect(await store.accept(other)).toMatchObject({ outcome: 'stored' });
    }
    expect((await rowsOf(store)).map(({ timesSeen }) => timesSeen)).toEqual(Array(8).fill(1));
  });

  it('is counted as late in the hour of the event, up to the number of recovered events', async () => {
    const { store } = await openLocalStore();
    await recover(store, [missing(1), missing(2), missing(3, { eventUs: atUs + hour })]);
    const counts = { expected: 9, pushed: 7, late: 1, recovered: 1, missing: 0 };
    const created = { subscription, event: 'created', ...counts, comparedAtUs: atUs } as const;
    const hours = [
      { ...created, hourUs: atUs },
      { ...created, hourUs: atUs + hour },
      { ...created, hourUs: atUs, event: 'modified' } as const,
      { ...created, hourUs: atUs, subscription: 'andes' },
    ];
    await store.completeness.saveCoverage(hours);
    for (const number of [1, 1, 2]) await store.accept(push(pushed(number)));
    const window = { sinceUs: 0, untilUs: atUs + 9 * hour };
    const found = await store.completeness.coverage(window);
    expect(found.map(({ late, recovered }) => [late, recovered])).toEqual([
      [2, 0],
      [1, 1],
      [1, 1],
      [1, 1],
    ]);
  });
});

describe('a late push of one of several modifications', () => {
  const times = [atUs, atUs + 10_000, atUs + 20_000];
  const openWithThree = async () => {
    const { store } = await openLocalStore();
    await recover(
      store,
      times.map((time) => missing(1, modified(time))),
    );
    return store;
  };
  const pushedOnes = async ({ completeness }: LocalStore) => {
    const productIds = ['product-1'];
    const events = await completeness.recoveredEvents({ subscription, productIds });
    const late = events.filter(({ pushedAtUs }) => pushedAtUs !== null);
    return late.map(({ eventUs }) => (eventUs - atUs) / 1_000);
  };

  it('is recognised by the date in its record', async () => {
    const store = await openWithThree();
    // Some dates have three decimals, and some six.
    const middle = pushed(1, modified(atUs + 10_999));
    expect(await store.accept(push(middle))).toMatchObject({ outcome: 'duplicate' });
    expect(await pushedOnes(store)).toEqual([10]);
    const unknown = pushed(1, { ...modified(atUs + 15_000), AckId: 'b' });
    expect(await store.accept(push(unknown))).toMatchObject({ outcome: 'stored' });
    expect(await pushedOnes(store)).toEqual([10]);
  });

  it('without a record belongs to the newest modification that its own date allows', async () => {
    const store = await openWithThree();
    const bare = { SubscriptionEvent: 'modified', ProductId: 'product-1' };
    const dated = { ...bare, NotificationDate: new Date(atUs / 1_000).toISOString() };
    await store.accept(push({ ...dated, AckId: 'a' }));
    expect(await pushedOnes(store)).toEqual([0]);
    expect(await store.accept(push({ ...dated, AckId: 'b' }))).toMatchObject({ stored: 1 });
    const last = { ...bare, NotificationDate: new Date(atUs / 1_000 + 90).toISOString() };
    await store.accept(push({ ...last, AckId: 'c' }));
    expect(await pushedOnes(store)).toEqual([0, 20]);
    // Without a date, the modification is unknown.
    expect(await store.accept(push({ ...bare, AckId: 'd' }))).toMatchObject({ stored: 1 });
  });
});
