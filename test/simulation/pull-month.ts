/** Simulates a month of pull subscriptions, with receiver outages: the queues are read as `start` does. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openPullQueue } from '../../src/admin/open-queue.ts';
import { createQueueReader, createTurns, type QueueReader } from '../../src/admin/queue-reader.ts';
import { notificationDelayUs } from '../../src/core/terms/catalogue-events.ts';
import type { SubscriptionEvent } from '../../src/core/terms/subscription.ts';
import { times } from '../helpers/thorough.ts';
import { account, type MonthContext, openMonthContext } from './month-context.ts';
import type { SubscriptionPeriod } from './month-results.ts';
import type { SimulatedMonth } from './month-run.ts';

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

/** Simulated time between two reads of a queue. */
const readEveryMs = times(60, 30) * minuteMs;

/** Simulated hours between two comparisons. */
const roundHours = times(12, 6);

/** A queue with more entries is read to its end before its events are compared. */
const longLength = 100;

const subscriptions = {
  acquisitions: {
    type: 'pull',
    events: ['created', 'modified'],
    filter: "Collection/Name eq 'SENTINEL-1' or Collection/Name eq 'SENTINEL-2'",
  },
  deletions: { type: 'pull', events: ['deleted'], filter: "contains(Name,'_')" },
} as const satisfies Record<string, { type: 'pull'; events: SubscriptionEvent[]; filter: string }>;

export interface PullMonth extends MonthContext, Pick<SimulatedMonth, 'periods' | 'idsOf'> {
  /** Simulates hours, during which products are published; a receiver that runs reads and compares. */
  pass(hours: number): Promise<void>;
  /** Simulates an hour with the planned changes, then a day without events. */
  calm(): Promise<void>;
  /** Simulates an outage. Compares the log when most entries of long queues are unread, and when they were read. */
  outage(hours: number, whileUnread?: () => Promise<unknown>): Promise<void>;
}

/** Registers the subscriptions and starts the receiver. */
export async function openPullMonth(
  options: Parameters<typeof openMonthContext>[0] & { productsPerHour: number },
): Promise<PullMonth> {
  const context = await openMonthContext({ ...options, hasEndpoint: false });
  try {
    const known = await register(context);
    await context.open();
    return { ...context, ...known, ...createSimulation(context, options.productsPerHour) };
  } catch (error) {
    await context.close();
    throw error;
  }
}

async function register({ folder, command, nowMs, sandbox }: MonthContext) {
  const text = `export default ${JSON.stringify({ subscriptions })};\n`;
  writeFileSync(join(folder, 'earshot.config.ts'), text);
  const { code, err } = await command(['register', '--yes']);
  if (code !== 0) throw new Error(`register failed: ${err}`);
  const fromUs = Math.trunc(nowMs()) * 1_000 - notificationDelayUs;
  const periods: SubscriptionPeriod[] = Object.entries(subscriptions).map(
    ([subscription, { events, filter }]) => {
      return { subscription, events, filter, fromUs, toUs: Number.POSITIVE_INFINITY };
    },
  );
  const idsOf = (name: string) => {
    const filter = periods.find(({ subscription }) => subscription === name)?.filter;
    const own = sandbox.subscriptions().filter((one) => one.filter === filter);
    return new Set(own.map(({ id }) => id));
  };
  return { periods, idsOf };
}

function createSimulation(context: MonthContext, productsPerHour: number) {
  const { sandbox, nowMs, receiver, recordUptime, open, shut } = context;
  const { readAll, readFirstPages, saveStates } = createMonthReaders(context);
  const compare = async () => {
    await saveStates();
    if (await context.compare()) return;
    throw new Error(`A comparison failed: ${context.problems.slice(-3).join('; ')}`);
  };
  let sinceRound = 0;
  const pass = async (hours: number, products: number | 'by hour' = 'by hour') => {
    for (let i = 0; i < hours; i += 1) {
      // At night nothing is published, so that some hours are quiet.
      const isNight = new Date(nowMs()).getUTCHours() < 3;
      const own = products !== 'by hour' ? products : isNight ? 0 : productsPerHour;
      for (let atMs = 0; atMs < hourMs; atMs += readEveryMs) {
        await sandbox.pass({
          durationMs: readEveryMs,
          products: Math.round((own * readEveryMs) / hourMs),
        });
        if (receiver() !== null) await readAll();
      }
      if (receiver() === null) continue;
      await recordUptime();
      sinceRound = (sinceRound + 1) % roundHours;
      if (sinceRound === 0) await compare();
    }
  };
  const calm = async () => {
    // Without new products, each step publishes a planned change.
    await sandbox.pass({ durationMs: hourMs, products: 0, steps: 60 });
    await pass(26, 0);
    await compare();
  };
  const outage: PullMonth['outage'] = async (hours, whileUnread) => {
    await shut();
    await pass(hours);
    await open();
    await readFirstPages();
    await compare();
    await whileUnread?.();
    await readAll();
    await compare();
  };
  return { pass, calm, outage };
}

/** Creates readers of the queues, which wait on the simulated clock; a restart of the receiver replaces them. */
function createMonthReaders({ sandbox, dataDir, receiver, nowMs }: MonthContext) {
  const nowUs = () => Math.trunc(nowMs()) * 1_000;
  const { tokenUrl, catalogueUrl } = sandbox;
  const login = { kind: 'password', clientId: 'cdse-public', totp: undefined } as const;
  const queue = openPullQueue(
    {
      account: { ...login, ...account, tokenUrl },
      dataDir,
      catalogueUrl,
      pullRequestsPerMinute: 1e9,
    },
    { nowUs, random: () => 0.5, fetch },
  );
  const readers = new WeakMap<object, readonly QueueReader[]>();
  const silent = () => undefined;
  const open = async () => {
    const running = receiver();
    if (running === null) throw new Error('The receiver is closed.');
    const { store, notePulled: onDelivered } = running;
    const registrations = await store.administration.registrations();
    const own =
      readers.get(running) ??
      registrations.map(({ name, subscriptionId }) => {
        return createQueueReader(
          { name, id: subscriptionId ?? '' },
          {
            ...{
              queue,
              intake: store,
              takeTurn: createTurns(store.acquireLock),
              onDelivered,
              nowUs,
            },
            random: () => 0.5,
            pause: async (ms) => sandbox.clock.advance(ms),
            log: { debug: silent, info: silent, warn: silent, error: silent },
          },
        );
      });
    readers.set(running, own);
    return { own, store };
  };
  const read = async (readOne: (reader: QueueReader) => Promise<unknown>) => {
    for (const reader of (await open()).own) await readOne(reader);
  };
  return {
    saveStates: async () => {
      const { own, store } = await open();
      await store.administration.saveQueues(own.map((reader) => reader.state()));
    },
    /** Reads every queue to its end. */
    readAll: () => read((reader) => reader.drain(new AbortController().signal)),
    /** Reads one page of every long queue, and the others to their end. */
    readFirstPages: () =>
      read(async (reader) => {
        const stop = new AbortController();
        await reader
          .drain(stop.signal, ({ length }) => {
            if ((length ?? 0) > longLength) stop.abort();
          })
          .catch((error: unknown) => {
            if (!stop.signal.aborted) throw error;
          });
      }),
  };
}
