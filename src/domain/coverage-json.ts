/** Coverage as programs get it, from the command line and the private listener alike. */
import type { CoverageSummary } from './coverage-report.ts';
import { formatDateUs } from './notification-date.ts';
import type { DelayPercentiles, SubscriptionDelays } from './products.ts';
import type { CoverageReport } from './read-coverage.ts';

/**
 * Times ISO 8601 UTC, shares 0 to 1, delays in seconds; null is not known. `delays` are of what was received
 * within the report; null without a product index.
 */
export function toCoverageJson(
  { sinceUs, untilUs, subscriptions, delays }: CoverageReport,
  comparisonOff: string | null,
) {
  return {
    since: formatDateUs(sinceUs),
    until: formatDateUs(untilUs),
    comparison: toComparisonJson(comparisonOff),
    missing: subscriptions.reduce((sum, { missing }) => sum + missing, 0),
    subscriptions: subscriptions.map(({ hours, ...summary }) => ({
      ...toSummaryJson(summary, comparisonOff),
      hours: hours.map(({ hourUs, ...hour }) => ({ hour: formatDateUs(hourUs), ...hour })),
      delays: delaysOf(delays?.find((one) => one.subscription === summary.subscription)),
    })),
  };
}

/** Whether the receiver compares automatically, and why not. */
export function toComparisonJson(comparisonOff: string | null) {
  return { automatic: comparisonOff === null, reason: comparisonOff };
}

/** Without automatic comparison, nothing says when the next one runs. */
export function toSummaryJson(
  { nextDueAtUs, ...counts }: CoverageSummary,
  comparisonOff: string | null,
) {
  const isAwaited = comparisonOff === null && nextDueAtUs !== null;
  return { ...counts, nextComparison: isAwaited ? formatDateUs(nextDueAtUs) : null };
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
