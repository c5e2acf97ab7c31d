/** Coverage as programs get it, from the command line and the private listener alike. */
import type { SubscriptionCoverage } from './coverage-report.ts';
import { formatDateUs } from './notification-date.ts';
import type { DelayPercentiles, SubscriptionDelays } from './products.ts';

/**
 * Times ISO 8601 UTC, shares 0 to 1, delays in seconds; null is not known. `delays` are of what was received
 * within the report; null without a product index.
 */
export function toCoverageJson(report: {
  sinceUs: number;
  untilUs: number;
  subscriptions: readonly SubscriptionCoverage[];
  delays: readonly SubscriptionDelays[] | null;
}) {
  const { sinceUs, untilUs, subscriptions, delays } = report;
  return {
    since: formatDateUs(sinceUs),
    until: formatDateUs(untilUs),
    missing: subscriptions.reduce((sum, { missing }) => sum + missing, 0),
    subscriptions: subscriptions.map(({ hours, ...counts }) => ({
      ...counts,
      hours: hours.map(({ hourUs, ...hour }) => ({ hour: formatDateUs(hourUs), ...hour })),
      delays: delaysOf(delays?.find((one) => one.subscription === counts.subscription)),
    })),
  };
}

function delaysOf(delays: SubscriptionDelays | undefined) {
  if (delays === undefined) return null;
  return {
    sensingToPublication: inSeconds(delays.sensingToPublication),
    publicationToNotification: inSeconds(delays.publicationToNotification),
    notificationToReceipt: inSeconds(delays.notificationToReceipt),
  };
}

function inSeconds(percentiles: DelayPercentiles | null) {
  if (percentiles === null) return null;
  const { count, p50Ms, p90Ms, p99Ms, maxMs } = percentiles;
  return {
    count,
    p50: p50Ms / 1_000,
    p90: p90Ms / 1_000,
    p99: p99Ms / 1_000,
    max: maxMs / 1_000,
  };
}
