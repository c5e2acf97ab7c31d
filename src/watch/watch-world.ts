/** What the watchdog looks at, and how it makes itself heard. */
import type { AdministrationReader, Registration } from '../domain/administration.ts';
import type { AlertChannel, Alerts } from '../domain/alerts.ts';
import type { BackupReader } from '../domain/backups.ts';
import type { CompletenessReader } from '../domain/completeness.ts';
import type { DiskRoom } from '../domain/disk-room.ts';
import type { Cursors, Logger, NotificationLog } from '../domain/ports.ts';
import type { SinkReader } from '../domain/sinks.ts';
import type { AlertMessage } from './telling/alert-message.ts';

/** What is measured outside the store. A probe that rejects could not look; the others still do. */
export interface Probes {
  /**
   * The certificate that the public listener shows; null where there is none to look after, and its times while
   * there is none yet. `lifetimeUs` is from its first to its last moment; `lastFailure` is why it could not be
   * renewed, null when it could.
   */
  certificate(): Promise<{
    notAfterUs: number | null;
    lifetimeUs: number | null;
    lastFailure: string | null;
  } | null>;
  /** The file system of the data directory; null when the system does not say. */
  disk(): Promise<DiskRoom | null>;
  /** Why notifications cannot be stored; null when they can. */
  intake(): Promise<string | null>;
}

/** How this program hands over to sinks. */
export interface HandingOver {
  /** Those that are set up; null where that cannot be known. */
  names: readonly string[] | null;
  /** Why nothing can be handed over to some of these, by name and in words that hold no secret. */
  faults?: ReadonlyMap<string, string>;
  /** Why nothing can be handed over to any of them, in words that hold no secret; null when it can. */
  fault: string | null;
  /** Why the current `earshot.config.ts` is rejected, so that the version before stays in effect; without secrets. */
  rejected?: string | null;
}

/** When the catalogue will act on a subscription by itself (specification, Limits). */
export interface Lifetimes {
  pausesAtUs: number;
  cancelsAtUs: number;
}

/**
 * Tells one message through one channel. Rejects, with words that hold no secret, when it was not taken;
 * ends early when the signal is aborted.
 */
export type Tell = (
  channel: AlertChannel,
  message: AlertMessage,
  signal: AbortSignal,
) => Promise<void>;

export interface WatchWorld {
  completeness: CompletenessReader;
  alerts: Alerts;
  administration: AdministrationReader;
  sinks: SinkReader;
  backups: BackupReader;
  /** The log that sinks read, and where each has got to. */
  notifications: Pick<NotificationLog, 'find'> & Pick<Cursors, 'cursor'>;
  handingOver: () => HandingOver;
  probes: Probes;
  /** Null when it is not known. `lastDeliveryAtUs` is the last delivery to its path; null for none. */
  lifetimes: (known: {
    registration: Registration;
    lastDeliveryAtUs: number | null;
    nowUs: number;
  }) => Lifetimes | null;
  /** The channels that are set up; none is fine. */
  channels: readonly AlertChannel[];
  tell: Tell;
  nowUs: () => number;
  /** A number in [0, 1), for jitter. */
  random: () => number;
  /** Resolves after a time, or at once when the signal is aborted. Never rejects. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
  log: Logger;
  /** Whether maintenance resumes and recreates subscriptions by itself. */
  maintenance: boolean;
  /** Whether hours are compared with the catalogue by themselves. */
  reconcile: boolean;
  /** How often a backup is made by itself; null where none is. */
  backupEveryHours: number | null;
}
