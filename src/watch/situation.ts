/** Facts that the checks of alerts are based on, and the form of their results. */
import type { AdministrationReader, Gap, Registration } from '../domain/account.ts';
import type { Alert, AlertChannel, AlertFinding, AlertKind, Alerts } from '../domain/alerts.ts';
import type {
  CompletenessReader,
  Definition,
  HourCoverage,
  Uptime,
} from '../domain/completeness.ts';
import { hourOf } from '../domain/coverage.ts';
import type { BackupReader, Cursors, DiskSpace, Logger, NotificationLog } from '../domain/ports.ts';
import type { QueueState } from '../domain/pull-queue.ts';
import type { DatabaseWarning, KnownNode } from '../domain/shared-log.ts';
import type { DeliveryState, SinkReader } from '../domain/sinks.ts';
import type { CertificateStatus } from '../domain/status.ts';
import type { AlertMessage } from './alert-message.ts';
import { historyUs, type PushMemory, type Span, without } from './pushes.ts';

/** A problem of a subject. */
export interface Problem extends Omit<AlertFinding, 'kind' | 'subject'> {
  /** Time for which the problem must exist before an alert is raised. */
  raiseAfterUs?: number;
  /** Time since which the problem is known to exist, if longer than it has been found. */
  sinceUs?: number;
}

/** A problem, null without one, or `unchecked` when that is not known: then an active alert does not change. */
export type Result = Problem | null | 'unchecked';

/** Facts that each check may use. */
export interface Moment {
  nowUs: number;
  /** Time at which the receiver started; 0 if not known. */
  upSinceUs: number;
  /** Active alert of this kind and subject, to resolve it later than it was raised. */
  alert: Alert | undefined;
}

/** A kind of alert: a pure function of a subject returns its problem. */
export interface AlertRow<Subject> {
  kind: AlertKind;
  /** Time for which a problem must be gone before its alert is resolved. */
  resolveAfterUs?: number;
  check: (subject: Subject, moment: Moment) => Result;
  /** Returns a problem that replaces those of single subjects without an alert; null for none. */
  common?: (
    subjects: readonly (readonly [name: string, subject: Subject])[],
    results: ReadonlyMap<string, Result>,
  ) => Problem | null;
}

/** Returns true when the problem has existed long enough for an alert. */
export function isLongEnough({ raiseAfterUs = 0, sinceUs }: Problem, nowUs: number): boolean {
  return nowUs - (sinceUs ?? nowUs) >= raiseAfterUs;
}

/** Facts on all subscriptions. */
interface SubscriptionFacts {
  definitions: readonly Definition[];
  gaps: readonly Gap[];
  queues: readonly QueueState[];
  uptimes: readonly Uptime[];
  /** Time before which nothing is known, because it was pruned; 0 when nothing was pruned. */
  unprunedSinceUs: number;
  memory: PushMemory;
  /** Time of the last delivery, by subscription name. */
  deliveredAtUs: ReadonlyMap<string, number>;
  maintenance: boolean;
  reconcile: boolean;
  lifetimes: WatchDeps['lifetimes'];
}

/** A subscription, with the facts on all of them. */
export interface SubscriptionView {
  registration: Registration;
  facts: SubscriptionFacts;
}

/** Returns true when pushes of the subscription are expected now. */
export function isRunning(registration: Registration): boolean {
  const { status, subscriptionId, pausedSeenAtUs, unfinished } = registration;
  return status === 'running' && subscriptionId !== null && pausedSeenAtUs === null && !unfinished;
}

/**
 * Returns the spans in which its pushes would have been received: the receiver was up, the subscription ran, and its
 * definition was the current one.
 */
export function watchedSpans(
  { registration: { name }, facts }: SubscriptionView,
  nowUs: number,
): Span[] {
  const { definitions, gaps, uptimes, unprunedSinceUs } = facts;
  const definition = definitions.findLast((one) => one.subscription === name);
  if (definition === undefined) return [];
  const fromUs = Math.max(definition.fromUs, nowUs - historyUs, unprunedSinceUs);
  const notSent = gaps.filter(({ subscription }) => subscription === name);
  return without(uptimes, [
    { fromUs: 0, toUs: fromUs },
    { fromUs: nowUs, toUs: Number.POSITIVE_INFINITY },
    ...notSent.map((gap) => ({ fromUs: gap.fromUs, toUs: gap.toUs ?? nowUs })),
  ]);
}

/** Returns the compared hours since the start of the subscription, for all events, in no order. */
export function coverageOf({ registration: { name }, facts }: SubscriptionView): HourCoverage[] {
  const began = facts.definitions.find(({ subscription }) => subscription === name);
  const sinceUs = Math.max(facts.unprunedSinceUs, hourOf(began?.fromUs ?? 0));
  const hours = [...(facts.memory.coverage.get(name)?.values() ?? [])];
  return hours.filter((hour) => hour.hourUs >= sinceUs);
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
export type SendAlert = (
  channel: AlertChannel,
  message: AlertMessage,
  signal: AbortSignal,
) => Promise<void>;

export interface WatchDeps {
  completeness: CompletenessReader;
  alerts: Alerts;
  administration: AdministrationReader;
  sinks: SinkReader;
  backups: BackupReader;
  /** Log that sinks read, and their cursors. */
  notifications: Pick<NotificationLog, 'find'> & Pick<Cursors, 'cursor'>;
  deliveryState: () => DeliveryState;
  probes: Probes;
  /** Returns null when not known. `lastDeliveryAtUs` is the last delivery to its path; null for none. */
  lifetimes: (known: {
    registration: Registration;
    lastDeliveryAtUs: number | null;
    nowUs: number;
  }) => { pausesAtUs: number; cancelsAtUs: number } | null;
  /** Configured channels, possibly none. */
  channels: readonly AlertChannel[];
  sendAlert: SendAlert;
  nowUs: () => number;
  /** Returns a number in [0, 1), for jitter. */
  random: () => number;
  /** Resolves after a time, or at once when the signal is aborted. Never rejects. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
  log: Logger;
  /** True if maintenance resumes and recreates subscriptions automatically. */
  maintenance: boolean;
  /** True if hours are compared with the catalogue automatically. */
  reconcile: boolean;
  /** Interval of automatic backups; null when they are off. */
  backupEveryHours: number | null;
}
