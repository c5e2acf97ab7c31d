/** Every metric that a scrape may bring, in the order of the page about them. */
import {
  backupMetrics,
  coverageMetrics,
  diskMetrics,
  programMetrics,
  readerMetrics,
  sinkMetrics,
  summaryMetrics,
} from './beside-status-metrics.ts';
import {
  certificateMetrics,
  intakeMetrics,
  logMetrics,
  subscriptionMetrics,
} from './intake-status-metrics.ts';
import type { MetricRow, StatusMetric } from './metric-row.ts';
import { observedMetrics } from './observed-metrics.ts';
import { processMetrics } from './process-metrics.ts';

/** Whether the rest was to be had: said by each scrape of itself. */
export const availability: MetricRow = {
  name: 'earshot_status_available',
  type: 'gauge',
  unit: '0 or 1',
  meaning:
    '1 when it could be found out in time how the receiver stands. 0: all that tells of it is absent.',
  labels: {},
};

/** Rows under the headings of the page. */
export const metricGroups: readonly {
  title: string;
  rows: readonly (MetricRow | StatusMetric)[];
}[] = [
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
