/** What each metric says of a receiver that stands as it does. */
import { expect, it } from 'vitest';
import { statusMetrics } from '../../src/console/metrics/metric-table.ts';
import { openConsole } from './console-world.ts';

/** Of `sampleStatus`, in the order of the table. */
const expected = `
earshot_refusing 0
earshot_queue_bytes 1000
earshot_queue_bytes_max 2000
earshot_last_notification_timestamp_seconds 1777719600
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
earshot_coverage_events{subscription="alps",kind="expected"} 17
earshot_coverage_events{subscription="alps",kind="missing"} 18
earshot_coverage_events{subscription="alps",kind="recovered"} 19
earshot_coverage_events{subscription="alps",kind="late"} 20
earshot_coverage_unknown_hours{subscription="alps"} 21
earshot_certificate_not_after_timestamp_seconds 1779451200
earshot_certificate_left_days 20
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
earshot_backup_success_timestamp_seconds 1777636800
earshot_backup_succeeded 1
earshot_backup_bytes 25000
earshot_backup_interval_seconds 86400
earshot_reader_behind_notifications{reader="product index",kind="index"} 1000
earshot_reader_behind_notifications{reader="sink orders",kind="sink"} 0
earshot_reader_behind_seconds{reader="product index",kind="index"} 600
earshot_reader_behind_seconds{reader="sink orders",kind="sink"} 0
earshot_summaries{state="waiting"} 11
earshot_summaries{state="failed"} 13
earshot_inference_requests_last_day 12
earshot_inference_tokens_last_day 14
earshot_sink_items{sink="orders",state="waiting"} 15
earshot_sink_items{sink="orders",state="dead"} 16
earshot_sink_oldest_waiting_seconds{sink="orders"} 1800
earshot_sink_faulty{sink="orders"} 0
earshot_status_level{part="receiver"} 0
earshot_status_level{part="log"} 0
earshot_status_level{part="subscriptions"} 0
earshot_status_level{part="certificate"} 0
earshot_status_level{part="coverage"} 0
earshot_status_level{part="readers"} 0
earshot_status_level{part="sinks"} 0
earshot_status_level{part="summaries"} 0
earshot_status_level{part="disk"} 0
earshot_status_level{part="backup"} 0
earshot_status_level{part="alerts"} 0
earshot_status_known{part="receiver"} 1
earshot_status_known{part="log"} 1
earshot_status_known{part="subscriptions"} 1
earshot_status_known{part="certificate"} 1
earshot_status_known{part="coverage"} 1
earshot_status_known{part="readers"} 1
earshot_status_known{part="sinks"} 1
earshot_status_known{part="summaries"} 1
earshot_status_known{part="disk"} 1
earshot_status_known{part="backup"} 1
earshot_status_known{part="alerts"} 1
earshot_alerts{kind="silence"} 0
earshot_alerts{kind="lost-pushes"} 0
earshot_alerts{kind="missing"} 0
earshot_alerts{kind="unknown"} 0
earshot_alerts{kind="auto-pause"} 0
earshot_alerts{kind="cancellation"} 0
earshot_alerts{kind="not-running"} 0
earshot_alerts{kind="certificate"} 0
earshot_alerts{kind="disk"} 0
earshot_alerts{kind="intake"} 0
earshot_alerts{kind="backup"} 0
earshot_alerts{kind="sink"} 0
earshot_alerts{kind="sink-refused"} 0
earshot_build_info{version="0.1.0",node="${process.versions.node}"} 1
`;

it('each figure of the status is handed out under its name, in its unit', async () => {
  const { get } = await openConsole();
  const { text } = await get('/metrics');
  const names = statusMetrics.map(({ name }) => name);
  const lines = text.split('\n').filter((line) => names.some((n) => line.split(/[{ ]/)[0] === n));
  expect(lines.join('\n')).toBe(expected.trim());
});
