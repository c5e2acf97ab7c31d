/** Every metric that a scrape may bring, in the order of the page about them. */
import {
  backupMetrics,
  certificateMetrics,
  coverageMetrics,
  diskMetrics,
  intakeMetrics,
  logMetrics,
  type MetricRow,
  programMetrics,
  readerMetrics,
  type StatusMetric,
  sinkMetrics,
  subscriptionMetrics,
  summaryMetrics,
} from './status-metrics.ts';

/** Labels of subscriptions: names that nobody registered have a bounded number of rows. */
const subscriptionNames =
  'its name in the path; `(none)` for the path without a name; `(other)` for names beyond 50 that are not registered';

/** Whether the rest was to be had: said by each scrape of itself. */
export const availability: MetricRow = {
  name: 'earshot_status_available',
  type: 'gauge',
  unit: '0 or 1',
  meaning:
    '1 when it could be found out in time how the receiver stands. 0: all that tells of it is absent.',
  labels: {},
};

/** What became of a request to `/notifications`. */
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

/** The metrics, each under the name that the observation knows it by. */
export const observedMetrics = {
  requests: {
    name: 'earshot_requests_total',
    type: 'counter',
    unit: 'requests',
    meaning:
      'Requests to /notifications by what became of them. unauthorized: wrong or no credentials. unavailable: nothing could be stored, the sender got 503.',
    labels: { outcome: requestOutcomes.join(', ') },
  },
  notifications: {
    name: 'earshot_notifications_total',
    type: 'counter',
    unit: 'notifications',
    meaning:
      'Notifications that were pushed, after their commit. stored: new. duplicate: known already. rejected: bodies, not notifications, that went to quarantine.',
    labels: { outcome: notificationOutcomes.join(', '), subscription: subscriptionNames },
  },
  commitSeconds: {
    name: 'earshot_commit_duration_seconds',
    type: 'histogram',
    unit: 'seconds',
    meaning: 'How long one commit of deliveries took, from reading the bodies to the disk.',
    labels: {},
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  },
  commitDeliveries: {
    name: 'earshot_commit_deliveries',
    type: 'histogram',
    unit: 'deliveries',
    meaning: 'How many deliveries, mostly of one notification each, shared one commit.',
    labels: {},
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
  },
  publicationSeconds: {
    name: 'earshot_publication_to_receipt_seconds',
    type: 'histogram',
    unit: 'seconds',
    meaning:
      'From the publication of a product to the receipt of its push, of created products. Of each commit the first one is looked at: under load a sample.',
    labels: { subscription: subscriptionNames },
    buckets: [1, 5, 15, 30, 60, 120, 300, 600, 1_200, 1_800, 3_600, 7_200, 21_600, 86_400],
  },
} as const satisfies Record<string, MetricRow>;

/** All of it is measured from the first scrape on. Metrics of files are those of Linux alone. */
export const processMetrics: readonly MetricRow[] = [
  row(
    'counter',
    'process_cpu_user_seconds_total',
    'seconds',
    'Processor time of the process itself, all threads.',
  ),
  row(
    'counter',
    'process_cpu_system_seconds_total',
    'seconds',
    'Processor time of the system on behalf of all threads.',
  ),
  row('counter', 'process_cpu_seconds_total', 'seconds', 'Processor time of both kinds.'),
  row('gauge', 'process_start_time_seconds', 'seconds since 1970', 'When the process started.'),
  row('gauge', 'process_resident_memory_bytes', 'bytes', 'Memory of the process, all threads.'),
  row('gauge', 'process_open_fds', 'files', 'Files and connections that are open.'),
  row('gauge', 'process_max_fds', 'files', 'Files and connections that may be open.'),
  row(
    'gauge',
    'nodejs_eventloop_lag_seconds',
    'seconds',
    'How late the event loop of the main thread was at the last scrape.',
  ),
  row(
    'gauge',
    'nodejs_eventloop_lag_p50_seconds',
    'seconds',
    'The median of the times that a timer of 10 ms took since the last scrape: 0.010 is no delay at all.',
  ),
  row(
    'gauge',
    'nodejs_eventloop_lag_p99_seconds',
    'seconds',
    'Of 100 times that a timer of 10 ms took since the last scrape, one was longer.',
  ),
  row(
    'gauge',
    'nodejs_eventloop_lag_max_seconds',
    'seconds',
    'The longest time that a timer of 10 ms took since the last scrape.',
  ),
  row('gauge', 'nodejs_heap_size_total_bytes', 'bytes', 'The size of the heap of the main thread.'),
  row(
    'gauge',
    'nodejs_heap_size_used_bytes',
    'bytes',
    'What of the heap of the main thread is used.',
  ),
  row(
    'gauge',
    'nodejs_external_memory_bytes',
    'bytes',
    'What the main thread holds outside of its heap.',
  ),
  row(
    'histogram',
    'nodejs_gc_duration_seconds',
    'seconds',
    'Collections of garbage in the main thread.',
    { kind: 'major, minor, incremental, weakcb' },
  ),
];

/** Rows under the headings of the page. */
const metricGroups: readonly { title: string; rows: readonly (MetricRow | StatusMetric)[] }[] = [
  { title: 'What comes in', rows: [...Object.values(observedMetrics), ...intakeMetrics] },
  { title: 'Subscriptions', rows: subscriptionMetrics },
  { title: 'Completeness', rows: coverageMetrics },
  { title: 'Certificate', rows: certificateMetrics },
  { title: 'Log and disk', rows: [...logMetrics, ...diskMetrics] },
  { title: 'Backups', rows: backupMetrics },
  {
    title: 'Readers, summaries, sinks',
    rows: [...readerMetrics, ...summaryMetrics, ...sinkMetrics],
  },
  { title: 'The program', rows: [...programMetrics, availability] },
  { title: 'The process', rows: processMetrics },
];

export const metricTable: readonly MetricRow[] = metricGroups.flatMap(({ rows }) => rows);

/** Those that are read from how the receiver stands. */
export const statusMetrics: readonly StatusMetric[] = metricGroups
  .flatMap(({ rows }) => rows)
  .filter((row): row is StatusMetric => 'read' in row);

/** The text of `docs/reference/metrics.md`. */
export function metricsPage(): string {
  const sections = metricGroups.map(({ title, rows }) => `## ${title}\n\n${tableOf(rows)}`);
  return `# Metrics

<!-- Written by \`npm run generate\` from src/console/metrics. -->

What \`/metrics\` on the private listener hands out, in Prometheus' text format. How to have them collected, the dashboard and the
alert rules are in [monitoring.md](../monitoring.md).

A value that is not known is left out. Counters and histograms begin at 0 with each start.

${sections.join('\n\n')}
`;
}

function tableOf(rows: readonly MetricRow[]): string {
  const lines = rows.map(({ name, type, unit, meaning, labels }) => {
    const named = Object.entries(labels).map(([label, values]) => `\`${label}\`: ${values}`);
    return `| \`${name}\` | ${type} | ${unit} | ${[meaning, ...named].join('<br>')} |`;
  });
  return `| metric | type | unit | meaning |\n|---|---|---|---|\n${lines.join('\n')}`;
}

export type RequestOutcome = (typeof requestOutcomes)[number];

function row(
  type: MetricRow['type'],
  name: string,
  unit: string,
  meaning: string,
  labels: MetricRow['labels'] = {},
): MetricRow {
  return { name, type, unit, meaning, labels };
}
