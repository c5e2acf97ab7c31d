/** A queue of the sandbox, read over HTTP into a real store. */
import { onTestFinished } from 'vitest';
import type { PullQueue } from '../../src/admin/pull-queue.ts';
import { openPullQueue } from '../../src/admin/queue-client.ts';
import {
  createQueueReader,
  createTurns,
  type PullIntakeDeps,
} from '../../src/admin/queue-reader.ts';
import type { AddedSubscription } from '../../src/sandbox/account.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import type { ServiceSettingsInput } from '../../src/sandbox/settings.ts';
import { collect } from '../helpers/deliveries.ts';
import { silentLog } from '../helpers/recording-log.ts';
import { openSqliteStore } from '../store/sqlite-store.ts';

export const startMs = Date.UTC(2026, 4, 1, 12);
export const dayMs = 86_400_000;

/** Time moves only by `sandbox.clock.advance`, and by waits of the reader, which take no real time. */
export async function openPullSetUp(
  service: ServiceSettingsInput = {},
  subscription: AddedSubscription = {},
) {
  const sandbox = await startSandbox({ now: () => startMs, service, count: 0, eventsMax: 200_000 });
  onTestFinished(() => sandbox.close());
  const { id } = sandbox.addSubscription({ type: 'pull', ...subscription });
  const nowUs = () => Math.trunc(sandbox.clock.now()) * 1_000;
  const { store, dataDir } = await openSqliteStore();
  const waits: number[] = [];
  const account = {
    kind: 'password' as const,
    ...{ tokenUrl: sandbox.tokenUrl, clientId: 'cdse-public', totp: undefined },
    ...{ username: 'sandbox', password: 'sandbox' },
  };
  const { catalogueUrl } = sandbox;
  const queue = openPullQueue(
    { account, dataDir, catalogueUrl, pullRequestsPerMinute: 1e9 },
    { nowUs, random: () => 0.5, fetch },
  );
  const deps: PullIntakeDeps = {
    queue,
    intake: store,
    inTurn: createTurns(store.acquireLock),
    onDelivered: () => undefined,
    nowUs,
    random: () => 0.5,
    pause: async (ms) => {
      waits.push(ms);
      sandbox.clock.advance(ms);
    },
    log: silentLog,
  };
  const reader = (changes: Partial<PullIntakeDeps> = {}) =>
    createQueueReader({ name: 'alps', id }, { ...deps, ...changes });
  return {
    ...{ account, sandbox, store, dataDir, queue, id, nowUs, deps, reader, waits },
    /** Reads the queue to its end. */
    drain: (changes: Partial<PullIntakeDeps> = {}) =>
      reader(changes).drain(new AbortController().signal),
    /** Reads until `isDone`, as the receiver does; returns the reader. */
    runUntil: async (isDone: () => boolean, changes: Partial<PullIntakeDeps> = {}) => {
      const stop = new AbortController();
      const running = reader({
        ...changes,
        pause: async (ms, signal) => {
          await (changes.pause ?? deps.pause)(ms, signal);
          if (isDone()) stop.abort();
        },
      });
      await running.run(stop.signal);
      return running;
    },
    /** Rows of the log, oldest first. */
    rows: () => collect(store.find({ order: 'oldest' })),
    /** Number of entries in the queue. */
    length: () => sandbox.queues()[0]?.length,
    published: () => sandbox.entries().map(({ ackId }) => ackId),
  };
}

/** Returns a queue that calls `before` with each call; what it throws is the result of the call. */
export function wrapped(
  queue: PullQueue,
  before: (call: 'read' | 'acknowledge', ackId: string | null) => void | Promise<void>,
): PullQueue {
  return {
    read: async (options) => {
      await before('read', null);
      return queue.read(options);
    },
    acknowledge: async (options) => {
      await before('acknowledge', options.ackId);
      return queue.acknowledge(options);
    },
  };
}
