/** Facts that the checks of alerts are based on, and the form of their results. */
import type { AdministrationReader, Registration } from '../domain/account.ts';
import type {
  Alert,
  AlertChannel,
  AlertFinding,
  AlertKind,
  AlertSeverity,
  Alerts,
} from '../domain/alerts.ts';
import type { CompletenessReader, HourArrivals, HourCoverage } from '../domain/completeness.ts';
import type { JobDeps } from '../domain/job.ts';
import type { BackupReader, DiskSpace } from '../domain/ports.ts';
import type { QueueState } from '../domain/pull-queue.ts';
import type { DatabaseWarning, KnownNode } from '../domain/shared-log.ts';
import type { DeliveryState, SinkReader } from '../domain/sinks.ts';
import type { CertificateStatus } from '../domain/status.ts';
import type { AlertMessage } from './alert-message.ts';
import type { Span } from './pushes.ts';

/** A problem of a subject. */
export interface Problem extends Omit<AlertFinding, 'kind' | 'subject'> {
  /** Time for which the problem must exist before an alert is raised. */
  raiseAfterUs?: number;
  /** Time since which the problem is known to exist, if longer than it has been found. */
  sinceUs?: number;
}

/** Returns a problem. Evidence that does not apply is false. */
export function problem(
  severity: AlertSeverity,
  cause: string,
  nextStep: string,
  ...evidence: readonly (string | false)[]
): Problem {
  return { severity, cause, nextStep, evidence: evidence.filter((line) => line !== false) };
}

/** A problem, null without one, or `unchecked` when that is not known: then an active alert does not change. */
export type Result = Problem | null | 'unchecked';

/** Facts that each check may use. */
export interface Moment {
  nowUs: number;
  /** Time since which the receiver has run; `nowUs` when that is not known. */
  upSinceUs: number;
  /** Active alert of this kind and subject, to resolve it later than it was raised. */
  alert: Alert | undefined;
}

/** A kind of alert: a pure function of a subject returns its problem. */
export interface AlertRow<Subject> {
  kind: AlertKind;
  /** Time for which a problem must be gone before its alert is resolved. */
  resolveAfterUs: number;
  check: (subject: Subject, moment: Moment) => Result;
}

/** Returns a kind of alert. */
export function row<Subject>(
  kind: AlertKind,
  check: AlertRow<Subject>['check'],
  resolveAfterUs = 0,
): AlertRow<Subject> {
  return { kind, check, resolveAfterUs };
}

/** A subscription, and what is known of it. */
export interface SubscriptionView
  extends Registration,
    Pick<WatchDeps, 'lifetimes' | 'maintenance' | 'reconcile'> {
  /** Start of the hours whose events are known: those before its first definition or pruned are not. */
  knownSinceUs: number;
  /** Hours with pushes, in no order. */
  arrivals: readonly HourArrivals[];
  /** Compared hours since `knownSinceUs`, for all events, in no order. */
  coverage: readonly HourCoverage[];
  /**
   * Spans in which its pushes would have been received: the receiver was up, the subscription ran, and its definition
   * was the current one.
   */
  watched: readonly Span[];
  /** Undefined for a push subscription, and when not known. */
  queue: QueueState | undefined;
  /** Null for none. */
  lastDeliveryAtUs: number | null;
}

/** Returns true when pushes of the subscription are expected now. */
export function isRunning(registration: Registration): boolean {
  const { status, subscriptionId, pausedSeenAtUs, unfinished } = registration;
  return status === 'running' && subscriptionId !== null && pausedSeenAtUs === null && !unfinished;
}

export type Certificate = Pick<CertificateStatus, 'notAfterUs' | 'lifetimeUs' | 'lastFailure'>;

/** Measurements outside the store. A probe rejects when it cannot measure; the others are still used. */
export interface Probes {
  /**
   * Returns the certificate of the public listener; null when there is none to check. Its times are null before the
   * first one.
   */
  certificate(): Promise<Certificate | null>;
  /** Returns the space of the file system of the data directory; null when not known. */
  disk(): Promise<DiskSpace | null>;
  /** Returns why notifications cannot be stored; null when they can. */
  intake(): Promise<string | null>;
  /** Returns all receivers of the shared log, with this one; null without a shared log. */
  receivers?(): Promise<SharedReceivers | null>;
  /** Returns the warnings of the database of the shared log. */
  databaseWarnings?(): readonly DatabaseWarning[];
}

export interface SharedReceivers {
  /** Id of this receiver. */
  ownId: string;
  nodes: readonly KnownNode[];
}

/**
 * Sends a message through a channel. Rejects with a message without secrets when it was not accepted; ends early when
 * the signal is aborted.
 */
export type AlertSender = (message: AlertMessage, signal: AbortSignal) => Promise<void>;

export interface WatchDeps extends JobDeps {
  completeness: CompletenessReader;
  alerts: Alerts;
  administration: AdministrationReader;
  sinks: SinkReader;
  backups: BackupReader;
  deliveryState: () => DeliveryState;
  probes: Probes;
  /** Returns null when not known. `lastDeliveryAtUs` is the last delivery to its path; null for none. */
  lifetimes: (known: {
    registration: Registration;
    lastDeliveryAtUs: number | null;
    nowUs: number;
  }) => { pausesAtUs: number; cancelsAtUs: number } | null;
  /** The configured channels, possibly none. */
  senders: Readonly<Partial<Record<AlertChannel, AlertSender>>>;
  nowUs: () => number;
  /** True if maintenance resumes and recreates subscriptions automatically. */
  maintenance: boolean;
  /** True if hours are compared with the catalogue automatically. */
  reconcile: boolean;
  /** Interval of automatic backups; null when they are off. */
  backupEveryHours: number | null;
}
