/** Sinks over a real store in a temporary folder, in real or simulated time. */
import { setTimeout as delay } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { createRunProgram } from '../../../src/core/host/run-program.ts';
import { AppError } from '../../../src/core/terms/app-error.ts';
import type { Delivery } from '../../../src/core/terms/ports.ts';
import type { NotificationDocument } from '../../../src/features/messages/document.ts';
import { messageWriter } from '../../../src/features/messages/formats.ts';
import {
  openTarget,
  type SinkDefinition,
  type SinkTarget,
} from '../../../src/features/sinks/registry.ts';
import { startSinks } from '../../../src/features/sinks/run-sinks.ts';
import type { OpenContext, SinkContext } from '../../../src/features/sinks/target.ts';
import type { SinkItem, Sinks } from '../../../src/features/sinks/terms.ts';
import { collect, delivery, notification } from '../../helpers/deliveries.ts';
import { recordingLog, silentLog } from '../../helpers/recording-log.ts';
import { openStore } from '../../helpers/store.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { type HookAnswer, startHook } from './hook-server.ts';
import { definition, messageUrls, webhookTarget } from './sink-definition.ts';
import { createVirtualTime } from './virtual-time.ts';

const realTime = {
  nowUs: () => Date.now() * 1000,
  pause: (ms: number, signal: AbortSignal) =>
    delay(ms, undefined, { signal }).catch(() => undefined),
};

/** Opens a target without a store, which takes documents; closed after the test. */
export function openTestTarget(
  target: SinkTarget,
  fields: Partial<OpenContext & Pick<SinkDefinition, 'message'> & Pick<SinkContext, 'urls'>> = {},
) {
  const run = createRunProgram({ env: process.env });
  const context = { run, nowUs: realTime.nowUs, logger: silentLog, ...fields };
  const { name, timeoutMs, message } = { ...definition(target), ...fields };
  const opened = openTarget({ target, name, timeoutMs, message }, context);
  const write = messageWriter(message, { urls: messageUrls, ...context });
  onTestFinished(() => opened.close());
  return {
    deliver: async (document: NotificationDocument, signal: AbortSignal) =>
      opened.deliver(await write(document), signal),
    deliverBatch: async (documents: readonly NotificationDocument[], signal: AbortSignal) =>
      opened.deliverBatch?.(await Promise.all(documents.map(write)), signal),
    close: opened.close,
  };
}

export async function openSinkContext(
  options: Partial<Pick<SinkContext, 'nowUs' | 'pause'>> & { dataDir?: string } = {},
) {
  const { dataDir = temporaryDirectory(), ...time } = options;
  const { nowUs, pause } = { ...realTime, ...time };
  const store = await openStore({ dataDir });
  const { log: logger, lines } = recordingLog();
  const context: SinkContext = {
    sinks: store.sinks,
    log: store,
    activity: store.activity,
    ...{ nowUs, pause, logger },
    random: () => 0.5,
    run: createRunProgram({ env: process.env }),
    urls: messageUrls,
  };
  const running = new Set<ReturnType<typeof startSinks>>();
  onTestFinished(async () => {
    await Promise.all([...running].map((sinks) => sinks.stop()));
    await store.close();
  });
  let number = 0;
  return {
    store,
    context,
    lines,
    dataDir,
    start: (...definitions: SinkDefinition[]) => {
      const sinks = startSinks(definitions, context);
      running.add(sinks);
      return {
        stop: () => {
          running.delete(sinks);
          return sinks.stop();
        },
      };
    },
    /** Stores a notification with these fields in the log. */
    accept: async (fields: Record<string, unknown> = {}, how: Partial<Delivery> = {}) => {
      number += 1;
      const body = notification(number, fields);
      await store.accept(delivery(body, { receivedAtUs: nowUs(), ...how }));
      return body;
    },
    /** Stores a number of notifications, in arrays. */
    acceptMany: async (count: number) => {
      for (let first = number + 1; number < count; first = number + 1) {
        const made = Array.from({ length: 50 }, (_, i) => notification(first + i));
        number += made.length;
        await store.accept(delivery(made, { receivedAtUs: nowUs() }));
      }
    },
    /** Requests a replay of the log. */
    replay: async (fields: Partial<Parameters<Sinks['addReplay']>[0]> = {}) => {
      const bounds = { sinceUs: null, untilUs: null, afterPosition: 0 };
      const asked = { sink: 'sink', filter: '', requestedAtUs: context.nowUs(), ...bounds };
      const lastPosition = await store.lastPosition();
      return store.sinks.addReplay({ ...asked, lastPosition, ...fields });
    },
    /** Makes bodies unreadable, while the function returns true for their position. */
    breakBodies: (isBroken: (position: number) => boolean) => {
      context.log = {
        find: (query) => store.find(query),
        lastPosition: () => store.lastPosition(),
        cursor: (reader) => store.cursor(reader),
        body: async (position) => {
          if (!isBroken(position)) return store.body(position);
          throw new AppError('unavailable', 'the disk is broken here');
        },
      };
    },
    /** Returns true when the sink has read the whole log and nothing waits. */
    isDone: async (sink = 'sink') =>
      (await store.cursor(`sink:${sink}`)) === (await store.lastPosition()) &&
      (await collect(store.sinks.items({ sink, state: 'waiting' }))).length === 0,
    items: (state: SinkItem['state'], sink = 'sink') => collect(store.sinks.items({ sink, state })),
  };
}

/** Opens a webhook in simulated time, which passes while the test waits: a delivery has an hour. */
export async function openHookContext(answer?: HookAnswer) {
  const time = createVirtualTime();
  const hook = await startHook(answer && { answer });
  const context = await openSinkContext(time);
  const { start, store } = context;
  return {
    ...{ ...context, time, hook },
    startSink: (rules: Partial<SinkDefinition> = {}) =>
      start(definition(webhookTarget(hook.url), { timeoutMs: 3_600_000, ...rules })),
    isDone: (sink?: string) => time.runUntil(() => context.isDone(sink), { stepMs: 1_000 }),
    /** Resolves when no replay is left to be queued. */
    isReplayed: () => time.runUntil(async () => (await store.sinks.replay('sink')) === null),
    waiting: async () => (await store.sinks.counts())[0]?.waiting,
    /** Lets the sinks read the log several times, and work. */
    pass: async () => {
      let steps = 0;
      await time.runUntil(() => steps++ === 100, { stepMs: 50 });
    },
  };
}
