/** Hours with notifications that a sink does not take: the others are handed over all the same, and soon. */
import { describe, expect, it } from 'vitest';
import type { TargetAnswer } from '../../src/sinks/target.ts';
import { simulate } from './simulated-sink.ts';

const taken: TargetAnswer = { kind: 'acknowledged' };
const failures: Record<string, TargetAnswer> = {
  'refused (400)': { kind: 'refused', reason: 'it answered 400' },
  'failed (500)': { kind: 'unavailable', reason: 'it answered 500', retryAfterMs: null },
  'not allowed (403)': { kind: 'misconfigured', reason: 'it answered 403' },
};

describe('a sink that does not take some notifications', () => {
  it.each([
    ['refused (400)', 0.2, 0.2],
    ['failed (500)', 0.05, 1],
    ['failed (500)', 0.2, 3],
    ['not allowed (403)', 0.2, 3],
  ])(
    '%s, %f of them: takes all others within minutes, and those are dead letters',
    async (kind, badShare, minutes) => {
      const bad = failures[kind] ?? taken;
      const seen = await simulate({
        perHour: 600,
        hours: 4,
        badShare,
        badHours: 1,
        answer: ({ isBad }) => (isBad ? bad : taken),
      });
      expect(seen.bad).toBeGreaterThan(600 * badShare * 0.5);
      expect(seen).toMatchObject({ deadGood: 0, deadBad: seen.bad });
      // The last ones have only just come.
      expect(seen.taken).toBeGreaterThanOrEqual(seen.good - 2);
      expect(seen.slowestMinutes).toBeLessThan(minutes);
    },
  );

  it.each(Object.keys(failures).filter((kind) => kind !== 'refused (400)'))(
    '%s, all of them for a day: nothing is a dead letter, few are posted, and all are taken after',
    async (kind) => {
      const down = failures[kind] ?? taken;
      const seen = await simulate({
        perHour: 20,
        hours: 25,
        badShare: 0,
        badHours: 0,
        answer: ({ minute }) => (minute < 24 * 60 ? down : taken),
      });
      expect(seen.deadGood).toBe(0);
      expect(seen.taken).toBeGreaterThanOrEqual(seen.good - 1);
      // One in five minutes, and what was found out before.
      expect(seen.tries - seen.taken).toBeLessThan(24 * 12 * 1.1 + 30);
    },
  );

  it('and fails as a whole for half a day has no dead letter of those that it takes', async () => {
    const [refused, failed] = [failures['refused (400)'], failures['failed (500)']];
    const seen = await simulate({
      perHour: 60,
      hours: 14,
      badShare: 0.2,
      badHours: 12,
      answer: ({ isBad, minute }) => (isBad ? refused : minute < 12 * 60 ? failed : taken) ?? taken,
    });
    expect(seen).toMatchObject({ deadGood: 0, deadBad: seen.bad });
    expect(seen.taken).toBeGreaterThanOrEqual(seen.good - 2);
  });
});
