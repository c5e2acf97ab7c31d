/**
 * The watchdog: a background job of the receiver that checks every minute and sends alerts, without delaying other
 * work.
 */

import { pause } from '../../core/cli/io.ts';
import {
  errorFields,
  type Job,
  type JobDeps,
  type JobOptions,
  startJob,
} from '../../core/host/job.ts';
import {
  type AnyWatch,
  loadStatusParts,
  type Named,
  type StatusPart,
  type StatusSources,
} from '../../core/status/status.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { minuteUs, weekUs } from '../../core/terms/dates.ts';
import type { Alert, AlertFinding, Check, Result } from '../../core/terms/evaluation.ts';
import type { JobContext } from '../../receiver/slots.ts';
import { alertSenders, channelsOf, type DeliveryDeps, deliverDue, sendUnstored } from './notify.ts';
import { type Alerts, activeMax } from './terms.ts';

/** Checks what the parts of the status watch. Alerts advise according to the jobs that run. */
export async function serveWatchdog({
  receiver: { store, statusSources: sources },
  settings,
  jobs,
  log,
  io,
}: JobContext): Promise<Job> {
  const { nowUs, random } = io;
  const running = { store, job: (name: string) => jobs.get(name) };
  return startWatchdog({
    parts: await loadStatusParts(io.features),
    sources: { ...sources, running },
    alerts: store.alerts,
    senders: alertSenders(settings, io),
    ...{ nowUs, random, pause, log },
  });
}

/** Ports and settings of the watchdog. */
export interface WatchDeps extends DeliveryDeps {
  /** Sources of the parts. */
  sources: StatusSources;
  parts: readonly StatusPart[];
  alerts: Alerts;
  pause: JobDeps['pause'];
}

/** Intervals, shorter in tests. All are jittered by a tenth. */
const defaultTiming = {
  /** Delay after the start, so that parts that need time to start are not checked too early. */
  firstMs: 30_000,
  intervalMs: 60_000,
  /** Interval between checks for unsent alerts. */
  deliveryIntervalMs: 10_000,
};

/** Work in progress when the process ends may be interrupted at any time: it is repeated after the next start. */
const stopGraceMs = 3_000;

/**
 * Starts checking and sending. Each channel has its own job, so that a blocked one delays no other. Failures are
 * logged and retried in the next round.
 */
export function startWatchdog(deps: WatchDeps, timing: Partial<typeof defaultTiming> = {}): Job {
  const { firstMs, intervalMs, deliveryIntervalMs } = { ...defaultTiming, ...timing };
  const memory = createWatchMemory(deps);
  const jobs: JobOptions[] = [
    {
      every: { firstMs, intervalMs },
      run: (signal) => watchOnce(deps, memory, signal),
      failed: 'watchdog round failed',
    },
    ...channelsOf(deps.senders).map((channel) => {
      const state = { channel, failed: new Map() };
      return {
        every: { firstMs: deliveryIntervalMs, intervalMs: deliveryIntervalMs },
        run: (signal: AbortSignal) => deliverDue(deps, state, signal),
        failed: `failed to process alerts for the ${channel}`,
      };
    }),
  ];
  const started = jobs.map((job) => startJob({ ...job, stopGraceMs }, deps));
  return { stop: async () => void (await Promise.all(started.map((job) => job.stop()))) };
}

/** State kept between rounds. State that must survive a restart is in the store. */
export function createWatchMemory({ parts, sources }: Pick<WatchDeps, 'parts' | 'sources'>) {
  return {
    /** Parts that keep what they have read. */
    opened: parts.map((part) => part.open(sources)),
    /** Since when a subject has a problem, or has none, by kind and subject. */
    since: new Map<string, { hasProblem: boolean; atUs: number }>(),
    /** Times at which unstored alerts were sent, by channel, kind and subject. */
    sentAtUs: new Map<string, number>(),
  };
}

type WatchMemory = ReturnType<typeof createWatchMemory>;

/** Maximum age of the last heartbeat, which is written every minute. */
const heartbeatUs = 10 * minuteUs;

/**
 * Runs one round and stores the findings. Never rejects: failures are logged, and alerts that could not be checked do
 * not change. Parts read weeks with a new `memory`; pass the same one each time. The signal ends a delivery in
 * progress.
 */
export async function watchOnce(
  deps: WatchDeps,
  memory = createWatchMemory(deps),
  signal: AbortSignal = new AbortController().signal,
): Promise<void> {
  const { alerts, senders, log } = deps;
  const nowUs = deps.nowUs();
  const results = { active: [], findings: [], checked: [] };
  const round: Round = { deps, memory, nowUs, upSinceUs: nowUs, ...results };
  try {
    round.active = await alerts.alerts({ all: false, limit: activeMax });
    const last = (await deps.sources.store.completeness.uptimes(nowUs - weekUs)).at(-1);
    if (last !== undefined && nowUs - last.toUs <= heartbeatUs) round.upSinceUs = last.fromUs;
  } catch (error) {
    // Without the active alerts, findings may be raised, but nothing is resolved.
    log.error(errorFields(error), 'watchdog failed to read the active alerts');
  }
  const watches = memory.opened.flatMap(({ watch }) => watch?.(nowUs) ?? []);
  await Promise.all(watches.map((one) => checkThings(one, round)));
  const { findings, checked } = round;
  if (findings.length + checked.length === 0) return;
  const channels = channelsOf(senders);
  try {
    const changed = await alerts.settleFindings({ checked, findings, channels, atUs: nowUs });
    for (const { id, raisedAtUs, resolvedAtUs, ...fields } of changed.raised) {
      log.warn(fields, 'alert raised');
    }
    for (const { kind, subject, text } of changed.resolved) {
      log.info({ kind, subject, text }, 'alert resolved');
    }
  } catch (error) {
    log.error(errorFields(error), 'failed to store alerts');
    await sendUnstored(findings, deps, memory.sentAtUs, signal);
  }
}

/** Facts and results of a round. */
interface Round {
  deps: WatchDeps;
  memory: WatchMemory;
  nowUs: number;
  upSinceUs: number;
  active: readonly Alert[];
  findings: AlertFinding[];
  /** Active alerts to be resolved, unless their problem is in the findings. */
  checked: Alert[];
}

/** Timeout for reading the subjects of a check. */
const readTimeoutMs = 20_000;

/** Applies the checks to all subjects. Checks nothing when these cannot be read in time. Never rejects. */
async function checkThings({ checks, read }: AnyWatch, round: Round): Promise<void> {
  const { pause, log } = round.deps;
  const enough = new AbortController();
  try {
    const timeout = pause(readTimeoutMs, enough.signal);
    const things = await Promise.race([read(), timeout]);
    if (things === undefined) throw new AppError('unavailable', 'The check timed out.');
    // A watch reads what its checks apply to.
    for (const one of checks) settle(one, things as Named<never>, round);
  } catch (error) {
    const kinds = checks.map(({ kind }) => kind);
    log.warn({ kinds, ...errorFields(error) }, 'watchdog probe failed');
  } finally {
    enough.abort();
  }
}

/**
 * Selects the problems that have existed long enough for an alert, and the active alerts to be resolved: those whose
 * subject was checked, or no longer exists, and whose problem has been gone long enough.
 */
function settle<Thing>(
  { kind, check, resolveAfterUs }: Check<Thing>,
  things: Named<Thing>,
  { memory: { since }, nowUs, upSinceUs, active, findings, checked }: Round,
): void {
  const own = active.filter((alert) => alert.kind === kind);
  const alerts = new Map(own.map((alert) => [alert.subject, alert]));
  const results = new Map<string, Result>(own.map(({ subject }) => [subject, null]));
  for (const [name, thing] of things) {
    results.set(name, check(thing, { nowUs, upSinceUs, alert: alerts.get(name) }));
  }
  for (const [subject, result] of results) {
    if (result === 'unchecked') continue;
    const [key, alert] = [`${kind} ${subject}`, alerts.get(subject)];
    // The time starts again when a problem appears or is gone.
    const before = since.get(key);
    const sameUs = before?.hasProblem === (result !== null) ? before.atUs : nowUs;
    const atUs = Math.min(nowUs, sameUs, result?.sinceUs ?? nowUs);
    since.set(key, { hasProblem: result !== null, atUs });
    if (result !== null) {
      const { raiseAfterUs = 0, sinceUs: _, ...finding } = result;
      const isDue = alert !== undefined || nowUs - atUs >= raiseAfterUs;
      if (isDue) findings.push({ kind, subject, ...finding });
    } else if (alert !== undefined && nowUs - atUs >= resolveAfterUs) checked.push(alert);
  }
}
