/** `/metrics` as a scraping server sees it. */

import { describe, expect, it } from 'vitest';
import { statusMetrics as metricsOf } from '../../../src/features/metrics/metric-table.ts';
import { createMetrics } from '../../../src/features/metrics/metrics.ts';
import { log, openConsole } from '../../core/api/console-context.ts';
import { alertKinds, metricTable, partNames, statusParts } from '../../helpers/status.ts';
import { emptyStatus, sampleStatus } from '../status/status-sample.ts';
import { type MetricSample, readScrape } from './metric-samples.ts';

const statusMetrics = metricsOf(statusParts);

async function open() {
  const metrics = createMetrics(statusParts, log);
  const context = await openConsole({ metrics });
  const scrape = async () => readScrape((await context.get('/metrics')).text);
  return { ...context, metrics, scrape };
}

const stored = { outcome: 'stored', stored: 2, duplicates: 1 } as const;

/** Returns the names from the table; a histogram has three of each. */
const familyOf = ({ name }: MetricSample) => {
  const family = name.replace(/_(bucket|sum|count)$/, '');
  return metricTable.some((row) => row.name === family) ? family : name;
};
describe('a scrape', () => {
  it('contains the metrics of the table and no others, with their types and labels', async () => {
    const { metrics, get, scrape } = await open();
    metrics.observe('stored', 'alps', stored);
    const publicationDelay = { subscription: 'alps', seconds: 90 };
    metrics.noteCommit({ durationSeconds: 0.01, deliveries: 3, publicationDelay });
    expect(await get('/metrics')).toMatchObject({
      status: 200,
      headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' },
    });
    const { types, samples } = await scrape();
    const own = [...types].filter(([name]) => name.startsWith('earshot_'));
    expect(Object.fromEntries(own)).toEqual(
      Object.fromEntries(metricTable.map(({ name, type }) => [name, type])),
    );
    const labelsOf = ({ labels }: MetricSample) =>
      Object.keys(labels).filter((one) => one !== 'le');
    const found = samples.map((sample) => [familyOf(sample), labelsOf(sample)]);
    const expected = metricTable.map(({ name, labels }) => [name, Object.keys(labels)]);
    expect(Object.fromEntries(found)).toMatchObject(Object.fromEntries(expected));
  });

  it('has no values for a subscription before its first comparison', async () => {
    const status = sampleStatus();
    const coverage = status.coverage.map((one) => ({ ...one, state: 'not-compared' as const }));
    const metrics = createMetrics(statusParts, log);
    const { types, samples } = readScrape(
      await metrics.scrape(async () => ({ ...status, coverage })),
    );
    expect(types.has('earshot_coverage_events')).toBe(true);
    expect(samples.filter(({ name }) => name === 'earshot_coverage_events')).toEqual([]);
  });

  it('omits unknown values, even when they were known before', async () => {
    const { metrics, scrape } = await open();
    await scrape();
    const { samples } = readScrape(await metrics.scrape(async () => emptyStatus()));
    const names = new Set(samples.map(familyOf));
    const absent = statusMetrics.filter(({ name }) => !names.has(name)).map(({ name }) => name);
    expect(absent.length).toBeGreaterThan(25);
    expect(names).not.toContain('earshot_last_notification_timestamp_seconds');
    expect(names).not.toContain('earshot_certificate_not_after_timestamp_seconds');
    expect(names).not.toContain('earshot_backup_succeeded');
    expect(samples.filter(({ name, value }) => /^earshot/.test(name) && !(value >= 0))).toEqual([]);
  });
});

describe('the counted events', () => {
  it('have a bounded number of rows, whatever names are invented; registered names keep theirs', async () => {
    const { metrics, scrape } = await open();
    for (let i = 0; i < 500; i += 1) {
      metrics.observe('stored', `invented-${i}`, stored);
      const publicationDelay = { subscription: `invented-${i}`, seconds: 1 };
      metrics.noteCommit({ durationSeconds: 0.01, deliveries: 1, publicationDelay });
    }
    const first = await scrape();
    metrics.observe('stored', 'andes', stored);
    const { samples, value } = await scrape();
    const names = new Set(samples.map(({ labels }) => labels.subscription));
    // 50 invented names, the row of the others, the two registered ones, and metrics without a
    // subscription.
    expect(names.size).toBe(54);
    const ours = ({ name }: MetricSample) => name.startsWith('earshot');
    expect(samples.filter(ours)).toHaveLength(first.samples.filter(ours).length);
    const count = (subscription: string) =>
      value('earshot_notifications_total', { subscription, outcome: 'stored' });
    expect([count('andes'), count('invented-49'), count('(other)')]).toEqual([2, 2, 900]);
  });
});

describe("a scrape when the receiver's state is unavailable", () => {
  const late = { statusTimeoutMs: 30 };
  const never = () => new Promise<never>(() => undefined);
  const failing = () => Promise.reject(new Error('no such table'));

  it.each([
    ['in time', never],
    ['at all', failing],
  ])('contains the rest when the state is not available %s', async (_title, status) => {
    const metrics = createMetrics(statusParts, log, late);
    metrics.observe('stored', 'alps', stored);
    const known = readScrape(await metrics.scrape(async () => sampleStatus()));
    expect(known.value('earshot_status_available')).toBe(1);
    const { value, samples } = readScrape(await metrics.scrape(status));
    expect(value('earshot_status_available')).toBe(0);
    expect(value('earshot_requests_total', { outcome: 'stored' })).toBe(1);
    const names = new Set(samples.map(familyOf));
    expect(statusMetrics.filter(({ name }) => names.has(name))).toEqual([]);
  });
});

/** Expected samples for `sampleStatus`. */
const expected = `
earshot_refusing 0
earshot_queue_bytes 1000
earshot_queue_bytes_max 2000
earshot_last_notification_timestamp_seconds 1777719600
earshot_subscription_level{subscription="alps"} 0
earshot_subscription_level{subscription="andes"} 0
earshot_subscription_state{subscription="alps",state="running"} 1
earshot_subscription_state{subscription="alps",state="paused"} 0
earshot_subscription_state{subscription="alps",state="unfinished"} 0
earshot_subscription_state{subscription="alps",state="absent"} 0
earshot_subscription_state{subscription="andes",state="running"} 0
earshot_subscription_state{subscription="andes",state="paused"} 0
earshot_subscription_state{subscription="andes",state="unfinished"} 1
earshot_subscription_state{subscription="andes",state="absent"} 0
earshot_subscription_last_delivery_timestamp_seconds{subscription="alps"} 1777716000
earshot_subscription_pause_timestamp_seconds{subscription="alps"} 1778587200
earshot_subscription_cancellation_timestamp_seconds{subscription="alps"} 1782907200
earshot_pull_queue_entries{subscription="andes"} 27
earshot_pull_queue_entries_max{subscription="andes"} 100000
earshot_pull_oldest_entry_age_seconds{subscription="andes"} 14400
earshot_pull_failing{subscription="andes"} 0
earshot_pull_last_read_timestamp_seconds{subscription="andes"} 1777723197
earshot_coverage_events{subscription="alps",kind="expected"} 17
earshot_coverage_events{subscription="alps",kind="missing"} 18
earshot_coverage_events{subscription="alps",kind="recovered"} 19
earshot_coverage_events{subscription="alps",kind="late"} 20
earshot_coverage_unknown_hours{subscription="alps"} 21
earshot_certificate_not_after_timestamp_seconds 1779451200
earshot_certificate_lifetime_seconds 7776000
earshot_certificate_renewal_attempt_timestamp_seconds 1777712400
earshot_certificate_renewal_succeeded 1
earshot_log_used_bytes 3000
earshot_log_free_bytes 4000
earshot_log_wal_bytes 5000
earshot_index_bytes 7000
earshot_log_last_position 6000
earshot_log_first_received_timestamp_seconds 1775131200
earshot_prune_horizon_timestamp_seconds 1774267200
earshot_quarantined_bodies 8
earshot_disk_free_bytes 22000
earshot_disk_size_bytes 23000
earshot_disk_reserve_bytes 24000
earshot_receiver_lag_entries{receiver="receiver-1"} 3
earshot_backup_success_timestamp_seconds 1777636800
earshot_backup_succeeded 1
earshot_backup_bytes 25000
earshot_backup_interval_seconds 86400
earshot_reader_behind_notifications{reader="product index",kind="products"} 1000
earshot_reader_behind_notifications{reader="sink orders",kind="sinks"} 0
earshot_reader_behind_seconds{reader="product index",kind="products"} 600
earshot_reader_behind_seconds{reader="sink orders",kind="sinks"} 0
earshot_summaries_waiting 11
earshot_inference_requests_last_day 12
earshot_inference_tokens_last_day 14
earshot_sink_level{sink="orders"} 0
earshot_sink_items{sink="orders",state="waiting"} 15
earshot_sink_items{sink="orders",state="dead"} 16
earshot_sink_oldest_waiting_seconds{sink="orders"} 3600
earshot_sink_failing_seconds{sink="orders"} 900
earshot_sink_faulty{sink="orders"} 0
${[
  ...partNames.map((part) => `earshot_status_level{part="${part}"} 0`),
  ...partNames.map((part) => `earshot_status_known{part="${part}"} 1`),
  ...alertKinds.map((kind) => `earshot_alerts{kind="${kind}"} 0`),
].join('\n')}
earshot_build_info{version="0.1.0",node="${process.versions.node}"} 1
`;

it('each figure of the status has its own metric, in its unit', async () => {
  const { text } = await (await open()).get('/metrics');
  const names = statusMetrics.map(({ name }) => name);
  const lines = text.split('\n').filter((line) => names.some((n) => line.split(/[{ ]/)[0] === n));
  expect(lines.toSorted()).toEqual(expected.trim().split('\n').toSorted());
});
