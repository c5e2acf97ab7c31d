/**
 * The watchdog: a background job of the receiver that checks every minute and sends alerts, without delaying other
 * work.
 */
import { type Alert, type AlertFinding, alertChannels } from '../domain/alerts.ts';
import { AppError } from '../domain/app-error.ts';
import { hourOf } from '../domain/coverage.ts';
import { errorFields, type Job, type JobOptions, startJob } from '../domain/job.ts';
import { minuteUs } from '../domain/time-units.ts';
import { missingRow, queueReaderRow, queueRow } from './check-events.ts';
import {
  backupRow,
  certificateRow,
  databaseRow,
  diskRow,
  intakeRow,
  receiverRow,
} from './check-machine.ts';
import { readSinks, sinkRows } from './check-sinks.ts';
import { lifetimeRow, lostPushesRow, notRunningRow, silenceRow } from './check-subscriptions.ts';
import { channelsOf, deliverDue, sendUnstored } from './notify.ts';
import {
  createPushMemory,
  historyUs,
  type PushMemory,
  refreshPushMemory,
  without,
} from './pushes.ts';
import type { AlertRow, Result, SubscriptionView, WatchDeps } from './situation.ts';

/** Intervals, shorter in tests. All are jittered by a tenth. */
const defaultTiming = {
  /** Delay after the start, so that parts that need time to start are not checked too early. */
  firstMs: 30_000,
  intervalMs: 60_000,
  /** Interval between checks for due deliveries. */
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
  const memory = createWatchMemory();
  const jobs: JobOptions[] = [
    {
      every: { firstMs, intervalMs },
      run: (signal) => watchOnce(deps, memory, signal),
      failed: 'watchdog round failed',
    },
    // Includes channels that are no longer configured: their deliveries are given up.
    ...alertChannels.map((channel) => ({
      every: { firstMs: deliveryIntervalMs, intervalMs: deliveryIntervalMs },
      run: (signal: AbortSignal) => deliverDue(deps, channel, signal),
      failed: `failed to process alert deliveries to the ${channel}`,
    })),
  ];
  const started = jobs.map((job) => startJob({ ...job, stopGraceMs }, deps));
  return { stop: async () => void (await Promise.all(started.map((job) => job.stop()))) };
}

/** State kept between rounds. State that must survive a restart is in the store. */
export function createWatchMemory() {
  return {
    pushes: createPushMemory(),
    /** Since when a subject has a problem, or has none, by kind and subject. */
    since: new Map<string, { hasProblem: boolean; atUs: number }>(),
    /** Times at which unstored alerts were sent, by channel, kind and subject. */
    sentAtUs: new Map<string, number>(),
  };
}

type WatchMemory = ReturnType<typeof createWatchMemory>;

/** Maximum number of active alerts; subscriptions and sinks are few. */
const activeMax = 1_000;

/** Maximum age of the last heartbeat, which is written every minute. */
const heartbeatUs = 10 * minuteUs;

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
  const { alerts, senders, log } = deps;
  const nowUs = deps.nowUs();
  const results = { active: [], findings: [], checked: [] };
  const round: Round = { deps, memory, nowUs, upSinceUs: nowUs, ...results };
  try {
    round.active = await alerts.alerts({ all: false, limit: activeMax });
    const last = (await deps.completeness.uptimes(nowUs - historyUs)).at(-1);
    if (last !== undefined && nowUs - last.toUs <= heartbeatUs) round.upSinceUs = last.fromUs;
  } catch (error) {
    // Without the active alerts, findings may be raised, but nothing is resolved.
    log.error(errorFields(error), 'watchdog failed to read the active alerts');
  }
  await checkAll(round);
  const { findings, checked } = round;
  const channels = channelsOf(senders);
  try {
    const changed = await alerts.settleFindings({ checked, findings, channels, atUs: nowUs });
    for (const { id, raisedAtUs, resolvedAtUs, ...fields } of changed.raised) {
      log.warn(fields, 'alert raised');
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
  deps: WatchDeps;
  memory: WatchMemory;
  nowUs: number;
  upSinceUs: number;
  active: readonly Alert[];
  findings: AlertFinding[];
  /** Active alerts to be resolved, unless their problem is in the findings. */
  checked: Alert[];
}

/** Subjects by name. The subject of checks of which there is only one has no name. */
type Named<Subject> = readonly (readonly [name: string, subject: Subject])[];

async function checkAll(round: Round): Promise<void> {
  const { deps, memory, nowUs } = round;
  const { probes, backups, backupEveryHours: everyHours } = deps;
  const check = <Subject>(rows: AlertRow<Subject>[], read: () => Promise<Named<Subject>>) =>
    checkSubjects(rows, read, round);
  const single = <Subject>(row: AlertRow<Subject>, read: () => Promise<Subject>) =>
    check([row], async () => [['', await read()]]);
  const pushRows = [silenceRow, lostPushesRow, missingRow, lifetimeRow, notRunningRow];
  const subscriptionRows = [...pushRows, queueRow, queueReaderRow];
  await Promise.all([
    check(subscriptionRows, () => readSubscriptions(deps, memory.pushes, nowUs)),
    check(sinkRows, () => readSinks(deps)),
    check([receiverRow], async () => {
      const { ownId, nodes } = (await probes.receivers?.()) ?? { ownId: '', nodes: [] };
      return nodes.filter(({ id }) => id !== ownId).map((node) => [node.name, node]);
    }),
    single(certificateRow, () => probes.certificate()),
    single(diskRow, () => probes.disk()),
    single(intakeRow, () => probes.intake()),
    single(databaseRow, async () => probes.databaseWarnings?.() ?? []),
    single(backupRow, async () => ({ ...(await backups.lastBackups()), everyHours })),
  ]);
}

/** Timeout for reading the subjects of a check. */
const readTimeoutMs = 20_000;

/** Applies the checks to all subjects. Checks nothing when these cannot be read in time. Never rejects. */
async function checkSubjects<Subject>(
  rows: readonly AlertRow<Subject>[],
  read: () => Promise<Named<Subject>>,
  round: Round,
): Promise<void> {
  const { pause, log } = round.deps;
  const enough = new AbortController();
  try {
    const timeout = pause(readTimeoutMs, enough.signal);
    const subjects = await Promise.race([read(), timeout]);
    if (subjects === undefined) throw new AppError('unavailable', 'The check timed out.');
    for (const row of rows) settle(row, subjects, round);
  } catch (error) {
    const kinds = rows.map(({ kind }) => kind);
    log.warn({ kinds, ...errorFields(error) }, 'watchdog probe failed');
  } finally {
    enough.abort();
  }
}

/**
 * Selects the problems that have existed long enough for an alert, and the active alerts to be resolved: those whose
 * subject was checked, or no longer exists, and whose problem has been gone long enough.
 */
function settle<Subject>(
  { kind, check, resolveAfterUs }: AlertRow<Subject>,
  subjects: Named<Subject>,
  { memory: { since }, nowUs, upSinceUs, active, findings, checked }: Round,
): void {
  const own = active.filter((alert) => alert.kind === kind);
  const alerts = new Map(own.map((alert) => [alert.subject, alert]));
  const results = new Map<string, Result>(own.map(({ subject }) => [subject, null]));
  for (const [name, subject] of subjects) {
    results.set(name, check(subject, { nowUs, upSinceUs, alert: alerts.get(name) }));
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

/** Reads all subscriptions, by name. Rejects with `unavailable`. */
async function readSubscriptions(
  { administration, completeness, lifetimes, maintenance, reconcile }: WatchDeps,
  memory: PushMemory,
  nowUs: number,
): Promise<Named<SubscriptionView>> {
  await refreshPushMemory(memory, completeness, nowUs);
  const uptimes = await completeness.uptimes(nowUs - historyUs);
  const unprunedSinceUs = await completeness.unprunedSinceUs();
  const definitions = await completeness.definitions();
  const gaps = await administration.gaps();
  const queues = await administration.queues();
  const marks = await administration.deliveryMarks();
  return (await administration.registrations()).map((registration) => {
    const { name, type } = registration;
    const ofThis = <One extends { subscription: string | null }>(all: Iterable<One>) =>
      [...all].filter(({ subscription }) => subscription === name);
    const known = ofThis(definitions);
    const knownSinceUs = Math.max(unprunedSinceUs, hourOf(known[0]?.fromUs ?? nowUs));
    const definedUs = Math.max(unprunedSinceUs, known.at(-1)?.fromUs ?? nowUs, nowUs - historyUs);
    const watched = without(uptimes, [
      { fromUs: 0, toUs: definedUs },
      { fromUs: nowUs, toUs: Number.POSITIVE_INFINITY },
      ...ofThis(gaps).map(({ fromUs, toUs }) => ({ fromUs, toUs: toUs ?? nowUs })),
    ]);
    // A mark dated by a clock that ran ahead has no meaning.
    const times = ofThis(marks).flatMap(({ lastAtUs }) => (lastAtUs > nowUs ? [] : [lastAtUs]));
    const view = {
      ...{ ...registration, lifetimes, maintenance, reconcile, knownSinceUs, watched },
      arrivals: ofThis(memory.arrivals.values()),
      coverage: ofThis(memory.coverage.values()).filter((hour) => hour.hourUs >= knownSinceUs),
      queue: type === 'pull' ? ofThis(queues)[0] : undefined,
      lastDeliveryAtUs: times.length === 0 ? null : Math.max(...times),
    };
    return [name, view];
  });
}
