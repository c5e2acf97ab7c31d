/**
 * The watchdog: a background job of the receiver that checks every minute and sends alerts, without delaying other
 * work.
 */
import { type AlertKind, alertChannels } from '../domain/alerts.ts';
import { errorFields, type Job, startJob } from '../domain/job.ts';
import {
  type ConditionAge,
  checkLifetimes,
  checkMissing,
  checkNotRunning,
  checkUnknown,
} from './check-account.ts';
import { checkBackup, checkCertificate, checkDisk, checkIntake } from './check-machine.ts';
import { checkQueue } from './check-queues.ts';
import { checkDatabase, checkReceivers } from './check-receivers.ts';
import { checkAllSilence, checkLostPushes } from './check-silence.ts';
import { type CursorMemory, checkSinks } from './check-sinks.ts';
import { createPushMemory, type PushMemory } from './learn-rates.ts';
import { deliverDue, sendUnstored } from './notify.ts';
import {
  type CheckResult,
  checkOf,
  joinResults,
  notChecked,
  readSituation,
  type Situation,
  type WatchDeps,
} from './situation.ts';

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
  const jobs = [
    startJob(
      {
        every: { firstMs, intervalMs },
        run: (signal) => watchOnce(deps, memory, signal),
        failed: roundFailed,
        stopGraceMs,
      },
      deps,
    ),
    // Includes channels that are no longer configured: their deliveries are given up.
    ...alertChannels.map((channel) =>
      startJob(
        {
          every: { firstMs: deliveryIntervalMs, intervalMs: deliveryIntervalMs },
          run: (signal) => deliverDue(deps, channel, signal),
          failed: 'failed to process alert deliveries',
          fields: { channel },
          stopGraceMs,
        },
        deps,
      ),
    ),
  ];
  return {
    stop: async () => {
      await Promise.all(jobs.map((job) => job.stop()));
    },
  };
}

const roundFailed = 'watchdog round failed';

/** State kept between rounds. State that must survive a restart is in the store. */
interface WatchMemory {
  pushes: PushMemory;
  /** Time since which a condition has been true. */
  since: Map<string, number>;
  /** Positions of the sinks in the log. */
  cursors: CursorMemory;
  /** Times at which unstored alerts were sent, by channel, kind and subject. */
  sentAtUs: Map<string, number>;
}

export function createWatchMemory(): WatchMemory {
  return {
    pushes: createPushMemory(),
    since: new Map(),
    cursors: new Map(),
    sentAtUs: new Map(),
  };
}

/** Timeout of a probe. */
const checkTimeoutMs = 20_000;

const subscriptionKinds: readonly AlertKind[] = [
  ...(['silence', 'lost-pushes', 'missing', 'unknown'] as const),
  ...(['auto-pause', 'cancellation', 'not-running', 'queue', 'queue-reader'] as const),
];

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
  const { log } = deps;
  try {
    const result = await checkAll(deps, memory);
    await settle(result, deps).catch(async (error: unknown) => {
      log.error(errorFields(error), 'failed to store alerts');
      await sendUnstored(result.findings, deps, memory.sentAtUs, signal);
    });
  } catch (error) {
    log.error(errorFields(error), roundFailed);
  }
}

async function settle({ checked, findings }: CheckResult, deps: WatchDeps): Promise<void> {
  const { alerts, channels, nowUs, log } = deps;
  const changed = await alerts.settleFindings({ checked, findings, channels, atUs: nowUs() });
  for (const { kind, subject, severity, cause, evidence, nextStep } of changed.raised) {
    log.warn({ kind, subject, severity, cause, evidence, nextStep }, 'alert raised');
  }
  for (const { kind, subject, cause } of changed.resolved) {
    log.info({ kind, subject, cause }, 'alert resolved');
  }
}

async function checkAll(deps: WatchDeps, memory: WatchMemory): Promise<CheckResult> {
  const { probes, backups, backupEveryHours: everyHours, nowUs, log } = deps;
  const situation = await readSituation(deps, memory.pushes).catch((error: unknown) => {
    log.error(errorFields(error), 'watchdog failed to read the store; other checks continue');
    return null;
  });
  const { active, nowUs: now } = situation ?? { active: [], nowUs: nowUs() };
  const conditionAgeUs = conditionAges(memory, now);
  const about = { active, nowUs: now, uptimes: situation?.uptimes ?? [] };
  const machine = await Promise.all([
    attempt(deps, 'certificate', async () => checkCertificate(await probes.certificate(), about)),
    attempt(deps, 'disk', async () => checkDisk(await probes.disk(), about)),
    attempt(deps, 'intake', async () => checkIntake(await probes.intake(), about, conditionAgeUs)),
    attempt(deps, 'receiver', async () =>
      checkReceivers((await probes.receivers?.()) ?? null, about),
    ),
    attempt(deps, 'database', async () => checkDatabase(probes.databaseWarnings?.() ?? [])),
    attempt(deps, 'sink', () => checkSinks(deps, about, memory.cursors)),
    attempt(deps, 'backup', async () =>
      checkBackup({ ...(await backups.lastBackups()), everyHours }, about),
    ),
  ]);
  // Active alerts are not known: findings may be raised, but nothing is resolved.
  if (situation === null) return { checked: [], findings: joinResults(machine).findings };
  return joinResults([...checkSubscriptions(deps, situation, conditionAgeUs), ...machine]);
}

function checkSubscriptions(
  deps: WatchDeps,
  situation: Situation,
  conditionAgeUs: ConditionAge,
): CheckResult[] {
  const { maintenance, reconcile } = deps;
  const { registrations, active } = situation;
  const names = new Set(registrations.map(({ name }) => name));
  const gone = active.filter(
    ({ kind, subject }) =>
      subscriptionKinds.includes(kind) && subject !== '' && !names.has(subject),
  );
  return [
    ...gone.map(({ kind, subject }) => checkOf(kind, subject, situation).fine),
    checkAllSilence(registrations, situation),
    ...registrations.flatMap((registration) => [
      checkLostPushes(registration, situation),
      checkMissing(registration, situation, conditionAgeUs),
      reconcile ? checkUnknown(registration, situation) : notChecked,
      checkQueue(registration, situation),
      checkNotRunning(registration, situation, { maintenance, conditionAgeUs }),
      ...checkLifetimes(registration, situation, deps),
    ]),
  ];
}

async function attempt(
  { pause, log }: WatchDeps,
  kind: AlertKind,
  check: () => Promise<CheckResult>,
): Promise<CheckResult> {
  const enough = new AbortController();
  const timeout = pause(checkTimeoutMs, enough.signal).then(() => {
    if (!enough.signal.aborted) log.warn({ kind }, 'watchdog probe timed out');
    return notChecked;
  });
  const checked = check().catch((error: unknown) => {
    log.warn({ kind, ...errorFields(error) }, 'watchdog probe failed');
    return notChecked;
  });
  const result = await Promise.race([checked, timeout]);
  enough.abort();
  return result;
}

function conditionAges({ since }: WatchMemory, nowUs: number): ConditionAge {
  return (condition, isTrue) => {
    if (!isTrue) {
      since.delete(condition);
      return 0;
    }
    const startUs = Math.min(since.get(condition) ?? nowUs, nowUs);
    since.set(condition, startUs);
    return nowUs - startUs;
  };
}
