/** The worker: rules, requests within the budget, pauses, refused answers, and repetition until all is written. */
import fc from 'fast-check';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { AppError } from '../../../src/core/terms/app-error.ts';
import type { ChatClient } from '../../../src/features/summary/chat-client.ts';
import { collectJobs, type SummaryContext } from '../../../src/features/summary/jobs.ts';
import {
  plainSummaryRule,
  type SummaryRule,
  subjectName,
  summaryReader,
} from '../../../src/features/summary/terms.ts';
import {
  isBlocked,
  SummaryWriter,
  startSummaryWorker,
} from '../../../src/features/summary/worker.ts';
import { compileFilter } from '../../../src/filter/evaluate.ts';
import { isTooOld } from '../../../src/filter/product-age.ts';
import { productView } from '../../../src/filter/product-view.ts';
import type { FoundProduct } from '../../../src/filter/products.ts';
import { collect } from '../../helpers/deliveries.ts';
import { delivery } from '../../helpers/filled-store.ts';
import { recordingLog } from '../../helpers/recording-log.ts';
import { times } from '../../helpers/thorough.ts';
import { openLocalStore } from '../../store/local-store.ts';
import { foundProduct } from './found-product.ts';

const secondUs = 1_000_000;
const hourUs = 3_600 * secondUs;
const dayUs = 24 * hourUs;
/** A Saturday at noon. */
const startUs = Date.UTC(2026, 4, 2, 12) * 1000;

const places = { placeOf: () => 'northern Italy', names: ['norway'] };

const ofEach = () => plainSummaryRule('each');

type Answer = string | { scope: 'settings' | 'service' | 'answer'; retryAfterMs?: number };

/** A context on a real store. `answers` are given one after the other, then `A scene of {mission}.` */
async function openContext(changes: Partial<SummaryContext> = {}) {
  const { store } = await openLocalStore();
  /** Null: all of the log. */
  const index: { position: number | null } = { position: null };
  const clock = { us: startUs };
  const indexed = new Map<string, FoundProduct>();
  const answers: Answer[] = [];
  const sent: string[] = [];
  const client: ChatClient = {
    complete: async ({ messages }, signal) => {
      sent.push(messages.map(({ content }) => content).join('\n'));
      const answer = answers.shift() ?? 'A scene of {mission}.';
      const failed = { status: null, retryAfterMs: null, tokens: null };
      if (signal.aborted) throw failure({ ...failed, scope: 'caller' });
      if (typeof answer === 'string') return { text: answer, tokens: 100 };
      throw failure({ ...failed, ...answer });
    },
  };
  const { log, lines } = recordingLog();
  const context: SummaryContext = {
    notifications: store,
    products: {
      indexedPosition: async () => index.position ?? store.lastPosition(),
      find: async function* ({ entity, filter, maxAgeUs = null }) {
        const matches = filter === null ? () => true : compileFilter(filter);
        if (entity === 'DeletedProducts') return;
        for (const one of indexed.values()) {
          const view = productView(one.record);
          if (matches(view) && !isTooOld(view, maxAgeUs)) yield one;
        }
      },
    },
    summaries: store.summaries,
    activity: store.activity,
    places: () => places,
    model: { name: 'a/b', client },
    budget: { requestsPerDay: 1_000, tokensPerDay: 1_000_000 },
    acquireLock: async () => () => undefined,
    nowUs: () => clock.us,
    random: () => 0.5,
    log,
    ...changes,
  };
  await store.moveCursor(summaryReader, 0, startUs);
  let acks = 0;
  return {
    ...{ context, clock, answers, sent, log: lines, store, index },
    /** Stores a notification about a product, and indexes it. */
    receive: async (
      number: number,
      cloud = 1,
      subscription: string | null = 'alps',
      dates = {},
    ) => {
      const Id = `product-${number}`;
      const Name = `S2A_MSIL2A_20260502T101403_N0511_R022_T33TU${number}_20260502T133959.SAFE`;
      acks += 1;
      const fields = { ProductId: Id, ProductName: Name, AckId: `${acks}`, value: { Id, Name } };
      await store.accept(delivery(fields, { subscription, receivedAtUs: clock.us - secondUs }));
      const row = { productId: Id, productName: Name, platform: 'SENTINEL-2A' };
      const found = foundProduct(
        { ...row, cloudCoverPercent: cloud, receivedAtUs: clock.us },
        { Id, Name, ...dates },
      );
      indexed.set(Id, found);
    },
    removeProduct: (number: number) => void indexed.delete(`product-${number}`),
    collect: async (rule: SummaryRule = ofEach()) => {
      while ((await collectJobs(context, () => rule)).hasMore);
    },
    /** Writes due jobs, as long as nothing blocks them. */
    work: async (signal = new AbortController().signal) => {
      const writer = new SummaryWriter(context, signal);
      const ends = [];
      for (;;) {
        const due = { nowUs: clock.us, digestsUntilUs: clock.us, limit: 1 };
        const [job] = await store.summaries.due(due);
        if (job === undefined) return ends;
        const result = await writer.write(job);
        const { outcome } = result;
        if (isBlocked(result)) return [...ends, 'blocked'];
        ends.push(
          outcome !== 'done' ? outcome : result.text.model === null ? 'template' : 'written',
        );
      }
    },
    rows: () => collect(store.summaries.find({})),
  };
}

function failure(facts: { scope: string; retryAfterMs: number | null }) {
  return new AppError('unavailable', 'It failed.', { facts });
}

it('writes a text for each product once, and again only when its facts have changed', async () => {
  const { receive, collect, work, rows, sent } = await openContext();
  await receive(1);
  await receive(2);
  await collect();
  expect(await work()).toEqual(['written', 'written']);
  expect((await rows()).map(({ text }) => text?.text)).toEqual(
    Array(2).fill('A scene of Sentinel-2A.'),
  );
  await receive(1);
  await receive(2, 50);
  await collect();
  expect((await work()).toSorted()).toEqual(['same', 'written']);
  expect(sent).toHaveLength(3);
});

it('asks a second time with the reason, and then takes the template', async () => {
  const { receive, collect, work, rows, answers, sent } = await openContext();
  await receive(1);
  await receive(2);
  await collect();
  answers.push('A view of Paris by {mission}.', 'A view by {mission}.', '12 clouds', '13 clouds');
  expect(await work()).toEqual(['written', 'template']);
  expect(sent[1]).toContain('refused, because it has a capitalised word outside of braces');
  const [second, first] = await rows();
  expect(first?.text).toMatchObject({ text: 'A view by Sentinel-2A.', model: 'a/b' });
  expect(second).toMatchObject({
    reason: 'The answer of the model was refused: it uses no name in braces.',
    text: { model: null, text: 'Sentinel-2A, cloud cover 1 %.' },
  });
});

/** A context with one product, whose job is collected. */
async function openOne(changes: Partial<SummaryContext> = {}) {
  const context = await openContext(changes);
  await context.receive(1);
  await context.collect();
  return context;
}

describe('the requests', () => {
  it.each([
    [{ requestsPerDay: 2, tokensPerDay: 1e9 }, 2, 'REQUESTS'],
    [{ requestsPerDay: 9, tokensPerDay: 600 }, 2, 'TOKENS'],
    [{ requestsPerDay: 0, tokensPerDay: 1e9 }, 0, 'REQUESTS'],
  ])(
    'stay within the budget %j, and continue a day after the first one',
    async (budget, count, name) => {
      const { receive, collect, work, rows, clock, sent } = await openContext({ budget });
      for (const number of [1, 2, 3]) await receive(number);
      await collect();
      expect(await work()).toEqual([...Array(count).fill('written'), 'blocked']);
      expect(sent).toHaveLength(count);
      const [waiting] = (await rows()).filter(({ reason }) => reason !== null);
      expect(waiting).toMatchObject({
        ...{ state: 'waiting', dueAtUs: startUs + dayUs, text: { model: null } },
        reason: `The budget is used up (EARSHOT_SUMMARY_${name}_PER_DAY).`,
      });
      clock.us += dayUs;
      if (count > 0) expect(await work()).toEqual(['written']);
    },
  );

  it.each<[Answer, number]>([
    [{ scope: 'service' }, 30 * secondUs],
    [{ scope: 'service', retryAfterMs: 90_000 }, 90 * secondUs],
    [{ scope: 'service', retryAfterMs: 9e9 }, hourUs],
    [{ scope: 'settings' }, 900 * secondUs],
  ])('pause after %j, with the template in the meantime', async (answer, pauseUs) => {
    const { work, rows, answers, clock } = await openOne();
    answers.push(answer);
    expect(await work()).toEqual(['blocked']);
    const [row] = await rows();
    expect(row).toMatchObject({ state: 'waiting', reason: 'It failed.', text: { model: null } });
    expect((row?.dueAtUs ?? 0) - startUs).toBe(pauseUs);
    clock.us = row?.dueAtUs ?? 0;
    expect(await work()).toEqual(['written']);
  });
});

it.each<[string, Partial<SummaryContext>]>([
  ['without a model', { model: null }],
  ['after seven days without an answer', {}],
])('writes from the template %s', async (_when, changes) => {
  const { work, rows, answers, clock } = await openOne(changes);
  if (changes.model !== null) {
    answers.push({ scope: 'settings' });
    expect(await work()).toEqual(['blocked']);
    clock.us += 8 * dayUs;
  }
  expect(await work()).toEqual(['template']);
  const reason = changes.model === null ? null : /7 days/;
  expect(await rows()).toMatchObject([{ state: 'done', reason, text: { model: null } }]);
});

it('removes the job of a product that is not in the index', async () => {
  const { work, rows, removeProduct } = await openOne();
  removeProduct(1);
  expect(await work()).toEqual(['withdrawn']);
  expect(await rows()).toEqual([]);
});

describe('the rules', () => {
  it('select products by a filter', async () => {
    const { receive, collect, rows } = await openContext();
    await receive(1);
    await receive(2);
    await collect({ ...plainSummaryRule('each'), filter: "contains(Name,'TU2')" });
    expect((await rows()).map(({ productId }) => productId)).toEqual(['product-2']);
  });

  it('leave out products that are too old, from digests, too', async () => {
    const { receive, collect, work, rows, clock, answers } = await openContext();
    const aged = (days: number) => ({
      ContentDate: { End: '2026-01-01T00:00:00Z' },
      PublicationDate: new Date(Date.UTC(2026, 0, 1 + days)).toISOString(),
    });
    await receive(1, 1, 'alps', aged(31));
    await receive(2, 1, 'alps', aged(30));
    await receive(3);
    const maxAgeUs = 30 * dayUs;
    await collect({ ...plainSummaryRule('each'), maxAgeUs });
    const products = (await rows()).map(({ productId }) => productId);
    expect(products).toEqual(['product-3', 'product-2']);
    expect(await work()).toEqual(['written', 'written']);
    await receive(4, 1, 'alps', aged(31));
    await collect({ ...plainSummaryRule('digest'), maxAgeUs });
    await receive(5, 1, 'alps', aged(32));
    await collect({ ...plainSummaryRule('digest'), maxAgeUs: 31 * dayUs });
    clock.us += dayUs;
    answers.push('With {count} products.', 'With {count} products.');
    expect(await work()).toEqual(['written', 'written']);
    const [second, first] = await rows();
    expect(first?.text?.facts).toMatchObject({ count: '2' });
    expect(second?.text?.facts).toMatchObject({ count: '4' });
    const name = /^digest of alps, .* UTC, published within 31 days of sensing$/;
    expect(second && subjectName(second)).toMatch(name);
  });

  it('request one digest per subscription and period, due at its end', async () => {
    const { receive, collect, work, rows, clock, answers } = await openContext();
    answers.push('With {count} products.', 'With {count} products.');
    clock.us += hourUs / 2;
    await receive(1);
    await receive(2);
    await receive(3, 1, 'sea');
    await collect({ ...plainSummaryRule('digest'), window: 'hour' });
    expect(await work()).toEqual([]);
    clock.us += hourUs;
    expect(await work()).toEqual(['written', 'written']);
    const scopes = (await rows()).map(({ scope }) => [scope?.subscription, scope?.untilUs]);
    expect(scopes.toSorted()).toEqual([
      ['alps', startUs + hourUs],
      ['sea', startUs + hourUs],
    ]);
  });

  it('leave out notifications that are older than seven days, and begin at the end of the log', async () => {
    const { receive, collect, rows, clock, store } = await openContext();
    const products = async () => (await rows()).map(({ productId }) => productId);
    await receive(1);
    clock.us += 8 * dayUs;
    await receive(2);
    await collect();
    expect(await products()).toEqual(['product-2']);
    await store.moveCursor(summaryReader, 99, startUs);
    await receive(3);
    await collect();
    await receive(4);
    await collect();
    expect(await products()).toEqual(['product-4', 'product-2']);
  });
});

it('the background job writes, logs a pause once, takes no lock at rest, and stops', async () => {
  const acquireLock = vi.fn(async () => () => undefined);
  const { context, receive, answers, log, rows, clock } = await openContext({ acquireLock });
  answers.push({ scope: 'service' });
  const worker = startSummaryWorker(context, ofEach, { intervalMs: 1, idleMs: 1 });
  onTestFinished(() => worker.stop());
  await receive(1);
  await expect
    .poll(() => log.filter(({ message }) => message === 'paused summaries'))
    .toHaveLength(1);
  clock.us += hourUs;
  await expect.poll(rows).toMatchObject([{ state: 'done', text: { model: 'a/b' } }]);
  const due = vi.spyOn(context.summaries, 'due');
  await expect.poll(() => due.mock.calls.length).toBeGreaterThan(2);
  acquireLock.mockClear();
  due.mockClear();
  await expect.poll(() => due.mock.calls.length).toBeGreaterThan(2);
  expect(acquireLock).not.toHaveBeenCalled();
  await worker.stop();
  expect(log.filter(({ level }) => level === 'error')).toEqual([]);
});

it('the background job at rest continues after a change, and soon after the index has read it', async () => {
  const acquireLock = vi.fn(async () => () => undefined);
  const { context, receive, rows, index } = await openContext({ acquireLock });
  const worker = startSummaryWorker(context, ofEach, { intervalMs: 1, idleMs: 3_600_000 });
  onTestFinished(() => worker.stop());
  index.position = 0;
  await receive(1);
  await expect.poll(() => acquireLock.mock.calls.length).toBeGreaterThan(2);
  index.position = null;
  await expect.poll(rows).toMatchObject([{ state: 'done' }]);
});

it('the background job logs that another program holds the lock', async () => {
  const acquireLock = () => Promise.reject(new AppError('conflict', 'Another program writes.'));
  const { context, receive, log } = await openContext({ acquireLock });
  const worker = startSummaryWorker(context, ofEach, { intervalMs: 1, idleMs: 1 });
  onTestFinished(() => worker.stop());
  await receive(1);
  const message = 'summaries wait for another program';
  await expect.poll(() => log).toMatchObject([{ level: 'info', message }]);
});

it('writes nothing while the index is rebuilt, and removes no text', async () => {
  const { context, receive, collect, work, rows, removeProduct, index, store } =
    await openContext();
  await receive(1);
  await collect();
  await work();
  await receive(1, 50);
  await collect();
  removeProduct(1);
  index.position = 1;
  // The index was replaced after the round had begun.
  await expect(work()).rejects.toThrow('The product index is being rebuilt.');
  expect(await rows()).toMatchObject([{ text: { model: 'a/b' } }]);
  const due = vi.spyOn(context.summaries, 'due');
  const release = vi.fn();
  const rebuilding = { ...context, acquireLock: async () => release };
  const worker = startSummaryWorker(rebuilding, ofEach, { intervalMs: 1, idleMs: 1 });
  onTestFinished(() => worker.stop());
  await expect.poll(() => release.mock.calls.length).toBeGreaterThan(2);
  expect(due.mock.calls.filter(([{ limit }]) => limit > 1)).toEqual([]);
  await worker.stop();
  await receive(2);
  index.position = 3;
  const { find } = context.products;
  context.products.find = (query) => {
    index.position = 0;
    return find(query);
  };
  await collect({ ...plainSummaryRule('each'), filter: "contains(Name,'S2A')" });
  expect(await store.cursor(summaryReader)).toBe(2);
});

const step = fc.oneof(
  fc.record({ receive: fc.integer({ min: 1, max: 4 }), cloud: fc.integer({ min: 0, max: 9 }) }),
  fc.record({
    answers: fc.array(
      fc.constantFrom<Answer>(
        ...['A {type}.', 'over Paris', '{place}'],
        ...(['service', 'answer', 'settings'] as const).map((scope) => ({ scope })),
      ),
      { maxLength: 4 },
    ),
    isStopped: fc.boolean(),
  }),
  fc.record({ passedUs: fc.integer({ min: 0, max: hourUs }) }),
);

it('after any start, faults and interruptions, each product has one text about its newest state', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
      const { receive, collect, work, rows, answers, clock, sent } = await openContext();
      const clouds = new Map<string, string>();
      for (const one of steps) {
        if ('receive' in one) {
          await receive(one.receive, one.cloud);
          clouds.set(`product-${one.receive}`, `${one.cloud} %`);
        } else if ('passedUs' in one) {
          clock.us += one.passedUs;
        } else {
          await collect();
          answers.splice(0, answers.length, ...one.answers);
          const stop = new AbortController();
          if (one.isStopped) stop.abort();
          await work(stop.signal).catch((error: unknown) =>
            expect(stop.signal.aborted, String(error)).toBe(true),
          );
        }
      }
      answers.length = 0;
      clock.us += dayUs;
      await collect();
      await work();
      const written = await rows();
      expect(new Map(written.map(({ productId, text }) => [productId, text?.facts.cloud]))).toEqual(
        clouds,
      );
      expect(written.filter(({ state }) => state !== 'done')).toEqual([]);
      const count = sent.length;
      await collect();
      expect(await work()).toEqual([]);
      expect(sent).toHaveLength(count);
    }),
    { numRuns: times(40, 1_000) },
  );
});
