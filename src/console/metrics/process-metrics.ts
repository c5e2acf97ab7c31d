/** What Prometheus' client measures of the process itself: those of its metrics that are handed out. */
import type { MetricRow } from './metric-row.ts';

function row(
  type: MetricRow['type'],
  name: string,
  unit: string,
  meaning: string,
  labels: MetricRow['labels'] = {},
): MetricRow {
  return { name, type, unit, meaning, labels };
}

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
