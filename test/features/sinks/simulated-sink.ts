/** A sink in simulated time, without a store: hours of notifications for a service, in a moment. */
import { setImmediate } from 'node:timers/promises';
import { createDelivery } from '../../../src/features/sinks/delivery.ts';
import { createWakeUp } from '../../../src/features/sinks/run-sinks.ts';
import type { SinkContext, TargetAnswer } from '../../../src/features/sinks/target.ts';
import type { SinkItem } from '../../../src/features/sinks/terms.ts';
import { createRandom } from '../../../src/sandbox/clock.ts';
import { definition } from './sink-definition.ts';

const minuteUs = 60_000_000;
const answerMs = 50;
const never = new AbortController().signal;
const nothing = () => undefined;

interface Simulation {
  /** Notifications per hour, evenly spaced. */
  perHour: number;
  hours: number;
  /** Share of bad notifications during `badHours`. */
  badShare: number;
  badHours: number;
  answer: (item: { isBad: boolean; minute: number }) => TargetAnswer;
}

export async function simulate({ perHour, hours, badShare, badHours, answer }: Simulation) {
  const time = createEventTime();
  const random = createRandom(7);
  const bad = new Set<number>();
  const bornUs = new Map<number, number>();
  const minute = () => time.nowUs() / minuteUs;
  const queue = createQueue();
  const delaysUs: number[] = [];
  let attempts = 0;
  const wakeUp = createWakeUp(time.pause);
  const context = {
    sinks: queue.sinks,
    log: {
      find: async function* ({ afterPosition = 0 }) {
        yield { position: afterPosition + 1, receivedAtUs: 0, notificationDateUs: null };
      },
      body: async () => Buffer.from('{}'),
    },
    nowUs: time.nowUs,
    pause: time.pause,
    random: () => random.integer(0, 999) / 1000,
    logger: { debug: nothing, info: nothing, warn: nothing, error: nothing },
  } as unknown as SinkContext;
  const delivery = createDelivery({
    definition: definition({ kind: 'command', command: ['simulated'] }, { concurrency: 8 }),
    context,
    target: {
      deliver: async ({ position }) => {
        attempts += 1;
        await time.pause(answerMs, never);
        const given = answer({ isBad: bad.has(position), minute: minute() });
        if (given.kind === 'acknowledged')
          delaysUs.push(time.nowUs() - (bornUs.get(position) ?? 0));
        return given;
      },
      close: async () => undefined,
    },
    onFinished: wakeUp.wake,
    signal: never,
  });
  let arrived = 0;
  const arrive = async () => {
    while (minute() < hours * 60) {
      await time.pause(3_600_000 / perHour, never);
      arrived += 1;
      if (minute() < badHours * 60 && random.chance(badShare)) bad.add(arrived);
      bornUs.set(arrived, time.nowUs());
      queue.add(arrived, time.nowUs());
      wakeUp.wake();
    }
  };
  const work = async () => {
    while (minute() < hours * 60) await wakeUp.wait(await delivery.startDue(), never);
  };
  void arrive();
  void work();
  while (minute() < hours * 60) await time.toNextEvent();
  const { dead } = queue;
  return {
    arrived,
    bad: bad.size,
    good: arrived - bad.size,
    acknowledged: delaysUs.length,
    slowestMinutes: Math.max(...delaysUs) / minuteUs,
    deadGood: dead.filter((id) => !bad.has(id)).length,
    deadBad: dead.filter((id) => bad.has(id)).length,
    attempts,
  };
}

/** Advances from the end of one pause to the next, and runs the work that each releases. */
function createEventTime() {
  let us = 0;
  const waiting = new Set<{ atUs: number; end: () => void }>();
  return {
    nowUs: () => us,
    pause: (ms: number, signal: AbortSignal) =>
      new Promise<void>((resolve) => {
        const end = () => {
          waiting.delete(one);
          signal.removeEventListener('abort', end);
          resolve();
        };
        const one = { atUs: us + Math.round(ms * 1000), end };
        waiting.add(one);
        signal.addEventListener('abort', end);
        if (signal.aborted) end();
      }),
    toNextEvent: async () => {
      for (let i = 0; i < 4; i += 1) await setImmediate();
      const [first] = [...waiting].sort((one, other) => one.atUs - other.atUs);
      if (first === undefined) return;
      us = Math.max(us, first.atUs);
      first.end();
    },
  };
}

/** Stands in for the store. Each item belongs to another product. */
function createQueue() {
  const waiting = new Map<number, SinkItem>();
  const dead: number[] = [];
  const sinks: Pick<SinkContext['sinks'], 'items' | 'due' | 'nextDueAtUs' | 'settle'> = {
    items: async function* () {
      yield* [...waiting.values()].slice(-1);
    },
    due: async ({ nowUs, limit }) =>
      [...waiting.values()].filter(({ dueAtUs }) => dueAtUs <= nowUs).slice(0, limit),
    nextDueAtUs: async () =>
      waiting.size === 0 ? null : Math.min(...[...waiting.values()].map(({ dueAtUs }) => dueAtUs)),
    settle: async (results) => {
      for (const result of results) {
        const item = waiting.get(result.id);
        if (item === undefined) continue;
        if (result.outcome !== 'postponed') waiting.delete(item.id);
        if (result.outcome === 'dead') dead.push(item.id);
        if (result.outcome !== 'postponed') continue;
        const attempts = item.attempts + Number(result.counts);
        const { error, nextAttemptAtUs: dueAtUs } = result;
        waiting.set(item.id, { ...item, attempts, error, dueAtUs });
      }
    },
  };
  const add = (id: number, dueAtUs: number) => {
    const fixed = { sink: 'sink', replayId: null, state: 'waiting', attempts: 0 } as const;
    const item = { ...fixed, id, position: id, productId: `product-${id}`, error: null };
    waiting.set(id, { ...item, dueAtUs, queuedAtUs: dueAtUs });
  };
  return { sinks, dead, add };
}
