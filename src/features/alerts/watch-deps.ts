/** Ports and settings of the watchdog. */

import type { JobDeps } from '../../core/host/job.ts';
import type { AlertChannel } from '../../core/terms/kinds.ts';
import type { BackupReader } from '../../core/terms/ports.ts';
import type { SinkSources } from '../sinks/report.ts';
import type { DeliveryState } from '../sinks/terms.ts';
import type { Probes } from '../status/probes.ts';
import type { SubscriptionSources } from '../subscriptions/state.ts';
import type { AlertMessage } from './message.ts';
import type { Alerts } from './terms.ts';

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
