/**
 * Alerts: problems that a person should know of before data is lost. An alert is raised once and resolved once; both
 * are sent through every notification channel. All times are microseconds since 1970, UTC.
 */
import type { z } from 'zod';
import type { Alert, AlertFinding } from '../../core/terms/evaluation.ts';
import type { AlertChannel, AlertState } from '../../core/terms/ports.ts';
import type { alertSchema } from '../../core/terms/read-models.ts';

type AlertJson = z.infer<typeof alertSchema>;

/** An alert as listed. */
export interface ListedAlert extends AlertJson {
  channels: (AlertJson['channels'][number] & {
    /** Number of times that the alert became critical again after the channel had accepted it as critical. */
    repeats?: number;
  })[];
}

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

/** Maximum number of active alerts: subscriptions and sinks are few. */
export const activeMax = 1_000;

/** Variable that sets each channel. */
export const channelVariables = {
  url: 'EARSHOT_ALERT_URL',
  command: 'EARSHOT_ALERT_COMMAND',
} as const satisfies Record<AlertChannel, string>;

/** Returns the state that the channels of an alert have to accept. */
export function stateOf({ level, resolvedAtUs }: Alert): AlertState {
  return resolvedAtUs === null ? level : 'resolved';
}

/** Returns true when a channel that has accepted the state `sent` needs no further message. */
export function isAccepted(alert: Alert, sent: AlertState | null): boolean {
  const state = stateOf(alert);
  return sent === state || (sent === 'critical' && state === 'warning');
}

/** Read access. All calls reject with `unavailable`. */
export interface AlertReader {
  /** Returns alerts, newest first; active ones only unless `all`. */
  alerts(query: AlertQuery): Promise<ListedAlert[]>;
  /** Returns the alerts whose state a channel has not accepted, by id: active ones, and those resolved since a time. */
  unsent(options: {
    channel: AlertChannel;
    resolvedSinceUs: number;
    limit: number;
  }): Promise<ListedAlert[]>;
}

/** Write access. Each call is one transaction, on disk when it resolves. All reject with `unavailable`. */
export interface Alerts extends AlertReader {
  /**
   * Compares the findings with the active alerts of the checked kinds and subjects. Raises alerts for new findings, and
   * resolves alerts without a finding. Updates the text of an alert that stays active; the result has it as raised only
   * if it became critical. Active alerts are sent to these channels, too. A finding counts as checked; of several with
   * the same kind and subject, the last one is used. Resolves with the changes.
   */
  settleFindings(options: {
    /** Kinds and subjects that were checked; active alerts of others do not change. */
    checked: readonly Pick<AlertFinding, 'kind' | 'subject'>[];
    findings: readonly AlertFinding[];
    channels: readonly AlertChannel[];
    atUs: number;
  }): Promise<{ raised: Alert[]; resolved: Alert[] }>;
  /** Records the state that a channel has accepted, or why it did not. */
  recordAttempt(
    options: { id: number; channel: AlertChannel } & ({ sent: AlertState } | { error: string }),
  ): Promise<void>;
}
