/** Sinks over a real store in a temporary folder. */
import { setTimeout as delay } from 'node:timers/promises';
import { onTestFinished } from 'vitest';
import { createRunProgram } from '../../../src/core/host/run-program.ts';
import type { Delivery } from '../../../src/core/terms/ports.ts';
import type { SinkDefinition } from '../../../src/features/sinks/registry.ts';
import { type RunningSinks, startSinks } from '../../../src/features/sinks/run-sinks.ts';
import type { SinkContext } from '../../../src/features/sinks/target.ts';
import type { SinkItem } from '../../../src/features/sinks/terms.ts';
import {
  collect,
  delivery,
  type MadeNotification,
  notification,
} from '../../helpers/deliveries.ts';
import type { LogLine } from '../../helpers/recording-log.ts';
import { openStore } from '../../helpers/store.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { messageUrls } from './sink-definition.ts';

const realTime = {
  nowUs: () => Date.now() * 1000,
  pause: (ms: number, signal: AbortSignal) =>
    delay(ms, undefined, { signal }).catch(() => undefined),
};

export async function openSinkContext(
  options: Partial<Pick<SinkContext, 'nowUs' | 'pause'>> & { dataDir?: string } = {},
) {
  const { dataDir = temporaryDirectory(), ...time } = options;
  const { nowUs, pause } = { ...realTime, ...time };
  const store = await openStore({ dataDir, nowUs });
  const lines: LogLine[] = [];
  const note = (level: string) => (fields: object, message: string) => {
    lines.push({ level, message, fields: { ...fields } });
  };
  const context: SinkContext = {
    sinks: store.sinks,
    log: store,
    nowUs,
    pause,
    random: () => 0.5,
    logger: { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') },
    fetch,
    run: createRunProgram({ env: process.env }),
    urls: messageUrls,
  };
  const running = new Set<RunningSinks>();
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
    start: (...definitions: SinkDefinition[]): RunningSinks => {
      const sinks = startSinks(context, definitions);
      running.add(sinks);
      return {
        ...sinks,
        stop: async () => {
          running.delete(sinks);
          await sinks.stop();
        },
      };
    },
    /** Stores a notification with these fields in the log. */
    accept: async (fields: MadeNotification = {}, how: Partial<Delivery> = {}) => {
      number += 1;
      const body = notification(number, fields);
      await store.accept(delivery(body, { receivedAtUs: nowUs(), ...how }));
      return body;
    },
    /** Returns true when the sink has read the whole log and nothing waits. */
    isDone: async (sink = 'sink') =>
      (await store.cursor(`sink:${sink}`)) === (await store.lastPosition()) &&
      (await collect(store.sinks.items({ sink, state: 'waiting' }))).length === 0,
    items: (state: SinkItem['state'], sink = 'sink') => collect(store.sinks.items({ sink, state })),
  };
}
