/**
 * Hours with notifications that a sink does not acknowledge: the others are delivered soon
 * nevertheless.
 */
import { describe, expect, it } from 'vitest';
import type { TargetAnswer } from '../../../src/features/sinks/target.ts';
import { simulate } from './simulated-sink.ts';

const acknowledged: TargetAnswer = { kind: 'acknowledged' };
const failures: Record<string, TargetAnswer> = {
  'refused (400)': { kind: 'refused', reason: 'it answered 400' },
  'failed (500)': { kind: 'unavailable', reason: 'it answered 500', retryAfterMs: null },
  'not allowed (403)': { kind: 'misconfigured', reason: 'it answered 403' },
};

describe('a sink that does not acknowledge some notifications', () => {
  it.each([
    ['refused (400)', 0.2, 0.2],
    ['failed (500)', 0.05, 1],
    ['failed (500)', 0.2, 3],
    ['not allowed (403)', 0.2, 3],
  ])(
    '%s, %f of them: acknowledges all others within minutes, and only those are dead letters',
    async (kind, badShare, minutes) => {
      const bad = failures[kind] ?? acknowledged;
      const seen = await simulate({
        perHour: 600,
        hours: 4,
        badShare,
        badHours: 1,
        answer: ({ isBad }) => (isBad ? bad : acknowledged),
      });
      expect(seen.bad).toBeGreaterThan(600 * badShare * 0.5);
      expect(seen).toMatchObject({ deadGood: 0, deadBad: seen.bad });
      // The last ones have only just arrived.
      expect(seen.acknowledged).toBeGreaterThanOrEqual(seen.good - 2);
      expect(seen.slowestMinutes).toBeLessThan(minutes);
    },
  );

  it.each(Object.keys(failures).filter((kind) => kind !== 'refused (400)'))(
    '%s, all of them for a day: no dead letters, few attempts, and all are acknowledged afterwards',
    async (kind) => {
      const down = failures[kind] ?? acknowledged;
      const seen = await simulate({
        perHour: 20,
        hours: 25,
        badShare: 0,
        badHours: 0,
        answer: ({ minute }) => (minute < 24 * 60 ? down : acknowledged),
      });
      expect(seen.deadGood).toBe(0);
      expect(seen.acknowledged).toBeGreaterThanOrEqual(seen.good - 1);
      // One in five minutes, plus the attempts before it counted as down.
      expect(seen.attempts - seen.acknowledged).toBeLessThan(24 * 12 * 1.1 + 30);
    },
  );

  it('and is down for half a day has no dead letters among the valid notifications', async () => {
    const [refused, failed] = [failures['refused (400)'], failures['failed (500)']];
    const seen = await simulate({
      perHour: 60,
      hours: 14,
      badShare: 0.2,
      badHours: 12,
      answer: ({ isBad, minute }) =>
        (isBad ? refused : minute < 12 * 60 ? failed : acknowledged) ?? acknowledged,
    });
    expect(seen).toMatchObject({ deadGood: 0, deadBad: seen.bad });
    expect(seen.acknowledged).toBeGreaterThanOrEqual(seen.good - 2);
  });
});
