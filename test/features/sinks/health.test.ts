/**
 * When a sink counts as down, how it is probed, the cause of a failure, and when an item is a dead
 * letter.
 */
import { describe, expect, it } from 'vitest';
import {
  type AttemptAnswer,
  createAfterAnswer,
  createSinkHealth,
} from '../../../src/features/sinks/health.ts';
import type { TargetAnswer } from '../../../src/features/sinks/target.ts';
import type { SinkItem } from '../../../src/features/sinks/terms.ts';

const secondUs = 1_000_000;
const minuteUs = 60 * secondUs;
const dayUs = 24 * 60 * minuteUs;
const acknowledged: TargetAnswer = { kind: 'acknowledged' };
const refused: TargetAnswer = { kind: 'refused', reason: 'it said no' };
const broken: TargetAnswer = { kind: 'unavailable', reason: 'it broke', retryAfterMs: null };

function open(attemptsMax = 5) {
  const clock = { us: 1_000 * secondUs };
  const io = { nowUs: () => clock.us, random: () => 0.5 };
  const health = createSinkHealth(io);
  const afterAnswer = createAfterAnswer({ attemptsMax }, health, io);
  const answer = (id: number, given: AttemptAnswer, attempts = 0, startedAtUs = clock.us) => {
    const item = { id, attempts } as SinkItem;
    return afterAnswer.settlementOf(item, given, startedAtUs);
  };
  return { clock, health, answer };
}

describe('a sink', () => {
  it('is down after five consecutive failures of several items, and up after the first acknowledgement', () => {
    const { health, answer } = open();
    for (const id of [1, 2, 3, 4]) answer(id, broken);
    answer(9, acknowledged);
    for (const id of [1, 2, 3, 4]) answer(id, broken);
    expect(health.isDown()).toBe(false);
    answer(5, broken);
    expect(health.isDown()).toBe(true);
    answer(6, acknowledged);
    expect(health.isDown()).toBe(false);
    expect(health.untilUs()).toBe(0);
  });

  it('that refuses items is up, and each refusal counts, whatever happened before', () => {
    const { health, answer } = open();
    for (let id = 1; id <= 20; id += 1) {
      expect(answer(id, refused)).toMatchObject({ outcome: 'postponed', counts: true });
    }
    expect(health.isDown()).toBe(false);
    for (const id of [1, 2, 3, 4, 5]) answer(id, broken);
    expect(health.isDown()).toBe(true);
    expect(answer(6, refused, 4)).toMatchObject({ outcome: 'dead' });
    expect(health.isDown()).toBe(false);
    expect(health.untilUs()).toBe(0);
  });

  it('is not paused for longer when the clock is set back', () => {
    const { clock, health, answer } = open();
    answer(1, { kind: 'misconfigured', reason: 'no such stream' });
    expect(health.untilUs()).toBeGreaterThan(clock.us);
    clock.us -= 600 * secondUs;
    expect(health.untilUs()).toBeLessThan(clock.us);
    expect(health.isDown()).toBe(true);
    answer(2, { ...broken, retryAfterMs: 5_000 });
    expect(health.untilUs() - clock.us).toBe(5 * secondUs);
  });

  it('is not down because one item fails repeatedly', () => {
    const { health, answer } = open();
    for (let i = 0; i < 30; i += 1) answer(1, broken);
    expect(health.isDown()).toBe(false);
  });

  it('is down at once when it is misconfigured', () => {
    const { health, answer } = open(1);
    const settlement = answer(1, { kind: 'misconfigured', reason: 'no such stream' });
    expect(health.isDown()).toBe(true);
    expect(settlement).toMatchObject({ outcome: 'postponed', counts: false });
  });

  it('that is down is probed at growing delays up to five minutes, regardless of earlier deliveries in flight', () => {
    const { clock, health, answer } = open();
    const begun = clock.us;
    for (const id of [1, 2, 3, 4, 5]) answer(id, broken);
    const waits = [];
    for (let probe = 0; probe < 12; probe += 1) {
      waits.push((health.untilUs() - clock.us) / secondUs);
      for (const id of [6, 7, 8]) answer(id, broken, 0, begun);
      clock.us = health.untilUs();
      answer(1, broken);
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
  });

  it('that requests a wait gets it, up to one hour', () => {
    const { clock, health, answer } = open();
    answer(1, { ...broken, retryAfterMs: 60_000 });
    expect(health.untilUs() - clock.us).toBe(60 * secondUs);
    answer(2, { ...broken, retryAfterMs: 86_400_000 });
    expect(health.untilUs() - clock.us).toBe(3_600 * secondUs);
    expect(health.isDown()).toBe(false);
  });
});

describe('an item', () => {
  it('that is refused waits longer each time, and is a dead letter after its last attempt', () => {
    const { clock, answer } = open(5);
    const waits = [0, 1, 2, 3].map((attempts) => {
      const settlement = answer(1, refused, attempts);
      expect(settlement).toMatchObject({ outcome: 'postponed', counts: true });
      return 'nextAttemptAtUs' in settlement
        ? (settlement.nextAttemptAtUs - clock.us) / secondUs
        : null;
    });
    expect(waits).toEqual([5, 20, 80, 320]);
    expect(answer(1, refused, 4)).toEqual({ id: 1, outcome: 'dead', error: 'it said no' });
  });

  it('that fails twenty times while others are acknowledged is then treated as refused', () => {
    const { answer } = open(1);
    const outcomes = Array.from({ length: 21 }, () => {
      answer(2, acknowledged);
      return answer(1, broken).outcome;
    });
    expect(outcomes.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => 'postponed'));
    expect(outcomes[20]).toBe('dead');
  });

  it('that has failed that often does not count while the sink is down', () => {
    const { health, answer } = open(9);
    for (let i = 0; i < 20; i += 1) {
      answer(2, acknowledged);
      answer(1, broken);
    }
    answer(2, acknowledged);
    expect(answer(1, broken)).toMatchObject({ counts: true });
    for (const id of [3, 4, 5, 6, 7]) answer(id, broken);
    expect(health.isDown()).toBe(true);
    for (let i = 0; i < 30; i += 1) {
      expect(answer(1, broken)).toMatchObject({ outcome: 'postponed', counts: false });
    }
  });

  it('that fails while the sink is down waits longer each time, too', () => {
    const { clock, health, answer } = open();
    for (let i = 0; i < 6; i += 1) answer(1, broken);
    for (const id of [3, 4, 5, 6, 7]) answer(id, broken);
    expect(health.isDown()).toBe(true);
    clock.us = health.untilUs();
    expect(answer(1, broken)).toMatchObject({ nextAttemptAtUs: clock.us + 128 * secondUs });
    expect(health.untilUs()).toBe(clock.us + 2 * secondUs);
  });

  it("with an unreadable body is a dead letter after its attempts, and does not affect the sink's health", () => {
    const { health, answer } = open(3);
    const unreadable: AttemptAnswer = { kind: 'failed', reason: 'its body is gone' };
    for (const id of [3, 4, 5, 6, 7]) answer(id, broken);
    expect(answer(1, unreadable, 1)).toMatchObject({ outcome: 'postponed', counts: true });
    expect(answer(1, unreadable, 2)).toMatchObject({ outcome: 'dead', error: 'its body is gone' });
    expect(health.isDown()).toBe(true);
  });

  it('that fails while nothing else is acknowledged never counts', () => {
    const { answer } = open(1);
    answer(2, acknowledged);
    for (let i = 0; i < 100; i += 1) {
      expect(answer(1, broken)).toMatchObject({ outcome: 'postponed', counts: false });
    }
  });
});

/** Minutes until an item with this answer is a dead letter; null if not within 30 days. */
function minutesUntilDead(
  given: AttemptAnswer,
  { attemptsMax, othersAcknowledged }: { attemptsMax: number; othersAcknowledged: boolean },
): number | null {
  const { clock, answer } = open(attemptsMax);
  const startUs = clock.us;
  let attempts = 0;
  while (clock.us < startUs + 30 * dayUs) {
    if (othersAcknowledged) answer(2, acknowledged);
    const settlement = answer(1, given, attempts);
    if (settlement.outcome === 'dead') return (clock.us - startUs) / minuteUs;
    if (settlement.outcome !== 'postponed') throw new Error('The item was acknowledged.');
    attempts += Number(settlement.counts);
    clock.us = settlement.nextAttemptAtUs;
  }
  return null;
}

describe('a notification is a dead letter', () => {
  it.each([
    [1, 0],
    [5, 7.1],
    [6, 28.4],
    [7, 88.4],
    [8, 148.4],
  ])('after %i refusals, in %f minutes', (attemptsMax, minutes) => {
    for (const othersAcknowledged of [true, false]) {
      const took = minutesUntilDead(refused, { attemptsMax, othersAcknowledged });
      expect(took).toBeCloseTo(minutes, 1);
    }
  });

  it('after 75 minutes when it fails otherwise and others are acknowledged', () => {
    const took = minutesUntilDead(broken, { attemptsMax: 5, othersAcknowledged: true });
    expect(took).toBeGreaterThan(75);
    expect(took).toBeLessThan(76);
  });

  it('never while nothing is acknowledged: a service outage of a month causes none', () => {
    expect(minutesUntilDead(broken, { attemptsMax: 1, othersAcknowledged: false })).toBeNull();
  });
});
