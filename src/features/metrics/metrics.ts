/** Metrics of a receiver: what it observes, and its status, in the Prometheus format. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { Protocol } from '../../core/api/listener-slot.ts';
import { within } from '../../core/cli/io.ts';
import type { MetricRow, Sample, Value } from '../../core/status/gauge.ts';
import type { Status, StatusPart } from '../../core/status/status.ts';
import { errorText } from '../../core/terms/app-error.ts';
import type { CommitFacts, Logger, Receipt } from '../../core/terms/ports.ts';
import {
  availability,
  notificationOutcomes,
  observedMetrics,
  type RequestOutcome,
  requestOutcomes,
  statusMetrics,
} from './metric-table.ts';

/** Below the default timeout of Prometheus, 10 s. */
const statusTimeoutMs = 8_000;

export type Metrics = ReturnType<typeof createMetrics>;

/** Creates the metrics with their own registry. The process is measured from the first scrape on. */
export function createMetrics(
  parts: readonly StatusPart[],
  log: Logger,
  tuning = { statusTimeoutMs },
) {
  const registry = new Registry();
  const { register, ...observation } = createObservation(registry);
  const gauges = statusMetrics(parts).map((row) => ({
    row,
    gauge: new Gauge(options(row, registry)),
  }));
  const available = new Gauge(options(availability, registry));
  let isProcessMeasured = false;

  async function render(statusNow: () => Promise<Status>): Promise<string> {
    if (!isProcessMeasured) collectDefaultMetrics({ register: registry });
    isProcessMeasured = true;
    const late = () => {
      throw new Error(`Timed out after ${tuning.statusTimeoutMs / 1_000} s.`);
    };
    const status = await within(tuning.statusTimeoutMs, statusNow(), late).catch((error) => {
      log.warn({ reason: errorText(error) }, 'status metrics unavailable');
      return null;
    });
    if (status !== null) register(status.subscriptions.map(({ name }) => name));
    available.set(status === null ? 0 : 1);
    for (const { row, gauge } of gauges) setAll(gauge, row, status && row.read(status));
    return registry.metrics();
  }

  let rendering: Promise<string> | undefined;
  return {
    ...observation,
    /**
     * Returns all metrics in the Prometheus text format, without the status metrics if `status` fails or takes longer
     * than a few seconds. Concurrent calls share one result.
     */
    scrape: (status: () => Promise<Status>): Promise<string> => {
      rendering ??= render(status).finally(() => {
        rendering = undefined;
      });
      return rendering;
    },
  };
}

/** Sets the samples of a metric, and removes those that are no longer known. */
function setAll(gauge: Gauge, row: MetricRow, value: Value | readonly Sample[]): void {
  // Without labels, `reset` would set a 0.
  if (Object.keys(row.labels).length === 0) gauge.remove();
  else gauge.reset();
  const samples = Array.isArray(value) ? value : [[{}, value] as const];
  for (const [labels, one] of samples) {
    if (typeof one === 'number' || typeof one === 'boolean') gauge.set(labels, Number(one));
  }
}

function createObservation(registry: Registry) {
  const of = (name: keyof typeof observedMetrics) => options(observedMetrics[name], registry);
  const requestTotal = new Counter(of('requests'));
  const notificationTotal = new Counter(of('notifications'));
  const commitSeconds = new Histogram(of('commitSeconds'));
  const commitDeliveries = new Histogram(of('commitDeliveries'));
  const publicationSeconds = new Histogram(of('publicationSeconds'));
  const labels = createSubscriptionLabels();
  for (const outcome of requestOutcomes) requestTotal.inc({ outcome }, 0);
  /** Counts what a body, or an entry of a queue, brought. Also counts zeros, so that each row exists. */
  const noteReceipt = (name: string | null, receipt: Receipt) => {
    const subscription = labels.labelOf(name);
    const isRejected = receipt.outcome === 'rejected';
    const counts = {
      stored: receipt.outcome === 'duplicate' ? 0 : receipt.stored,
      duplicate: isRejected ? 0 : receipt.duplicates,
      rejected: isRejected ? 1 : 0,
    };
    for (const outcome of notificationOutcomes) {
      notificationTotal.inc({ outcome, subscription }, counts[outcome]);
    }
  };
  return {
    /** Counts a request to `/notifications`; `receipt` is set when it reached the store. */
    observe: (outcome: RequestOutcome, subscription: string | null, receipt?: Receipt): void => {
      requestTotal.inc({ outcome });
      if (receipt !== undefined) noteReceipt(subscription, receipt);
    },
    noteReceipt,
    noteCommit: ({ durationSeconds, deliveries, publicationDelay }: CommitFacts): void => {
      commitSeconds.observe(durationSeconds);
      commitDeliveries.observe(deliveries);
      if (publicationDelay === null) return;
      const { subscription, seconds } = publicationDelay;
      publicationSeconds.observe({ subscription: labels.labelOf(subscription) }, seconds);
    },
    /** Adds registered subscriptions: they have their own rows, starting at 0. */
    register: (names: readonly string[]): void => {
      labels.register(names);
      for (const name of names) noteReceipt(name, { outcome: 'duplicate', duplicates: 0 });
    },
  };
}

/** Converts a metric to the options of the client library. */
function options({ name, meaning: help, labels, buckets }: MetricRow, registry: Registry) {
  const common = { name, help, labelNames: Object.keys(labels), registers: [registry] };
  return buckets === undefined ? common : { ...common, buckets: [...buckets] };
}

/** Not a valid subscription name. */
const noName = '(none)';

const otherName = '(other)';

/** Maximum number of unregistered names, such as those of another app or data directory. */
const unregisteredMax = 50;

function createSubscriptionLabels() {
  const registered = new Set<string>();
  const others = new Set<string>();
  return {
    /** Returns the label of a name in the URL path. */
    labelOf: (subscription: string | null): string => {
      if (subscription === null) return noName;
      if (registered.has(subscription) || others.has(subscription)) return subscription;
      if (others.size === unregisteredMax) return otherName;
      others.add(subscription);
      return subscription;
    },
    /** Adds names that always have their own label. */
    register: (names: readonly string[]): void => {
      for (const name of names) registered.add(name);
    },
  };
}

const protocol: Protocol = {
  root: '/metrics',
  paths: [{ method: 'GET', path: '/metrics', summary: 'Metrics for Prometheus' }],
  add: (app, { metrics, status }) => {
    app.get('/metrics', async (c) =>
      c.body(await metrics.scrape(status), 200, {
        'Content-Type': Registry.PROMETHEUS_CONTENT_TYPE,
      }),
    );
  },
};

export const protocols = [protocol];
