/** Data on which the checks of subscriptions are based, read once per round. */
import type { AdministrationReader, Gap, Registration } from '../domain/account.ts';
import type { Alert, AlertChannel, AlertFinding, AlertKind, Alerts } from '../domain/alerts.ts';
import {
  type CompletenessReader,
  type Definition,
  type HourCoverage,
  hourUs,
  type Uptime,
} from '../domain/completeness.ts';
import { hourOf } from '../domain/coverage.ts';
import { shortDateUs, wholeDays } from '../domain/dates.ts';
import type { BackupReader, Cursors, DiskSpace, Logger, NotificationLog } from '../domain/ports.ts';
import type { QueueState } from '../domain/pull-queue.ts';
import type { DatabaseWarning, KnownNode } from '../domain/shared-log.ts';
import type { SinkReader } from '../domain/sinks.ts';
import type { CertificateStatus } from '../domain/status.ts';
import type { AlertMessage } from './alert-message.ts';
import {
  type Arrivals,
  clipped,
  historyUs,
  type PushMemory,
  refreshPushMemory,
  type Span,
  without,
} from './learn-rates.ts';

export interface Situation {
  nowUs: number;
  registrations: readonly Registration[];
  definitions: readonly Definition[];
  gaps: readonly Gap[];
  queues: readonly QueueState[];
  uptimes: readonly Uptime[];
  /** Time before which nothing is known, because it was pruned; 0 when nothing was pruned. */
  unprunedSinceUs: number;
  active: readonly Alert[];
  memory: PushMemory;
  /** Time of the last delivery, by subscription name. */
  deliveredAtUs: ReadonlyMap<string, number>;
}

/** Maximum number of active alerts; subscriptions and sinks are few. */
const activeMax = 1_000;

/** Reads the situation. Rejects with `unavailable`. */
export async function readSituation(
  { administration, completeness, alerts, nowUs }: WatchDeps,
  memory: PushMemory,
): Promise<Situation> {
  const now = nowUs();
  const registrations = await administration.registrations();
  const names = new Set(registrations.map(({ name }) => name));
  await refreshPushMemory(memory, completeness, { names, nowUs: now });
  const deliveredAtUs = new Map<string, number>();
  for (const { subscription, lastAtUs } of await administration.deliveryMarks()) {
    // A mark dated by a clock that ran ahead has no meaning.
    if (subscription === null || lastAtUs > now) continue;
    deliveredAtUs.set(subscription, Math.max(lastAtUs, deliveredAtUs.get(subscription) ?? 0));
  }
  return {
    nowUs: now,
    registrations,
    definitions: await completeness.definitions(),
    gaps: await administration.gaps(),
    queues: await administration.queues(),
    uptimes: await completeness.uptimes(now - historyUs),
    unprunedSinceUs: await completeness.unprunedSinceUs(),
    active: await alerts.alerts({ all: false, limit: activeMax }),
    memory,
    deliveredAtUs,
  };
}

/** Returns the time since the receiver started; infinite without a heartbeat. */
export function upForUs({ uptimes, nowUs }: Pick<Situation, 'uptimes' | 'nowUs'>): number {
  const up = uptimes.at(-1);
  return up === undefined ? Number.POSITIVE_INFINITY : nowUs - up.fromUs;
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
  { definitions, gaps, uptimes, unprunedSinceUs, nowUs }: Situation,
  subscription: string,
): Span[] {
  const definition = definitions.findLast((one) => one.subscription === subscription);
  if (definition === undefined) return [];
  const fromUs = Math.max(definition.fromUs, nowUs - historyUs, unprunedSinceUs);
  const notSent = gaps
    .filter((gap) => gap.subscription === subscription)
    .map((gap) => ({ fromUs: gap.fromUs, toUs: gap.toUs ?? nowUs }));
  return without(clipped(uptimes, fromUs, nowUs), clipped(notSent, fromUs, nowUs));
}

export function arrivalsOf({ memory }: Situation, subscription: string): Map<number, Arrivals> {
  return memory.arrivals.get(subscription) ?? new Map();
}

/** Returns the compared hours since the start of the subscription, for all events, in no order. */
export function coverageOf(
  { memory, unprunedSinceUs, definitions }: Situation,
  subscription: string,
): HourCoverage[] {
  const began = definitions.find((one) => one.subscription === subscription);
  const sinceUs = Math.max(unprunedSinceUs, hourOf(began?.fromUs ?? 0));
  const hours = [...(memory.coverage.get(subscription)?.values() ?? [])];
  return hours.filter((hour) => hour.hourUs >= sinceUs);
}

/**
 * Result of checks. An active alert that is checked and no longer found is resolved; one that is not checked does not
 * change.
 */
export interface CheckResult {
  checked: readonly Pick<AlertFinding, 'kind' | 'subject'>[];
  findings: readonly AlertFinding[];
}

export const notChecked: CheckResult = { checked: [], findings: [] };

/** Returns the possible results of a check for one kind and subject, and the active alert, if any. */
export function checkOf(
  kind: AlertKind,
  subject: string,
  { active = [] }: Partial<Pick<Situation, 'active'>> = {},
) {
  const checked = [{ kind, subject }];
  return {
    alert: active.find((one) => one.kind === kind && one.subject === subject),
    fine: { checked, findings: [] } satisfies CheckResult,
    found: (finding: Omit<AlertFinding, 'kind' | 'subject'>): CheckResult => ({
      checked,
      findings: [{ kind, subject, ...finding }],
    }),
  };
}

export function joinResults(results: readonly CheckResult[]): CheckResult {
  return {
    checked: results.flatMap(({ checked }) => checked),
    findings: results.flatMap(({ findings }) => findings),
  };
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

/** State of the delivery to sinks in this process. */
export interface DeliveryState {
  /** Names of the configured sinks; null when not known. */
  names: readonly string[] | null;
  /** Kinds of the targets (`webhook`), by name; a faulty sink has none. */
  kinds?: ReadonlyMap<string, string>;
  /** Reasons why nothing can be delivered to single sinks, by name, without secrets. */
  faults?: ReadonlyMap<string, string>;
  /** Reason why nothing can be delivered to any sink, without secrets; null when deliveries are possible. */
  fault: string | null;
  /**
   * Reason why the current `earshot.config.ts` is rejected and the previous version stays in effect, without secrets.
   */
  rejected?: string | null;
}

/** Times at which the catalogue will pause or delete a subscription (specification, Limits). */
interface Lifetimes {
  pausesAtUs: number;
  cancelsAtUs: number;
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
  }) => Lifetimes | null;
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

/** Markup characters, and similar characters without a function. */
const harmless: ReadonlyMap<string, string> = new Map([
  ['[', '('],
  [']', ')'],
  ['`', "'"],
  ['*', '∗'],
  ['_', '‗'],
  ['~', '∼'],
  ['|', '∣'],
]);

/** Within a word, `_` has no function and is common in names. */
const marks = /[[\]`*~|]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu;

/** Removes markup from text of services and programs. Control characters stay. */
export function quoted(text: string): string {
  return text.replaceAll(marks, (mark) => harmless.get(mark) ?? '').replaceAll('://', ' : //');
}

export const minuteUs = 60_000_000;

export const dayUs = 24 * hourUs;

/** Formats a time: `2026-05-01 14:20 UTC`. */
export function momentText(us: number): string {
  return `${shortDateUs(us)} UTC`;
}

/** Formats a duration, with whole days: `40 s`, `40 min`, `9.5 h` or `12 days`. */
export function lengthText(us: number): string {
  if (us < minuteUs) return `${Math.max(0, Math.floor(us / 1_000_000))} s`;
  if (us < 2 * hourUs) return `${Math.round(us / minuteUs)} min`;
  if (us < 2 * dayUs) return `${rounded(us / hourUs)} h`;
  return `${wholeDays(us)} days`;
}

/** Formats an age: `just now` or `40 min ago`. */
export function agoText(us: number): string {
  return us < minuteUs ? 'just now' : `${lengthText(us)} ago`;
}

/** Formats a share: `5 %` or `0.1 %`. */
export function percentText(share: number): string {
  const percent = share * 100;
  return `${percent < 1 ? Number(percent.toPrecision(1)) : rounded(percent)} %`;
}

/** Formats a count: `1,234`. */
export function countText(count: number): string {
  return count.toLocaleString('en-US');
}

/** Rounds a number for people: `0.4`, `12`, `1300`. */
export function rounded(value: number): string {
  return String(value < 10 ? Math.round(value * 10) / 10 : Math.round(value));
}
