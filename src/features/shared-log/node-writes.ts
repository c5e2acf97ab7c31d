/** Writes of a node, which go through the shared log: deliveries, and changes of the store. */
import { type Caller, deserializeError, type Remote } from '../../core/host/rpc.ts';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import type { CommitFacts, Delivery, Intake, Receipt } from '../../core/terms/ports.ts';
import { bodyBytes, packDeliveries } from '../../store/log/intake-queue.ts';
import type { RecoverOptions } from '../../store/log/recovered-events.ts';
import { ackIdReused } from '../../store/log/write-delivery.ts';
import type { PruneStep, PruneStepOptions } from '../../store/pruning/terms.ts';
import type { TablesSlot } from '../../store/tables.ts';
import type { Change, PreparedDelivery, PreparedEntry } from './entry.ts';
import type { Follower } from './follower.ts';
import type { LeaseTerm } from './leases.ts';
import type { NodeWrites } from './node-thread.ts';
import type { SharedLog } from './postgres-log.ts';
import type { AppendedEntry, ItemOutcome } from './schema.ts';

/** Limits of one entry. */
const entryDeliveriesMax = 256;
const entryBytesMax = 4 * 2 ** 20;

/** Appends in progress: while one waits for its commit, the next one is prepared. */
const appendsMax = 2;

/** Maximum age of a commit that proves that the log accepts appends. */
const commitAgeMaxMs = 5_000;

/** Timeout of a delivery: its sender then gets 503 and may retry. */
const answerMs = 30_000;

interface Waiting {
  delivery: Delivery;
  bytes: number;
  resolve(receipt: Receipt): void;
  reject(error: unknown): void;
}

interface NodeIntakeOptions {
  log: SharedLog;
  writer: Remote<NodeWrites>;
  follower: Follower;
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
      return receiptOf(only, appended.outcomes);
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
    let start = 0;
    for (const [i, { resolve }] of group.entries()) {
      const one = prepared.deliveries[i] ?? { items: 0, faults: [] };
      resolve(receiptOf(one, appended.outcomes.slice(start, start + one.items)));
      start += one.items;
    }
  }

  #append(prepared: PreparedEntry, refusesReused: boolean): Promise<AppendedEntry> {
    const { items, checkedPosition, payload, encoding } = prepared;
    const entry = { items, checkedPosition, payload, encoding, refusesReused };
    return this.#options.log.append({ ...entry, batchId: this.#options.newId(), lease: null });
  }
}

/** The entry of the quarantine has no id yet: each node assigns it when it applies the entry. */
function receiptOf({ items, faults }: PreparedDelivery, outcomes: readonly ItemOutcome[]): Receipt {
  const stored = outcomes.filter(({ outcome }) => outcome === 'stored').length;
  if (faults.length > 0) return { outcome: 'rejected', faults: [...faults], stored };
  const duplicates = items - stored;
  return stored > 0
    ? { outcome: 'stored', stored, duplicates }
    : { outcome: 'duplicate', duplicates };
}

/** Changes in one entry. */
const changesMax = 256;

/** Attempts to write recovered events while notifications of the same products arrive. */
const recoverAttempts = 5;

/** Leases of changes of the store itself; those of features are in their tables. */
const ownLeases: Record<string, string> = {
  'log.recover': 'reconcile',
  'pruning.removeSelected': 'prune',
};

interface WaitingChange {
  change: Change;
  lease: LeaseTerm | null;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

interface NodeChangesOptions {
  log: SharedLog;
  /** The writer thread of this node. */
  thread: Caller;
  writer: Remote<NodeWrites>;
  follower: Follower;
  tables: readonly TablesSlot[];
  /** Random UUID. */
  newId: () => string;
}

/** The caller of all changes: one that resolves is in the shared log, and applied by this node. */
export class NodeChanges implements Caller {
  readonly #options: NodeChangesOptions;
  readonly #groups: ReadonlyMap<string, TablesSlot>;
  readonly #waiting: WaitingChange[] = [];
  #sending: Promise<void> | undefined;

  constructor(options: NodeChangesOptions) {
    this.#options = options;
    this.#groups = new Map(options.tables.map((one) => [one.group, one]));
  }

  async call(op: string, args: readonly unknown[], signal?: AbortSignal): Promise<unknown> {
    const isLocal = this.#groups.get(op.split('.')[0] ?? '')?.isLocal === true;
    if (isLocal || op === 'checkpoint') return this.#options.thread.call(op, args, signal);
    if (op === 'log.recover') return this.#recover(args[0] as RecoverOptions);
    if (op === 'pruneStep') return this.#pruneStep(args[0] as PruneStepOptions);
    return this.#enqueue(op, args);
  }

  /** Resolves when no change is in progress. */
  async drain(): Promise<void> {
    await this.#sending;
  }

  #enqueue(op: string, args: readonly unknown[]): Promise<unknown> {
    const lease = this.#leaseOf(op);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ change: { op, args }, lease, resolve, reject });
      this.#sending ??= Promise.resolve().then(() => this.#send());
    });
  }

  async #send(): Promise<void> {
    while (this.#waiting.length > 0) await this.#sendGroup();
    this.#sending = undefined;
  }

  /** Sends waiting changes with the same lease as the first one. Never rejects. */
  async #sendGroup(): Promise<void> {
    const { writer } = this.#options;
    const lease = this.#waiting[0]?.lease ?? null;
    const isSame = (one: WaitingChange) =>
      one.lease?.name === lease?.name && one.lease?.term === lease?.term;
    const end = this.#waiting.findIndex((one, i) => i === changesMax || !isSame(one));
    const group = this.#waiting.splice(0, end === -1 ? this.#waiting.length : end);
    try {
      const entry = await writer.prepareChanges(group.map(({ change }) => change));
      const { number } = await this.#append(entry, lease);
      const results = await writer.result(number);
      for (const [i, { resolve, reject }] of group.entries()) {
        const result = results?.[i];
        if (result === undefined) reject(new AppError('unavailable', 'The result was removed.'));
        else if ('error' in result) reject(deserializeError(result.error));
        else resolve(result.value);
      }
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  }

  async #append(entry: PreparedEntry, lease: LeaseTerm | null): Promise<AppendedEntry> {
    const { log, follower, newId } = this.#options;
    const appended = await log.append({ ...entry, batchId: newId(), lease, refusesReused: false });
    await follower.until(appended.number);
    return appended;
  }

  /** Returns the lease under which a job sends a change; null for a change that needs none. */
  #leaseOf(op: string): LeaseTerm | null {
    const { log } = this.#options;
    const [group = '', change = ''] = op.split('.');
    const { lease, withoutLease = [] } = this.#groups.get(group) ?? {};
    const name = ownLeases[op] ?? (withoutLease.includes(change) ? undefined : lease);
    // Jobs of the leader need no other lease; commands have none.
    return name === undefined ? null : (log.currentLease(name) ?? log.currentLease('leader'));
  }

  async #recover(recovered: RecoverOptions): Promise<(number | null)[]> {
    const { log, follower, writer } = this.#options;
    for (let attempt = 1; ; attempt++) {
      await follower.until((await log.head()).number);
      const { entry, isMissing } = await writer.prepareRecovered(recovered);
      if (entry === null) return isMissing.map(() => null);
      try {
        const { outcomes } = await this.#append(entry, this.#leaseOf('log.recover'));
        const decisions = outcomes.values();
        return isMissing.map((wasMissing) => {
          const decided = wasMissing ? decisions.next().value : undefined;
          return decided?.outcome === 'stored' ? decided.position : null;
        });
      } catch (error) {
        const isOutdated = isAppError(error, 'conflict') && error.facts.reason === 'received-since';
        if (!isOutdated || attempt === recoverAttempts) throw error;
      }
    }
  }

  /** Runs one step of a phase: one entry, except for the disk space of this node. */
  async #pruneStep(step: PruneStepOptions): Promise<PruneStep> {
    const { writer } = this.#options;
    if (step.phase === 'space') return writer.pruneStep(step);
    const selected = await writer.selectPrunable(step);
    if (selected === null) return { removed: 0, next: null };
    const { unit, next } = selected;
    const removed = unit === null ? 0 : await this.#enqueue('pruning.removeSelected', [unit]);
    return { removed: Number(removed), next };
  }
}
