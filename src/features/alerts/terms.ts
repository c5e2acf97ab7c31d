/**
 * Alerts: problems that a person should know of before data is lost. An alert is raised once and resolved once; both
 * are sent through every notification channel. All times are microseconds since 1970, UTC.
 */
import type { z } from 'zod';
import { hourUs } from '../../core/terms/dates.ts';
import type { Alert, AlertFinding } from '../../core/terms/evaluation.ts';
import type { AlertChannel } from '../../core/terms/ports.ts';
import type { alertSchema } from '../../core/terms/read-models.ts';

/** An alert as listed. */
export type ListedAlert = z.infer<typeof alertSchema>;

export interface AlertQuery {
  /** Also resolved alerts. */
  all: boolean;
  /** With `all`: resolved alerts only. */
  resolved?: boolean | undefined;
  /** Only alerts that were active at some time from `sinceUs` (inclusive) until `untilUs` (exclusive). */
  sinceUs?: number | undefined;
  untilUs?: number | undefined;
  /** Only ids below this one: the end of the previous page. */
  beforeId?: number | undefined;
  limit: number;
}

/** Maximum delay before a retry, before jitter of a quarter. */
export const alertRetryDelayMaxUs = hourUs;

/**
 * Maximum delay including jitter; `nextAttemptAtUs` must stay below it. A delivery due later was dated by a clock
 * that ran ahead, and is due now.
 */
export const alertWaitMaxUs = 1.25 * alertRetryDelayMaxUs;

/** Variable that sets each channel. */
export const channelVariables = {
  url: 'EARSHOT_ALERT_URL',
  command: 'EARSHOT_ALERT_COMMAND',
} as const satisfies Record<AlertChannel, string>;

/** A raised or resolved alert to be sent through a channel. */
export interface AlertDelivery {
  id: number;
  /** Current state: a delayed delivery has the latest text and may already be resolved. */
  alert: Alert;
  change: 'raised' | 'resolved';
  channel: AlertChannel;
  attempts: number;
  dueAtUs: number;
  /** Error of the last attempt; null before the first. */
  error: string | null;
}

/** Read access. All calls reject with `unavailable`. */
export interface AlertReader {
  /** Returns alerts, newest first; active ones only unless `all`. */
  alerts(query: AlertQuery): Promise<ListedAlert[]>;
  /**
   * Returns due deliveries of a channel, oldest first. Skips a delivery while an earlier one of the same kind, subject and channel is pending,
   * due or not: an alert is never sent as resolved before it is sent as raised, nor after it is raised again.
   */
  dueDeliveries(options: {
    nowUs: number;
    limit: number;
    channel: AlertChannel;
  }): Promise<AlertDelivery[]>;
  /** Returns pending deliveries, and those given up within the week before `nowUs`. */
  unsentDeliveries(nowUs: number): Promise<(AlertDelivery & { isGivenUp: boolean })[]>;
}

/** Write access. Each call is one transaction, on disk when it resolves. All reject with `unavailable`. */
export interface Alerts extends AlertReader {
  /**
   * Compares the findings with the active alerts of the checked kinds and subjects. Raises alerts for new findings,
   * resolves alerts without a finding, and queues deliveries of both for the channels. Updates the text of an alert
   * that stays active, and sends it again (as `raised`, also in the result) only if it became critical. A finding
   * counts as checked; of several with the same kind and subject, the last one is used. An alert that is resolved
   * before its first delivery is still sent as raised and as resolved, because the first attempt may be in flight.
   * Resolves with the changes.
   */
  settleFindings(options: {
    /** Kinds and subjects that were checked; active alerts of others do not change. */
    checked: readonly Pick<AlertFinding, 'kind' | 'subject'>[];
    findings: readonly AlertFinding[];
    channels: readonly AlertChannel[];
    atUs: number;
  }): Promise<{ raised: Alert[]; resolved: Alert[] }>;
  /** Records the result of a delivery attempt. `given-up` ends the retries. Ignores a finished delivery. */
  settleDelivery(
    options: { id: number; atUs: number } & (
      | { outcome: 'sent' }
      | { outcome: 'failed'; error: string; nextAttemptAtUs: number }
      | { outcome: 'given-up'; error: string }
    ),
  ): Promise<void>;
}
