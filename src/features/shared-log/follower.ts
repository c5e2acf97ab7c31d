/** Follows the shared log: reads its entries and applies them to the SQLite log of this node. */
import { setTimeout as delay } from 'node:timers/promises';
import { type AcquireLock, errorFields } from '../../core/host/job.ts';
import type { Remote } from '../../core/host/rpc.ts';
import { AppError, errorText } from '../../core/terms/app-error.ts';
import type { Logger } from '../../core/terms/ports.ts';
import type { IntakeActivity } from '../../store/log/intake-queue.ts';
import type { NodePlace } from './apply-entries.ts';
import type { NodeWrites } from './node-thread.ts';
import type { SharedLog } from './postgres-log.ts';
import type { LogPart } from './schema.ts';

/** Interval of polling for entries of other nodes. */
const pollMs = 250;

/** Wait after a failure. */
const retryMs = 1_000;

/** Maximum wait while another process of this node loads the checkpoint. */
const loadMsMax = 60_000;

/** Duration of faults after which other nodes take over the leases. */
const stuckMs = 10_000;

/** Maximum wait for an entry to be applied. */
const untilMs = 20_000;

/** The same while it is stuck: it applies entries again soon after an outage. */
const stuckUntilMs = 3 * retryMs;

export interface FollowerState {
  /** Number of the last applied entry. */
  applied: number;
  /** True if no entry could be applied for some time: this node must not hold a lease. */
  isStuck: boolean;
  /** Why no entry is applied, readable and without secrets; null if entries are applied. */
  fault: string | null;
}

export interface FollowerOptions {
  log: SharedLog;
  writer: Remote<NodeWrites>;
  /** Excludes other processes of this node while the checkpoint is loaded. */
  acquireLock: AcquireLock;
  place: NodePlace;
  logger: Logger;
  /** Notes the applied deliveries. */
  activity: IntakeActivity;
}

/** Follows the log until it is stopped. Failures are logged once and retried. */
export class Follower {
  readonly #options: FollowerOptions;
  readonly #stopping = new AbortController();
  readonly #running: Promise<void>;
  /** As it is in the database of this node. */
  #place: Pick<NodePlace, 'applied' | 'batchId' | 'stateFrom'>;
  #fault: string | null = null;
  /** Time of the first of these faults, by the monotonic clock. */
  #faultMs = 0;

  constructor(options: FollowerOptions) {
    this.#options = options;
    this.#place = { ...options.place };
    this.#running = this.#run();
  }

  get state(): FollowerState {
    const isStuck = this.#fault !== null && performance.now() - this.#faultMs >= stuckMs;
    return { applied: this.#place.applied, fault: this.#fault, isStuck };
  }

  /** Resolves when this node has applied an entry. Rejects with `unavailable` after some time. */
  async until(number: number, timeoutMs = untilMs): Promise<void> {
    const { signal } = this.#stopping;
    const waitMs = this.state.isStuck ? Math.min(timeoutMs, stuckUntilMs) : timeoutMs;
    const deadlineMs = performance.now() + waitMs;
    // A node without its checkpoint has applied nothing completely.
    while (this.#place.stateFrom !== 0 || number > this.#place.applied) {
      const leftMs = deadlineMs - performance.now();
      if (leftMs <= 0 || signal.aborted) throw this.#notApplied();
      await this.#options.activity.next(leftMs, signal);
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.#round(signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#setFault(error);
        // Not ended by news of own appends.
        await delay(retryMs, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { log, writer, activity } = this.#options;
    if (this.#place.applied === this.#place.stateFrom) await this.#loadCheckpoint();
    const part = await log.read(this.#place.applied);
    await requireSame(part, this.#place, log);
    if (part.entries.length === 0) {
      this.#setFault(null);
      return log.news(this.#place.applied, pollMs, signal);
    }
    // Another process of this node may have applied more.
    const { applied, batchId, deliveries } = await writer.apply(part.entries);
    Object.assign(this.#place, { applied, batchId });
    this.#setFault(null);
    activity.note({ deliveries });
  }

  /** Loads the checkpoint, or waits for the entry of the one that has replaced it. */
  async #loadCheckpoint(): Promise<void> {
    if (this.#place.stateFrom === 0) return;
    const { signal } = this.#stopping;
    const release = await this.#options.acquireLock('checkpoint', { waitMs: loadMsMax, signal });
    try {
      // Another process of this node may have loaded it.
      const { stateFrom } = (await this.#options.writer.place()) ?? { stateFrom: 0 };
      this.#place.stateFrom = stateFrom;
      if (stateFrom === this.#place.applied) await this.#loadParts();
      this.#options.activity.wake();
    } finally {
      release();
    }
  }

  async #loadParts(): Promise<void> {
    const { log, writer, logger } = this.#options;
    const newest = (await log.checkpointNumber()) ?? 0;
    if (newest > this.#place.stateFrom) {
      await writer.setStateFrom(newest);
      this.#place.stateFrom = newest;
      return;
    }
    await writer.clear();
    for await (const part of log.checkpointParts(newest)) {
      this.#stopping.signal.throwIfAborted();
      await writer.loadPart(part);
    }
    while ((await writer.removePruned()) > 0);
    await writer.setStateFrom(0);
    this.#place.stateFrom = 0;
    logger.info({ number: newest }, 'loaded a checkpoint of the shared log');
  }

  #setFault(error: unknown): void {
    const { logger } = this.#options;
    const text = error === null ? null : errorText(error);
    if (text !== null && this.#fault === null) this.#faultMs = performance.now();
    if (text !== null && text !== this.#fault) {
      logger.error(errorFields(error), 'failed to apply entries of the shared log; retrying');
    }
    if (text === null && this.#fault !== null) {
      logger.info({ applied: this.#place.applied }, 'applying entries of the shared log');
    }
    this.#fault = text;
  }

  #notApplied(): AppError {
    return new AppError(
      'unavailable',
      'This receiver has not applied all entries of the shared log yet.',
      {
        advice: this.#fault ?? 'Run `earshot status` to see its lag.',
      },
    );
  }
}

/** Throws when the database does not continue what this node has applied; unknown before its first entry. */
async function requireSame(
  { lastBatchId, entries }: LogPart,
  { applied, batchId }: Pick<NodePlace, 'applied' | 'batchId'>,
  log: SharedLog,
): Promise<void> {
  if (applied === 0 || batchId === null || lastBatchId === batchId) return;
  if (lastBatchId === null && entries[0]?.number === applied + 1) return;
  const { number } = await log.head();
  if (lastBatchId === null && number > applied) {
    throw new AppError(
      'unavailable',
      `The shared log no longer contains entry ${applied + 1}, which this receiver needs next: it was pruned.`,
      { advice: 'Stop this receiver, delete its data directory, and start it: it fills itself.' },
    );
  }
  throw new AppError(
    'unavailable',
    `The database of the shared log has lost entry ${applied}, which this receiver has applied: it was restored, or replaced by a standby that lagged.`,
    {
      advice:
        'See "The database has lost entries" in docs/several-receivers.md. The data directory contains the lost notifications: do not delete it.',
    },
  );
}
