/** Background jobs of a receiver, which run in rounds with jittered intervals until they are stopped. */

import type { Io } from '../cli/io.ts';
import { AppError, errorText, isAppError } from '../terms/app-error.ts';
import type { Logger } from '../terms/ports.ts';

/** Intervals between rounds, jittered by a tenth. */
export interface RoundTimes {
  firstMs: number;
  intervalMs: number;
  /** Delay after a failed round, doubled by each further failure. By default the interval. */
  retryMs?: number;
  /** Maximum of the doubled delay. By default the interval. */
  retryMsMax?: number;
}

export interface JobOptions {
  every: RoundTimes;
  /** Runs one round. An error, which is logged here, or the result `false` counts as a failure. */
  run(signal: AbortSignal): Promise<unknown>;
  /** Log phrase for a failed round, and additional fields. */
  failed: string;
  fields?: object;
  /** Acquires the lock of the job. Rounds are skipped while another process holds it. */
  acquireLock?: (() => Promise<Release>) | undefined;
  /** Log phrase for a skipped round, which is then retried early. By default it is not logged. */
  busy?: string;
  /**
   * Maximum wait for the current round when the job is stopped, for rounds that may be interrupted at any time. By
   * default unlimited.
   */
  stopGraceMs?: number;
}

export interface JobDeps {
  /** Resolves after a time, or immediately when the signal is aborted. Never rejects. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Returns a number in [0, 1). */
  random: () => number;
  log: Logger;
}

export interface Job {
  /** Stops the job. Resolves when the current round has ended. */
  stop(): Promise<void>;
}

const jitterShare = 0.1;

/** Starts a job. Failures do not end it. */
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

/** Returns true when the round succeeded, or another process is running it. */
async function runRound(
  { run, acquireLock, busy, failed, fields }: JobOptions,
  log: Logger,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const release = await acquireLock?.();
    try {
      const lost = release?.lost;
      return (await run(lost === undefined ? signal : AbortSignal.any([signal, lost]))) !== false;
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

/** Returns the log fields of a failure: the reason of an expected one, the whole error of any other. */
export function errorFields(error: unknown): object {
  if (!(error instanceof AppError) || error.code === 'internal') return { err: error };
  const { details } = error;
  const reason = errorText(error);
  return details.length === 0 ? { reason } : { reason, details };
}

/**
 * Returns a delay with jitter, in the unit of `wait`: shorter or longer by up to `share`, a quarter by default.
 * `random` returns numbers in [0, 1).
 */
export function jittered(wait: number, random: () => number, share = 0.25): number {
  return wait * (1 - share + 2 * share * random());
}

/** Releases a lock. */
export interface Release {
  (): void;
  /** Aborted when the lock is lost: another node of the shared log has taken it over. */
  readonly lost?: AbortSignal;
}

/**
 * Acquires a lock that is released at the latest when the process ends, even by a crash. Resolves with the function
 * that releases it. Rejects with `conflict` when the lock is held by another for longer than `waitMs`, and with the
 * signal's reason when that aborts the wait.
 */
export type AcquireLock = (
  name: string,
  options: { waitMs: number; signal?: AbortSignal },
) => Promise<Release>;

export interface Closers {
  /** Registers a part to close. Throws `cancelled` once closing has begun; the next `closeAll` closes the part. */
  add(close: () => Promise<void> | void, name?: string): void;
  /** Closes all parts, last opened first. Continues after a failure, and rejects with the first one. */
  closeAll(): Promise<void>;
  /** Returns the names of the open parts, last opened first. */
  open(): string[];
}

export function createClosers(): Closers {
  let closing: Promise<void> | null = null;
  const stack: { name: string; close: () => Promise<void> | void }[] = [];
  const closeStack = async () => {
    const failures: unknown[] = [];
    for (let part = stack.at(-1); part !== undefined; part = stack.at(-1)) {
      try {
        await part.close();
      } catch (error) {
        failures.push(error);
      }
      stack.splice(stack.indexOf(part), 1);
    }
    if (failures.length > 0) throw failures[0];
  };
  return {
    add: (close, name = 'unnamed part') => {
      stack.push({ name, close });
      if (closing !== null) throw new AppError('cancelled', 'The program is shutting down.');
    },
    // Calls run one after the other, so no part is closed twice.
    closeAll: () => {
      closing = closing === null ? closeStack() : closing.then(closeStack, closeStack);
      return closing;
    },
    open: () => stack.map(({ name }) => name).reverse(),
  };
}

/** Wait for a lock before a message is printed. */
const patienceMs = 1_000;

const waitMs = 60_000;

/** Acquires a lock. Prints `waiting` if another program holds it, and rejects with `conflict` after a minute. */
export async function waitForLock(
  acquireLock: AcquireLock,
  name: Parameters<AcquireLock>[0],
  { io, waiting, ...how }: { io: Pick<Io, 'stderr'>; waiting: string; signal?: AbortSignal },
): Promise<() => void> {
  try {
    return await acquireLock(name, { waitMs: patienceMs, ...how });
  } catch (error) {
    if (!isAppError(error, 'conflict')) throw error;
    io.stderr.write(`${waiting}\n`);
    return acquireLock(name, { waitMs, ...how });
  }
}
