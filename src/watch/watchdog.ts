/** The watchdog beside a receiver: looks each minute, tells what it finds, and is never in the way. */
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

/** What tests make shorter. All times are jittered by a tenth. */
interface WatchTiming {
  /** After the start, so that what takes its time to begin is not checked for it. */
  firstMs: number;
  intervalMs: number;
  /** Between looks for what is to be told. */
  deliveryIntervalMs: number;
}

const defaultTiming: WatchTiming = {
  firstMs: 30_000,
  intervalMs: 60_000,
  deliveryIntervalMs: 10_000,
};

/** What is under way when the program ends can be cut anywhere: it is done again, or told again. */
const stopGraceMs = 3_000;

/**
 * Starts looking, and sending: each channel by itself, so that one that hangs holds up noChannel. Whatever fails
 * is logged, and tried again in the next round.
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
    // Every channel there is: deliveries through one that was removed from the settings are given up.
    ...alertChannels.map((channel) =>
      startJob(
        {
          every: { firstMs: deliveryIntervalMs, intervalMs: deliveryIntervalMs },
          run: (signal) => deliverDue(deps, channel, signal),
          failed: 'alerts cannot be told now',
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

const roundFailed = 'the watchdog could not check; it checks again';

/** What is known from one round to the next. Whatever must outlast the program is in the store. */
interface WatchMemory {
  pushes: PushMemory;
  /** Since when something has been so. */
  since: Map<string, number>;
  /** Where sinks stand in the log, and since when. */
  cursors: CursorMemory;
  /** When what could not be kept was told, by channel, kind and subject. */
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

/** A probe that takes longer could not look. */
const checkTimeoutMs = 20_000;

const subscriptionKinds: readonly AlertKind[] = [
  ...(['silence', 'lost-pushes', 'missing', 'unknown'] as const),
  ...(['auto-pause', 'cancellation', 'not-running'] as const),
];

/**
 * Looks once, and keeps what is found. Never rejects: what fails is logged, and what could not be checked is
 * left as it is. With a memory of its own, it reads 13 weeks; give it the same one each time. The signal ends a
 * sending that is under way.
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
      log.error(errorFields(error), 'alerts cannot be kept now');
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
    log.error(errorFields(error), 'the watchdog cannot read the store; it looks at the rest');
    return null;
  });
  const { active, nowUs: now } = situation ?? { active: [], nowUs: nowUs() };
  const conditionAgeUs = conditionAges(memory, now);
  const about = { active, nowUs: now, uptimes: situation?.uptimes ?? [] };
  const machine = await Promise.all([
    attempt(deps, 'certificate', async () => checkCertificate(await probes.certificate(), about)),
    attempt(deps, 'disk', async () => checkDisk(await probes.disk(), about)),
    attempt(deps, 'intake', async () => checkIntake(await probes.intake(), about, conditionAgeUs)),
    attempt(deps, 'sink', () => checkSinks(deps, about, memory.cursors)),
    attempt(deps, 'backup', async () =>
      checkBackup({ ...(await backups.lastBackups()), everyHours }, about),
    ),
  ]);
  // What lasts is not known: what is wrong may be raised, and nothing resolved.
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
  const late = pause(checkTimeoutMs, enough.signal).then(() => {
    if (!enough.signal.aborted) log.warn({ kind }, 'the watchdog waited too long for a probe');
    return notChecked;
  });
  const checked = check().catch((error: unknown) => {
    log.warn({ kind, ...errorFields(error) }, 'the watchdog could not look at this');
    return notChecked;
  });
  const result = await Promise.race([checked, late]);
  enough.abort();
  return result;
}

function conditionAges({ since }: WatchMemory, nowUs: number): ConditionAge {
  return (what, isSo) => {
    if (!isSo) {
      since.delete(what);
      return 0;
    }
    const startUs = Math.min(since.get(what) ?? nowUs, nowUs);
    since.set(what, startUs);
    return nowUs - startUs;
  };
}
