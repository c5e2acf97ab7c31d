/**
 * Hours with notifications that a sink does not acknowledge, in simulated time and without a store: the
 * others are delivered soon nevertheless.
 */
import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { createDelivery } from '../../../src/features/sinks/delivery.ts';
import type { SinkContext, TargetAnswer } from '../../../src/features/sinks/target.ts';
import { createRandom } from '../../../src/sandbox/clock.ts';
import { silentLog } from '../../helpers/recording-log.ts';
import { definition } from './sink-definition.ts';
import { SinkModel } from './sink-model.ts';
import { createVirtualTime } from './virtual-time.ts';

const minuteUs = 60_000_000;
const answerMs = 50;
const never = new AbortController().signal;

interface Simulation {
  /** Notifications per hour, evenly spaced. */
  perHour: number;
  hours: number;
  /** Share of bad notifications during `badHours`. */
  badShare: number;
  badHours: number;
  answer: (item: { isBad: boolean; minute: number }) => TargetAnswer;
}

/** Each notification belongs to another product. */
async function simulate({ perHour, hours, badShare, badHours, answer }: Simulation) {
  const time = createVirtualTime(0);
  const random = createRandom(7);
  const bad = new Set<number>();
  const queue = new SinkModel('sink');
  const bornUs = new Map<number, number>();
  const delaysUs: number[] = [];
  let attempts = 0;
  const minute = () => time.nowUs() / minuteUs;
  const sinks: Pick<SinkContext['sinks'], 'due' | 'nextDueAtUs' | 'settle'> = {
    due: async ({ nowUs, limit }) => queue.due(nowUs).slice(0, limit),
    nextDueAtUs: async () => queue.nextDueAtUs(),
    settle: async (results) => {
      for (const result of results) queue.settle(result);
    },
  };
  const log = {
    find: async function* ({ afterPosition = 0 }) {
      yield { position: afterPosition + 1, receivedAtUs: 0, notificationDateUs: null };
    },
    body: async () => Buffer.from('{}'),
  };
  const delivery = createDelivery({
    definition: definition({ kind: 'command', command: ['simulated'] }, { concurrency: 8 }),
    context: {
      ...{ sinks, log, nowUs: time.nowUs, pause: time.pause, logger: silentLog },
      random: () => random.integer(0, 999) / 1000,
    } as unknown as SinkContext,
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
    signal: never,
  });
  const arrive = async () => {
    for (let id = 1; minute() < hours * 60; id += 1) {
      await time.pause(3_600_000 / perHour, never);
      const atUs = time.nowUs();
      if (minute() < badHours * 60 && random.chance(badShare)) bad.add(id);
      bornUs.set(id, atUs);
      queue.items.push({
        ...{ id, sink: 'sink', position: id, productId: `product-${id}`, replayId: null },
        ...{ state: 'waiting', attempts: 0, error: null, dueAtUs: atUs, queuedAtUs: atUs },
      });
      delivery.wake();
    }
  };
  const work = async () => {
    while (minute() < hours * 60) await delivery.wait(await delivery.startDue(), never);
  };
  void arrive();
  void work();
  while (minute() < hours * 60) {
    // The work that each pause releases.
    for (let i = 0; i < 4; i += 1) await setImmediate();
    time.toNextEvent();
  }
  const dead = queue.items.filter(({ state }) => state === 'dead');
  const deadBad = dead.filter(({ id }) => bad.has(id)).length;
  return {
    ...{ bad: bad.size, good: bornUs.size - bad.size, deadBad, deadGood: dead.length - deadBad },
    ...{ acknowledged: delaysUs.length, attempts },
    slowestMinutes: Math.max(...delaysUs) / minuteUs,
  };
}

const acknowledged: TargetAnswer = { kind: 'acknowledged' };
const refused = { kind: 'refused', reason: 'it answered 400' } as const;
const failed = { kind: 'unavailable', reason: 'it answered 500', retryAfterMs: null } as const;
const forbidden = { kind: 'misconfigured', reason: 'it answered 403' } as const;

describe('a sink that does not acknowledge some notifications', () => {
  it.each([
    { answer: refused, badShare: 0.2, minutes: 0.2 },
    { answer: failed, badShare: 0.05, minutes: 1 },
    { answer: failed, badShare: 0.2, minutes: 3 },
    { answer: forbidden, badShare: 0.2, minutes: 3 },
  ])(
    '$answer.reason, $badShare of them: acknowledges all others within minutes, and only those are dead letters',
    async ({ answer, badShare, minutes }) => {
      const seen = await simulate({
        ...{ perHour: 600, hours: 4, badShare, badHours: 1 },
        answer: ({ isBad }) => (isBad ? answer : acknowledged),
      });
      expect(seen.bad).toBeGreaterThan(600 * badShare * 0.5);
      expect(seen).toMatchObject({ deadGood: 0, deadBad: seen.bad });
      // The last ones have only just arrived.
      expect(seen.acknowledged).toBeGreaterThanOrEqual(seen.good - 2);
      expect(seen.slowestMinutes).toBeLessThan(minutes);
    },
  );

  it.each([failed, forbidden])(
    '$reason, all of them for a day: no dead letters, few attempts, and all are acknowledged afterwards',
    async (down) => {
      const seen = await simulate({
        ...{ perHour: 20, hours: 25, badShare: 0, badHours: 0 },
        answer: ({ minute }) => (minute < 24 * 60 ? down : acknowledged),
      });
      expect(seen.deadGood).toBe(0);
      expect(seen.acknowledged).toBeGreaterThanOrEqual(seen.good - 1);
      // One in five minutes, plus the attempts before it counted as down.
      expect(seen.attempts - seen.acknowledged).toBeLessThan(24 * 12 * 1.1 + 30);
    },
  );

  it('and is down for half a day has no dead letters among the valid notifications', async () => {
    const seen = await simulate({
      ...{ perHour: 60, hours: 14, badShare: 0.2, badHours: 12 },
      answer: ({ isBad, minute }) => (isBad ? refused : minute < 12 * 60 ? failed : acknowledged),
    });
    expect(seen).toMatchObject({ deadGood: 0, deadBad: seen.bad });
    expect(seen.acknowledged).toBeGreaterThanOrEqual(seen.good - 2);
  });
});
