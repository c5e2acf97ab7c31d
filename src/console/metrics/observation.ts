/** Counts and times what happens, at the cost of a few additions for each request. */
import { Counter, Histogram, type Registry } from 'prom-client';
import type { CommitFacts } from '../../domain/commit-facts.ts';
import type { Receipt } from '../../domain/ports.ts';
import type { MetricRow } from './metric-row.ts';
import {
  notificationOutcomes,
  observedMetrics,
  type RequestOutcome,
  requestOutcomes,
} from './observed-metrics.ts';
import { createSubscriptionLabels } from './subscription-labels.ts';

type NotificationCounts = Record<(typeof notificationOutcomes)[number], number>;

export interface Observation {
  /** One request to `/notifications`; `receipt` when it reached the store. */
  observe(outcome: RequestOutcome, subscription: string | null, receipt?: Receipt): void;
  noteCommit(commit: CommitFacts): void;
  /** Names of registered subscriptions: they have rows of their own, from 0 on. */
  register(subscriptions: readonly string[]): void;
  /** Hands over what was counted, before the registry is read. */
  settle(): void;
}

/** Counting through the client costs half a microsecond each time, so what comes with every request is kept here. */
export function createObservation(registry: Registry): Observation {
  const registers = [registry];
  const requestTotal = new Counter({ ...options(observedMetrics.requests), registers });
  const notificationTotal = new Counter({ ...options(observedMetrics.notifications), registers });
  const commitSeconds = new Histogram({ ...options(observedMetrics.commitSeconds), registers });
  const commitDeliveries = new Histogram({
    ...options(observedMetrics.commitDeliveries),
    registers,
  });
  const publicationSeconds = new Histogram({
    ...options(observedMetrics.publicationSeconds),
    registers,
  });
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
function options({ name, meaning, labels, buckets }: MetricRow) {
  return {
    name,
    help: meaning,
    labelNames: Object.keys(labels),
    ...(buckets === undefined ? {} : { buckets: [...buckets] }),
  };
}
