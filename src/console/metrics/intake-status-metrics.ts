/** Gauges of what notifications meet on their way in: queue, log, subscriptions, certificate. */
import type { Status, SubscriptionStatus } from '../../domain/status.ts';
import {
  labelledGauge,
  registeredNames,
  type Sample,
  type StatusMetric,
  statusGauge,
  toSeconds,
} from './metric-row.ts';

const sinceEpoch = 'seconds since 1970';

export const intakeMetrics: readonly StatusMetric[] = [
  statusGauge(
    'earshot_refusing',
    '0 or 1',
    '1 while no notification is taken: none can be stored, or no certificate is valid.',
    ({ receiver }) => receiver && receiver.refusing !== null,
  ),
  statusGauge(
    'earshot_queue_bytes',
    'bytes',
    'Bodies that wait for their commit.',
    ({ receiver }) => receiver?.queue?.bytes,
  ),
  statusGauge(
    'earshot_queue_bytes_max',
    'bytes',
    'Bodies that may wait; beyond it senders get 503.',
    ({ receiver }) => receiver?.queue?.bytesMax,
  ),
  statusGauge(
    'earshot_last_notification_timestamp_seconds',
    sinceEpoch,
    'When the catalogue last delivered something, known already or not.',
    ({ log }) => toSeconds(log?.lastReceivedAtUs),
  ),
];

export const logMetrics: readonly StatusMetric[] = [
  statusGauge(
    'earshot_log_used_bytes',
    'bytes',
    'The database file of the log, without its free pages.',
    ({ log }) => log?.usedBytes,
  ),
  statusGauge(
    'earshot_log_free_bytes',
    'bytes',
    'Pages in the file of the log that hold nothing, and are used before it grows.',
    ({ log }) => log?.freeBytes,
  ),
  statusGauge(
    'earshot_log_wal_bytes',
    'bytes',
    'The write-ahead log beside the log.',
    ({ log }) => log?.walBytes,
  ),
  statusGauge(
    'earshot_index_bytes',
    'bytes',
    'The product index; 0 without one.',
    ({ log }) => log?.indexBytes,
  ),
  statusGauge(
    'earshot_log_last_position',
    'positions',
    'The highest position that the log has given so far.',
    ({ log }) => log?.lastPosition,
  ),
  statusGauge(
    'earshot_log_first_received_timestamp_seconds',
    sinceEpoch,
    'When the oldest notification of the log was received.',
    ({ log }) => toSeconds(log?.firstReceivedAtUs),
  ),
  statusGauge(
    'earshot_prune_horizon_timestamp_seconds',
    sinceEpoch,
    'The log was pruned of what was received before; absent when it never was.',
    ({ log }) => toSeconds(log?.pruned?.receivedBeforeUs),
  ),
  statusGauge(
    'earshot_quarantined_bodies',
    'bodies',
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
  labelledGauge(
    'earshot_subscription_state',
    '0 or 1',
    '1 for the state that a registered subscription was last seen in, 0 for the others.',
    { subscription: registeredNames, state: states.join(', ') },
    ({ subscriptions }) =>
      subscriptions.flatMap(({ name, state: current }) =>
        states.map((state): Sample => [{ subscription: name, state }, state === current]),
      ),
  ),
  labelledGauge(
    'earshot_subscription_last_delivery_timestamp_seconds',
    sinceEpoch,
    'When something was last delivered to a subscription.',
    { subscription: registeredNames },
    ofEach(({ lastDeliveryAtUs }) => lastDeliveryAtUs),
  ),
  labelledGauge(
    'earshot_subscription_pause_timestamp_seconds',
    sinceEpoch,
    'When the catalogue will pause a subscription, if nothing is delivered to it until then.',
    { subscription: registeredNames },
    ofEach(({ pausesAtUs }) => pausesAtUs),
  ),
  labelledGauge(
    'earshot_subscription_cancellation_timestamp_seconds',
    sinceEpoch,
    'When the catalogue will delete a subscription, if it stays as it is.',
    { subscription: registeredNames },
    ofEach(({ cancelsAtUs }) => cancelsAtUs),
  ),
];

const dayUs = 86_400_000_000;

/** Absent behind a proxy; of the certificate itself, also before the first one. */
export const certificateMetrics: readonly StatusMetric[] = [
  statusGauge(
    'earshot_certificate_not_after_timestamp_seconds',
    sinceEpoch,
    'When the certificate ends. Subtract time() for the seconds left.',
    ({ certificate }) => toSeconds(certificate?.notAfterUs),
  ),
  statusGauge(
    'earshot_certificate_left_days',
    'days',
    'Deprecated, removed in the next version: use earshot_certificate_not_after_timestamp_seconds - time(). Days until the certificate ends; below 0 when it has ended.',
    ({ certificate, atUs }) =>
      certificate?.notAfterUs == null ? null : (certificate.notAfterUs - atUs) / dayUs,
  ),
  statusGauge(
    'earshot_certificate_lifetime_seconds',
    'seconds',
    'How long the certificate is valid in all.',
    ({ certificate }) => toSeconds(certificate?.lifetimeUs),
  ),
  statusGauge(
    'earshot_certificate_renewal_attempt_timestamp_seconds',
    sinceEpoch,
    'When earshot last tried to renew the certificate; absent with files of your own.',
    ({ certificate }) => toSeconds(certificate?.lastAttemptAtUs),
  ),
  statusGauge(
    'earshot_certificate_renewal_succeeded',
    '0 or 1',
    'Whether the last try to renew the certificate succeeded.',
    ({ certificate }) =>
      certificate?.lastAttemptAtUs == null ? null : certificate.lastFailure === null,
  ),
];
