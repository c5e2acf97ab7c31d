/** Requests of the rules, from the log to the texts. */
import { describe, expect, it, onTestFinished } from 'vitest';
import type { SummaryRule } from '../../../src/domain/summaries.ts';
import { digestEvents } from '../../../src/summary/worker/prepare.ts';
import type { SummaryContext } from '../../../src/summary/worker/summary-context.ts';
import { guid, type Sample } from '../../cli/product-samples.ts';
import { day, midnightUs } from '../digest/sample-events.ts';
import { foundProduct } from '../facts/found-product.ts';
import {
  dayUs,
  each,
  hourly,
  hourUs,
  minuteUs,
  off,
  openFollowing,
  openWorker,
  productOf,
  rules,
  startUs,
} from './set-up.ts';

/** A later state of a product: a higher `number` is later. */
const changed = (number: number, sample: Partial<Sample>, state: number, fields: object = {}) => {
  const ModificationDate = `2026-05-02T11:0${state}:00Z`;
  return productOf(number, { ...sample, fields: { ModificationDate, ...fields } });
};

describe('the rule each', () => {
  it('requests one text per product across subscriptions, except those with another rule', async () => {
    const worker = await openFollowing();
    const { receive, outcomes } = worker;
    await receive([productOf(1), productOf(2)]);
    await receive([productOf(2)], { subscription: 'other' });
    await receive([productOf(3)], { subscription: null });
    await receive([productOf(4)], { subscription: 'silent' });
    await worker.collect(rules({ silent: off }, each));
    expect(await worker.work()).toEqual({ end: 'nothing due' });
    const rows = await worker.rows();
    expect(rows.map(({ productId }) => productId?.at(-1))).toEqual(['3', '2', '1']);
    expect(rows.map(({ subscription }) => subscription)).toEqual([null, 'other', 'alps']);
    for (const { state, text } of rows) {
      expect({ state, doubts: text?.doubts }).toEqual({ state: 'done', doubts: [] });
      expect(text).toMatchObject({ model: 'openai/gpt-oss-120b', verified: true });
    }
    expect(outcomes()).toEqual({ answered: 3 });
  });

  it('requests a text only if its filter matches the newest record', async () => {
    const worker = await openFollowing();
    await worker.receive([productOf(5), productOf(50)]);
    await worker.receive([productOf(60, { cloud: 90 })]);
    await worker.receive([changed(60, { cloud: 3 }, 1)], { event: 'modified' });
    const cloud = "Attributes/OData.CSC.DoubleAttribute/any(att:att/Name eq 'cloudCover' and";
    const filter = `${cloud} att/OData.CSC.DoubleAttribute/Value lt 10)`;
    await worker.collect(rules({ alps: { kind: 'each', filter } }));
    expect((await worker.rows()).map(({ productId }) => productId?.slice(-2))).toEqual([
      '60',
      '05',
    ]);
  });

  it('reads the products of a round together, and only if a rule has a filter', async () => {
    const worker = await openFollowing();
    const { products } = worker.context;
    const asked: unknown[] = [];
    const find: typeof products.find = (query, signal) => {
      asked.push(query);
      return products.find(query, signal);
    };
    worker.context.products = { ...products, find };
    await worker.receive([productOf(1), productOf(2), productOf(2), productOf(3)]);
    await worker.receive([productOf(4)], { subscription: 'other' });
    const filter = "startswith(Name,'S2')";
    await worker.collect(rules({ alps: { kind: 'each', filter } }, each));
    const numbers = (await worker.rows()).map(({ productId }) => productId?.at(-1));
    expect(numbers).toEqual(['4', '3', '2', '1']);
    // One query for existing products, and one for deleted ones.
    const ids = [1, 2, 3].map((number) => ({ type: 'text', value: productOf(number).id }));
    expect(asked).toMatchObject(Array(2).fill({ filter: { literals: ids } }));
  });

  it('recognises a product by its id in any case', async () => {
    const worker = await openFollowing();
    const id = guid('abc');
    await worker.receive([productOf(1, { id }), productOf(2)]);
    await worker.collect(rules({}, off));
    const again = [productOf(1, { id: id.toUpperCase() }), productOf(2)];
    await worker.receive(again, { event: 'modified' });
    const cloud = "Attributes/OData.CSC.DoubleAttribute/any(att:att/Name eq 'cloudCover' and";
    const filter = `${cloud} att/OData.CSC.DoubleAttribute/Value lt 2)`;
    await worker.collect(rules({ alps: { kind: 'each', filter } }, each));
    const ids = (await worker.rows()).map(({ productId }) => productId?.toLowerCase());
    expect(ids).toEqual([id]);
  });

  it('requests a text again only when the facts changed', async () => {
    const worker = await openFollowing();
    const round = async (sample: ReturnType<typeof productOf>, event: 'modified' | 'deleted') => {
      await worker.receive([sample], { event });
      await worker.collect();
      await worker.work();
      const [row] = await worker.rows();
      return { text: row?.text?.text, state: row?.state, asked: worker.outcomes().answered };
    };
    const first = await round(productOf(1), 'modified');
    expect(first).toMatchObject({ state: 'done', asked: 1 });
    expect(await round(changed(1, {}, 1), 'modified')).toEqual(first);
    const moved = { area: 'POLYGON ((2 47, 3 47, 3 48, 2 48, 2 47))' };
    const elsewhere = await round(changed(1, moved, 2), 'modified');
    expect(elsewhere).toMatchObject({ state: 'done', asked: 2 });
    const cause = { DeletionDate: '2026-05-02T11:40:00Z', DeletionCause: 'Duplicated product' };
    const deleted = await round(productOf(1, { fields: cause }), 'deleted');
    expect(deleted).toMatchObject({ state: 'done', asked: 3 });
    expect(new Set([first, elsewhere, deleted].map(({ text }) => text)).size).toBe(3);
  });
});

describe('the rule digest', () => {
  const openDigests = async (rule: SummaryRule) => {
    const worker = await openFollowing();
    const radar = {
      name: 'S1A_IW_GRDH_1SDV_20260502T050000_20260502T050025_060000_077000_ABCD.SAFE',
    };
    await worker.receive([productOf(1), productOf(2), productOf(3, radar)]);
    await worker.receive([productOf(90)], { receivedAtUs: startUs - 2 * hourUs });
    await worker.receive([productOf(4)], { subscription: null });
    await worker.collect(rules({ alps: rule }));
    return worker;
  };

  it('requests a text per window, when it has ended and is indexed completely', async () => {
    const worker = await openDigests(hourly);
    const [older, newer] = await worker.rows();
    expect(newer?.scope).toMatchObject({ fromUs: startUs - hourUs, untilUs: startUs });
    expect(older?.scope).toMatchObject({ fromUs: startUs - 2 * hourUs, subscription: 'alps' });
    await worker.work();
    expect((await worker.rows()).map(({ state }) => state)).toEqual(['done', 'waiting']);
    worker.clock.us += minuteUs;
    await worker.work();
    expect((await worker.rows()).map(({ text }) => text?.text)).toMatchObject([
      expect.stringContaining('1 product arrived'),
      expect.stringContaining('3 products arrived'),
    ]);
    expect(worker.outcomes()).toEqual({ answered: 2 });
  });

  it('requests one per collection, or per area with its own name', async () => {
    const byCollection = await openDigests({ ...hourly, per: 'collection' });
    const scopes = (await byCollection.rows()).map(({ scope }) => scope?.collection);
    expect(scopes.toSorted()).toEqual(['SENTINEL-1', 'SENTINEL-2', 'SENTINEL-2']);
    const clear = { name: 'radar', filter: "startswith(Name,'S1')" };
    const everything = { name: 'all of it', filter: '' };
    const none = { name: 'none', filter: "startswith(Name,'LC')" };
    const byArea = await openDigests({ ...hourly, areas: [clear, everything, none] });
    byArea.clock.us += minuteUs;
    await byArea.work();
    const rows = await byArea.rows();
    const ends = rows.map(({ scope, state }) => `${scope?.area} ${state}`);
    expect(ends.toSorted()).toEqual(['all of it done', 'all of it done', 'radar done']);
  });

  it('covers notifications without a subscription by the default rule, separately from the others', async () => {
    const worker = await openFollowing();
    await worker.receive([productOf(1)], { subscription: null });
    await worker.receive([productOf(2), productOf(3)]);
    await worker.collect(rules({ alps: off }, { ...hourly, window: 'day' }));
    worker.clock.us += dayUs;
    await worker.work();
    const [row, ...others] = await worker.rows();
    expect(others).toEqual([]);
    expect(row?.scope).toMatchObject({ subscription: '', fromUs: startUs - dayUs / 2 });
    expect(row?.text?.text).toContain('1 product arrived');
  });

  it('withdraws a digest that has no products any more', async () => {
    const worker = await openDigests({
      ...hourly,
      areas: [{ name: 'clear', filter: 'Online eq true' }],
    });
    const offline = [1, 2, 3].map((number) => changed(number, {}, 1, { Online: false }));
    await worker.receive(offline, {
      event: 'modified',
      subscription: 'elsewhere',
    });
    await worker.index();
    worker.clock.us += minuteUs;
    const ends: string[] = [];
    const onEnd = async (_: unknown, { end }: { end: string }) => void ends.push(end);
    await worker.work({ onEnd });
    expect(ends.toSorted()).toEqual(['withdrawn', 'written']);
    expect(await worker.rows()).toHaveLength(1);
  });
});

describe('the reader of the log', () => {
  it('starts at the end on its first run, and again when the log was replaced', async () => {
    const worker = await openWorker();
    await worker.receive([productOf(1)]);
    await worker.collect();
    expect(await worker.store.cursor('summaries')).toBe(1);
    await worker.receive([productOf(2)]);
    await worker.store.moveCursor('summaries', 99, startUs);
    await worker.collect();
    expect(await worker.store.cursor('summaries')).toBe(2);
    await worker.receive([productOf(3)]);
    await worker.collect();
    expect((await worker.rows()).map(({ productId }) => productId?.at(-1))).toEqual(['3']);
  });

  it('skips notifications older than seven days', async () => {
    const worker = await openFollowing();
    await worker.receive([productOf(1)], { receivedAtUs: startUs - 7 * dayUs - 1 });
    await worker.receive([productOf(2)], { receivedAtUs: startUs - 7 * dayUs });
    await worker.collect();
    expect((await worker.rows()).map(({ productId }) => productId?.at(-1))).toEqual(['2']);
  });

  it('waits for the index, and continues where it stopped', async () => {
    const worker = await openFollowing();
    const { products } = worker.context;
    await worker.receive([productOf(1), productOf(2), productOf(3)]);
    const lagging = { ...products, indexedPosition: async () => 2 };
    worker.context.products = lagging;
    await worker.collect();
    expect(await worker.rows()).toHaveLength(2);
    worker.context.products = products;
    await worker.collect();
    expect(await worker.rows()).toHaveLength(3);
  });

  it('finds each job once when two programs read at the same time', async () => {
    const one = await openFollowing();
    const { dataDir, clock, sandbox } = one;
    await one.receive(Array.from({ length: 120 }, (_, i) => productOf(i)));
    const other = await openWorker({ dataDir, clock, sandbox });
    await Promise.all([one, other].map((worker) => worker.collect()));
    const due = await one.summaries.due({ nowUs: clock.us, limit: 200 });
    expect(due.map(({ revision }) => revision)).toEqual(Array.from({ length: 120 }, () => 1));
    await Promise.all([one.work(), other.work()]);
    expect(await one.summaries.counts()).toMatchObject({ done: 120, asking: 0, waiting: 0 });
    expect(sandbox.inference.totals()).toMatchObject({ distinct: 120, repeated: 0 });
  });

  it('drops the products that have waited longest when too many wait, and logs it', async () => {
    const worker = await openFollowing();
    const old = Array.from({ length: 9_999 }, (_, i) => ({
      kind: 'product' as const,
      subject: `old-${i}`,
      productId: `old-${i}`,
      productName: null,
      subscription: 'alps',
      position: null,
      scope: null,
      dueAtUs: startUs,
    }));
    await worker.summaries.enqueue({ jobs: old, waitingMax: 10_000, atUs: startUs - hourUs });
    await worker.receive([productOf(1), productOf(2), productOf(3)]);
    await worker.collect();
    expect(await worker.summaries.counts()).toMatchObject({ waiting: 10_000, dropped: 2 });
    expect(worker.log).toMatchObject([{ level: 'warn', fields: { dropped: 2 } }]);
    worker.clock.us += minuteUs;
    await worker.receive([productOf(4), productOf(5)]);
    await worker.collect();
    const dropped = (await worker.rows()).filter(({ state }) => state === 'dropped');
    expect(dropped.map(({ error }) => error)).toEqual(
      Array.from({ length: 4 }, () => 'more than 10000 summaries were waiting'),
    );
    expect(worker.log).toHaveLength(1);
    worker.clock.us += 10 * minuteUs;
    await worker.receive([productOf(6)]);
    await worker.collect();
    expect(worker.log.map(({ fields }) => fields.dropped)).toEqual([2, 3]);
  });
});

describe('a digest of many products', () => {
  it('reads one product at a time, and lets other work run in between', async () => {
    const ids = Array.from({ length: 40 }, (_, index) => `product-${index}`);
    let turn = 0;
    let timer = setImmediate(function next() {
      turn += 1;
      timer = setImmediate(next);
    });
    onTestFinished(() => clearImmediate(timer));
    const turns: number[] = [];
    const placeOf = () => {
      turns.push(turn);
      return null;
    };
    async function* rows() {
      const row = { event: 'created', productName: null, receivedAtUs: midnightUs };
      for (const productId of ids) yield { ...row, productId };
    }
    async function* found({ entity }: { entity: string }) {
      const record = { Footprint: 'POINT (9 50)' };
      for (const productId of entity === 'Products' ? ids : [])
        yield foundProduct({ productId }, record);
    }
    const deps: unknown = {
      notifications: { find: rows },
      products: { find: found },
      places: () => ({ placeOf }),
    };
    const events = digestEvents(day, deps as SummaryContext, undefined);
    const seen: string[] = [];
    for await (const { productId } of events) seen.push(productId);
    expect(seen).toEqual(ids);
    expect(turns.length).toBeGreaterThanOrEqual(ids.length);
    expect(new Set(turns).size).toBe(turns.length);
  });
});
