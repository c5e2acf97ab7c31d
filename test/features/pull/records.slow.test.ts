/** Records of entries that lost theirs in the queue: what is fetched from the sandbox, and what is written. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { recordReader } from '../../../src/admin/pull-queue.ts';
import { AppError } from '../../../src/core/terms/app-error.ts';
import type { SubscriptionEvent } from '../../../src/core/terms/subscription.ts';
import { openListing, reconcile } from '../../../src/features/coverage/reconcile.ts';
import { catchUpIndex } from '../../../src/features/products/index-file/index-maintenance.ts';
import { openProducts } from '../../../src/features/products/index-file/products.ts';
import {
  fetchRecords,
  type MissingRecord,
  type RecordContext,
} from '../../../src/features/pull/records.ts';
import { dayMs, openPullSetUp, startMs } from '../../admin/queue-set-up.ts';
import { collect } from '../../helpers/deliveries.ts';
import { registration } from '../alerts/watch-context.ts';

const signal = new AbortController().signal;
const hourUs = 3_600_000_000;

/** Opens a queue of the sandbox, with the catalogue's listing, the product index, and a registration. */
async function openRecords(events: readonly SubscriptionEvent[] = ['created']) {
  const setUp = await openPullSetUp({}, { events: [...events] });
  const { sandbox, store, dataDir, id, nowUs, drain } = setUp;
  const { catalogueUrl } = sandbox;
  const config = { account: null, dataDir, sharedLog: null, diskReserveBytes: undefined };
  const { listing } = openListing(
    { ...config, catalogueUrl, requestsPerMinute: 1e9 },
    { nowUs, random: () => 0.5, fetch, signal },
    () => undefined,
  );
  const index = () => catchUpIndex({ dataDir });
  await index();
  const products = openProducts(dataDir);
  onTestFinished(() => products.close());
  const save = registration({
    ...{ type: 'pull', events: [...events], subscriptionId: id },
    activityAtUs: startMs * 1_000,
  });
  await store.administration.commit({ save });
  const context = {
    ...{ listing, products, log: store, cursors: store, completeness: store.completeness, nowUs },
    ownNowUs: nowUs,
    pause: async () => void (await index()),
    isAnswering: true,
    report: async () => undefined,
  };
  const asked = () => sandbox.requests().flatMap(({ path }) => pathOf(path));
  return {
    ...{ ...setUp, context, index, products, asked },
    /** Publishes events, and reads the queue when its entries have lost their records. */
    readLate: async (count: number, event: SubscriptionEvent = 'created') => {
      await sandbox.publishNow(count, event);
      sandbox.clock.advance(4 * dayMs);
      await drain();
    },
    run: async (changes: Partial<RecordContext> = {}) => {
      const gone: Omit<MissingRecord, 'error'>[] = [];
      const report: RecordContext['report'] = async (missing) => {
        for (const { error, ...product } of missing) if (error === null) gone.push(product);
      };
      const { fetched } = await fetchRecords({ ...context, report, ...changes }, [save], signal);
      return { fetched, gone };
    },
    cursor: () => store.cursor(recordReader),
  };
}

/** Returns the entity and id of a request for one product; nothing for other requests. */
function pathOf(path: string): string[] {
  const [, entity = '', productId = ''] = /\/(\w*Products)\(([^)]*)\)/.exec(path) ?? [];
  return entity === '' ? [] : [`${entity} ${productId}`];
}

type Opened = Awaited<ReturnType<typeof openRecords>>;

/** Returns the rows that were not pulled. */
const recoveredRows = async ({ rows }: Opened) =>
  (await rows()).filter(({ source }) => source === 'reconcile');

const idsOf = (some: readonly { productId: string }[]) =>
  some.map(({ productId }) => productId).toSorted();

/** Returns the products of the index. */
const indexed = async ({ products, index }: Opened, entity: 'Products' | 'DeletedProducts') => {
  await index();
  return collect(products.find({ entity, filter: null }));
};

describe('entries that were read after three days', () => {
  it('get one row each with the record of the catalogue, and the index has their attributes', async () => {
    const opened = await openRecords();
    expect(await opened.run()).toEqual({ fetched: 0, gone: [] });
    expect(await opened.cursor()).toBeNull();
    await opened.readLate(3);
    expect(await opened.run()).toEqual({ fetched: 3, gone: [] });
    const requests = opened.sandbox.entries().map(({ productId }) => `Products ${productId}`);
    expect(opened.asked()).toEqual(requests);
    const recovered = await recoveredRows(opened);
    expect(idsOf(recovered)).toEqual(idsOf(opened.sandbox.entries()));
    expect(recovered[0]).toMatchObject({ subscription: 'alps', event: 'created', ackId: null });
    const body = await opened.store.body(recovered[0]?.position ?? 0);
    const { SubscriptionId, value } = JSON.parse(Buffer.from(body).toString());
    expect(SubscriptionId).toBe(opened.id);
    expect(value.Attributes.length).toBeGreaterThan(0);
    const found = await indexed(opened, 'Products');
    expect(idsOf(found.map(({ row }) => row))).toEqual(idsOf(recovered));
    for (const { row, record } of found) {
      expect(record).toMatchObject({ Id: row.productId, Name: row.productName });
      expect(row.sensingStartUs).toEqual(expect.any(Number));
    }
    // The next run requests nothing again, and moves the cursor.
    expect(await opened.run()).toEqual({ fetched: 0, gone: [] });
    expect(await opened.cursor()).toBe(await opened.store.lastPosition());
    expect(opened.asked()).toHaveLength(3);
  });

  it('of a product that was deleted since then are reported as gone', async () => {
    const opened = await openRecords();
    await opened.sandbox.publishNow(3);
    await opened.readLate(1, 'deleted');
    const { fetched, gone } = await opened.run();
    expect(fetched).toBe(2);
    const recovered = idsOf(await recoveredRows(opened));
    const lost = idsOf(opened.sandbox.entries()).filter((one) => !recovered.includes(one));
    expect(gone).toEqual([{ subscription: 'alps', event: 'created', productId: lost[0] }]);
    expect(lost).toHaveLength(1);
    expect((await opened.run()).gone).toEqual([]);
  });

  it('of deletions get the record of the deleted product', async () => {
    const opened = await openRecords(['deleted']);
    await opened.sandbox.publishNow(5);
    await opened.readLate(2, 'deleted');
    expect(await opened.run()).toEqual({ fetched: 2, gone: [] });
    const ids = opened.sandbox.entries().map(({ productId }) => `DeletedProducts ${productId}`);
    expect(opened.asked()).toEqual(ids);
    const found = await indexed(opened, 'DeletedProducts');
    expect(found).toHaveLength(2);
    for (const { row } of found) {
      expect(row.deletionDateUs).toEqual(expect.any(Number));
      expect(row.productName).toEqual(expect.any(String));
    }
  });

  it('of a later modification get their own rows with the later record', async () => {
    const opened = await openRecords(['created', 'modified']);
    await opened.sandbox.publishNow(1);
    for (const count of [1, 2]) {
      await opened.readLate(1, 'modified');
      expect(await opened.run()).toMatchObject({ gone: [] });
      const modified = (await opened.rows()).filter(({ event }) => event === 'modified');
      expect(modified.map(({ source }) => source)).toEqual(
        Array.from({ length: count }, () => ['pull', 'reconcile']).flat(),
      );
    }
  });
});

/** Returns a listing that fails for the products at these places of the queue. */
function failingAt(places: readonly number[], code: 'invalid' | 'unavailable', opened: Opened) {
  const ids = places.map((place) => opened.sandbox.entries()[place]?.productId);
  const product: RecordContext['listing']['product'] = (query, ...rest) =>
    ids.includes(query.productId)
      ? Promise.reject(new AppError(code, 'This product cannot be read.'))
      : opened.context.listing.product(query, ...rest);
  return { listing: { product } };
}

describe('a product that cannot be fetched', () => {
  it.each([
    ['invalid', [0, 1]],
    ['unavailable', [0, 2]],
  ] as const)('(%s) does not prevent the others, and is reported', async (code, places) => {
    const opened = await openRecords();
    await opened.readLate(4);
    const reported: MissingRecord[] = [];
    const report = async (missing: readonly MissingRecord[]) => void reported.push(...missing);
    expect((await opened.run({ ...failingAt(places, code, opened), report })).fetched).toBe(2);
    expect(reported.map(({ productId, error }) => [productId, error?.code])).toEqual(
      places.map((place) => [opened.sandbox.entries()[place]?.productId, code]),
    );
    expect(await opened.cursor()).toBe(4);
  });

  it('is requested again when the next one fails, too, or when the catalogue did not answer before', async () => {
    const opened = await openRecords();
    await opened.readLate(3);
    const unavailable = { code: 'unavailable' };
    const [two, first] = [[1, 2], [0]].map((places) => failingAt(places, 'unavailable', opened));
    await expect(opened.run(two)).rejects.toMatchObject(unavailable);
    await expect(opened.run({ ...first, isAnswering: false })).rejects.toMatchObject(unavailable);
    expect(await opened.cursor()).toBeNull();
    expect((await opened.run()).fetched).toBe(3);
  });
});

it('an interrupted run continues where the last batch ended, and no record is written twice', async () => {
  const opened = await openRecords();
  await opened.readLate(150);
  const unavailable = { code: 'unavailable' };
  const failing = failingAt([120, 121], 'unavailable', opened);
  await expect(opened.run(failing)).rejects.toMatchObject(unavailable);
  expect(await opened.cursor()).toBe(100);
  expect(await recoveredRows(opened)).toHaveLength(100);
  const before = opened.asked().length;
  expect((await opened.run()).fetched).toBe(50);
  expect(opened.asked().slice(before)).toHaveLength(50);
  expect(idsOf(await recoveredRows(opened))).toEqual(idsOf(opened.sandbox.entries()));
});

describe('the comparison with the catalogue', () => {
  /** Compares the hour of the events; returns the counts of the hour. */
  async function compare({ context, store, id }: Opened) {
    const window = { fromUs: startMs * 1_000 - hourUs, toUs: startMs * 1_000 + hourUs };
    const task = {
      subscription: 'alps',
      subscriptionId: id,
      event: 'created',
      filter: '',
    } as const;
    await reconcile(context, {
      ...{ tasks: [{ ...task, isEarlier: false, ...window }], signal },
      ...{ mode: 'write', settlingUs: 0, coverage: true },
    });
    const hours = await store.completeness.coverage({
      ...{ subscription: 'alps', sinceUs: 0, untilUs: Number.MAX_SAFE_INTEGER },
    });
    return hours.filter(({ expected }) => expected > 0);
  }

  const counts = { expected: 3, pushed: 0, recovered: 3, missing: 0 };

  it('that has recovered the events saves the requests', async () => {
    const opened = await openRecords();
    await opened.readLate(3);
    await opened.index();
    expect(await compare(opened)).toMatchObject([counts]);
    expect(await opened.run()).toEqual({ fetched: 0, gone: [] });
    expect(opened.asked()).toEqual([]);
    expect(await recoveredRows(opened)).toHaveLength(3);
  });

  it('that ran before the queue was read has the records, and the entries count as late', async () => {
    const opened = await openRecords();
    await opened.sandbox.publishNow(3);
    opened.sandbox.clock.advance(4 * dayMs);
    expect(await compare(opened)).toMatchObject([counts]);
    await opened.drain();
    expect(opened.length()).toBe(0);
    expect((await opened.rows()).map(({ timesSeen }) => timesSeen)).toEqual([2, 2, 2]);
    expect(await opened.run()).toEqual({ fetched: 0, gone: [] });
    expect(opened.asked()).toEqual([]);
    const [late] = await compare(opened);
    expect(late).toMatchObject({ expected: 3, pushed: 0, recovered: 0, late: 3, missing: 0 });
  });
});
