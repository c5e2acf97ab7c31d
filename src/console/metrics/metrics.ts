/** The metrics of one receiver: what it observes, and how it stands, as Prometheus reads it. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { errorText } from '../../domain/app-error.ts';
import type { CommitFacts, Logger, Receipt } from '../../domain/ports.ts';
import type { Status } from '../../domain/status.ts';
import {
  availability,
  notificationOutcomes,
  observedMetrics,
  processMetrics,
  type RequestOutcome,
  requestOutcomes,
  statusMetrics,
} from './metric-table.ts';
import type { MetricRow, Sample, Value } from './status-metrics.ts';

/** Prometheus by itself gives up after 10 s. */
const statusTimeoutMs = 8_000;

/** The type of what `scrape` gives. */
export const metricsContentType = Registry.PROMETHEUS_CONTENT_TYPE;

export interface Metrics extends Pick<Observation, 'observe' | 'noteCommit'> {
  /**
   * All metrics in Prometheus' text format. Where `status` takes longer than a few seconds, or fails, the
   * rest comes without it. One is made at a time: who asks meanwhile gets the same.
   */
  scrape(status: () => Promise<Status>): Promise<string>;
}

/** Builds the metrics with a registry of their own. Of the process nothing is measured before the first scrape. */
export function createMetrics(log: Logger, tuning = { statusTimeoutMs }): Metrics {
  const registry = new Registry();
  const { observe, noteCommit, register, settle } = createObservation(registry);
  const gauges = statusMetrics.map((row) => ({ row, gauge: new Gauge(options(row, registry)) }));
  const available = new Gauge(options(availability, registry));
  let isProcessMeasured = false;

  async function render(statusNow: () => Promise<Status>): Promise<string> {
    if (!isProcessMeasured) measureProcess(registry);
    isProcessMeasured = true;
    const status = await inTime(statusNow, tuning.statusTimeoutMs).catch((error: unknown) => {
      const reason = errorText(error);
      log.warn({ reason }, 'metrics are handed out without those read from the store');
      return null;
    });
    if (status !== null) register(status.subscriptions.map(({ name }) => name));
    settle();
    available.set(status === null ? 0 : 1);
    for (const { row, gauge } of gauges) setAll(gauge, row, status && row.read(status));
    return registry.metrics();
  }

  let rendering: Promise<string> | undefined;
  return {
    observe,
    noteCommit,
    scrape: (status) => {
      rendering ??= render(status).finally(() => {
        rendering = undefined;
      });
      return rendering;
    },
  };
}

/** What was there before and is not known any more is gone. */
function setAll(gauge: Gauge, row: MetricRow, value: Value | readonly Sample[]): void {
  // Without labels, `reset` would leave a 0.
  if (Object.keys(row.labels).length === 0) gauge.remove();
  else gauge.reset();
  const samples = Array.isArray(value) ? value : [[{}, value] as const];
  for (const [labels, one] of samples) {
    if (typeof one === 'number' || typeof one === 'boolean') gauge.set(labels, Number(one));
  }
}

/** The client measures more than is of use here; it has no way to choose. */
function measureProcess(registry: Registry): void {
  const all = new Registry();
  collectDefaultMetrics({ register: all });
  for (const { name } of processMetrics) {
    const metric = all.getSingleMetric(name);
    if (metric !== undefined) registry.registerMetric(metric);
  }
}

async function inTime<Value>(work: () => Promise<Value>, timeoutMs: number): Promise<Value> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    late.reject(new Error(`It took longer than ${timeoutMs / 1_000} s.`));
  }, timeoutMs);
  try {
    return await Promise.race([work(), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

type NotificationCounts = Record<(typeof notificationOutcomes)[number], number>;

interface Observation {
  /** One request to `/notifications`; `receipt` when it reached the store. */
  observe(outcome: RequestOutcome, subscription: string | null, receipt?: Receipt): void;
  noteCommit(commit: CommitFacts): void;
  /** Names of registered subscriptions: they have rows of their own, from 0 on. */
  register(subscriptions: readonly string[]): void;
  /** Hands over what was counted, before the registry is read. */
  settle(): void;
}

/** Counting through the client costs half a microsecond each time, so what comes with every request is kept here. */
function createObservation(registry: Registry): Observation {
  const of = (name: keyof typeof observedMetrics) => options(observedMetrics[name], registry);
  const requestTotal = new Counter(of('requests'));
  const notificationTotal = new Counter(of('notifications'));
  const commitSeconds = new Histogram(of('commitSeconds'));
  const commitDeliveries = new Histogram(of('commitDeliveries'));
  const publicationSeconds = new Histogram(of('publicationSeconds'));
  const labels = createSubscriptionLabels();
  const requests = new Map<RequestOutcome, number>(requestOutcomes.map((one) => [one, 0]));
  const notifications = new Map<string, NotificationCounts>();
  const countsOf = (label: string): NotificationCounts => {
    const known = notifications.get(label);
    if (known !== undefined) return known;
    const fresh = { stored: 0, duplicate: 0, rejected: 0 };
    notifications.set(label, fresh);
    return fresh;
  };
  return {
    observe: (outcome, subscription, receipt) => {
      requests.set(outcome, (requests.get(outcome) ?? 0) + 1);
      if (receipt !== undefined) addReceipt(countsOf(labels.labelOf(subscription)), receipt);
    },
    noteCommit: ({ durationSeconds, deliveries, publicationDelay }) => {
      commitSeconds.observe(durationSeconds);
      commitDeliveries.observe(deliveries);
      if (publicationDelay === null) return;
      const { subscription, seconds } = publicationDelay;
      publicationSeconds.observe({ subscription: labels.labelOf(subscription) }, seconds);
    },
    register: (names) => {
      labels.register(names);
      for (const name of names) countsOf(name);
    },
    settle: () => {
      requestTotal.reset();
      for (const [outcome, count] of requests) requestTotal.inc({ outcome }, count);
      notificationTotal.reset();
      for (const [subscription, counts] of notifications) {
        for (const outcome of notificationOutcomes) {
          notificationTotal.inc({ outcome, subscription }, counts[outcome]);
        }
      }
    },
  };
}

function addReceipt(counts: NotificationCounts, receipt: Receipt): void {
  if (receipt.outcome === 'rejected') counts.rejected += 1;
  else counts.duplicate += receipt.duplicates;
  if (receipt.outcome !== 'duplicate') counts.stored += receipt.stored;
}

/** A row of the table as the client takes it. */
function options({ name, meaning: help, labels, buckets }: MetricRow, registry: Registry) {
  const common = { name, help, labelNames: Object.keys(labels), registers: [registry] };
  return buckets === undefined ? common : { ...common, buckets: [...buckets] };
}

/** No subscription can be called so. */
const noName = '(none)';

const otherName = '(other)';

/** Names that are not registered here: of an app of one's own, of another data directory. */
const unregisteredMax = 50;

interface SubscriptionLabels {
  /** The label of a name in the path. */
  labelOf(subscription: string | null): string;
  /** Names that are counted under their own from now on, however many others there are. */
  register(names: readonly string[]): void;
}

function createSubscriptionLabels(): SubscriptionLabels {
  const registered = new Set<string>();
  const others = new Set<string>();
  return {
    labelOf: (subscription) => {
      if (subscription === null) return noName;
      if (registered.has(subscription) || others.has(subscription)) return subscription;
      if (others.size === unregisteredMax) return otherName;
      others.add(subscription);
      return subscription;
    },
    register: (names) => {
      for (const name of names) registered.add(name);
    },
  };
}
