/** Sources of a status: a store as it is on disk, and parts that fail, hang, or are requested at once. */
import { describe, expect, it } from 'vitest';
import { createGather, createStatus, type StatusSources } from '../../../src/core/status/status.ts';
import { AppError } from '../../../src/core/terms/app-error.ts';
import { hourUs } from '../../../src/core/terms/dates.ts';
import type { DeliveryState } from '../../../src/features/sinks/terms.ts';
import type { Store } from '../../../src/store/store.ts';
import { delivery as deliveryOf, notification } from '../../helpers/deliveries.ts';
import { testIo } from '../../helpers/fake-io.ts';
import { statusParts } from '../../helpers/status.ts';
import { settingWith } from '../../receiver/serve-config.ts';
import { openSqliteStore } from '../../store/sqlite-store.ts';
import { beginUs, covered, dayUs, registration } from '../alerts/watch-context.ts';
import { pruneBefore } from '../pruning/prune-to.ts';

const delivery: DeliveryState = {
  names: ['orders', 'faulty'],
  kinds: new Map([['orders', 'webhook']]),
  faults: new Map([['faulty', 'Why.']]),
  fault: null,
};

const nowUs = beginUs + 10 * dayUs + hourUs / 4;

async function openSources(changes: Partial<StatusSources> = {}) {
  const { store, dataDir } = await openSqliteStore();
  const warned: object[] = [];
  const sources: StatusSources = {
    ...{ store, version: '1.2.3', io: testIo({ nowUs: () => nowUs }) },
    setting: settingWith({ dataDir, index: false }),
    receiver: async () => null,
    running: {
      store,
      job: (name) => (name === 'sinks' ? { state: () => delivery } : undefined),
    },
    log: { warn: (fields) => void warned.push(fields) },
    ...changes,
  };
  return { store, sources, warned };
}

const gatherStatus = (sources: StatusSources, parts = statusParts) =>
  createGather(parts, sources)();

/** Stores one notification for each of the times, for the subscription alps. */
async function push(store: Store, ...receivedAtUs: number[]): Promise<void> {
  for (const [i, us] of receivedAtUs.entries()) {
    const about = { subscription: 'alps', receivedAtUs: us };
    await store.accept(deliveryOf([notification(i + 1)], about));
  }
}

describe('the facts of a store', () => {
  it('describe the log: its size, its ends, the last delivery, the quarantine', async () => {
    const { store, sources } = await openSources();
    const [first, last] = [nowUs - dayUs, nowUs - hourUs];
    await push(store, first, last);
    await store.accept(deliveryOf('no JSON', { receivedAtUs: last }));
    const before = await gatherStatus(sources);
    expect(before.failures).toEqual([]);
    expect(before.log).toMatchObject({
      ...{ firstPosition: 1, lastPosition: 2, quarantined: 1, pruned: null },
      ...{ firstReceivedAtUs: first, lastReceivedAtUs: last },
    });
    expect(before.indexBytes).toBe(0);
    expect(before.log?.usedBytes).toBeGreaterThan(10_000);
    // A duplicate, and a delivery time of a clock that was ahead.
    const mark = { subscription: 'alps', username: 'catalogue' };
    const ahead = { ...mark, username: 'other', lastAtUs: nowUs + 1 };
    await store.administration.markDeliveries([{ ...mark, lastAtUs: nowUs - 5 }, ahead]);
    expect((await gatherStatus(sources)).log?.lastReceivedAtUs).toBe(nowUs - 5);
  });

  it('describe subscriptions: their state, and when the catalogue pauses or cancels them', async () => {
    const { store, sources } = await openSources();
    const times = { activityAtUs: nowUs - 2 * dayUs, notifiedAtUs: nowUs - 2 * dayUs };
    const rows: [Parameters<typeof registration>[0], string, boolean][] = [
      [{ name: 'a' }, 'running', false],
      [{ name: 'b', pausedSeenAtUs: nowUs - dayUs }, 'paused', false],
      [{ name: 'c', status: 'paused' }, 'paused', true],
      [{ name: 'd', subscriptionId: null }, 'absent', false],
      [{ name: 'e', unfinished: true, subscriptionId: null }, 'unfinished', false],
    ];
    for (const [fields] of rows)
      await store.administration.commit({ save: registration({ ...times, ...fields }) });
    const mark = { subscription: 'a', username: 'catalogue', lastAtUs: nowUs - hourUs };
    await store.administration.markDeliveries([mark]);
    const { subscriptions } = await gatherStatus(sources);
    expect(subscriptions).toMatchObject(
      rows.map(([fields, state, pausedOnPurpose]) => ({
        name: fields?.name,
        state,
        pausedOnPurpose,
      })),
    );
    expect(subscriptions[0]).toMatchObject({
      lastDeliveryAtUs: nowUs - hourUs,
      pausesAtUs: nowUs - hourUs + 60 * dayUs,
      cancelsAtUs: nowUs - hourUs + 365 * dayUs,
    });
    expect(subscriptions[1]).toMatchObject({
      ...{ lastDeliveryAtUs: null, pausesAtUs: null },
      cancelsAtUs: nowUs + 363 * dayUs,
    });
    expect(subscriptions[3]).toMatchObject({ pausesAtUs: null, cancelsAtUs: null });
  });

  it('describe the last seven days, and hours that are not due yet', async () => {
    const { store, sources } = await openSources();
    await store.administration.commit({ save: registration() });
    const hourOf = Math.floor((nowUs - beginUs) / hourUs);
    await store.completeness.saveCoverage([
      covered(hourOf - 169, { missing: 5 }),
      covered(hourOf - 3, { missing: 1, recovered: 2, late: 3 }),
      covered(hourOf - 2),
    ]);
    const { coverage } = await gatherStatus(sources);
    // Of 169 hours, one ended a quarter of an hour ago, one has not ended, and two are known.
    expect(coverage).toEqual([
      {
        ...{ subscription: 'alps', state: 'partly-compared', expected: 20, pushed: 20 },
        ...{ missing: 1, recovered: 2, late: 3, complete: 0.95, pushedShare: 1.15 },
        ...{ comparedHours: 2, unknownHours: 165, pendingHours: 2 },
        nextDueAtUs: expect.any(Number),
      },
    ]);
  });

  it('describe readers: the position of each, and since when it lags', async () => {
    const { store, sources } = await openSources();
    await push(store, nowUs - 3 * hourUs, nowUs - 2 * hourUs, nowUs - hourUs);
    await store.moveCursor('mine', 1, nowUs);
    await store.moveCursor('sink:orders', 3, nowUs);
    await store.moveCursor('summaries', 2, nowUs);
    const { readers } = await gatherStatus(sources);
    const read = (name: string, of: string, position: number, unreadSinceUs: number | null) => {
      return { name, of, position, behind: 3 - position, unreadSinceUs, lagMaxUs: null };
    };
    expect(readers.toSorted((a, b) => a.position - b.position)).toEqual([
      read('reader mine', 'tail', 1, nowUs - 2 * hourUs),
      read('summaries', 'summaries', 2, nowUs - hourUs),
      read('sink orders', 'sinks', 3, null),
    ]);
  });

  it('describe sinks: those that are configured, those that are not, and the faults of each', async () => {
    const { store, sources } = await openSources();
    await push(store, nowUs - 3 * hourUs, nowUs - 2 * hourUs);
    const items = [
      { position: 1, productId: 'product-1' },
      { position: 2, productId: 'product-2' },
    ];
    const about = { replayId: null, after: 0, upTo: 2, items, atUs: nowUs - hourUs };
    await store.sinks.enqueue({ sink: 'gone', ...about });
    await store.sinks.settle([{ id: 1, outcome: 'dead', error: 'It was refused.' }], nowUs);
    const { sinks } = await gatherStatus(sources);
    const none = { waiting: 0, dead: 0, oldestWaitingAtUs: null, lastError: null };
    expect(sinks).toMatchObject([
      { name: 'faulty', isSetUp: true, target: null, fault: 'Why.', ...none },
      {
        ...{ name: 'gone', isSetUp: false, target: null, fault: null, waiting: 1, dead: 1 },
        ...{ oldestWaitingAtUs: nowUs - hourUs },
        lastError: 'It was refused.',
      },
      { name: 'orders', isSetUp: true, target: 'webhook', fault: null, ...none },
    ]);
  });

  it('describe backups, alerts, and the extent of pruning', async () => {
    const { store, sources } = await openSources();
    await push(store, nowUs - 3 * dayUs, nowUs - hourUs);
    await pruneBefore(store, nowUs - 2 * dayUs);
    const run = { file: '/backups/a.db', startedAtUs: nowUs - 9, endedAtUs: nowUs - 5 };
    const made = { ...run, bytes: 12_345, lastPosition: 1, error: null };
    const failed = { ...run, endedAtUs: nowUs - 1, bytes: null, lastPosition: null, error: 'no' };
    for (const one of [made, failed]) await store.backups.recordBackup(one);
    const finding = { kind: 'disk', subject: '', level: 'warning', text: 'x' } as const;
    const findings = [{ ...finding, evidence: [], nextStep: 'y' }];
    await store.alerts.settleFindings({ checked: [], findings, channels: [], atUs: nowUs });
    expect(await gatherStatus(sources)).toMatchObject({
      log: { pruned: { receivedBeforeUs: nowUs - 3 * dayUs + 1 } },
      backups: { made, failed, everyHours: null },
      alerts: [{ ...finding, raisedAtUs: nowUs, resolvedAtUs: null }],
    });
  });
});

describe('a part that fails', () => {
  it('is reported with its reason, and does not affect the others', async () => {
    const { store, sources, warned } = await openSources();
    await push(store, nowUs - hourUs);
    const unavailable = new AppError('unavailable', 'It is away.', { details: ['For long.'] });
    const reads: Record<string, () => Promise<never>> = {
      certificate: () => Promise.reject(unavailable),
      disk: () => Promise.reject(new Error('a password')),
    };
    const parts = statusParts.map((part) => {
      const read = reads[part.name];
      return read === undefined ? part : { ...part, open: () => ({ read }) };
    });
    const status = await gatherStatus(sources, parts);
    expect(status.failures.toSorted((a, b) => (a.part < b.part ? -1 : 1))).toEqual([
      { part: 'certificate', reason: 'It is away. For long.' },
      { part: 'disk', reason: 'Internal error; see the log.' },
    ]);
    expect(status).toMatchObject({ disk: null, certificate: null, log: { lastPosition: 1 } });
    expect(status.parts.find(({ part }) => part === 'disk')).toMatchObject({ level: 'unknown' });
    expect(warned).toMatchObject([{ part: 'disk', err: expect.any(Error) }]);
  });

  it('can hang: the others are reported', { timeout: 20_000 }, async () => {
    const { sources } = await openSources({ receiver: () => new Promise(() => undefined) });
    const { failures } = await gatherStatus(sources);
    expect(failures).toEqual([{ part: 'receiver', reason: 'No answer within 5 s.' }]);
  });
});

it('a status that is requested repeatedly is gathered once for concurrent requests, and again after five seconds', async () => {
  const { sources } = await openSources();
  let [now, gathered] = [nowUs, 0];
  const receiver = async () => {
    gathered += 1;
    return null;
  };
  const io = testIo({ nowUs: () => now });
  const status = createStatus(statusParts, { ...sources, receiver, io });
  const [one, other] = await Promise.all([status(), status(), status()]);
  expect(one).toBe(other);
  expect(await status()).toBe(one);
  expect(gathered).toBe(1);
  now += 4_999_999;
  expect(await status()).toBe(one);
  now += 1;
  expect((await status()).atUs).toBe(nowUs + 5_000_000);
  expect(gathered).toBe(2);
  // The clock is set back: a status gathered in the future is not kept.
  now = nowUs - dayUs;
  expect((await status()).atUs).toBe(now);
  expect(gathered).toBe(3);
});
