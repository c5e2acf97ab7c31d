/** The metrics of one receiver: what it observes, and how it stands, as Prometheus reads it. */

import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { errorText } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import type { Status } from '../../domain/status.ts';
import type { MetricRow, Sample, Value } from './metric-row.ts';
import { availability, statusMetrics } from './metric-table.ts';
import { createObservation, type Observation } from './observation.ts';
import { processMetrics } from './process-metrics.ts';

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
  const gauges = statusMetrics.map((row) => ({ row, gauge: gaugeOf(row, registry) }));
  const available = gaugeOf(availability, registry);
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

function gaugeOf({ name, meaning, labels }: MetricRow, registry: Registry): Gauge {
  return new Gauge({ name, help: meaning, labelNames: Object.keys(labels), registers: [registry] });
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
