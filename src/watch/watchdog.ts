/** The watchdog beside a receiver: looks each minute, tells what it finds, and is never in the way. */
import { type AlertKind, alertChannels } from '../domain/alerts.ts';
import { errorFields, type Job, startJob } from '../domain/job.ts';
import {
  judgeLifetimes,
  judgeMissing,
  judgeNotRunning,
  judgeUnknown,
  type LastsUs,
} from './check-account.ts';
import { judgeBackup, judgeCertificate, judgeDisk, judgeIntake } from './check-machine.ts';
import { judgeAllSilence, judgeLostPushes } from './check-silence.ts';
import { type CursorMemory, judgeSinks } from './check-sinks.ts';
import { deliverDue, tellUnkept } from './notify.ts';
import { createPushMemory, type PushMemory } from './push-memory.ts';
import {
  joined,
  nothingWrong,
  readSituation,
  type Situation,
  unjudged,
  type Verdict,
  type WatchWorld,
} from './situation.ts';

/** What tests make shorter. All times are jittered by a tenth. */
interface WatchTiming {
  /** After the start, so that what takes its time to begin is not judged for it. */
  firstMs: number;
  intervalMs: number;
  /** Between looks for what is to be told. */
  tellEveryMs: number;
}

const usual: WatchTiming = { firstMs: 30_000, intervalMs: 60_000, tellEveryMs: 10_000 };

/** What is under way when the program ends can be cut anywhere: it is done again, or told again. */
const stopGraceMs = 3_000;

/** Starts checks, and one delivery job per channel, so that a channel that hangs delays no other. */
export function startWatchdog(world: WatchWorld, timing: Partial<WatchTiming> = {}): Job {
  const { firstMs, intervalMs, tellEveryMs } = { ...usual, ...timing };
  const memory = createWatchMemory();
  const jobs = [
    startJob(
      {
        every: { firstMs, intervalMs },
        run: (signal) => watchOnce(world, memory, signal),
        failed: lookFailed,
        stopGraceMs,
      },
      world,
    ),
    // Every channel there is: what waits for one that was removed from the settings is dropped.
    ...alertChannels.map((channel) =>
      startJob(
        {
          every: { firstMs: tellEveryMs, intervalMs: tellEveryMs },
          run: (signal) => deliverDue(world, channel, signal),
          failed: 'alerts cannot be told now',
          fields: { channel },
          stopGraceMs,
        },
        world,
      ),
    ),
  ];
  return { stop: async () => void (await Promise.all(jobs.map((job) => job.stop()))) };
}

const lookFailed = 'the watchdog could not look; it looks again';

/** What is known from one round to the next. Whatever must outlast the program is in the store. */
interface WatchMemory {
  pushes: PushMemory;
  /** Since when something has been so. */
  since: Map<string, number>;
  /** Where sinks stand in the log, and since when. */
  cursors: CursorMemory;
  /** When what could not be kept was told, by channel, kind and subject. */
  toldAtUs: Map<string, number>;
}

export function createWatchMemory(): WatchMemory {
  return {
    pushes: createPushMemory(),
    since: new Map(),
    cursors: new Map(),
    toldAtUs: new Map(),
  };
}

/** A probe that takes longer could not look. */
const judgeTimeoutMs = 20_000;

const subscriptionKinds: readonly AlertKind[] = [
  ...(['silence', 'lost-pushes', 'missing', 'unknown'] as const),
  ...(['auto-pause', 'cancellation', 'not-running'] as const),
];

/**
 * Looks once, and keeps what is found. Never rejects: what fails is logged, and what could not be judged is
 * left as it is. With a memory of its own, it reads 13 weeks; give it the same one each time. The signal ends a
 * telling that is under way.
 */
export async function watchOnce(
  world: WatchWorld,
  memory = createWatchMemory(),
  signal: AbortSignal = new AbortController().signal,
): Promise<void> {
  const { log } = world;
  try {
    const verdict = await look(world, memory);
    await settle(verdict, world).catch(async (error: unknown) => {
      log.error(errorFields(error), 'alerts cannot be kept now');
      await tellUnkept(verdict.findings, world, memory.toldAtUs, signal);
    });
  } catch (error) {
    log.error(errorFields(error), lookFailed);
  }
}

async function settle({ judged, findings }: Verdict, world: WatchWorld): Promise<void> {
  const { alerts, channels, nowUs, log } = world;
  const changed = await alerts.settleFindings({ judged, findings, channels, atUs: nowUs() });
  for (const { kind, subject, severity, cause, evidence, nextStep } of changed.raised) {
    log.warn({ kind, subject, severity, cause, evidence, nextStep }, 'alert raised');
  }
  for (const { kind, subject, cause } of changed.resolved) {
    log.info({ kind, subject, cause }, 'alert resolved');
  }
}

async function look(world: WatchWorld, memory: WatchMemory): Promise<Verdict> {
  const { probes, nowUs, log } = world;
  const situation = await readSituation(world, memory.pushes).catch((error: unknown) => {
    log.error(errorFields(error), 'the watchdog cannot read the store; it looks at the rest');
    return null;
  });
  const { lasting, nowUs: now } = situation ?? { lasting: [], nowUs: nowUs() };
  const lastsUs = lastsSince(memory, now);
  const about = { lasting, nowUs: now, uptimes: situation?.uptimes ?? [] };
  const machine = await Promise.all([
    attempt(world, 'certificate', () => judgeCertificate(probes, about)),
    attempt(world, 'disk', () => judgeDisk(probes, about)),
    attempt(world, 'intake', () => judgeIntake(probes, about, lastsUs)),
    attempt(world, 'sink', () => judgeSinks(world, about, memory.cursors)),
    attempt(world, 'backup', () => judgeBackup(world, about)),
  ]);
  // What lasts is not known: what is wrong may be raised, and nothing resolved.
  if (situation === null) return { judged: [], findings: joined(machine).findings };
  return joined([...judgeSubscriptions(world, situation, lastsUs), ...machine]);
}

function judgeSubscriptions(world: WatchWorld, situation: Situation, lastsUs: LastsUs): Verdict[] {
  const { maintenance, reconcile } = world;
  const { registrations, lasting } = situation;
  const names = new Set(registrations.map(({ name }) => name));
  const gone = lasting.filter(
    ({ kind, subject }) =>
      subscriptionKinds.includes(kind) && subject !== '' && !names.has(subject),
  );
  return [
    ...gone.map(({ kind, subject }) => nothingWrong(kind, subject)),
    judgeAllSilence(registrations, situation),
    ...registrations.flatMap((registration) => [
      judgeLostPushes(registration, situation),
      judgeMissing(registration, situation, lastsUs),
      reconcile ? judgeUnknown(registration, situation) : unjudged,
      judgeNotRunning(registration, situation, { maintenance, lastsUs }),
      ...judgeLifetimes(registration, situation, world),
    ]),
  ];
}

async function attempt(
  { pause, log }: WatchWorld,
  kind: AlertKind,
  judge: () => Promise<Verdict>,
): Promise<Verdict> {
  const enough = new AbortController();
  const late = pause(judgeTimeoutMs, enough.signal).then(() => {
    if (!enough.signal.aborted) log.warn({ kind }, 'the watchdog waited too long for a probe');
    return unjudged;
  });
  const judged = judge().catch((error: unknown) => {
    log.warn({ kind, ...errorFields(error) }, 'the watchdog could not look at this');
    return unjudged;
  });
  const verdict = await Promise.race([judged, late]);
  enough.abort();
  return verdict;
}

function lastsSince({ since }: WatchMemory, nowUs: number): LastsUs {
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
