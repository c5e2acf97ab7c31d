/**
 * Intake of pull subscriptions: reads a queue page by page, stores each entry, and acknowledges what is on disk. A
 * crash at any point repeats at most one page, whose entries are known by their AckIds.
 */

import type { AcquireLock } from '../core/host/job.ts';
import { errorFields, jittered } from '../core/host/job.ts';
import { AppError, errorText, isAppError } from '../core/terms/app-error.ts';
import type { Intake, Logger, Receipt } from '../core/terms/ports.ts';
import { backoffMs, createPageSize } from './listing-requests.ts';
import {
  type Acknowledgement,
  type PullQueue,
  type QueueEntry,
  type QueuePage,
  type QueueState,
  queueLengthMaxDefault,
  readEntriesMax,
} from './pull-queue.ts';

export interface PullIntakeDeps {
  queue: PullQueue;
  intake: Pick<Intake, 'accept'>;
  /** Runs work when this reader may read a page; see `createTurns`. */
  inTurn: RunInTurn;
  /** Called after entries were stored, before they are acknowledged. */
  onDelivered: (subscription: string, receipts: readonly Receipt[]) => void;
  nowUs: () => number;
  random: () => number;
  /** Resolves after a time, or immediately when the signal is aborted. Never rejects. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
  log: Logger;
}

type RunInTurn = <Result>(work: () => Promise<Result>, signal: AbortSignal) => Promise<Result>;

export interface PulledSubscription {
  name: string;
  /** Id in the catalogue. */
  id: string;
}

export interface QueueReader {
  /** Reads, stores and acknowledges until the signal is aborted. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /**
   * Reads the queue to its end. Waits and retries a few times after failures; then rejects as `PullQueue` and
   * `Intake.accept` do, and with the signal's reason.
   */
  drain(signal: AbortSignal, onPage?: (state: QueueState) => void): Promise<void>;
  state(): QueueState;
}

/** Interval of reads of an empty queue. It grows while the queue stays empty. */
const idleMs = { min: 2_000, max: 60_000, factor: 1.5 };

/** Delay after a failure, doubled by each further one. A longer `Retry-After` wins, up to its own maximum. */
const retryMs = { min: 2_000, max: 60_000, requestedMax: 3_600_000 };

/** Consecutive failures after which a drain gives up. */
const drainFailuresMax = 8;

/** Failures that a drain retries. `conflict`: another program reads a slow queue. */
const passingCodes = ['unavailable', 'too_many', 'conflict'] as const;

/** Time for another program to store and acknowledge its page. */
const lockWaitMs = 60_000;

/** Values of `$top`: smaller after failures, as one entry may be too large or too slow. */
const pageSizes = [readEntriesMax, 5, 1];

/** Creates the reader of one queue. Sends no request before it runs. `before`: the state at the end of the last process. */
export function createQueueReader(
  subscription: PulledSubscription,
  deps: PullIntakeDeps,
  before?: QueueState,
): QueueReader {
  const state = createState(subscription, deps.nowUs, before);
  const step = createStep(subscription, deps, state);
  const { pause, random, log } = deps;
  const fields = { subscription: subscription.name };
  const run = async (signal: AbortSignal) => {
    let waitMs = idleMs.min;
    let failures = 0;
    while (!signal.aborted) {
      try {
        const result = await step(signal);
        if (result === 'blocked') throw blockedError(subscription.name);
        if (failures > 0) log.info(fields, 'the queue is read again');
        failures = 0;
        waitMs = result === 'empty' ? Math.min(idleMs.max, waitMs * idleMs.factor) : idleMs.min;
        if (result !== 'more') await pause(Math.min(idleMs.max, jittered(waitMs, random)), signal);
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        const retryInMs = retryDelayMs(failures, error, random);
        state.failed(error);
        // A subscription that was just replaced is missing for a moment.
        const isFirst = failures === (isAppError(error, 'not_found') ? 2 : 1);
        const level = isFirst ? 'warn' : 'debug';
        log[level]({ ...fields, ...errorFields(error), retryInMs }, 'failed to read the queue');
        await pause(retryInMs, signal);
      }
    }
  };

  const drain: QueueReader['drain'] = async (signal, onPage = () => undefined) => {
    for (let failures = 0; ; ) {
      signal.throwIfAborted();
      try {
        const result = await step(signal);
        failures = 0;
        onPage(state.current());
        // Nobody can read beyond a block.
        if (result === 'empty' || result === 'blocked') return;
      } catch (error) {
        failures += 1;
        const isPassing = passingCodes.some((code) => isAppError(error, code));
        if (!isPassing || failures >= drainFailuresMax) throw error;
        await pause(retryDelayMs(failures, error, random), signal);
      }
    }
  };
  return { run, drain, state: state.current };
}

/** Delay in milliseconds after this number of failures in sequence. */
function retryDelayMs(failures: number, error: unknown, random: () => number): number {
  const asked = error instanceof AppError ? error.facts.retryAfterMs : null;
  const askedMs = typeof asked === 'number' ? Math.min(asked, retryMs.requestedMax) : null;
  return backoffMs(failures, retryMs, askedMs, random);
}

/**
 * Result of a step. `more`: the queue may have further entries. `last`: it has none for the moment. `empty`: there was
 * nothing to read. `blocked`: no entry of a whole page has an AckId, so that no later entry can be read.
 */
type StepResult = 'more' | 'last' | 'empty' | 'blocked';

type State = ReturnType<typeof createState>;

/** Creates the function that reads, stores and acknowledges one page, in its turn. */
function createStep({ name, id }: PulledSubscription, deps: PullIntakeDeps, state: State) {
  const { queue, intake, inTurn, nowUs } = deps;
  const size = createPageSize(pageSizes);
  /** Last entries without an AckId: they stay in the queue until a later entry has one, and are stored once. */
  let stuck = Buffer.of();
  /** Last entry whose acknowledgement was answered, and the number of times since then. */
  let last = { ackId: '', repeats: 0 };

  const read = async (signal: AbortSignal): Promise<QueuePage & { entriesMax: number }> => {
    const entriesMax = size.current();
    try {
      const page = await queue.read({ id, entriesMax, signal });
      size.succeeded();
      return { ...page, entriesMax };
    } catch (error) {
      const isSmaller = isAppError(error, 'unavailable') && size.shrink();
      if (isSmaller && error.facts.isTooLarge === true) return read(signal);
      throw error;
    }
  };

  const store = async (entries: readonly QueueEntry[], headers: string[]): Promise<void> => {
    const receivedAtUs = nowUs();
    const delivery = { subscription: name, receivedAtUs, source: 'pull', headers } as const;
    const receipts = await Promise.all(
      entries.map(({ bytes: body }) => intake.accept({ ...delivery, body })),
    );
    deps.onDelivered(name, receipts);
  };

  const acknowledge = async (ackId: string): Promise<Acknowledgement> => {
    const answer = await queue.acknowledge({ id, ackId }).catch((error: unknown) => {
      // The entry was acknowledged before, by a request whose answer was lost, or by another reader.
      if (!isAppError(error, 'not_found')) throw error;
      return { length: null, lengthMax: null };
    });
    last = { ackId, repeats: last.ackId === ackId ? last.repeats + 1 : 0 };
    // Once, the service may have shown an earlier state of the queue.
    if (last.repeats > 1) throw withoutEffect(name);
    return answer;
  };

  const step = async (signal: AbortSignal): Promise<StepResult> => {
    const { entries, headers, entriesMax } = await read(signal);
    const end = entries.findLastIndex(({ ackId }) => ackId !== null) + 1;
    const page = entries.slice(0, end);
    const ackId = page.at(-1)?.ackId ?? null;
    if (ackId === null) {
      const bytes = Buffer.concat(entries.map((entry) => entry.bytes));
      if (!bytes.equals(stuck)) await store(entries, headers);
      stuck = bytes;
      if (entries.length >= readEntriesMax) return 'blocked';
      // A smaller page after failures may hide later entries.
      if (entries.length >= entriesMax) return 'last';
      state.emptied();
      return 'empty';
    }
    await store(page, headers);
    const answer = await acknowledge(ackId);
    state.acknowledged({ page, rest: entries[end], answer });
    return answer.length === 0 ? 'last' : 'more';
  };
  return (signal: AbortSignal) => inTurn(() => step(signal), signal);
}

/**
 * Creates the turns to read a page: one reader at a time. Those of this program queue without a limit; programs
 * alternate, as each waits for `pull-next` before `pull`.
 */
export function createTurns(acquireLock: AcquireLock): RunInTurn {
  let last: Promise<unknown> = Promise.resolve();
  return (work, signal) => {
    const options = { waitMs: lockWaitMs, signal };
    const turn = last.then(async () => {
      const leave = await acquireLock('pull-next', options);
      const release = await acquireLock('pull', options).finally(leave);
      return work().finally(release);
    });
    last = turn.catch(() => undefined);
    return turn;
  };
}

function blockedError(name: string): AppError {
  const message = `The first ${readEntriesMax} entries of the queue of ${name} have no AckId, so they cannot be acknowledged, and later entries cannot be read.`;
  const advice = `The ${readEntriesMax} entries are stored. Note the filter that \`earshot subscriptions list\` shows. Delete the subscription: \`earshot subscriptions delete ${name}\`. Register it again: \`earshot register --pull --subscription ${name}\` with the filter. The comparison with the catalogue fetches the later events.`;
  return new AppError('unavailable', message, { advice });
}

function withoutEffect(name: string): AppError {
  const message = `The catalogue shows entries of the queue of ${name} again after they were acknowledged.`;
  const advice = 'They are stored. earshot acknowledges them again later.';
  return new AppError('unavailable', message, { advice });
}

/** Creates the state of a queue, for monitoring. */
function createState({ name, id }: PulledSubscription, nowUs: () => number, before?: QueueState) {
  let state: QueueState = {
    ...{ subscription: name, subscriptionId: id, length: null, lengthMax: queueLengthMaxDefault },
    ...{ oldestAtUs: null, emptiedAtUs: null, readAtUs: null },
    ...(before?.subscriptionId === id ? before : {}),
    ...{ entries: 0, failure: null, failingSinceUs: null },
  };
  const succeeded = (changes: Partial<QueueState>) => {
    state = { ...state, failure: null, failingSinceUs: null, readAtUs: nowUs(), ...changes };
  };
  return {
    current: (): QueueState => state,
    failed: (error: unknown) => {
      const failingSinceUs = state.failingSinceUs ?? nowUs();
      state = { ...state, failure: errorText(error), failingSinceUs };
    },
    emptied: () => succeeded({ length: 0, oldestAtUs: null, emptiedAtUs: nowUs() }),
    /** Records a page that was stored and acknowledged; `rest` is the next entry, if it was read too. */
    acknowledged: (done: {
      page: readonly QueueEntry[];
      rest: QueueEntry | undefined;
      answer: Acknowledgement;
    }) => {
      const { page, rest, answer } = done;
      const isEnd = answer.length === 0;
      succeeded({
        lengthMax: answer.lengthMax ?? state.lengthMax,
        length: answer.length,
        // Until the next page: the first entry of this one is older than all that remain.
        oldestAtUs: isEnd ? null : ((rest ?? page.at(-1))?.notificationUs ?? null),
        ...(isEnd ? { emptiedAtUs: nowUs() } : {}),
        entries: state.entries + page.length,
      });
    },
  };
}
