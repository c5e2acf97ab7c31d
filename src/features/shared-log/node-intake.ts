/** The bounded queue between the receiver and the shared log. */

import { errorFields } from '../../core/host/job.ts';
import type { Remote } from '../../core/host/rpc.ts';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import type { CommitFacts, Delivery, Intake, Logger, Receipt } from '../../core/terms/ports.ts';
import { bodyBytes, packDeliveries } from '../../store/log/intake-queue.ts';
import { ackIdReused } from '../../store/log/write-delivery.ts';
import type { Follower } from './follower.ts';
import type { NodeWrites } from './node-thread.ts';
import type { PreparedDelivery, PreparedEntry } from './prepare-entry.ts';
import type { AppendedEntry, ItemOutcome, SharedLog } from './terms.ts';

/** Limits of one entry. */
const entryDeliveriesMax = 256;
const entryBytesMax = 4 * 2 ** 20;

/** Appends in progress: while one waits for its commit, the next one is prepared. */
const appendsMax = 2;

/** Maximum age of a commit that proves that the log accepts appends. */
const commitAgeMaxMs = 5_000;

/** Wait for the ids of quarantine entries. */
const quarantineMs = 1_000;

/** Timeout of a delivery: its sender then gets 503 and may retry. */
const answerMs = 30_000;

interface Waiting {
  delivery: Delivery;
  bytes: number;
  resolve(receipt: Receipt): void;
  reject(error: unknown): void;
}

export interface NodeIntakeOptions {
  log: Pick<SharedLog, 'append' | 'check'>;
  writer: Remote<NodeWrites>;
  follower: Pick<Follower, 'until'>;
  logger: Logger;
  /** Random UUID. */
  newId: () => string;
  /** Maximum memory for bodies that wait for their commit. */
  queueBytesMax: number;
  /** Called after each commit; must not throw. */
  onCommit?: ((commit: CommitFacts) => void) | undefined;
}

export class NodeIntake implements Intake {
  readonly #options: NodeIntakeOptions;
  #waiting: Waiting[] = [];
  #queuedBytes = 0;
  readonly #appends = new Set<Promise<void>>();
  /** Start of a commit that succeeded, by the monotonic clock. */
  #provenMs = Number.NEGATIVE_INFINITY;
  #check: Promise<void> | undefined;

  constructor(options: NodeIntakeOptions) {
    this.#options = options;
  }

  get queuedBytes(): number {
    return this.#queuedBytes;
  }

  async accept(delivery: Delivery): Promise<Receipt> {
    const bytes = bodyBytes(delivery);
    if (this.#queuedBytes + bytes > this.#options.queueBytesMax) {
      throw new AppError('unavailable', 'The intake queue is full.');
    }
    this.#queuedBytes += bytes;
    let timer: NodeJS.Timeout | undefined;
    return new Promise<Receipt>((resolve, reject) => {
      this.#waiting.push({ delivery, bytes, resolve, reject });
      // All deliveries of a turn of the event loop together.
      if (this.#waiting.length === 1) setImmediate(() => this.#pump());
      timer = setTimeout(() => {
        reject(new AppError('unavailable', 'The shared log did not answer in time.'));
      }, answerMs);
    }).finally(() => clearTimeout(timer));
  }

  async checkWritable(): Promise<void> {
    if (performance.now() - this.#provenMs < commitAgeMaxMs) return;
    const startedMs = performance.now();
    this.#check ??= this.#options.log
      .check()
      .then(() => {
        this.#provenMs = startedMs;
      })
      .finally(() => {
        this.#check = undefined;
      });
    await this.#check;
  }

  /** Appends a quarantined body again. */
  async retry(id: number, atUs: number): Promise<Receipt> {
    const rejected = (faults: Extract<Receipt, { outcome: 'rejected' }>['faults']): Receipt => ({
      ...{ outcome: 'rejected', faults, quarantineId: id, stored: 0 },
    });
    const prepared = await this.#options.writer.prepareRetry(id, atUs);
    if ('faults' in prepared) return rejected(prepared.faults);
    try {
      const appended = await this.#append(prepared, true);
      // The entry is released when it is applied.
      await this.#options.follower.until(appended.number);
      const [only] = prepared.deliveries;
      if (only === undefined) throw new Error('A retry has no delivery.');
      return receiptOf(only, appended.outcomes, null);
    } catch (error) {
      if (isAppError(error, 'conflict')) return rejected([ackIdReused]);
      throw error;
    }
  }

  /** Resolves when no append is in progress. */
  async drain(): Promise<void> {
    this.#pump();
    while (this.#appends.size > 0) await Promise.all(this.#appends);
  }

  #pump(): void {
    while (this.#waiting.length > 0 && this.#appends.size < appendsMax) {
      const append = this.#appendGroup(this.#nextGroup()).finally(() => {
        this.#appends.delete(append);
        this.#pump();
      });
      this.#appends.add(append);
    }
  }

  #nextGroup(): Waiting[] {
    let bytes = 0;
    const end = this.#waiting.findIndex((one, i) => {
      bytes += one.bytes;
      return i === entryDeliveriesMax || (i > 0 && bytes > entryBytesMax);
    });
    return this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
  }

  /** Never rejects. */
  async #appendGroup(group: readonly Waiting[]): Promise<void> {
    try {
      await this.#commit(group);
    } catch (error) {
      this.#provenMs = Number.NEGATIVE_INFINITY;
      // One of them may be the cause.
      if (isAppError(error, 'internal') && group.length > 1) {
        for (const one of group) await this.#appendGroup([one]);
        return;
      }
      for (const one of group) one.reject(error);
    }
    for (const { bytes } of group) this.#queuedBytes -= bytes;
  }

  async #commit(group: readonly Waiting[]): Promise<void> {
    const { writer, onCommit } = this.#options;
    const beganMs = performance.now();
    const collected = group.map(({ delivery }, id) => ({ id, delivery }));
    const { buffer, deliveries } = packDeliveries(collected);
    const prepared = await writer.prepareDeliveries(buffer, deliveries);
    const appended = await this.#append(prepared, false);
    this.#provenMs = beganMs;
    const durationSeconds = (performance.now() - beganMs) / 1_000;
    onCommit?.({
      ...{ durationSeconds, deliveries: group.length },
      publicationDelay: prepared.publicationDelay,
    });
    this.#answer(group, prepared.deliveries, appended);
  }

  #append(prepared: PreparedEntry, refusesReused: boolean): Promise<AppendedEntry> {
    const { items, checkedPosition, payload, encoding } = prepared;
    const entry = { items, checkedPosition, payload, encoding, refusesReused };
    return this.#options.log.append({ ...entry, batchId: this.#options.newId(), lease: null });
  }

  #answer(
    group: readonly Waiting[],
    prepared: readonly PreparedDelivery[],
    { number, outcomes }: AppendedEntry,
  ): void {
    let start = 0;
    let quarantined: Promise<readonly (number | null)[]> | undefined;
    for (const [i, { resolve }] of group.entries()) {
      const one = prepared[i] ?? { items: 0, faults: [] };
      const own = outcomes.slice(start, start + one.items);
      start += one.items;
      const isQuarantined =
        one.faults.length > 0 || own.some(({ outcome }) => outcome === 'reused');
      if (!isQuarantined) {
        resolve(receiptOf(one, own, null));
        continue;
      }
      quarantined ??= this.#quarantinedIn(number);
      void quarantined.then((ids) => resolve(receiptOf(one, own, ids[i] ?? null)));
    }
  }

  /**
   * Returns the ids of the quarantine entries of an entry, by delivery: the node assigns them when it applies it. None
   * if it cannot apply it soon; the answer does not need them. Never rejects.
   */
  async #quarantinedIn(number: number): Promise<readonly (number | null)[]> {
    const { follower, writer, logger } = this.#options;
    try {
      await follower.until(number, quarantineMs);
      return ((await writer.result(number)) ?? []) as (number | null)[];
    } catch (error) {
      logger.warn(errorFields(error), 'failed to read the ids of quarantine entries');
      return [];
    }
  }
}

function receiptOf(
  { items, faults }: PreparedDelivery,
  outcomes: readonly ItemOutcome[],
  quarantineId: number | null,
): Receipt {
  const stored = outcomes.filter(({ outcome }) => outcome === 'stored').length;
  const quarantined = quarantineId === null ? {} : { quarantineId };
  if (faults.length > 0)
    return { outcome: 'rejected', faults: [...faults], stored, ...quarantined };
  const duplicates = items - stored;
  return stored > 0
    ? { outcome: 'stored', stored, duplicates, ...quarantined }
    : { outcome: 'duplicate', duplicates, ...quarantined };
}
