/** Ports and settings of the watchdog. */

import type { Alerts } from '../domain/alerts.ts';
import type { JobDeps } from '../domain/job.ts';
import type { AlertChannel } from '../domain/kinds.ts';
import type { BackupReader } from '../domain/ports.ts';
import type { DeliveryState } from '../domain/sinks.ts';
import type { Probes } from '../state/probes.ts';
import type { SinkSources } from '../state/sinks.ts';
import type { SubscriptionSources } from '../state/subscription-state.ts';
import type { AlertMessage } from './alert-message.ts';

/**
 * Sends a message through a channel. Rejects with a message without secrets when it was not accepted; ends early when
 * the signal is aborted.
 */
export type AlertSender = (message: AlertMessage, signal: AbortSignal) => Promise<void>;

export interface WatchDeps extends JobDeps, SubscriptionSources, SinkSources {
  alerts: Alerts;
  backups: BackupReader;
  deliveryState: () => DeliveryState;
  probes: Probes;
  /** The configured channels, possibly none. */
  senders: Readonly<Partial<Record<AlertChannel, AlertSender>>>;
  nowUs: () => number;
  /** Interval of automatic backups; null when they are off. */
  backupEveryHours: number | null;
}
