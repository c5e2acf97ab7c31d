/** Form of the metrics that are derived from the status, and of all other metrics. */
import type { Evaluation, Level } from '../terms/evaluation.ts';
import type { Status } from './status.ts';

export interface MetricRow {
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  /** Unit, such as `seconds` or `0 or 1`. */
  unit: string;
  /** Description, also used as help text of a scrape. */
  meaning: string;
  /** Labels, with their possible values. */
  labels: Readonly<Record<string, string>>;
  /** Upper bounds of the buckets of a histogram, in its unit. */
  buckets?: readonly number[];
}

/** A labelled value of a metric; unknown values are omitted. */
export type Sample = readonly [labels: Record<string, string>, value: Value];

/** A boolean is exported as 1 or 0; an unknown value is omitted. */
export type Value = number | boolean | null | undefined;

/** A gauge derived from the status. */
export interface StatusMetric extends MetricRow {
  type: 'gauge';
  read(status: Status): Value | readonly Sample[];
}

export type Gauge = (
  name: string,
  meaning: string,
  read: StatusMetric['read'],
  labels?: MetricRow['labels'],
) => StatusMetric;

/** Returns a function that defines gauges with a unit. */
export function gaugesIn(unit: string): Gauge {
  return (name, meaning, read, labels = {}) => ({
    name,
    type: 'gauge',
    unit,
    meaning,
    labels,
    read,
  });
}

export const bytes = gaugesIn('bytes');
export const seconds = gaugesIn('seconds');
/** Points in time, as in Prometheus. */
export const moment = gaugesIn('seconds since 1970');
export const flag = gaugesIn('0 or 1');

const levelNumbers: Readonly<Record<Level, number>> = {
  ok: 0,
  warning: 1,
  critical: 2,
  unknown: 3,
};

/** Defines a gauge of evaluations. */
export function level(
  name: string,
  meaning: string,
  read: (status: Status) => readonly (readonly [Sample[0], Pick<Evaluation, 'level'>])[],
  labels: MetricRow['labels'],
): StatusMetric {
  return gaugesIn('0 to 3')(
    name,
    `${meaning} 0: ok, 1: warning, 2: critical, 3: unknown.`,
    (status) => read(status).map(([labelled, one]) => [labelled, levelNumbers[one.level]]),
    labels,
  );
}

export function toSeconds(us: number | null | undefined): number | null {
  return typeof us === 'number' ? us / 1_000_000 : null;
}

/** Returns the seconds since a time; 0 without one. */
export function secondsSince(sinceUs: number | null, atUs: number): number {
  return sinceUs === null ? 0 : Math.max(0, atUs - sinceUs) / 1_000_000;
}

/** Label of the metrics of registered subscriptions. */
export const registeredNames = 'name of the subscription';
