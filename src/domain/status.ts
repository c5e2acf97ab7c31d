/**
 * How a receiver stands, as one document: what `earshot status`, `/api/status` and the metrics show. Times are
 * microseconds since 1970, UTC; null is not known, or there is none.
 */
import type { Alert } from './alerts.ts';
import type { LastBackups } from './backups.ts';
import type { LogSize, PruneHorizon } from './pruning.ts';

export interface Status {
  atUs: number;
  version: string;
  /** Null where no receiver serves: the store was looked at alone. */
  receiver: ReceiverStatus | null;
  log: LogStatus;
  subscriptions: readonly SubscriptionStatus[];
  /** Null behind a proxy, and before the first certificate. */
  certificate: CertificateStatus | null;
  readers: readonly ReaderStatus[];
  summaries: SummaryStatus;
  sinks: readonly SinkStatus[];
  /** Of the last seven days. */
  coverage: readonly CoverageStatus[];
  disk: { freeBytes: number; totalBytes: number; reserveBytes: number } | null;
  backups: LastBackups & { everyHours: number | null };
  /** Those that last. */
  alerts: readonly Alert[];
}

export interface ReceiverStatus {
  startedAtUs: number;
  /** Why notifications cannot be stored; null when they can. */
  refusing: string | null;
  queueBytes: number;
  queueBytesMax: number;
}

export interface LogStatus extends LogSize {
  /** The product index beside it; 0 without one. */
  indexBytes: number;
  lastReceivedAtUs: number | null;
  quarantined: number;
  pruned: PruneHorizon | null;
}

export interface SubscriptionStatus {
  name: string;
  state: 'running' | 'paused' | 'unfinished' | 'absent';
  lastDeliveryAtUs: number | null;
  /** When the catalogue will act on it by itself (specification, Limits). */
  pausesAtUs: number | null;
  cancelsAtUs: number | null;
}

export interface CertificateStatus {
  notAfterUs: number;
  lifetimeUs: number;
  /** Null with files of the user's own. */
  lastAttemptAtUs: number | null;
  lastFailure: string | null;
}

export interface ReaderStatus {
  name: string;
  position: number;
  /** Positions of the log that it has yet to read. */
  behind: number;
}

export interface SummaryStatus {
  mode: 'off' | 'each' | 'digest';
  waiting: number;
  made: number;
  failed: number;
  /** Within the last 24 hours. */
  tokens: number;
}

export interface SinkStatus {
  name: string;
  waiting: number;
  dead: number;
  /** When the oldest item that waits came into the log. */
  oldestWaitingAtUs: number | null;
  /** Why nothing can be handed over to it; null when it can. */
  fault: string | null;
}

export interface CoverageStatus {
  subscription: string;
  expected: number;
  missing: number;
  recovered: number;
  late: number;
  /** Hours that are over and have not been compared. */
  unknownHours: number;
}
