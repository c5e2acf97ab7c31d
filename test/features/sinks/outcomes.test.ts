/**
 * When a sink counts as down, how it is probed, the cause of a failure, and when an item is a dead
 * letter.
 */
import { describe, expect, it } from 'vitest';
import { type AttemptAnswer, createOutcomes } from '../../../src/features/sinks/outcomes.ts';
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
  const health = createOutcomes({ attemptsMax }, io);
  const answer = (id: number, given: AttemptAnswer, attempts = 0, startedAtUs = clock.us) => {
    const item = { id, attempts } as SinkItem;
    const [settlement] = health.settlementsOf([item], given, startedAtUs);
    if (settlement === undefined) throw new Error('An item has an outcome.');
    return settlement;
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

it.each([
  ['after one refusal', refused, 1, [true, false], 0],
  ['after five, in 7 minutes', refused, 5, [true, false], 7.1],
  ['after eight, in two and a half hours', refused, 8, [true, false], 148.4],
  ['in 75 minutes when it fails otherwise and others are acknowledged', broken, 5, [true], 75.6],
  // A service outage of a month causes none.
  ['never while nothing is acknowledged', broken, 1, [false], null],
] as const)('a notification is a dead letter %s', (_, given, attemptsMax, others, minutes) => {
  for (const othersAcknowledged of others) {
    const took = minutesUntilDead(given, { attemptsMax, othersAcknowledged });
    if (minutes === null) expect(took).toBeNull();
    else expect(took).toBeCloseTo(minutes, 0);
  }
});
