/**
 * The watchdog: a background job of the receiver that checks every minute and sends alerts, without delaying other
 * work.
 */
import { type Alert, type AlertFinding, alertChannels } from '../domain/alerts.ts';
import { AppError } from '../domain/app-error.ts';
import { errorFields, type Job, startJob } from '../domain/job.ts';
import { missingRow, queueReaderRow, queueRow } from './check-events.ts';
import {
  backupRow,
  certificateRow,
  databaseRow,
  diskRow,
  intakeRow,
  receiverRow,
} from './check-machine.ts';
import { type CursorMemory, readSinks, sinkRows } from './check-sinks.ts';
import { lifetimeRow, lostPushesRow, notRunningRow, silenceRow } from './check-subscriptions.ts';
import { deliverDue, sendUnstored } from './notify.ts';
import { createPushMemory, historyUs, type PushMemory, refreshPushMemory } from './pushes.ts';
import type { AlertRow, Result, SubscriptionView, WatchDeps } from './situation.ts';

/** Intervals, shorter in tests. All are jittered by a tenth. */
interface WatchTiming {
  /** Delay after the start, so that parts that need time to start are not checked too early. */
  firstMs: number;
  intervalMs: number;
  /** Interval between checks for due deliveries. */
  deliveryIntervalMs: number;
}

const defaultTiming: WatchTiming = {
  firstMs: 30_000,
  intervalMs: 60_000,
  deliveryIntervalMs: 10_000,
};

/** Work in progress when the process ends may be interrupted at any time: it is repeated after the next start. */
const stopGraceMs = 3_000;

/**
 * Starts checking and sending. Each channel has its own job, so that a blocked one delays no other. Failures are
 * logged and retried in the next round.
 */
export function startWatchdog(deps: WatchDeps, timing: Partial<WatchTiming> = {}): Job {
  const { firstMs, intervalMs, deliveryIntervalMs } = { ...defaultTiming, ...timing };
  const memory = createWatchMemory();
  const rounds = {
    every: { firstMs, intervalMs },
    run: (signal: AbortSignal) => watchOnce(deps, memory, signal),
    failed: roundFailed,
    stopGraceMs,
  };
  // Includes channels that are no longer configured: their deliveries are given up.
  const deliveries = alertChannels.map((channel) => ({
    every: { firstMs: deliveryIntervalMs, intervalMs: deliveryIntervalMs },
    run: (signal: AbortSignal) => deliverDue(deps, channel, signal),
    failed: 'failed to process alert deliveries',
    fields: { channel },
    stopGraceMs,
  }));
  const jobs = [rounds, ...deliveries].map((job) => startJob(job, deps));
  return {
    stop: async () => {
      await Promise.all(jobs.map((job) => job.stop()));
    },
  };
}

const roundFailed = 'watchdog round failed';

/** State kept between rounds. State that must survive a restart is in the store. */
export interface WatchMemory {
  pushes: PushMemory;
  cursors: CursorMemory;
  /** Times since which a problem exists, or is gone while its alert is active, by kind and subject. */
  foundUs: Map<string, number>;
  goneUs: Map<string, number>;
  /** Times at which unstored alerts were sent, by channel, kind and subject. */
  sentAtUs: Map<string, number>;
}

export function createWatchMemory(): WatchMemory {
  const [foundUs, goneUs, sentAtUs] = [new Map(), new Map(), new Map()];
  return { pushes: createPushMemory(), cursors: new Map(), foundUs, goneUs, sentAtUs };
}

/** Maximum number of active alerts; subscriptions and sinks are few. */
const activeMax = 1_000;

/**
 * Runs one round and stores the findings. Never rejects: failures are logged, and alerts that could not be checked do
 * not change. Reads 13 weeks with a new `memory`; pass the same one each time. The signal ends a delivery in
 * progress.
 */
export async function watchOnce(
  deps: WatchDeps,
  memory = createWatchMemory(),
  signal: AbortSignal = new AbortController().signal,
): Promise<void> {
  const { alerts, channels, nowUs, log } = deps;
  const round: Round = { findings: [], checked: [], active: [], nowUs: nowUs(), upSinceUs: 0 };
  try {
    round.active = await alerts.alerts({ all: false, limit: activeMax });
    round.upSinceUs =
      (await deps.completeness.uptimes(round.nowUs - historyUs)).at(-1)?.fromUs ?? 0;
  } catch (error) {
    // Without the active alerts, findings may be raised, but nothing is resolved.
    log.error(errorFields(error), 'watchdog failed to read the active alerts');
  }
  await checkAll(deps, memory, round);
  const { findings, checked } = round;
  try {
    const changed = await alerts.settleFindings({ checked, findings, channels, atUs: nowUs() });
    for (const { kind, subject, severity, cause, evidence, nextStep } of changed.raised) {
      log.warn({ kind, subject, severity, cause, evidence, nextStep }, 'alert raised');
    }
    for (const { kind, subject, cause } of changed.resolved) {
      log.info({ kind, subject, cause }, 'alert resolved');
    }
  } catch (error) {
    log.error(errorFields(error), 'failed to store alerts');
    await sendUnstored(findings, deps, memory.sentAtUs, signal);
  }
}

/** Facts and results of a round. */
interface Round {
  nowUs: number;
  active: readonly Alert[];
  upSinceUs: number;
  findings: AlertFinding[];
  /** Active alerts to be resolved, unless their problem is in the findings. */
  checked: Alert[];
}

type Named<Subject> = readonly (readonly [name: string, subject: Subject])[];

/** The subject of checks of which there is only one has no name. */
const single = async <Subject>(read: Promise<Subject>): Promise<Named<Subject>> => [
  ['', await read],
];

async function checkAll(deps: WatchDeps, memory: WatchMemory, round: Round): Promise<void> {
  const { probes, backups, backupEveryHours: everyHours } = deps;
  const check = <Subject>(rows: AlertRow<Subject>[], read: () => Promise<Named<Subject>>) =>
    checkSubjects(rows, read, { deps, memory, round });
  const subscriptionRows = [
    ...[silenceRow, lostPushesRow, missingRow, lifetimeRow, notRunningRow],
    ...[queueRow, queueReaderRow],
  ];
  await Promise.all([
    check(subscriptionRows, () => readSubscriptions(deps, memory.pushes, round.nowUs)),
    check([certificateRow], () => single(probes.certificate())),
    check([diskRow], () => single(probes.disk())),
    check([intakeRow], () => single(probes.intake())),
    check([receiverRow], async () => {
      const { ownId, nodes } = (await probes.receivers?.()) ?? { ownId: '', nodes: [] };
      return nodes.filter(({ id }) => id !== ownId).map((node) => [node.name, node]);
    }),
    check([databaseRow], async () => [['', probes.databaseWarnings?.() ?? []]]),
    check([backupRow], async () => [['', { ...(await backups.lastBackups()), everyHours }]]),
    check(sinkRows, () => readSinks(deps, round.nowUs, memory.cursors)),
  ]);
}

/** Timeout for reading the subjects of a check. */
const readTimeoutMs = 20_000;

/** Applies the checks to all subjects. Checks nothing when these cannot be read in time. Never rejects. */
async function checkSubjects<Subject>(
  rows: readonly AlertRow<Subject>[],
  read: () => Promise<Named<Subject>>,
  { deps, memory, round }: { deps: WatchDeps; memory: WatchMemory; round: Round },
): Promise<void> {
  const enough = new AbortController();
  try {
    const timeout = deps.pause(readTimeoutMs, enough.signal);
    const subjects = await Promise.race([read(), timeout]);
    if (subjects === undefined) throw new AppError('unavailable', 'The check timed out.');
    for (const row of rows) settle(row, subjects, memory, round);
  } catch (error) {
    const kinds = rows.map(({ kind }) => kind);
    deps.log.warn({ kinds, ...errorFields(error) }, 'watchdog probe failed');
  } finally {
    enough.abort();
  }
}

/**
 * Selects the problems that have existed long enough for an alert, and the active alerts to be resolved: those whose
 * subject was checked, or no longer exists, and whose problem has been gone long enough.
 */
function settle<Subject>(
  row: AlertRow<Subject>,
  subjects: Named<Subject>,
  { foundUs, goneUs }: WatchMemory,
  { nowUs, active, upSinceUs, findings, checked }: Round,
): void {
  const { kind, resolveAfterUs = 0 } = row;
  const alerts = new Map(
    active.filter((one) => one.kind === kind).map((alert) => [alert.subject, alert]),
  );
  let results = new Map<string, Result>(
    subjects.map(([name, subject]) => {
      return [name, row.check(subject, { nowUs, upSinceUs, alert: alerts.get(name) })];
    }),
  );
  const common = row.common?.(subjects, results) ?? null;
  if (common !== null) {
    results = new Map([...results].filter(([name]) => alerts.has(name)));
    results.set('', common);
  }
  for (const subject of new Set([
    ...subjects.map(([name]) => name),
    ...alerts.keys(),
    ...results.keys(),
  ])) {
    const key = `${kind} ${subject}`;
    const result = results.get(subject) ?? null;
    const alert = alerts.get(subject);
    if (result === 'unchecked') continue;
    if (result === null) {
      foundUs.delete(key);
      const isGone = nowUs - sinceOf(goneUs, key, nowUs) >= resolveAfterUs;
      if (alert !== undefined && isGone) checked.push(alert);
      continue;
    }
    goneUs.delete(key);
    const { raiseAfterUs = 0, sinceUs = nowUs, ...finding } = result;
    const startUs = Math.min(sinceUs, sinceOf(foundUs, key, nowUs));
    if (alert !== undefined || nowUs - startUs >= raiseAfterUs) {
      findings.push({ kind, subject, ...finding });
    }
  }
}

/** Returns the time since which a state is known, and remembers it. */
function sinceOf(times: Map<string, number>, key: string, nowUs: number): number {
  const startUs = Math.min(times.get(key) ?? nowUs, nowUs);
  times.set(key, startUs);
  return startUs;
}

/** Reads all subscriptions, by name. Rejects with `unavailable`. */
async function readSubscriptions(
  { administration, completeness, maintenance, reconcile, lifetimes }: WatchDeps,
  memory: PushMemory,
  nowUs: number,
): Promise<Named<SubscriptionView>> {
  const registrations = await administration.registrations();
  const names = new Set(registrations.map(({ name }) => name));
  await refreshPushMemory(memory, completeness, { names, nowUs });
  const deliveredAtUs = new Map<string, number>();
  for (const { subscription, lastAtUs } of await administration.deliveryMarks()) {
    // A mark dated by a clock that ran ahead has no meaning.
    if (subscription === null || lastAtUs > nowUs) continue;
    deliveredAtUs.set(subscription, Math.max(lastAtUs, deliveredAtUs.get(subscription) ?? 0));
  }
  const facts = {
    definitions: await completeness.definitions(),
    gaps: await administration.gaps(),
    queues: await administration.queues(),
    uptimes: await completeness.uptimes(nowUs - historyUs),
    unprunedSinceUs: await completeness.unprunedSinceUs(),
    ...{ memory, deliveredAtUs, maintenance, reconcile, lifetimes },
  };
  return registrations.map((registration) => [registration.name, { registration, facts }]);
}
