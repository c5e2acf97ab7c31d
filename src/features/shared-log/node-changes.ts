/** Sends changes of the store through the shared log, so that every node applies them. */

import type { Caller, Remote } from '../../core/host/rpc.ts';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import type { RecoverOptions } from '../../store/log/recovered-events.ts';
import type { PruneStep, Pruning } from '../../store/pruning/terms.ts';
import type { TablesSlot } from '../../store/tables.ts';
import { type ChangeResult, changeValue } from './apply-entries.ts';
import type { Change } from './entry.ts';
import type { Follower } from './follower.ts';
import type { NodeWrites } from './node-thread.ts';
import type { PreparedEntry } from './prepare-entry.ts';
import type { LeaseTerm, SharedLog } from './terms.ts';

/** Changes in one entry. */
const changesMax = 256;

/** Attempts to write recovered events while notifications of the same products arrive. */
const recoverAttempts = 5;

interface Waiting {
  change: Change;
  lease: LeaseTerm | null;
  resolve(value: unknown): void;
  reject(error: unknown): void;
}

export interface NodeChangesOptions {
  log: Pick<SharedLog, 'append' | 'head' | 'currentLease'>;
  /** The writer thread of this node. */
  thread: Caller;
  writer: Remote<NodeWrites>;
  follower: Pick<Follower, 'until'>;
  tables: readonly TablesSlot[];
  /** Random UUID. */
  newId: () => string;
}

/** Returns the caller of all changes: one that resolves is in the shared log, and applied by this node. */
export function createNodeChanges(
  options: NodeChangesOptions,
): Caller & { drain(): Promise<void> } {
  const { log, thread, writer, follower, newId } = options;
  const rules = createRules(options.tables);
  const waiting: Waiting[] = [];
  let sending: Promise<void> | undefined;

  const append = async (entry: PreparedEntry, lease: LeaseTerm | null) => {
    const appended = await log.append({ ...entry, batchId: newId(), lease, refusesReused: false });
    await follower.until(appended.number);
    return appended;
  };
  /** Sends waiting changes with the same lease as the first one. Never rejects. */
  const sendGroup = async () => {
    const lease = waiting[0]?.lease ?? null;
    const isSame = (one: Waiting) =>
      one.lease?.name === lease?.name && one.lease?.term === lease?.term;
    const end = waiting.findIndex((one, i) => i === changesMax || !isSame(one));
    const group = waiting.splice(0, end === -1 ? waiting.length : end);
    try {
      const entry = await writer.prepareChanges(group.map(({ change }) => change));
      const { number } = await append(entry, lease);
      const results = (await writer.result(number)) as ChangeResult[] | null;
      for (const [i, { resolve, reject }] of group.entries()) settle(results?.[i], resolve, reject);
    } catch (error) {
      for (const { reject } of group) reject(error);
    }
  };
  const send = async () => {
    while (waiting.length > 0) await sendGroup();
    sending = undefined;
  };
  const leaseOf = (op: string): LeaseTerm | null => {
    const name = rules.leaseOf(op);
    // Jobs of the leader need no other lease; commands have none.
    return name === undefined ? null : (log.currentLease(name) ?? log.currentLease('leader'));
  };
  const recover = async (options: RecoverOptions) => {
    for (let attempt = 1; ; attempt++) {
      await follower.until((await log.head()).number);
      const { entry, isMissing } = await writer.prepareRecovered(options);
      if (entry === null) return isMissing.map(() => null);
      try {
        const { outcomes } = await append(entry, leaseOf('log.recover'));
        return positionsOf(isMissing, outcomes);
      } catch (error) {
        const isOutdated = isAppError(error, 'conflict') && error.facts.reason === 'received-since';
        if (!isOutdated || attempt === recoverAttempts) throw error;
      }
    }
  };
  const enqueue = (op: string, args: readonly unknown[]) => {
    const lease = leaseOf(op);
    return new Promise((resolve, reject) => {
      waiting.push({ change: { op, args }, lease, resolve, reject });
      sending ??= Promise.resolve().then(send);
    });
  };
  return {
    call: async (op, args, signal) => {
      if (rules.isLocal(op)) return thread.call(op, args, signal);
      if (op === 'log.recover') return recover(args[0] as Parameters<typeof recover>[0]);
      if (op === 'pruneStep') return pruneStep(args[0] as StepOptions, { writer, enqueue });
      return enqueue(op, args);
    },
    drain: async () => {
      await sending;
    },
  };
}

/** Returns the rules of the changes: those of features are in their tables. */
function createRules(tables: readonly TablesSlot[]) {
  const byGroup = new Map(tables.map((one) => [one.group, one]));
  return {
    /** Changes of this node only. */
    isLocal: (op: string) =>
      op === 'checkpoint' || byGroup.get(op.split('.')[0] ?? '')?.isLocal === true,
    /** Returns the lease under which a job sends a change; undefined for changes that need none. */
    leaseOf: (op: string): string | undefined => {
      if (op === 'log.recover') return 'reconcile';
      if (op === 'pruning.removeSelected') return 'prune';
      const [group = '', name = ''] = op.split('.');
      const { lease, withoutLease = [] } = byGroup.get(group) ?? {};
      return withoutLease.includes(name) ? undefined : lease;
    },
  };
}

type StepOptions = Parameters<Pruning['pruneStep']>[0];

/** Runs one step of a phase: one entry, except for the disk space of this node. */
async function pruneStep(
  options: StepOptions,
  {
    writer,
    enqueue,
  }: {
    writer: Pick<Remote<NodeWrites>, 'pruneStep' | 'selectPrunable'>;
    enqueue: (op: string, args: readonly unknown[]) => Promise<unknown>;
  },
): Promise<PruneStep> {
  if (options.phase === 'space') return writer.pruneStep(options);
  const selected = await writer.selectPrunable(options);
  if (selected === null) return { removed: 0, next: null };
  const { unit, next } = selected;
  const removed = unit === null ? 0 : Number(await enqueue('pruning.removeSelected', [unit]));
  return { removed, next };
}

function settle(
  result: ChangeResult | undefined,
  resolve: (value: unknown) => void,
  reject: (error: unknown) => void,
): void {
  if (result === undefined) {
    reject(new AppError('unavailable', 'The result of the change is not known any more.'));
    return;
  }
  try {
    resolve(changeValue(result));
  } catch (error) {
    reject(error);
  }
}

/** Returns the positions of all events; null for those that needed no row. */
function positionsOf(
  isMissing: readonly boolean[],
  outcomes: Awaited<ReturnType<SharedLog['append']>>['outcomes'],
): (number | null)[] {
  let next = 0;
  return isMissing.map((wasMissing) => {
    if (!wasMissing) return null;
    const decided = outcomes[next];
    next += 1;
    return decided?.outcome === 'stored' ? decided.position : null;
  });
}
