/** Intake of the pull subscriptions as a background job of the receiver: one reader for each queue. */

import { openPullQueue, type PullConfig } from '../../admin/queue-client.ts';
import { createQueueReader, createTurns, type QueueReader } from '../../admin/queue-reader.ts';
import { type Io, pause } from '../../core/cli/io.ts';
import { errorFields, type Job, startJob } from '../../core/host/job.ts';
import type { Logger, Receipt } from '../../core/terms/ports.ts';
import type { Store } from '../../store/store.ts';

/** Interval in which changed registrations are noticed, and changed states of queues are stored. */
const followMs = 3_000;

const stateNotStored = 'failed to store the states of the queues';

interface RunningReader extends QueueReader {
  stop(): Promise<void>;
}

/** Starts a reader for each registered pull subscription, and follows changes of the registrations. */
export function startPullIntake(
  parts: {
    store: Pick<Store, 'accept' | 'administration' | 'acquireLock'>;
    notePulled: (subscription: string, receipts: readonly Receipt[]) => void;
    log: Logger;
  },
  config: PullConfig,
  io: Pick<Io, 'nowUs' | 'random' | 'fetch'>,
): Job {
  const { store, notePulled: onDelivered, log } = parts;
  const { nowUs, random } = io;
  const queue = openPullQueue(config, io);
  const deps = {
    ...{ queue, intake: store, inTurn: createTurns(store.acquireLock), onDelivered },
    ...{ nowUs, random, pause, log },
  };
  const readers = new Map<string, RunningReader>();

  const open = async (name: string, id: string): Promise<RunningReader> => {
    const stopping = new AbortController();
    const states = await store.administration.queues();
    const before = states.find(({ subscription }) => subscription === name);
    const reader = createQueueReader({ name, id }, deps, before);
    const running = reader.run(stopping.signal);
    log.info({ subscription: name, subscriptionId: id }, 'reading the queue');
    return {
      ...reader,
      stop: () => {
        stopping.abort();
        return running;
      },
    };
  };

  const follow = async () => {
    const registrations = await store.administration.registrations();
    const desired = registrations.flatMap(({ name, type, subscriptionId: id, unfinished }) => {
      const key = `${name} ${id}`;
      // During a change, the id may be that of a push subscription.
      const isRead = type === 'pull' && (!unfinished || readers.has(key));
      return isRead && id !== null ? [{ key, name, id }] : [];
    });
    const keys = new Set(desired.map(({ key }) => key));
    for (const [key, reader] of readers) {
      if (keys.has(key)) continue;
      readers.delete(key);
      await reader.stop();
    }
    for (const { key, name, id } of desired) {
      if (!readers.has(key)) readers.set(key, await open(name, id));
    }
    await saveStates().catch((error: unknown) => log.debug(errorFields(error), stateNotStored));
  };
  let saved = '';
  const saveStates = async () => {
    const states = [...readers.values()].map((reader) => reader.state());
    const text = JSON.stringify(states);
    if (text === saved) return;
    await store.administration.saveQueues(states);
    saved = text;
  };

  const job = startJob(
    {
      every: { firstMs: 0, intervalMs: followMs },
      run: follow,
      failed: 'failed to read the registered subscriptions',
    },
    { pause, random, log },
  );
  return {
    stop: async () => {
      await job.stop();
      await Promise.all([...readers.values()].map((reader) => reader.stop()));
      await saveStates().catch((error: unknown) => log.debug(errorFields(error), stateNotStored));
    },
  };
}

/** Logs the pull subscriptions whose queues nothing reads. */
export async function warnOfUnreadQueues({ administration }: Store, log: Logger): Promise<void> {
  const registrations = await administration.registrations();
  const names = registrations.filter(({ type }) => type === 'pull').map(({ name }) => name);
  if (names.length === 0) return;
  const reason = 'Set EARSHOT_ACCOUNT_USERNAME and EARSHOT_ACCOUNT_PASSWORD.';
  log.error({ subscriptions: names, reason }, 'queues are not read: no account is configured');
}
