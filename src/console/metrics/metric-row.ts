/** What is said of one metric: enough to register it with Prometheus' client and to document it. */
import type { Status } from '../../domain/status.ts';

export interface MetricRow {
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  /** In what it counts, such as `seconds` or `0 or 1`. */
  unit: string;
  /** One sentence or two: also what a scrape says of it. */
  meaning: string;
  /** Its labels, each with the values that it may have. */
  labels: Readonly<Record<string, string>>;
  /** Upper bounds of a histogram, in its unit. */
  buckets?: readonly number[];
}

/** One value of a metric that has labels; one that is not known is left out of the answer. */
export type Sample = readonly [labels: Record<string, string>, value: Value];

/** A truth is 1 or 0; what is not known, neither. */
export type Value = number | boolean | null | undefined;

/** A gauge that is read from how the receiver stands. */
export interface StatusMetric extends MetricRow {
  type: 'gauge';
  read(status: Status): Value | readonly Sample[];
}

/** A row for one value without labels. */
export function statusGauge(
  name: string,
  unit: string,
  meaning: string,
  read: (status: Status) => Value,
): StatusMetric {
  return { name, type: 'gauge', unit, meaning, labels: {}, read };
}

/** A row for one value of each set of labels. */
export function labelledGauge(
  name: string,
  unit: string,
  meaning: string,
  labels: MetricRow['labels'],
  read: (status: Status) => readonly Sample[],
): StatusMetric {
  return { name, type: 'gauge', unit, meaning, labels, read };
}

/** A moment as Prometheus has it: seconds since 1970. */
export function toSeconds(us: number | null | undefined): number | null {
  return typeof us === 'number' ? us / 1_000_000 : null;
}

/** The labels of subscriptions: names that nobody registered have a bounded number of rows. */
export const subscriptionNames =
  'its name in the path; `(none)` for the path without a name; `(other)` for names beyond 50 that are not registered';

export const registeredNames = 'its name';
