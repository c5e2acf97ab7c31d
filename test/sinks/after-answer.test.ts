/** How long it takes until something is a dead letter, as docs/sinks.md has it. */
import { describe, expect, it } from 'vitest';
import type { SinkItem } from '../../src/domain/sinks.ts';
import type { AttemptAnswer } from '../../src/sinks/health.ts';
import { createAfterAnswer, createSinkHealth } from '../../src/sinks/health.ts';

const minuteUs = 60_000_000;
const dayUs = 24 * 60 * minuteUs;
const refused: AttemptAnswer = { kind: 'refused', reason: 'it ended with exit code 1' };
const away: AttemptAnswer = { kind: 'unavailable', reason: 'it answered 500', retryAfterMs: null };

/** Minutes until one item is dead, that is answered so; null when it is not within 30 days. */
function minutesUntilDead(
  answer: AttemptAnswer,
  { attemptsMax, othersAreTaken }: { attemptsMax: number; othersAreTaken: boolean },
): number | null {
  let nowUs = 0;
  const io = { nowUs: () => nowUs, random: () => 0.5 };
  const { settlementOf } = createAfterAnswer({ attemptsMax }, createSinkHealth(io), io);
  const about = { sink: 'sink', position: 1, productId: 'p', replayId: null, dueAtUs: 0 };
  const fixed = { ...about, state: 'waiting', error: null, queuedAtUs: 0 } as const;
  const item: SinkItem = { ...fixed, id: 1, attempts: 0 };
  while (nowUs < 30 * dayUs) {
    if (othersAreTaken) settlementOf({ ...item, id: 2 }, { kind: 'taken' }, nowUs);
    const settlement = settlementOf(item, answer, nowUs);
    if (settlement.outcome === 'dead') return nowUs / minuteUs;
    if (settlement.outcome !== 'postponed') throw new Error('It was taken.');
    item.attempts += Number(settlement.counts);
    nowUs = settlement.nextTryAtUs;
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
    for (const othersAreTaken of [true, false]) {
      const took = minutesUntilDead(refused, { attemptsMax, othersAreTaken });
      expect(took).toBeCloseTo(minutes, 1);
    }
  });

  it('when it fails otherwise and others are taken, in an hour and a quarter', () => {
    const took = minutesUntilDead(away, { attemptsMax: 5, othersAreTaken: true });
    expect(took).toBeGreaterThan(75);
    expect(took).toBeLessThan(76);
  });

  it('never while nothing is taken: a service that is away for a month makes none', () => {
    expect(minutesUntilDead(away, { attemptsMax: 1, othersAreTaken: false })).toBeNull();
  });
});
