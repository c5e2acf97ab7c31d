/**
 * Alerts: what a person should know of before it costs data. Each is raised once, lasts, and is resolved
 * once; both are told through every channel. All times are microseconds since 1970, UTC.
 */

/** What there is to be alarmed about. */
export const alertKinds = [
  'silence', // a subscription that usually brings something brings nothing
  'lost-pushes', // more events than usual had to be looked up
  'missing', // events that are not in the log
  'unknown', // hours that could not be compared for long
  'auto-pause', // the catalogue will pause a subscription that nothing was delivered to
  'cancellation', // the catalogue will cancel a paused subscription
  'not-running', // a subscription does not run, though it should
  'certificate', // near its end, and not renewed
  'disk', // little room left
  'intake', // notifications cannot be stored
  'backup', // the last one is older than it should be
  'sink', // a sink takes nothing, or nothing is handed over to it
  'sink-refused', // a sink has dead letters
] as const;
export type AlertKind = (typeof alertKinds)[number];

export const alertSeverities = ['warning', 'critical'] as const;
export type AlertSeverity = (typeof alertSeverities)[number];

/** What is wrong, in words for people. */
export interface AlertFinding {
  kind: AlertKind;
  /** What it is about: the name of a subscription or sink, or '' where there is but one, or it is about all. */
  subject: string;
  severity: AlertSeverity;
  /** What is wrong, in one sentence. */
  cause: string;
  /** The figures it rests on, one sentence each. */
  evidence: readonly string[];
  /** What to do, in one sentence. */
  nextStep: string;
}

export interface Alert extends AlertFinding {
  id: number;
  raisedAtUs: number;
  /** Null while it lasts. */
  resolvedAtUs: number | null;
}

/** Longest delay before the retry of a delivery, before jitter of a quarter. */
export const alertRetryDelayMaxUs = 60 * 60_000_000;

/**
 * A delivery that is due later than this was dated by a clock that ran ahead, and is due now; `nextAttemptAtUs` must
 * stay below.
 */
export const alertWaitMaxUs = 1.25 * alertRetryDelayMaxUs;

/** Where alerts are told. */
export const alertChannels = ['url', 'command'] as const;
export type AlertChannel = (typeof alertChannels)[number];

/** An alert, or its end, that is to be told through a channel. */
export interface AlertDelivery {
  id: number;
  /** As it is now: what is told late has the newest words, and may be resolved by then. */
  alert: Alert;
  change: 'raised' | 'resolved';
  channel: AlertChannel;
  attempts: number;
  dueAtUs: number;
  /** Why the last attempt failed; null before the first. */
  error: string | null;
}

/** The questions. All reject with `unavailable`. */
export interface AlertReader {
  /** Newest first; only lasting ones unless `all`. */
  alerts(options: { all: boolean; limit: number }): Promise<Alert[]>;
  /**
   * What waits to be told and is due, oldest first; never one with an earlier one of the same kind, subject and
   * channel that waits, due or not: no end is told before its beginning, nor after the next beginning. Of one
   * channel alone, where it is named: else what waits for one could fill the limit of another.
   */
  dueDeliveries(options: {
    nowUs: number;
    limit: number;
    channel?: AlertChannel | undefined;
  }): Promise<AlertDelivery[]>;
  /** What waits to be told, or was given up within the last week before `nowUs`. */
  unsentDeliveries(nowUs: number): Promise<(AlertDelivery & { isGivenUp: boolean })[]>;
}

/** The changes: each is one transaction, on disk when it resolves. All reject with `unavailable`. */
export interface Alerts extends AlertReader {
  /**
   * Compares what is wrong now with what lasts, for the kinds that were looked at: what is new is raised, what
   * is no longer there is resolved, and both are to be told through the channels; what still lasts gets the
   * newer words and is told anew (as `raised`, also in the answer) only when it became critical. A finding
   * counts as checked; of several with the same kind and subject, the last. The same findings again change nothing
   * but the words. An alert that is over before anybody heard of it is told all the same, beginning and end: the
   * first try may be on its way. Resolves with what changed.
   */
  settleFindings(options: {
    /** Kinds and subjects that were checked; a lasting alert of another one is left as it is. */
    checked: readonly Pick<AlertFinding, 'kind' | 'subject'>[];
    findings: readonly AlertFinding[];
    channels: readonly AlertChannel[];
    atUs: number;
  }): Promise<{ raised: Alert[]; resolved: Alert[] }>;
  /** Says what came of telling. `given-up` ends the tries. A delivery that is over is passed over. */
  settleDelivery(
    options: { id: number; atUs: number } & (
      | { outcome: 'sent' }
      | { outcome: 'failed'; error: string; nextAttemptAtUs: number }
      | { outcome: 'given-up'; error: string }
    ),
  ): Promise<void>;
}
