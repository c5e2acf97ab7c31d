/** Table of metrics, in the order of their reference page. */
import {
  flag,
  gaugesIn,
  level,
  type MetricRow,
  type StatusMetric,
} from '../../core/status/gauge.ts';
import type { StatusPart } from '../../core/status/status.ts';

/** Subscription labels. The number of rows for unregistered names is limited. */
const subscriptionNames =
  'name in the URL path; `(none)` for the path without a name; `(other)` for unregistered names after the first 50';

/** Set by each scrape: whether the status metrics are available. */
export const availability: MetricRow = {
  name: 'earshot_status_available',
  type: 'gauge',
  unit: '0 or 1',
  meaning:
    '1 if the scrape could read the status of the receiver in time. 0: all metrics that come from the status are absent.',
  labels: {},
};

/** Results of requests to `/notifications`. */
export const requestOutcomes = [
  'stored',
  'duplicate',
  'rejected',
  'unauthorized',
  'too_large',
  'unavailable',
  'failed',
] as const;

export const notificationOutcomes = ['stored', 'duplicate', 'rejected'] as const;

/** Metrics, by the name that the observation uses. */
export const observedMetrics = {
  requests: {
    name: 'earshot_requests_total',
    type: 'counter',
    unit: 'requests',
    meaning:
      'Requests to /notifications by result. rejected: quarantined body. unauthorized: wrong or missing credentials. unavailable: the receiver could not store and answered 503. failed: other faults.',
    labels: { outcome: requestOutcomes.join(', ') },
  },
  notifications: {
    name: 'earshot_notifications_total',
    type: 'counter',
    unit: 'notifications',
    meaning:
      'Pushed notifications, counted after the write to disk. stored: new. duplicate: already known. rejected: number of quarantined bodies, not of notifications.',
    labels: { outcome: notificationOutcomes.join(', '), subscription: subscriptionNames },
  },
  commitSeconds: {
    name: 'earshot_commit_duration_seconds',
    type: 'histogram',
    unit: 'seconds',
    meaning:
      'Duration of one commit (a write of pushes to disk), including the parsing of the bodies.',
    labels: {},
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  },
  commitDeliveries: {
    name: 'earshot_commit_deliveries',
    type: 'histogram',
    unit: 'deliveries',
    meaning: 'Number of pushes in one commit (a write to disk). Most pushes have one notification.',
    labels: {},
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
  },
  publicationSeconds: {
    name: 'earshot_publication_to_receipt_seconds',
    type: 'histogram',
    unit: 'seconds',
    meaning:
      'Time from the publication of a created product to the receipt of the push. Measured only for the first push of each write to disk: a sample under load.',
    labels: { subscription: subscriptionNames },
    buckets: [1, 5, 15, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 21_600, 86_400],
  },
} as const satisfies Record<string, MetricRow>;

/** Returns the metrics about all parts. */
function programMetrics(parts: readonly StatusPart[]): StatusMetric[] {
  const names = parts.map(({ name }) => name);
  const kinds = parts.flatMap(({ alertKinds = [] }) => alertKinds);
  return [
    level(
      'earshot_status_level',
      'Level of a part in `earshot status`.',
      (status) => status.parts.map((one) => [{ part: one.part }, one]),
      { part: names.join(', ') },
    ),
    flag(
      'earshot_status_known',
      '1 if the part could be checked. 0: the metrics of the part are absent.',
      ({ failures }) =>
        names.map((part) => [{ part }, failures.every((failure) => failure.part !== part)]),
      { part: names.join(', ') },
    ),
    gaugesIn('alerts')(
      'earshot_alerts',
      'Number of active alerts.',
      ({ alerts }) =>
        kinds.map((kind) => [{ kind }, alerts.filter((one) => one.kind === kind).length]),
      { kind: kinds.join(', ') },
    ),
    gaugesIn('1')(
      'earshot_build_info',
      'Versions of earshot and Node; the value is always 1.',
      ({ version }) => [[{ version, node: process.versions.node }, 1]],
      { version: 'of earshot', node: 'of Node' },
    ),
  ];
}

/** Returns the metrics by heading of the reference page. */
export function metricGroups(
  parts: readonly StatusPart[],
): { title: string; rows: readonly (MetricRow | StatusMetric)[] }[] {
  const own: [string, readonly MetricRow[]] = ['Intake', Object.values(observedMetrics)];
  const groups = parts.flatMap(({ metrics = {} }) => Object.entries(metrics));
  const byTitle = Map.groupBy([own, ...groups], ([title]) => title);
  return [
    ...[...byTitle].map(([title, all]) => ({ title, rows: all.flatMap(([, rows]) => rows) })),
    { title: 'Program', rows: [...programMetrics(parts), availability] },
  ];
}

/** Returns the metrics that are derived from the status. */
export const statusMetrics = (parts: readonly StatusPart[]): StatusMetric[] =>
  metricGroups(parts)
    .flatMap(({ rows }) => rows)
    .filter((row): row is StatusMetric => 'read' in row);

export type RequestOutcome = (typeof requestOutcomes)[number];
