/**
 * Intake of pull subscriptions: reads a queue page by page, stores each entry, and acknowledges what is on disk. A
 * crash at any point repeats at most one page, whose entries are known by their AckIds.
 */

import { type AcquireLock, errorFields, jittered, type Release } from '../core/host/job.ts';
import { AppError, errorText, isAppError } from '../core/terms/app-error.ts';
import { hourUs } from '../core/terms/dates.ts';
import type { Intake, Logger, Receipt } from '../core/terms/ports.ts';
import { createPageSize } from './page-size.ts';
import {
  type Acknowledgement,
  type PullQueue,
  type QueueEntry,
  type QueuePage,
  type QueueState,
  queueLengthMaxDefault,
  readEntriesMax,
} from './pull-queue.ts';
import { retried, retryDelayMs } from './queue-retries.ts';

export interface PullIntakeDeps {
  queue: PullQueue;
  intake: Pick<Intake, 'accept'>;
  /** Waits until this reader may read a page; see `createTurns`. */
  takeTurn: (signal: AbortSignal) => Promise<Release>;
  /** Called after entries were stored, before they are acknowledged. */
  onDelivered: (subscription: string, receipts: readonly Receipt[]) => void;
  nowUs: () => number;
  random: () => number;
  /** Resolves after a time, or immediately when the signal is aborted. Never rejects. */
  pause: (ms: number, signal: AbortSignal) => Promise<void>;
  log: Logger;
}

export interface PulledSubscription {
  name: string;
  /** Id in the catalogue. */
  id: string;
}

export interface QueueReader {
  /** Reads, stores and acknowledges until the signal is aborted. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /**
   * Reads the queue to its end, and resolves with the time before the last request. Waits and retries a few times
   * after failures; then rejects as `PullQueue` and `Intake.accept` do, and with the signal's reason.
   */
  drain(signal: AbortSignal, onPage?: (state: QueueState) => void): Promise<number>;
  state(): QueueState;
}

/** Interval of reads of an empty queue. It grows while the queue stays empty. */
const idleMs = { min: 2_000, max: 60_000, factor: 1.5 };

/** Consecutive failures after which a drain gives up. */
const drainFailuresMax = 8;

/** Time for another program to store and acknowledge its page. */
const lockWaitMs = 60_000;

/** Values of `$top`: smaller after repeated failures, as one entry may be too large or too slow. */
const pageSizes = [readEntriesMax, 5, 1];

/**
 * Returns the function that waits for the turn to read a page, so that one program at a time reads queues. Within a
 * process, turns have the order of the calls. Programs alternate: each waits for `pull-next` before `pull`.
 */
export function createTurns(acquireLock: AcquireLock): (signal: AbortSignal) => Promise<Release> {
  let last = Promise.resolve();
  const acquire = async (signal: AbortSignal) => {
    const leave = await acquireLock('pull-next', { waitMs: lockWaitMs, signal });
    try {
      return await acquireLock('pull', { waitMs: lockWaitMs, signal });
    } finally {
      leave();
    }
  };
  return async (signal) => {
    const before = last;
    const { promise, resolve } = Promise.withResolvers<void>();
    last = promise;
    await before;
    try {
      const release = await acquire(signal);
      return () => {
        release();
        resolve();
      };
    } catch (error) {
      resolve();
      throw error;
    }
  };
}

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
        const { isEnd, isBlocked, entries } = await step(signal);
        if (isBlocked) throw blockedError(subscription.name);
        if (failures > 0) log.info(fields, 'the queue is read again');
        failures = 0;
        waitMs = entries > 0 ? idleMs.min : Math.min(idleMs.max, waitMs * idleMs.factor);
        if (isEnd) await pause(Math.min(idleMs.max, jittered(waitMs, random)), signal);
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
    for (;;) {
      let beganAtUs = deps.nowUs();
      const { isEmpty, isBlocked } = await retried(
        () => {
          signal.throwIfAborted();
          beganAtUs = deps.nowUs();
          return step(signal);
        },
        { failuresMax: drainFailuresMax, signal, pause, random },
      );
      onPage(state.current());
      // Nobody can read beyond a block.
      if (isEmpty || isBlocked) return beganAtUs;
    }
  };
  return { run, drain, state: state.current };
}

interface StepResult {
  /** Number of entries of the page. */
  entries: number;
  /** True if the page was empty. */
  isEmpty: boolean;
  /** True if the queue has no further entries, as far as the answers show. */
  isEnd: boolean;
  /** True if no entry of a whole page has an AckId, so that no later entry can be read. */
  isBlocked: boolean;
}

const nothingRead: StepResult = { entries: 0, isEmpty: true, isEnd: true, isBlocked: false };

type State = ReturnType<typeof createState>;

/** `entriesMax`: requested number of entries. */
type ReadPage = QueuePage & { entriesMax: number };

/** Creates the requests for the pages of one queue. */
function createRequests({ name, id }: PulledSubscription, queue: PullQueue, state: State) {
  const size = createPageSize(pageSizes);
  /** Last entry whose acknowledgement was answered, and the number of times since then. */
  let last = { ackId: '', repeats: 0 };

  const read = async (signal: AbortSignal): Promise<ReadPage> => {
    const entriesMax = size.current();
    try {
      const page = await queue.read({ id, entriesMax, signal });
      size.succeeded();
      return { ...page, entriesMax };
    } catch (error) {
      if (!isAppError(error, 'unavailable')) throw error;
      if (error.facts.isTooLarge === true && size.shrink()) return await read(signal);
      size.failed();
      throw error;
    } finally {
      state.requested();
    }
  };

  const acknowledge = async (ackId: string): Promise<Acknowledgement> => {
    const isRepeat = last.ackId === ackId;
    let answer: Acknowledgement;
    try {
      answer = await queue.acknowledge({ id, ackId });
    } catch (error) {
      // The entry was acknowledged before, by a request whose answer was lost, or by another reader.
      if (!isAppError(error, 'not_found')) throw error;
      answer = { acknowledged: isRepeat ? null : 0, length: null, lengthMax: null };
    } finally {
      state.requested();
    }
    last = { ackId, repeats: isRepeat ? last.repeats + 1 : 0 };
    // Once, the service may have shown an earlier state of the queue.
    if (last.repeats > 1) throw withoutEffect(name);
    return answer;
  };
  return { read, acknowledge };
}

/** Creates the function that reads, stores and acknowledges one page, in its turn. */
function createStep(subscription: PulledSubscription, deps: PullIntakeDeps, state: State) {
  const { name } = subscription;
  const { queue, intake, takeTurn, nowUs } = deps;
  const { read, acknowledge } = createRequests(subscription, queue, state);
  const isRepeated = createRepeatedPages();
  const warnOfRemovals = createRemovalWarning(name, deps);

  const store = async (entries: readonly QueueEntry[], headers: string[]): Promise<Receipt[]> => {
    const receivedAtUs = nowUs();
    const delivery = { subscription: name, receivedAtUs, source: 'pull', headers } as const;
    const receipts = await Promise.all(
      entries.map(({ bytes: body }) => intake.accept({ ...delivery, body })),
    );
    deps.onDelivered(name, receipts);
    return receipts;
  };

  /** Entries without an AckId are stored once: they stay in the queue until a later entry has one. */
  const storeOnly = async ({ entries, headers, entriesMax }: ReadPage) => {
    if (!isRepeated(entries)) await store(entries, headers);
    const isFull = entries.length >= entriesMax;
    if (!isFull) state.emptied();
    const isBlocked = entries.length >= readEntriesMax;
    return { ...nothingRead, isEmpty: !isFull, isBlocked };
  };

  return async (signal: AbortSignal): Promise<StepResult> => {
    const release = await takeTurn(signal);
    try {
      const found = await read(signal);
      const { entries, headers } = found;
      if (entries.length === 0) {
        state.emptied();
        return nothingRead;
      }
      const last = entries.findLastIndex(({ ackId }) => ackId !== null);
      const ackId = entries[last]?.ackId ?? null;
      if (ackId === null) return await storeOnly(found);
      const page = entries.slice(0, last + 1);
      const receipts = await store(page, headers);
      const answer = await acknowledge(ackId);
      const stored = receipts.filter(({ outcome }) => outcome === 'stored').length;
      const removed = state.acknowledged({ page, stored, rest: entries[last + 1], answer });
      if (removed !== null) warnOfRemovals(removed);
      const isEnd = answer.length === 0;
      return { entries: page.length, isEmpty: false, isEnd, isBlocked: false };
    } finally {
      release();
    }
  };
}

/** Entries that left the queue without this reader; `isUnread` for those that it never read. */
interface Removal {
  entries: number;
  isUnread: boolean;
}

/** Returns the function that logs it at most once per hour. */
function createRemovalWarning(subscription: string, { log, nowUs }: PullIntakeDeps) {
  let lastAtUs = Number.NEGATIVE_INFINITY;
  return ({ entries, isUnread }: Removal) => {
    const isRecent = nowUs() - lastAtUs < hourUs;
    if (!isRecent) lastAtUs = nowUs();
    const text = isUnread
      ? 'an acknowledgement removed entries of this queue that were not read'
      : 'another program acknowledges entries of this queue';
    log[isRecent ? 'debug' : 'warn']({ subscription, entries }, text);
  };
}

function blockedError(name: string): AppError {
  return new AppError(
    'unavailable',
    `The first ${readEntriesMax} entries of the queue of ${name} have no AckId, so they cannot be acknowledged, and later entries cannot be read.`,
    {
      advice: `The ${readEntriesMax} entries are stored. Note the filter that \`earshot subscriptions list\` shows. Delete the subscription: \`earshot subscriptions delete ${name}\`. Register it again: \`earshot register --pull --subscription ${name}\` with the filter. The comparison with the catalogue fetches the later events.`,
    },
  );
}

function withoutEffect(name: string): AppError {
  return new AppError(
    'unavailable',
    `The catalogue shows entries of the queue of ${name} again after they were acknowledged.`,
    { advice: 'They are stored. earshot acknowledges them again later.' },
  );
}

/** Returns a function that is true for the same entries as in the last call. */
function createRepeatedPages() {
  let last: readonly QueueEntry[] = [];
  return (entries: readonly QueueEntry[]): boolean => {
    const isSame =
      entries.length === last.length &&
      entries.every(({ bytes }, i) => Buffer.compare(bytes, last[i]?.bytes ?? Buffer.of()) === 0);
    last = entries;
    return isSame;
  };
}

/** Creates the state of a queue, for monitoring. */
function createState({ name, id }: PulledSubscription, nowUs: () => number, before?: QueueState) {
  const rate = createRate();
  let state: QueueState = {
    ...{ subscription: name, subscriptionId: id, length: null, lengthMax: queueLengthMaxDefault },
    ...{ oldestAtUs: null, emptiedAtUs: null, readAtUs: null, entriesPerHour: null },
    ...(before?.subscriptionId === id ? before : {}),
    ...{ entries: 0, requests: 0, failure: null, failingSinceUs: null, otherReader: null },
  };
  const usualPerHour = state.entriesPerHour;
  const succeeded = (changes: Partial<QueueState>) => {
    state = { ...state, failure: null, failingSinceUs: null, readAtUs: nowUs(), ...changes };
  };
  return {
    current: (): QueueState => ({ ...state, entriesPerHour: rate.perHour() ?? usualPerHour }),
    requested: () => {
      state.requests += 1;
    },
    failed: (error: unknown) => {
      const failingSinceUs = state.failingSinceUs ?? nowUs();
      state = { ...state, failure: errorText(error), failingSinceUs };
    },
    emptied: () => succeeded({ length: 0, oldestAtUs: null, emptiedAtUs: nowUs() }),
    /**
     * Records a page that was stored and acknowledged. Returns the entries that left the queue without this reader:
     * somebody else acknowledged entries of the page meanwhile, or the acknowledgement removed more than the page. A
     * page that was known before is no sign of the first: the service may have shown it twice.
     */
    acknowledged: (done: {
      page: readonly QueueEntry[];
      stored: number;
      /** The next entry, if it was read too. */
      rest: QueueEntry | undefined;
      answer: Acknowledgement;
    }): Removal | null => {
      const { page, stored, rest, answer } = done;
      if (stored > 0) rate.add(page);
      const lengthMax = answer.lengthMax ?? state.lengthMax;
      const missing = page.length - (answer.acknowledged ?? page.length);
      // The catalogue drops the oldest entries of a full queue, also those of this page.
      const lengthBefore = (answer.length ?? 0) + page.length;
      const isOverflow = lengthBefore >= lengthMax - page.length;
      const others = stored === 0 || isOverflow ? 0 : Math.max(0, Math.min(missing, stored));
      const entries = Math.max(others, -missing);
      const removal = entries > 0 ? { entries, isUnread: missing < 0 } : null;
      const isEnd = answer.length === 0;
      succeeded({
        lengthMax,
        length: answer.length,
        // Until the next page: the first entry of this one is older than all that remain.
        oldestAtUs: isEnd ? null : ((rest ?? page.at(-1))?.notificationUs ?? null),
        ...(isEnd ? { emptiedAtUs: nowUs() } : {}),
        entries: state.entries + page.length,
        ...(removal ? { otherReader: { atUs: nowUs(), entries } } : {}),
      });
      return removal;
    },
  };
}

/** Number of hours of the observed rate. */
const rateHours = 24;

/** Counts new entries by the hour of their NotificationDate: a queue that was not read for a day is read in minutes. */
function createRate() {
  const counts = new Map<number, number>();
  const newest = () => Math.max(...counts.keys());
  return {
    add: (page: readonly QueueEntry[]) => {
      for (const { notificationUs } of page) {
        if (notificationUs === null) continue;
        const hour = Math.floor(notificationUs / hourUs);
        counts.set(hour, (counts.get(hour) ?? 0) + 1);
      }
      for (const hour of counts.keys()) if (hour < newest() - rateHours) counts.delete(hour);
    },
    /** Returns the mean of the whole hours; null before the first one. */
    perHour: (): number | null => {
      const last = newest();
      const hours = Math.min(rateHours, last - Math.min(...counts.keys()));
      if (counts.size < 2) return null;
      const whole = [...counts].filter(([hour]) => hour < last && hour >= last - hours);
      return whole.reduce((sum, [, entries]) => sum + entries, 0) / hours;
    },
  };
}
