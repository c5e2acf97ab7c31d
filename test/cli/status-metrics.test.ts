/** Metrics of how a running receiver stands: what each tells of is brought about in its store, and collected. */
import { describe, expect, it } from 'vitest';
import type { Registration } from '../../src/domain/account.ts';
import { hourOf } from '../../src/domain/coverage-report.ts';
import { sinkReader } from '../../src/domain/sinks.ts';
import { notification } from '../helpers/deliveries.ts';
import { claim, enqueued, productJob } from '../store/summary-jobs.ts';
import { registration } from '../watch/watch-world.ts';
import { openServed } from './served-world.ts';

const hourUs = 3_600_000_000;
const dayUs = 24 * hourUs;

/** With a status that is gathered anew for each scrape. */
async function open() {
  const world = await openServed({ index: true });
  const scrape = () => {
    world.passUs(6_000_000);
    return world.scrape();
  };
  const push = async (...bodies: unknown[]) => {
    for (const body of bodies) await world.post('/notifications/alps', JSON.stringify(body));
  };
  const seconds = () => world.nowUs() / 1_000_000;
  return { ...world, scrape, push, seconds };
}

/** Within so many seconds. */
const near = (expected: number, value: number | undefined, within = 30) => {
  expect(Math.abs((value ?? Number.NaN) - expected)).toBeLessThan(within);
};

describe('a running receiver', () => {
  it('shows its log, its index, its quarantine, its readers and its disk', async () => {
    const { scrape, push, seconds, store } = await open();
    const before = await scrape();
    expect(before.value('earshot_last_notification_timestamp_seconds')).toBeUndefined();
    expect(before.value('earshot_log_first_received_timestamp_seconds')).toBeUndefined();
    expect(before.value('earshot_log_last_position')).toBe(0);
    expect(before.value('earshot_quarantined_bodies')).toBe(0);
    await store.moveCursor(sinkReader('orders'), 0, 1);
    await push(...Array.from({ length: 20 }, (_, i) => notification(i)), {});
    const { value } = await scrape();
    near(seconds(), value('earshot_last_notification_timestamp_seconds'));
    near(seconds(), value('earshot_log_first_received_timestamp_seconds'));
    expect(value('earshot_log_last_position')).toBe(20);
    expect(value('earshot_quarantined_bodies')).toBe(1);
    expect(value('earshot_log_used_bytes')).toBeGreaterThan(4_096);
    expect(value('earshot_log_free_bytes')).toBeGreaterThanOrEqual(0);
    expect(value('earshot_log_wal_bytes')).toBeGreaterThan(
      before.value('earshot_log_wal_bytes') ?? 0,
    );
    const reader = { reader: 'sink orders', kind: 'sink' };
    expect(value('earshot_reader_behind_notifications', reader)).toBe(20);
    near(7, value('earshot_reader_behind_seconds', reader));
    const index = { reader: 'product index', kind: 'index' };
    const indexed = async () =>
      (await scrape()).value('earshot_reader_behind_notifications', index);
    await expect.poll(indexed, { timeout: 10_000 }).toBe(0);
    expect((await scrape()).value('earshot_index_bytes')).toBeGreaterThan(4_096);
    const free = value('earshot_disk_free_bytes') ?? 0;
    expect(free).toBeGreaterThan(0);
    expect(value('earshot_disk_size_bytes')).toBeGreaterThan(free);
    expect(value('earshot_disk_reserve_bytes')).toBeGreaterThanOrEqual(0);
  });

  it('shows how far its log was pruned', async () => {
    const { scrape, push, passUs, nowUs, seconds, store } = await open();
    const horizon = async () => (await scrape()).value('earshot_prune_horizon_timestamp_seconds');
    const index = { reader: 'product index' };
    const unread = async () => (await scrape()).value('earshot_reader_behind_notifications', index);
    await push(notification(1), notification(2));
    await expect.poll(unread, { timeout: 10_000 }).toBe(0);
    expect(await horizon()).toBeUndefined();
    const received = seconds();
    passUs(3 * dayUs);
    await push(notification(3));
    await expect.poll(unread, { timeout: 10_000 }).toBe(0);
    const keep = { ageUs: 2 * dayUs, bytes: null };
    const wish = { keep, withHeld: false, freeShare: 1, nowUs: nowUs() };
    await store.pruning.pruneStep({ phase: 'notifications', wish, after: 0 });
    expect(await horizon()).toBeGreaterThan(received - 60);
  });

  it('shows that it refuses, and takes again', async () => {
    const { scrape, breakStore, mendStore } = await open();
    const { value } = await scrape();
    expect(value('earshot_refusing')).toBe(0);
    expect(value('earshot_queue_bytes')).toBe(0);
    expect(value('earshot_queue_bytes_max')).toBe(64 * 2 ** 20);
    expect(value('earshot_status_level', { part: 'receiver' })).toBe(0);
    breakStore();
    const refusing = await scrape();
    expect(refusing.value('earshot_refusing')).toBe(1);
    expect(refusing.value('earshot_status_level', { part: 'receiver' })).toBe(2);
    mendStore();
    await expect.poll(async () => (await scrape()).value('earshot_refusing')).toBe(0);
  });

  it('shows its certificate', async () => {
    const { scrape, seconds, passUs } = await open();
    const left = async () => (await scrape()).value('earshot_certificate_left_days');
    const { value } = await scrape();
    near(seconds() + 30 * 86_400, value('earshot_certificate_not_after_timestamp_seconds'));
    near(30 * 86_400 + 3_600, value('earshot_certificate_lifetime_seconds'));
    expect(value('earshot_certificate_renewal_succeeded')).toBeUndefined();
    near(30, await left(), 0.01);
    passUs(31 * dayUs);
    near(-1, await left(), 0.01);
  });

  it('shows its subscriptions: their states, deliveries and ends', async () => {
    const { scrape, push, nowUs, store } = await open();
    const known: Registration = {
      name: 'alps',
      events: ['created'],
      filter: '',
      status: 'running',
      subscriptionId: 'c06f2e68-fb9e-4e22-ac57-49566e8621fb',
      unfinished: false,
      credentialsDigest: null,
      activityAtUs: nowUs(),
      notifiedAtUs: nowUs(),
      runningSeenAtUs: nowUs(),
      pausedSeenAtUs: null,
      heldBy: null,
      reported: null,
    };
    const save = (fields: Partial<Registration>) =>
      store.administration.commit({ save: { ...known, ...fields } });
    const alps = { subscription: 'alps' };
    const states = async () => {
      const { samples } = await scrape();
      const all = samples.filter(({ name }) => name === 'earshot_subscription_state');
      expect(all).toHaveLength(4);
      return all.filter((one) => one.value === 1).map(({ labels }) => labels.state);
    };
    await save({});
    expect(await states()).toEqual(['running']);
    await save({ pausedSeenAtUs: nowUs() });
    expect(await states()).toEqual(['paused']);
    await save({ subscriptionId: null });
    expect(await states()).toEqual(['absent']);
    await save({});
    const delivered = 'earshot_subscription_last_delivery_timestamp_seconds';
    expect((await scrape()).value(delivered, alps)).toBeUndefined();
    await push(notification(1));
    const last = async () => (await scrape()).value(delivered, alps);
    await expect.poll(last, { timeout: 10_000 }).toBeGreaterThan(1_700_000_000);
    const { value } = await scrape();
    const pauses = value('earshot_subscription_pause_timestamp_seconds', alps) ?? 0;
    expect(pauses).toBeGreaterThan(nowUs() / 1_000_000 + 86_400);
    const ends = value('earshot_subscription_cancellation_timestamp_seconds', alps) ?? 0;
    expect(ends).toBeGreaterThan(pauses);
  });

  it('shows what is complete, backups, and alerts', async () => {
    const { scrape, seconds, nowUs, passUs, store, tellBeside } = await open();
    const before = await scrape();
    expect(before.value('earshot_backup_succeeded')).toBeUndefined();
    expect(before.value('earshot_alerts', { kind: 'disk' })).toBe(0);
    const [subscription, event] = ['alps', 'created'] as const;
    const hour = hourOf(nowUs()) - 3 * hourUs;
    const counts = { expected: 15, pushed: 8, late: 4, recovered: 2, missing: 1 };
    const times = { activityAtUs: hour, notifiedAtUs: hour, runningSeenAtUs: hour };
    await store.administration.commit({ save: registration({ ...times, events: [event] }) });
    // Nothing is claimed before a comparison.
    const labels = { subscription, kind: 'missing' };
    passUs(6_000_000);
    expect((await scrape()).value('earshot_coverage_events', labels)).toBeUndefined();
    await store.completeness.saveCoverage([
      { subscription, event, hourUs: hour, ...counts, comparedAtUs: nowUs() },
    ]);
    const run = { file: '/backups/a.db', startedAtUs: nowUs(), endedAtUs: nowUs() + 1 };
    await store.backups.recordBackup({ ...run, bytes: 12_345, lastPosition: 1, error: null });
    const finding = { kind: 'disk', subject: '', severity: 'warning', cause: 'x' } as const;
    const findings = [{ ...finding, evidence: [], nextStep: 'y' }];
    await store.alerts.settleFindings({ checked: [], findings, channels: [], atUs: nowUs() });
    tellBeside({
      version: '1.2.3',
      handingOver: () => ({ names: [], fault: null }),
      summaryMode: async () => 'off',
      comparisonOff: null,
      backupEveryHours: 12,
    });
    const { value } = await scrape();
    const events = (kind: string) => value('earshot_coverage_events', { subscription, kind });
    expect(['expected', 'missing', 'recovered', 'late'].map(events)).toEqual([15, 1, 2, 4]);
    near(seconds(), value('earshot_backup_success_timestamp_seconds'));
    expect(value('earshot_backup_succeeded')).toBe(1);
    expect(value('earshot_backup_bytes')).toBe(12_345);
    expect(value('earshot_backup_interval_seconds')).toBe(43_200);
    expect(value('earshot_alerts', { kind: 'disk' })).toBe(1);
    expect(value('earshot_build_info', { version: '1.2.3' })).toBe(1);
    const failed = { ...run, endedAtUs: nowUs() + 2, bytes: null, lastPosition: null };
    await store.backups.recordBackup({ ...failed, error: 'no room' });
    expect((await scrape()).value('earshot_backup_succeeded')).toBe(0);
  });

  it('shows its sinks and its summaries', async () => {
    const { scrape, nowUs, store, tellBeside } = await open();
    tellBeside({
      version: '1.2.3',
      handingOver: () => ({
        names: ['orders', 'faulty'],
        faults: new Map([['faulty', 'x']]),
        fault: null,
      }),
      summaryMode: async () => 'each',
      comparisonOff: null,
      backupEveryHours: null,
    });
    const items = ['a', 'b', 'c'].map((productId, i) => ({ productId, position: i + 1 }));
    const read = { sink: 'orders', replayId: null, after: 0, upTo: 3, items, atUs: nowUs() };
    await store.sinks.enqueue(read);
    const [first] = await store.sinks.due({ sink: 'orders', nowUs: nowUs(), limit: 1 });
    await store.sinks.settle([{ id: first?.id ?? 0, outcome: 'dead', error: 'no' }]);
    const jobs = [1, 2].map((number) => productJob(number));
    const [job = { id: 0, revision: 0 }] = await enqueued(store.summaries, jobs);
    await claim(store.summaries, job, { nowUs: nowUs(), tokens: 100 });
    const { value } = await scrape();
    const sink = (name: string) => ({ sink: name });
    const count = (state: string) => value('earshot_sink_items', { sink: 'orders', state });
    expect([count('waiting'), count('dead')]).toEqual([2, 1]);
    near(7, value('earshot_sink_oldest_waiting_seconds', sink('orders')));
    expect(value('earshot_sink_oldest_waiting_seconds', sink('faulty'))).toBe(0);
    expect(value('earshot_sink_faulty', sink('orders'))).toBe(0);
    expect(value('earshot_sink_faulty', sink('faulty'))).toBe(1);
    expect(value('earshot_summaries', { state: 'waiting' })).toBe(2);
    expect(value('earshot_summaries', { state: 'failed' })).toBe(0);
    expect(value('earshot_inference_requests_last_day')).toBe(1);
    expect(value('earshot_inference_tokens_last_day')).toBe(100);
  });
});
