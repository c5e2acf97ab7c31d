/** The metrics that are read from the status of the receiver, and what is said of each of them. */
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
  /** In what it counts, such as `seconds` or `0 or 1`. */
  unit: string;
  /** One sentence or two: also what a scrape says of it. */
  meaning: string;
  /** Its labels, each with the values that it may have. */
  labels: Readonly<Record<string, string>>;
  /** Upper bounds of a histogram, in its unit. */
  buckets?: readonly number[];
}

/** One value of a metric that has labels; one that is not known is left out of the answer. */
export type Sample = readonly [labels: Record<string, string>, value: Value];

/** A truth is 1 or 0; what is not known, neither. */
export type Value = number | boolean | null | undefined;

/** A gauge that is read from how the receiver stands. */
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

/** Rows of one unit. */
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
/** Moments as Prometheus has them. */
const moment = gaugesIn('seconds since 1970');
/** True or false. */
const flag = gaugesIn('0 or 1');

function toSeconds(us: number | null | undefined): number | null {
  return typeof us === 'number' ? us / 1_000_000 : null;
}

const registeredNames = 'its name';

export const intakeMetrics: readonly StatusMetric[] = [
  flag(
    'earshot_refusing',
    '1 while no notification is taken: none can be stored, or no certificate is valid.',
    ({ receiver }) => receiver && receiver.refusing !== null,
  ),
  bytes(
    'earshot_queue_bytes',
    'Bodies that wait for their commit.',
    ({ receiver }) => receiver?.queue?.bytes,
  ),
  bytes(
    'earshot_queue_bytes_max',
    'Bodies that may wait; beyond it senders get 503.',
    ({ receiver }) => receiver?.queue?.bytesMax,
  ),
  moment(
    'earshot_last_notification_timestamp_seconds',
    'When the catalogue last delivered something, known already or not.',
    ({ log }) => toSeconds(log?.lastReceivedAtUs),
  ),
];

export const logMetrics: readonly StatusMetric[] = [
  bytes(
    'earshot_log_used_bytes',
    'The database file of the log, without its free pages.',
    ({ log }) => log?.usedBytes,
  ),
  bytes(
    'earshot_log_free_bytes',
    'Pages in the file of the log that hold nothing, and are used before it grows.',
    ({ log }) => log?.freeBytes,
  ),
  bytes('earshot_log_wal_bytes', 'The write-ahead log beside the log.', ({ log }) => log?.walBytes),
  bytes('earshot_index_bytes', 'The product index; 0 without one.', ({ log }) => log?.indexBytes),
  gaugesIn('positions')(
    'earshot_log_last_position',
    'The highest position that the log has given so far.',
    ({ log }) => log?.lastPosition,
  ),
  moment(
    'earshot_log_first_received_timestamp_seconds',
    'When the oldest notification of the log was received.',
    ({ log }) => toSeconds(log?.firstReceivedAtUs),
  ),
  moment(
    'earshot_prune_horizon_timestamp_seconds',
    'The log was pruned of what was received before; absent when it never was.',
    ({ log }) => toSeconds(log?.pruned?.receivedBeforeUs),
  ),
  gaugesIn('bodies')(
    'earshot_quarantined_bodies',
    'Bodies that are held in quarantine.',
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
    '1 for the state that a registered subscription was last seen in, 0 for the others.',
    ({ subscriptions }) =>
      subscriptions.flatMap(({ name, state: current }) =>
        states.map((state): Sample => [{ subscription: name, state }, state === current]),
      ),
    { subscription: registeredNames, state: states.join(', ') },
  ),
  moment(
    'earshot_subscription_last_delivery_timestamp_seconds',
    'When something was last delivered to a subscription.',
    ofEach(({ lastDeliveryAtUs }) => lastDeliveryAtUs),
    { subscription: registeredNames },
  ),
  moment(
    'earshot_subscription_pause_timestamp_seconds',
    'When the catalogue will pause a subscription, if nothing is delivered to it until then.',
    ofEach(({ pausesAtUs }) => pausesAtUs),
    { subscription: registeredNames },
  ),
  moment(
    'earshot_subscription_cancellation_timestamp_seconds',
    'When the catalogue will delete a subscription, if it stays as it is.',
    ofEach(({ cancelsAtUs }) => cancelsAtUs),
    { subscription: registeredNames },
  ),
];

const dayUs = 86_400_000_000;

/** Absent behind a proxy; of the certificate itself, also before the first one. */
export const certificateMetrics: readonly StatusMetric[] = [
  moment(
    'earshot_certificate_not_after_timestamp_seconds',
    'When the certificate ends. Subtract time() for the seconds left.',
    ({ certificate }) => toSeconds(certificate?.notAfterUs),
  ),
  gaugesIn('days')(
    'earshot_certificate_left_days',
    'Deprecated, removed in the next version: use earshot_certificate_not_after_timestamp_seconds - time(). Days until the certificate ends; below 0 when it has ended.',
    ({ certificate, atUs }) =>
      certificate?.notAfterUs == null ? null : (certificate.notAfterUs - atUs) / dayUs,
  ),
  seconds(
    'earshot_certificate_lifetime_seconds',
    'How long the certificate is valid in all.',
    ({ certificate }) => toSeconds(certificate?.lifetimeUs),
  ),
  moment(
    'earshot_certificate_renewal_attempt_timestamp_seconds',
    'When earshot last tried to renew the certificate; absent with files of your own.',
    ({ certificate }) => toSeconds(certificate?.lastAttemptAtUs),
  ),
  flag(
    'earshot_certificate_renewal_succeeded',
    'Whether the last try to renew the certificate succeeded.',
    ({ certificate }) =>
      certificate?.lastAttemptAtUs == null ? null : certificate.lastFailure === null,
  ),
];

const reader = {
  reader: 'its name',
  kind: 'index, summaries, sink, tail',
} as const;

export const readerMetrics: readonly StatusMetric[] = [
  gaugesIn('notifications')(
    'earshot_reader_behind_notifications',
    'Positions of the log that a reader of it has yet to read. tail: a command of yours, which may never come back.',
    ({ readers }) => readers.map(({ name, of, behind }) => [{ reader: name, kind: of }, behind]),
    reader,
  ),
  seconds(
    'earshot_reader_behind_seconds',
    'How long ago the first notification was received that a reader has yet to read; 0 when it has read all.',
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
    'Summaries that wait to be made, and those that were given up.',
    ({ summaries }) => [
      [{ state: 'waiting' }, summaries?.waiting],
      [{ state: 'failed' }, summaries?.failed],
    ],
    { state: 'waiting, failed' },
  ),
  gaugesIn('requests')(
    'earshot_inference_requests_last_day',
    'What was asked of the inference service within the last 24 hours.',
    ({ summaries }) => summaries?.requests,
  ),
  gaugesIn('tokens')(
    'earshot_inference_tokens_last_day',
    'Tokens that the inference service counted within the last 24 hours.',
    ({ summaries }) => summaries?.tokens,
  ),
];

const sink = { sink: 'its name' };

export const sinkMetrics: readonly StatusMetric[] = [
  gaugesIn('items')(
    'earshot_sink_items',
    'Items that wait to be taken by a sink, and those that were given up.',
    ({ sinks }) =>
      sinks.flatMap(({ name, waiting, dead }): Sample[] => [
        [{ sink: name, state: 'waiting' }, waiting],
        [{ sink: name, state: 'dead' }, dead],
      ]),
    { ...sink, state: 'waiting, dead' },
  ),
  seconds(
    'earshot_sink_oldest_waiting_seconds',
    'How long ago the oldest item that waits for a sink was queued, replays not counted; 0 when none waits.',
    ({ sinks, atUs }) =>
      sinks.map(({ name, oldestLiveWaitingAtUs }) => [
        { sink: name },
        secondsSince(oldestLiveWaitingAtUs, atUs),
      ]),
    sink,
  ),
  flag(
    'earshot_sink_faulty',
    '1 while nothing can be handed over to a sink, for a fault of its settings or its own.',
    ({ sinks }) => sinks.map(({ name, fault }) => [{ sink: name }, fault !== null]),
    sink,
  ),
];

export const coverageMetrics: readonly StatusMetric[] = [
  gaugesIn('events')(
    'earshot_coverage_events',
    'Events of the last seven days that the catalogue shows since the subscription began (expected), and of those: not in the log (missing), never pushed and fetched (recovered), pushed late (late). Absent before the first comparison.',
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
    'Hours of the last seven days that ended more than half an hour ago and have not been compared with the catalogue.',
    ({ coverage }) =>
      coverage.map(({ subscription, unknownHours }) => [{ subscription }, unknownHours]),
    { subscription: registeredNames },
  ),
];

export const diskMetrics: readonly StatusMetric[] = [
  bytes(
    'earshot_disk_free_bytes',
    'What is free on the disk of the data directory, for earshot.',
    ({ disk }) => disk?.freeBytes,
  ),
  bytes(
    'earshot_disk_size_bytes',
    'The size of the disk of the data directory.',
    ({ disk }) => disk?.totalBytes,
  ),
  bytes(
    'earshot_disk_reserve_bytes',
    'With less than this free on the disk, notifications are refused.',
    ({ disk }) => disk?.reserveBytes,
  ),
];

export const backupMetrics: readonly StatusMetric[] = [
  moment(
    'earshot_backup_success_timestamp_seconds',
    'When the newest verified backup was begun: what came before is in it.',
    ({ backups }) => toSeconds(backups?.made?.startedAtUs),
  ),
  flag(
    'earshot_backup_succeeded',
    'Whether the last backup succeeded; absent when none was ever tried.',
    ({ backups }) => {
      const [made, failed] = [backups?.made?.endedAtUs, backups?.failed?.endedAtUs];
      if (made === undefined && failed === undefined) return null;
      return (made ?? 0) >= (failed ?? 0);
    },
  ),
  bytes(
    'earshot_backup_bytes',
    'The size of the newest backup.',
    ({ backups }) => backups?.made?.bytes,
  ),
  seconds(
    'earshot_backup_interval_seconds',
    'How often a backup is made by itself; absent when none is.',
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
    'How a part stands by the judgement of `earshot status`: 0 well or unused, 1 warning, 2 critical.',
    ({ parts }) => parts.map(({ part, level }) => [{ part }, levels[level]]),
    { part: statusParts.join(', ') },
  ),
  flag(
    'earshot_status_known',
    '0 for a part that could not be looked at: its metrics are absent.',
    ({ failures }) =>
      statusParts.map((part) => [{ part }, failures.every((failure) => failure.part !== part)]),
    { part: statusParts.join(', ') },
  ),
  gaugesIn('alerts')(
    'earshot_alerts',
    'Alerts of the watchdog that last.',
    ({ alerts }) =>
      alertKinds.map((kind) => [{ kind }, alerts.filter((one) => one.kind === kind).length]),
    { kind: alertKinds.join(', ') },
  ),
  gaugesIn('1')(
    'earshot_build_info',
    'Which version runs, on which Node: always 1.',
    ({ version }) => [[{ version, node: process.versions.node }, 1]],
    { version: 'of earshot', node: 'of Node' },
  ),
];

function secondsSince(sinceUs: number | null, atUs: number): number {
  return sinceUs === null ? 0 : Math.max(0, atUs - sinceUs) / 1_000_000;
}
