/** Simulated weeks of pull subscriptions with outages: afterwards, the log has every event once. */
import { expect, it, onTestFinished } from 'vitest';
import { recordAgeMaxUs } from '../../src/admin/pull-queue.ts';
import type { NotificationRow } from '../../src/core/terms/ports.ts';
import { hourUs } from '../../src/core/terms/time-units.ts';
import type { SandboxOptions } from '../../src/sandbox/sandbox-options.ts';
import { collect } from '../helpers/deliveries.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { times } from '../helpers/thorough.ts';
import { coverageFaults, resultOf, totalOf } from '../simulation/month-results.ts';
import { openPullMonth, type PullMonth } from '../simulation/pull-month.ts';
import { publishedTo } from './pull-context.ts';

const seed = 20_261_128;
/** Hours between two outages. */
const betweenHours = times(1, 5) * 24;
const startMs = Date.UTC(2026, 4, 1);
const changes = { modifiedShare: 0.3, deletedShare: 0.1 };

async function openMonth(sandbox: Partial<SandboxOptions>, productsPerHour: number) {
  const folder = temporaryDirectory();
  const common = { folder, seed, startMs, productsPerHour };
  const month = await openPullMonth({ ...common, sandbox: { ...changes, ...sandbox } });
  onTestFinished(() => month.close());
  return month;
}

function storeOf({ receiver }: PullMonth) {
  const running = receiver();
  if (running === null) throw new Error('The receiver is closed.');
  return running;
}

const fetchedOf = (month: PullMonth) =>
  collect(storeOf(month).store.find({ order: 'oldest', source: 'reconcile' }));

const pulledOf = (month: PullMonth) =>
  collect(storeOf(month).store.find({ order: 'oldest', source: 'pull' }));

/** Expects that each queue is in the log, entry by entry. */
async function expectWholeQueues(month: PullMonth): Promise<void> {
  const { sandbox } = month;
  const pulled = await pulledOf(month);
  for (const { id } of sandbox.subscriptions()) {
    const own = pulled.filter(({ subscriptionId }) => subscriptionId === id);
    expect(own.map(({ ackId }) => ackId)).toEqual(publishedTo(sandbox, id));
  }
  const { published, ...totals } = sandbox.totals();
  expect(pulled).toHaveLength(published);
  expect(totals).toMatchObject({ delivered: published, lost: 0 });
}

/** Returns the coverage of all hours up to the last whole one, of which every one was compared. */
async function coverageOf(month: PullMonth) {
  const window = { fromUs: startMs * 1_000, toUs: Math.floor(month.nowMs() / 3_600_000) * hourUs };
  const { completeness } = storeOf(month).store;
  const hours = await completeness.coverage({ sinceUs: window.fromUs, untilUs: window.toUs });
  // Without the last hour, which has not settled.
  const kinds = 3;
  expect(hours.length).toBeGreaterThanOrEqual(kinds * ((window.toUs - window.fromUs) / hourUs - 1));
  const sum = (key: 'expected' | 'recovered' | 'missing') =>
    hours.reduce((total, hour) => total + hour[key], 0);
  return { window, hours, ...{ recovered: sum('recovered'), missing: sum('missing') } };
}

/** Returns the sums of `earshot coverage` over all subscriptions. */
async function reportedCoverage({ command }: PullMonth) {
  const since = new Date(startMs).toISOString();
  const { code, out, err } = await command(['coverage', '--since', since, '--json']);
  expect(code, err).toBe(0);
  const { missing, subscriptions } = JSON.parse(out);
  const recovered = subscriptions.map((one: { recovered: number }) => one.recovered);
  const complete = subscriptions.map((one: { complete: number }) => one.complete);
  return { missing, complete, recovered: recovered.reduce((a: number, b: number) => a + b, 0) };
}

/** Expects that another comparison finds nothing. */
async function expectNothingLeft({ command, nowMs }: PullMonth): Promise<void> {
  const window = [
    '--since',
    new Date(startMs).toISOString(),
    '--until',
    new Date(nowMs()).toISOString(),
  ];
  const { code, err } = await command(['reconcile', ...window, '--check']);
  expect(code, err).toBe(0);
}

it('a month with outages of up to two days ends with a log of exactly the events, and nothing was fetched', async () => {
  const queueFaults = {
    ...{ rateLimited: 0.01, serverError: 0.01, connectionCut: 0.02 },
    ...{ ackAnswerLost: 0.02, doubleRead: 0.02, brokenJson: 0.01 },
  };
  const month = await openMonth({ service: { queueFaults } }, times(3, 6));
  await month.pass(betweenHours);
  const unread = () => month.sandbox.queues()[0]?.length;
  for (const hours of [3, 12, 48, 1]) {
    await month.outage(hours, async () => {
      if (hours === 48) expect(unread()).toBeGreaterThan(times(50, 100));
      expect(await fetchedOf(month)).toEqual([]);
    });
    await month.pass(betweenHours);
  }
  await month.pass(24);
  await month.calm();

  await expectWholeQueues(month);
  const { counts, faults, expected, logged } = resultOf(month, month);
  expect(faults).toEqual([]);
  expect(logged).toHaveLength(expected.length);
  const { pushed, late, ...others } = totalOf(counts);
  const none = { recovered: 0, superseded: 0, deleted: 0 };
  expect(others).toEqual({ ...none, expected: pushed + late });
  // The month must contain all kinds of events, and enough late ones.
  expect(Object.keys(counts)).toHaveLength(3);
  expect(Math.min(pushed - times(250, 1_500), late - times(50, 100))).toBeGreaterThan(0);
  const { window, hours, recovered, missing } = await coverageOf(month);
  expect({ recovered, missing }).toEqual({ recovered: 0, missing: 0 });
  expect(coverageFaults(expected, logged, hours, window)).toEqual([]);
  const reported = await reportedCoverage(month);
  expect(reported).toEqual({ missing: 0, complete: [1, 1], recovered: 0 });
  await expectNothingLeft(month);
  expect(month.problems).toEqual([]);
}, 120_000);

/** Returns the ids of the products in the index whose record has a name, alive and deleted. */
async function recordedProducts(month: PullMonth) {
  const { products } = storeOf(month);
  const idsOf = async (entity: 'Products' | 'DeletedProducts') => {
    const found = await collect(products.find({ entity, filter: null }));
    return found.filter(({ record }) => record.Name).map(({ row }) => row.productId);
  };
  return new Set([...(await idsOf('Products')), ...(await idsOf('DeletedProducts'))]);
}

/** Returns the events that query results show at the end. */
function shownEvents({ sandbox, periods }: PullMonth) {
  return periods.flatMap(({ subscription, events, filter }) =>
    [...sandbox.events({ events, filter })].flatMap(({ event, productId, at, shown }) => {
      const notificationDateUs = Date.parse(at) * 1_000;
      return shown ? [{ subscription, event, productId, notificationDateUs }] : [];
    }),
  );
}

type Event = Pick<NotificationRow, 'subscription' | 'event' | 'productId' | 'notificationDateUs'>;

const keyOf = ({ subscription, event, productId }: Event) =>
  `${subscription} ${event} ${productId.toLowerCase()}`;

/** Dates of notifications have more digits than those of events. */
const momentOf = (one: Event) =>
  `${keyOf(one)} ${Math.floor((one.notificationDateUs ?? 0) / 1_000)}`;

/** Expects that the records of all entries without one were fetched, as far as the catalogue has them; returns their number. */
async function expectFetchedRecords(month: PullMonth): Promise<number> {
  const pulled = await pulledOf(month);
  const unrecorded = pulled.filter(({ productName }) => productName === null);
  const old = pulled.filter(({ notificationDateUs, receivedAtUs }) => {
    return receivedAtUs - (notificationDateUs ?? 0) > recordAgeMaxUs;
  });
  expect(unrecorded.map(({ ackId }) => ackId)).toEqual(old.map(({ ackId }) => ackId));
  const without = new Set(unrecorded.map(momentOf));
  const fetched = await fetchedOf(month);
  const fetchedKeys = new Set(fetched.map(keyOf));
  const read = new Set(pulled.map(momentOf));
  // The record of an earlier modification is that of the last one, whose entry may still be in the queue.
  const isEarly = (one: Event) => !read.has(momentOf(one)) && fetchedKeys.has(keyOf(one));
  const shown = shownEvents(month).filter((one) => without.has(momentOf(one)) || isEarly(one));
  expect(fetched.map(keyOf).toSorted()).toEqual(shown.map(keyOf).toSorted());
  return fetched.length;
}

it('after an outage of four days, the records that the queue no longer has are fetched', async () => {
  const month = await openMonth({}, times(6, 12));
  await month.pass(30);
  await month.outage(96, async () => {
    // One page of each queue is read: the records of the longer one wait until it is read.
    const pulled = await pulledOf(month);
    expect(pulled.filter(({ productName }) => productName === null)).not.toEqual([]);
    expect(new Set((await fetchedOf(month)).map(({ subscription }) => subscription))).toEqual(
      new Set(['deletions']),
    );
    expect(month.sandbox.queues()[0]?.length).toBeGreaterThan(100);
  });
  await month.pass(30);
  await month.calm();

  await expectWholeQueues(month);
  const fetched = await expectFetchedRecords(month);
  expect(fetched).toBeGreaterThan(times(100, 200));
  const recorded = await recordedProducts(month);
  expect(shownEvents(month).filter(({ productId }) => !recorded.has(productId))).toEqual([]);
  const { recovered, missing } = await coverageOf(month);
  expect({ recovered, missing }).toEqual({ recovered: fetched, missing: 0 });
  const reported = await reportedCoverage(month);
  expect(reported).toEqual({ missing: 0, complete: [1, 1], recovered: fetched });
  await expectNothingLeft(month);
}, 120_000);
