/** What is counted and timed while it happens: requests, notifications, commits, delays. */
import { type MetricRow, subscriptionNames } from './metric-row.ts';

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
export type RequestOutcome = (typeof requestOutcomes)[number];

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
