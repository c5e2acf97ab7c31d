/** Writes of a node, which go through the shared log: deliveries, and changes of the store. */
import { type Caller, deserializeError, type Remote } from '../../core/host/rpc.ts';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import type { Fault } from '../../core/terms/notification.ts';
import type { Receipt } from '../../core/terms/ports.ts';
import { type IntakeOptions, IntakeQueue, packDeliveries } from '../../store/log/intake-queue.ts';
import type { RecoverOptions } from '../../store/log/recovered-events.ts';
import { ackIdReused } from '../../store/log/write-delivery.ts';
import type { TablesSlot } from '../../store/tables.ts';
import type { Change, PreparedDelivery } from './entry.ts';
import type { Follower } from './follower.ts';
import type { LeaseTerm } from './leases.ts';
import type { NodeWrites } from './node-thread.ts';
import type { SharedLog } from './postgres-log.ts';
import type { AppendedEntry, ItemOutcome, NewEntry } from './schema.ts';

/** Maximum deliveries of one entry. */
const deliveriesMax = 256;

/** Appends in progress: while one waits for the database, the next one is prepared. */
const commitsMax = 2;

interface NodeOptions {
  log: SharedLog;
  writer: Remote<NodeWrites>;
  follower: Follower;
}

/** Creates the queue of deliveries, which appends them. */
export const createNodeIntake = (
  { log, writer }: NodeOptions,
  options: Pick<IntakeOptions, 'thread' | 'queueBytesMax' | 'onCommit'>,
): IntakeQueue =>
  new IntakeQueue({
    ...{ ...options, deliveriesMax, commitsMax, nextCommitMin: 1 },
    commit: async (waiting) => {
      const startedMs = performance.now();
      const prepared = await writer.prepareDeliveries(packDeliveries(waiting));
      const { deliveries, publicationDelay } = prepared;
      const { outcomes } = await log.append(prepared);
      const left = outcomes.values();
      const receipts = deliveries.map((one) => receiptOf(one, [...left.take(one.items)]));
      const durationSeconds = (performance.now() - startedMs) / 1_000;
      return { receipts, values: [], durationSeconds, publicationDelay };
    },
    check: () => log.check(),
  });

/** Appends a quarantined body again. */
export async function retryQuarantined(
  { log, writer, follower }: NodeOptions,
  quarantineId: number,
): Promise<Receipt> {
  const rejected = (faults: Fault[]): Receipt => ({
    ...{ outcome: 'rejected', faults, quarantineId, stored: 0 },
  });
  const prepared = await writer.prepareRetry(quarantineId);
  if ('faults' in prepared) return rejected(prepared.faults);
  try {
    const { number, outcomes } = await log.append({ ...prepared, refusesReused: true });
    // The entry of the quarantine is removed when this one is applied.
    await follower.until(number);
    return receiptOf(prepared.deliveries[0] as PreparedDelivery, outcomes);
  } catch (error) {
    if (isAppError(error, 'conflict')) return rejected([ackIdReused]);
    throw error;
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

interface WaitingChange extends Pick<PromiseWithResolvers<unknown>, 'resolve' | 'reject'> {
  change: Change;
  lease: LeaseTerm | null;
}

interface NodeChangesOptions extends NodeOptions {
  /** The writer thread of this node. */
  thread: Caller;
  tables: readonly TablesSlot[];
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
    if (isLocal || op.startsWith('file.')) return this.#options.thread.call(op, args, signal);
    if (op === 'log.recover') return this.#recover(args[0] as RecoverOptions);
    return this.#enqueue(op, args);
  }

  /** Resolves when no change is in progress. */
  async drain(): Promise<void> {
    await this.#sending;
  }

  #enqueue(op: string, args: readonly unknown[]): Promise<unknown> {
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#waiting.push({ change: { op, args }, lease: this.#leaseOf(op), resolve, reject });
    this.#sending ??= Promise.resolve().then(() => this.#send());
    return promise;
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

  async #append(entry: NewEntry, lease: LeaseTerm | null): Promise<AppendedEntry> {
    const { log, follower } = this.#options;
    const appended = await log.append({ ...entry, lease });
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
}
