/** Metrics derived from the status of the receiver, with their descriptions. */
import { alertKinds } from '../../core/terms/kinds.ts';
import { statusParts } from '../status/status.ts';
import {
  bytes,
  flag,
  gaugesIn,
  level,
  moment,
  registeredNames,
  type Sample,
  type StatusMetric,
  seconds,
  toSeconds,
} from './status-gauge.ts';

export const intakeMetrics: readonly StatusMetric[] = [
  flag(
    'earshot_refusing',
    '1 while the receiver refuses notifications: the receiver cannot store, or has no valid certificate.',
    ({ receiver }) => receiver && receiver.refusing !== null,
  ),
  bytes(
    'earshot_queue_bytes',
    'Size of the bodies that are not on disk yet.',
    ({ receiver }) => receiver?.queue?.bytes,
  ),
  bytes(
    'earshot_queue_bytes_max',
    'Maximum size of the bodies that are not on disk yet. Above the maximum, the receiver answers pushes with 503.',
    ({ receiver }) => receiver?.queue?.bytesMax,
  ),
  moment(
    'earshot_last_notification_timestamp_seconds',
    'Time of the last push of the catalogue, including duplicates.',
    ({ log }) => toSeconds(log?.lastReceivedAtUs),
  ),
];

export const logMetrics: readonly StatusMetric[] = [
  bytes(
    'earshot_log_used_bytes',
    'Size of the database file of the log, without free pages.',
    ({ log }) => log?.usedBytes,
  ),
  bytes(
    'earshot_log_free_bytes',
    'Size of the free pages in the database file of the log. New data uses the free pages before the file grows.',
    ({ log }) => log?.freeBytes,
  ),
  bytes(
    'earshot_log_wal_bytes',
    'Size of the write-ahead log of the database.',
    ({ log }) => log?.walBytes,
  ),
  bytes(
    'earshot_index_bytes',
    'Size of the product index; 0 without an index.',
    ({ log }) => log?.indexBytes,
  ),
  gaugesIn('positions')(
    'earshot_log_last_position',
    'Highest position in the log.',
    ({ log }) => log?.lastPosition,
  ),
  moment(
    'earshot_log_first_received_timestamp_seconds',
    'Time of receipt of the oldest notification in the log.',
    ({ log }) => toSeconds(log?.firstReceivedAtUs),
  ),
  moment(
    'earshot_prune_horizon_timestamp_seconds',
    'Notifications received before this time were pruned; absent if the log was never pruned.',
    ({ log }) => toSeconds(log?.pruned?.receivedBeforeUs),
  ),
  gaugesIn('bodies')(
    'earshot_quarantined_bodies',
    'Number of bodies that are still quarantined.',
    ({ log }) => log?.quarantined,
  ),
];

export const receiverMetrics: readonly StatusMetric[] = [
  gaugesIn('entries')(
    'earshot_receiver_lag_entries',
    'Number of entries of the shared log that a receiver had not applied at its last report.',
    ({ receivers }) => receivers?.map(({ name, lag }) => [{ receiver: name }, lag]),
    { receiver: 'name of the receiver' },
  ),
];

/** Certificate metrics, absent behind a proxy; those of the certificate itself also before the first one. */
export const certificateMetrics: readonly StatusMetric[] = [
  moment(
    'earshot_certificate_not_after_timestamp_seconds',
    'Expiry time of the certificate. Remaining seconds: this value minus time().',
    ({ certificate }) => toSeconds(certificate?.notAfterUs),
  ),
  seconds(
    'earshot_certificate_lifetime_seconds',
    'Total validity of the certificate.',
    ({ certificate }) => toSeconds(certificate?.lifetimeUs),
  ),
  moment(
    'earshot_certificate_renewal_attempt_timestamp_seconds',
    'Time of the last renewal attempt by earshot; absent with EARSHOT_TLS=files.',
    ({ certificate }) => toSeconds(certificate?.lastAttemptAtUs),
  ),
  flag(
    'earshot_certificate_renewal_succeeded',
    '1 if the last renewal attempt succeeded.',
    ({ certificate }) =>
      certificate?.lastAttemptAtUs == null ? null : certificate.lastFailure === null,
  ),
];

const reader = {
  reader: 'name of the reader',
  kind: 'index, summaries, sink, tail',
} as const;

export const readerMetrics: readonly StatusMetric[] = [
  gaugesIn('notifications')(
    'earshot_reader_behind_notifications',
    'Backlog of a reader: number of log positions that the reader has not read. kind tail: a reader of `earshot tail --reader`, which reads only while the command runs.',
    ({ readers }) => readers.map(({ name, of, behind }) => [{ reader: name, kind: of }, behind]),
    reader,
  ),
  seconds(
    'earshot_reader_behind_seconds',
    'Age of the oldest notification that a reader has not read; 0 without a backlog.',
    ({ readers, atUs }) =>
      readers.map(({ name, of, unreadSinceUs }) => [
        { reader: name, kind: of },
        secondsSince(unreadSinceUs, atUs),
      ]),
    reader,
  ),
];

export const summaryMetrics: readonly StatusMetric[] = [
  gaugesIn('summaries')(
    'earshot_summaries_waiting',
    'Number of waiting summaries.',
    ({ summaries }) => summaries?.waiting,
  ),
  gaugesIn('requests')(
    'earshot_inference_requests_last_day',
    'Number of requests to the inference service in the last 24 hours.',
    ({ summaries }) => summaries?.requests,
  ),
  gaugesIn('tokens')(
    'earshot_inference_tokens_last_day',
    'Number of tokens that the inference service reported in the last 24 hours.',
    ({ summaries }) => summaries?.tokens,
  ),
];

const sink = { sink: 'name of the sink' };

export const sinkMetrics: readonly StatusMetric[] = [
  level(
    'earshot_sink_level',
    'Level of a sink, as `earshot sinks` shows it.',
    ({ sinks }) => sinks.map(({ name, evaluation }) => [{ sink: name }, evaluation]),
    sink,
  ),
  gaugesIn('items')(
    'earshot_sink_items',
    'Number of notifications in the queue of a sink (waiting), and of dead letters (dead).',
    ({ sinks }) =>
      sinks.flatMap(({ name, waiting, dead }): Sample[] => [
        [{ sink: name, state: 'waiting' }, waiting],
        [{ sink: name, state: 'dead' }, dead],
      ]),
    { ...sink, state: 'waiting, dead' },
  ),
  seconds(
    'earshot_sink_oldest_waiting_seconds',
    'Age of the oldest notification in the queue of a sink, without replays; 0 with an empty queue.',
    ({ sinks, atUs }) =>
      sinks.map(({ name, oldestLiveWaitingAtUs }) => [
        { sink: name },
        secondsSince(oldestLiveWaitingAtUs, atUs),
      ]),
    sink,
  ),
  seconds(
    'earshot_sink_failing_seconds',
    'Time since which a sink accepts nothing; 0 if the last delivery succeeded.',
    ({ sinks, atUs }) =>
      sinks.map(({ name, failingSinceUs }) => [{ sink: name }, secondsSince(failingSinceUs, atUs)]),
    sink,
  ),
  flag(
    'earshot_sink_faulty',
    '1 while no delivery to a sink is possible, because of a fault in the settings of the sink or in the sink.',
    ({ sinks }) => sinks.map(({ name, fault }) => [{ sink: name }, fault !== null]),
    sink,
  ),
];

export const coverageMetrics: readonly StatusMetric[] = [
  gaugesIn('events')(
    'earshot_coverage_events',
    'Events in the catalogue in the last seven days, without events before the start of the subscription. expected: all events. missing: not in the log. recovered: not pushed, but fetched. late: pushed more than half an hour after the event. Absent before the first comparison.',
    ({ coverage }) =>
      coverage
        .filter(({ state }) => state !== 'not-compared')
        .flatMap(({ subscription, expected, missing, recovered, late }) =>
          Object.entries({ expected, missing, recovered, late }).map(
            ([kind, count]): Sample => [{ subscription, kind }, count],
          ),
        ),
    { subscription: registeredNames, kind: 'expected, missing, recovered, late' },
  ),
  gaugesIn('hours')(
    'earshot_coverage_unknown_hours',
    'Number of hours in the last seven days that ended more than half an hour ago, but are not compared with the catalogue.',
    ({ coverage }) =>
      coverage.map(({ subscription, unknownHours }) => [{ subscription }, unknownHours]),
    { subscription: registeredNames },
  ),
];

export const diskMetrics: readonly StatusMetric[] = [
  bytes(
    'earshot_disk_free_bytes',
    'Free space for earshot on the disk of the data directory.',
    ({ disk }) => disk?.freeBytes,
  ),
  bytes(
    'earshot_disk_size_bytes',
    'Size of the disk of the data directory.',
    ({ disk }) => disk?.totalBytes,
  ),
  bytes(
    'earshot_disk_reserve_bytes',
    'Minimum free space on the disk. With less free space, the receiver refuses notifications.',
    ({ disk }) => disk?.reserveBytes,
  ),
];

export const backupMetrics: readonly StatusMetric[] = [
  moment(
    'earshot_backup_success_timestamp_seconds',
    'Start time of the newest verified backup. The backup contains all notifications that were acknowledged before this time.',
    ({ backups }) => toSeconds(backups?.made?.startedAtUs),
  ),
  flag(
    'earshot_backup_succeeded',
    '1 if the last backup succeeded; absent before the first attempt.',
    ({ backups }) => {
      const [made, failed] = [backups?.made?.endedAtUs, backups?.failed?.endedAtUs];
      if (made === undefined && failed === undefined) return null;
      return (made ?? 0) >= (failed ?? 0);
    },
  ),
  bytes(
    'earshot_backup_bytes',
    'Size of the newest backup.',
    ({ backups }) => backups?.made?.bytes,
  ),
  seconds(
    'earshot_backup_interval_seconds',
    'Interval of automatic backups; absent if automatic backups are off.',
    ({ backups }) => backups?.everyHours && backups.everyHours * 3_600,
  ),
];

export const programMetrics: readonly StatusMetric[] = [
  level(
    'earshot_status_level',
    'Level of a part in `earshot status`.',
    ({ parts }) => parts.map((one) => [{ part: one.part }, one]),
    { part: statusParts.join(', ') },
  ),
  flag(
    'earshot_status_known',
    '1 if the part could be checked. 0: the metrics of the part are absent.',
    ({ failures }) =>
      statusParts.map((part) => [{ part }, failures.every((failure) => failure.part !== part)]),
    { part: statusParts.join(', ') },
  ),
  gaugesIn('alerts')(
    'earshot_alerts',
    'Number of active alerts.',
    ({ alerts }) =>
      alertKinds.map((kind) => [{ kind }, alerts.filter((one) => one.kind === kind).length]),
    { kind: alertKinds.join(', ') },
  ),
  gaugesIn('1')(
    'earshot_build_info',
    'Versions of earshot and Node; the value is always 1.',
    ({ version }) => [[{ version, node: process.versions.node }, 1]],
    { version: 'of earshot', node: 'of Node' },
  ),
];

function secondsSince(sinceUs: number | null, atUs: number): number {
  return sinceUs === null ? 0 : Math.max(0, atUs - sinceUs) / 1_000_000;
}
