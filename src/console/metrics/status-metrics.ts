/** Metrics derived from the status of the receiver, with their descriptions. */
import { alertKinds } from '../../domain/alerts.ts';
import {
  type PartStatus,
  type Status,
  type SubscriptionStatus,
  statusParts,
} from '../../domain/status.ts';

export interface MetricRow {
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  /** Unit, such as `seconds` or `0 or 1`. */
  unit: string;
  /** Description, also used as help text of a scrape. */
  meaning: string;
  /** Labels, with their possible values. */
  labels: Readonly<Record<string, string>>;
  /** Upper bounds of the buckets of a histogram, in its unit. */
  buckets?: readonly number[];
}

/** A labelled value of a metric; unknown values are omitted. */
export type Sample = readonly [labels: Record<string, string>, value: Value];

/** A boolean is exported as 1 or 0; an unknown value is omitted. */
export type Value = number | boolean | null | undefined;

/** A gauge derived from the status. */
export interface StatusMetric extends MetricRow {
  type: 'gauge';
  read(status: Status): Value | readonly Sample[];
}

type Gauge = (
  name: string,
  meaning: string,
  read: StatusMetric['read'],
  labels?: MetricRow['labels'],
) => StatusMetric;

/** Returns a function that defines gauges with a unit. */
function gaugesIn(unit: string): Gauge {
  return (name, meaning, read, labels = {}) => ({
    name,
    type: 'gauge',
    unit,
    meaning,
    labels,
    read,
  });
}

const bytes = gaugesIn('bytes');
const seconds = gaugesIn('seconds');
/** Points in time, as in Prometheus. */
const moment = gaugesIn('seconds since 1970');
const flag = gaugesIn('0 or 1');

function toSeconds(us: number | null | undefined): number | null {
  return typeof us === 'number' ? us / 1_000_000 : null;
}

const registeredNames = 'name of the subscription';

export const intakeMetrics: readonly StatusMetric[] = [
  flag(
    'earshot_refusing',
    '1 while notifications are refused: they cannot be stored, or no certificate is valid.',
    ({ receiver }) => receiver && receiver.refusing !== null,
  ),
  bytes(
    'earshot_queue_bytes',
    'Size of the bodies waiting for their commit.',
    ({ receiver }) => receiver?.queue?.bytes,
  ),
  bytes(
    'earshot_queue_bytes_max',
    'Maximum size of the bodies waiting for their commit. Above it, pushes are answered with 503.',
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
    'Size of the database file of the log, without its free pages.',
    ({ log }) => log?.usedBytes,
  ),
  bytes(
    'earshot_log_free_bytes',
    'Size of the free pages in the database file of the log, which are used before it grows.',
    ({ log }) => log?.freeBytes,
  ),
  bytes('earshot_log_wal_bytes', 'Size of the write-ahead log.', ({ log }) => log?.walBytes),
  bytes(
    'earshot_index_bytes',
    'Size of the product index; 0 without one.',
    ({ log }) => log?.indexBytes,
  ),
  gaugesIn('positions')(
    'earshot_log_last_position',
    'Highest position in the log so far.',
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
    'Quarantined bodies that were not released.',
    ({ log }) => log?.quarantined,
  ),
];

const states = [
  'running',
  'paused',
  'unfinished',
  'absent',
] as const satisfies SubscriptionStatus['state'][];

const ofEach =
  (momentOf: (subscription: SubscriptionStatus) => number | null) =>
  ({ subscriptions }: Status): Sample[] =>
    subscriptions.map((one) => [{ subscription: one.name }, toSeconds(momentOf(one))]);

export const subscriptionMetrics: readonly StatusMetric[] = [
  flag(
    'earshot_subscription_state',
    '1 for the last known state of a registered subscription, 0 for the others.',
    ({ subscriptions }) =>
      subscriptions.flatMap(({ name, state: current }) =>
        states.map((state): Sample => [{ subscription: name, state }, state === current]),
      ),
    { subscription: registeredNames, state: states.join(', ') },
  ),
  moment(
    'earshot_subscription_last_delivery_timestamp_seconds',
    'Time of the last delivery for a subscription.',
    ofEach(({ lastDeliveryAtUs }) => lastDeliveryAtUs),
    { subscription: registeredNames },
  ),
  moment(
    'earshot_subscription_pause_timestamp_seconds',
    'Time at which the catalogue will pause a subscription, unless a delivery is accepted before.',
    ofEach(({ pausesAtUs }) => pausesAtUs),
    { subscription: registeredNames },
  ),
  moment(
    'earshot_subscription_cancellation_timestamp_seconds',
    'Time at which the catalogue will delete a subscription, unless a notification is delivered before.',
    ofEach(({ cancelsAtUs }) => cancelsAtUs),
    { subscription: registeredNames },
  ),
];

const dayUs = 86_400_000_000;

/** Certificate metrics, absent behind a proxy; those of the certificate itself also before the first one. */
export const certificateMetrics: readonly StatusMetric[] = [
  moment(
    'earshot_certificate_not_after_timestamp_seconds',
    'Expiry time of the certificate. Subtract time() for the seconds left.',
    ({ certificate }) => toSeconds(certificate?.notAfterUs),
  ),
  gaugesIn('days')(
    'earshot_certificate_left_days',
    'Deprecated, removed in the next version: use earshot_certificate_not_after_timestamp_seconds - time(). Days until the certificate expires; negative after that.',
    ({ certificate, atUs }) =>
      certificate?.notAfterUs == null ? null : (certificate.notAfterUs - atUs) / dayUs,
  ),
  seconds(
    'earshot_certificate_lifetime_seconds',
    'Total validity of the certificate.',
    ({ certificate }) => toSeconds(certificate?.lifetimeUs),
  ),
  moment(
    'earshot_certificate_renewal_attempt_timestamp_seconds',
    'Time of the last renewal attempt; absent for certificate files of your own.',
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
    'Backlog of a reader: positions of the log not read yet. tail: a command of the user, which may never run again.',
    ({ readers }) => readers.map(({ name, of, behind }) => [{ reader: name, kind: of }, behind]),
    reader,
  ),
  seconds(
    'earshot_reader_behind_seconds',
    'Age of the first notification that a reader has not read yet; 0 without a backlog.',
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
    'earshot_summaries',
    'Summaries that are waiting, and those that failed permanently.',
    ({ summaries }) => [
      [{ state: 'waiting' }, summaries?.waiting],
      [{ state: 'failed' }, summaries?.failed],
    ],
    { state: 'waiting, failed' },
  ),
  gaugesIn('requests')(
    'earshot_inference_requests_last_day',
    'Requests to the inference service in the last 24 hours.',
    ({ summaries }) => summaries?.requests,
  ),
  gaugesIn('tokens')(
    'earshot_inference_tokens_last_day',
    'Tokens reported by the inference service in the last 24 hours.',
    ({ summaries }) => summaries?.tokens,
  ),
];

const sink = { sink: 'name of the sink' };

export const sinkMetrics: readonly StatusMetric[] = [
  gaugesIn('items')(
    'earshot_sink_items',
    'Items that wait for a sink, and dead letters.',
    ({ sinks }) =>
      sinks.flatMap(({ name, waiting, dead }): Sample[] => [
        [{ sink: name, state: 'waiting' }, waiting],
        [{ sink: name, state: 'dead' }, dead],
      ]),
    { ...sink, state: 'waiting, dead' },
  ),
  seconds(
    'earshot_sink_oldest_waiting_seconds',
    'Age of the oldest item that waits for a sink, without replays; 0 when none waits.',
    ({ sinks, atUs }) =>
      sinks.map(({ name, oldestLiveWaitingAtUs }) => [
        { sink: name },
        secondsSince(oldestLiveWaitingAtUs, atUs),
      ]),
    sink,
  ),
  flag(
    'earshot_sink_faulty',
    '1 while nothing can be delivered to a sink because of a fault in its settings or in the sink itself.',
    ({ sinks }) => sinks.map(({ name, fault }) => [{ sink: name }, fault !== null]),
    sink,
  ),
];

export const coverageMetrics: readonly StatusMetric[] = [
  gaugesIn('events')(
    'earshot_coverage_events',
    'Events of the last seven days at the catalogue since the start of the subscription (expected); of these: not in the log (missing), not pushed but fetched (recovered), pushed late (late). Absent before the first comparison.',
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
    'Hours of the last seven days that ended more than half an hour ago and are not compared with the catalogue yet.',
    ({ coverage }) =>
      coverage.map(({ subscription, unknownHours }) => [{ subscription }, unknownHours]),
    { subscription: registeredNames },
  ),
];

export const diskMetrics: readonly StatusMetric[] = [
  bytes(
    'earshot_disk_free_bytes',
    'Free space on the disk of the data directory that earshot can use.',
    ({ disk }) => disk?.freeBytes,
  ),
  bytes(
    'earshot_disk_size_bytes',
    'Size of the disk of the data directory.',
    ({ disk }) => disk?.totalBytes,
  ),
  bytes(
    'earshot_disk_reserve_bytes',
    'Free space on the disk below which notifications are refused.',
    ({ disk }) => disk?.reserveBytes,
  ),
];

export const backupMetrics: readonly StatusMetric[] = [
  moment(
    'earshot_backup_success_timestamp_seconds',
    'Start time of the newest verified backup, which contains everything received before.',
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
    'Interval of automatic backups; absent if they are off.',
    ({ backups }) => backups?.everyHours && backups.everyHours * 3_600,
  ),
];

const levels: Readonly<Record<PartStatus['level'], number>> = {
  well: 0,
  unused: 0,
  warning: 1,
  critical: 2,
};

export const programMetrics: readonly StatusMetric[] = [
  gaugesIn('0 to 2')(
    'earshot_status_level',
    'Level of a part in `earshot status`: 0 well or unused, 1 warning, 2 critical.',
    ({ parts }) => parts.map(({ part, level }) => [{ part }, levels[level]]),
    { part: statusParts.join(', ') },
  ),
  flag(
    'earshot_status_known',
    '0 for a part that could not be checked: its metrics are absent.',
    ({ failures }) =>
      statusParts.map((part) => [{ part }, failures.every((failure) => failure.part !== part)]),
    { part: statusParts.join(', ') },
  ),
  gaugesIn('alerts')(
    'earshot_alerts',
    'Active alerts of the watchdog.',
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
