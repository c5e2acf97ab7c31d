/** Periodic work of a receiver: a job runs round after round, with waits that differ by chance, until it is stopped. */
import { AppError, errorText, isAppError } from './app-error.ts';
import type { Logger } from './ports.ts';

/** Waits between rounds, jittered by a tenth. */
export interface RoundTimes {
  firstMs: number;
  intervalMs: number;
  /** Wait after a failed round, doubled by each further failure. By default the interval. */
  retryMs?: number;
  /** Maximum of that doubling. By default the interval. */
  retryMsMax?: number;
}

export interface JobOptions {
  every: RoundTimes;
  /** Does one round. An error, or the result `false`, counts as a failure; an error is logged here. */
  run(signal: AbortSignal): Promise<unknown>;
  /** Log phrase of a failed round, and fields that go with it. */
  failed: string;
  fields?: object;
  /** Takes the lock of the work. While another program holds it, rounds are skipped. */
  acquireLock?: (() => Promise<() => void>) | undefined;
  /** Log phrase of a skipped round, which is then retried early. By default it is not logged. */
  busy?: string;
  /** Maximum wait for a round at the end, for rounds that may be cut at any point. By default no maximum. */
  stopGraceMs?: number;
}

export interface JobDeps {
  /** Resolves after a time, or at once when the signal is aborted. Never rejects. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
  /** A number in [0, 1). */
  random: () => number;
  log: Logger;
}

export interface Job {
  /** Resolves when the round in progress has ended. */
  stop(): Promise<void>;
}

const jitterShare = 0.1;

/** Starts a job. No failure ends it. */
export function startJob(job: JobOptions, deps: JobDeps): Job {
  const stopping = new AbortController();
  const running = repeat(job, deps, stopping.signal);
  return {
    stop: async () => {
      stopping.abort();
      if (job.stopGraceMs === undefined) return running;
      const enough = new AbortController();
      await Promise.race([running, deps.pause(job.stopGraceMs, enough.signal)]);
      enough.abort();
    },
  };
}

async function repeat(job: JobOptions, deps: JobDeps, signal: AbortSignal): Promise<void> {
  const { firstMs, intervalMs, retryMs = intervalMs, retryMsMax = intervalMs } = job.every;
  const wait = (ms: number) => deps.pause(jittered(ms, deps.random, jitterShare), signal);
  let failures = 0;
  await wait(firstMs);
  while (!signal.aborted) {
    failures = (await runRound(job, deps.log, signal)) ? 0 : failures + 1;
    const backoffMs = Math.min(retryMsMax, retryMs * 2 ** (failures - 1));
    await wait(failures === 0 ? intervalMs : backoffMs);
  }
}

/** True for a round that succeeded, or that another program does at the moment. */
async function runRound(
  { run, acquireLock, busy, failed, fields }: JobOptions,
  log: Logger,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const release = await acquireLock?.();
    try {
      return (await run(signal)) !== false;
    } finally {
      release?.();
    }
  } catch (error) {
    if (signal.aborted) return true;
    if (isAppError(error, 'conflict')) {
      if (busy !== undefined) log.info({ ...fields, reason: errorText(error) }, busy);
      return busy === undefined;
    }
    log.error({ ...fields, ...errorFields(error) }, failed);
    return false;
  }
}

/** Fields of the log line about a failure: an expected one is named, any other is logged in full. */
export function errorFields(error: unknown): object {
  if (!(error instanceof AppError) || error.code === 'internal') return { err: error };
  const { details } = error;
  const reason = errorText(error);
  return details.length === 0 ? { reason } : { reason, details };
}

/**
 * A wait of about this length, in its own unit: by up to a share of it, a quarter unless told, shorter or longer.
 * `random` gives numbers in [0, 1).
 */
export function jittered(wait: number, random: () => number, share = 0.25): number {
  return wait * (1 - share + 2 * share * random());
}
