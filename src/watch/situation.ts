/** The facts that the checks of subscriptions rest on, read once in each round. */
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
  uptimes: readonly Uptime[];
  /** Of what came before, nothing can be said, as it was pruned; 0 where nothing ever was. */
  unprunedSinceUs: number;
  active: readonly Alert[];
  memory: PushMemory;
  /** Last delivery by a subscription's name. */
  deliveredAtUs: ReadonlyMap<string, number>;
}

/** More alerts than these do not last at a time: subscriptions and sinks are few. */
const activeMax = 1_000;

/** Rejects with `unavailable`. */
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
    // A mark of a clock that was ahead says nothing.
    if (subscription === null || lastAtUs > now) continue;
    deliveredAtUs.set(subscription, Math.max(lastAtUs, deliveredAtUs.get(subscription) ?? 0));
  }
  return {
    nowUs: now,
    registrations,
    definitions: await completeness.definitions(),
    gaps: await administration.gaps(),
    uptimes: await completeness.uptimes(now - historyUs),
    unprunedSinceUs: await completeness.unprunedSinceUs(),
    active: await alerts.alerts({ all: false, limit: activeMax }),
    memory,
    deliveredAtUs,
  };
}

/** Since this program started; without a sign of its life, for long. */
export function upForUs({ uptimes, nowUs }: Pick<Situation, 'uptimes' | 'nowUs'>): number {
  const up = uptimes.at(-1);
  return up === undefined ? Number.POSITIVE_INFINITY : nowUs - up.fromUs;
}

/** Whether pushes of it are to be expected now. */
export function isRunning(registration: Registration): boolean {
  const { status, subscriptionId, pausedSeenAtUs, unfinished } = registration;
  return status === 'running' && subscriptionId !== null && pausedSeenAtUs === null && !unfinished;
}

/** When its pushes could have come and would be here: we were up, it ran, and it asked for what it asks for now. */
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

/** Compared hours since the subscription began, those of all events, in no order. */
export function coverageOf(
  { memory, unprunedSinceUs, definitions }: Situation,
  subscription: string,
): HourCoverage[] {
  const began = definitions.find((one) => one.subscription === subscription);
  const sinceUs = Math.max(unprunedSinceUs, hourOf(began?.fromUs ?? 0));
  const hours = [...(memory.coverage.get(subscription)?.values() ?? [])];
  return hours.filter((hour) => hour.hourUs >= sinceUs);
}

/** An active alert that is checked and no longer found is resolved; one that is not checked is left as it is. */
export interface CheckResult {
  checked: readonly Pick<AlertFinding, 'kind' | 'subject'>[];
  findings: readonly AlertFinding[];
}

export const notChecked: CheckResult = { checked: [], findings: [] };

/** The results of a check with one kind of alert and subject, and its alert where one is active. */
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

/** What is measured outside the store. A probe that rejects could not look; the others still do. */
export interface Probes {
  /** The certificate that the public listener shows; null where there is none to check, its times before the first. */
  certificate(): Promise<Certificate | null>;
  /** The file system of the data directory; null when the system does not say. */
  disk(): Promise<DiskSpace | null>;
  /** Why notifications cannot be stored; null when they can. */
  intake(): Promise<string | null>;
}

/** How this program hands over to sinks. */
export interface DeliveryState {
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
interface Lifetimes {
  pausesAtUs: number;
  cancelsAtUs: number;
}

/**
 * Tells one message through one channel. Rejects, with words that hold no secret, when it was not taken;
 * ends early when the signal is aborted.
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
  /** The log that sinks read, and where each has got to. */
  notifications: Pick<NotificationLog, 'find'> & Pick<Cursors, 'cursor'>;
  deliveryState: () => DeliveryState;
  probes: Probes;
  /** Null when it is not known. `lastDeliveryAtUs` is the last delivery to its path; null for none. */
  lifetimes: (known: {
    registration: Registration;
    lastDeliveryAtUs: number | null;
    nowUs: number;
  }) => Lifetimes | null;
  /** The channels that are set up; none is fine. */
  channels: readonly AlertChannel[];
  sendAlert: SendAlert;
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

/** Marks of markup, and what looks like them and means nothing. */
const harmless: ReadonlyMap<string, string> = new Map([
  ['[', '('],
  [']', ')'],
  ['`', "'"],
  ['*', '∗'],
  ['_', '‗'],
  ['~', '∼'],
  ['|', '∣'],
]);

/** Within a word, `_` marks nothing, and stands in many names. */
const marks = /[[\]`*~|]|(?<![\p{L}\p{N}])_|_(?![\p{L}\p{N}])/gu;

/** For answers of services, errors of programs and the like. Control characters are left as they are. */
export function quoted(words: string): string {
  return words.replaceAll(marks, (mark) => harmless.get(mark) ?? '').replaceAll('://', ' : //');
}

export const minuteUs = 60_000_000;

export const dayUs = 24 * hourUs;

/** Such as `2026-05-01 14:20 UTC`. */
export function momentText(us: number): string {
  return `${shortDateUs(us)} UTC`;
}

/** Such as `40 s`, `40 min`, `9.5 h` or `12 days`. Days are whole. */
export function lengthText(us: number): string {
  if (us < minuteUs) return `${Math.max(0, Math.floor(us / 1_000_000))} s`;
  if (us < 2 * hourUs) return `${Math.round(us / minuteUs)} min`;
  if (us < 2 * dayUs) return `${rounded(us / hourUs)} h`;
  return `${wholeDays(us)} days`;
}

/** Such as `just now` or `40 min ago`. */
export function agoText(us: number): string {
  return us < minuteUs ? 'just now' : `${lengthText(us)} ago`;
}

/** Such as `5 %` or `0.1 %`. */
export function percentText(share: number): string {
  const percent = share * 100;
  return `${percent < 1 ? Number(percent.toPrecision(1)) : rounded(percent)} %`;
}

/** Such as `1,234`. */
export function countText(count: number): string {
  return count.toLocaleString('en-US');
}

/** A number of which only the size matters: `0.4`, `12`, `1300`. */
export function rounded(value: number): string {
  return String(value < 10 ? Math.round(value * 10) / 10 : Math.round(value));
}
