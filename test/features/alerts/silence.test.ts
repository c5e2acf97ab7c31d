/** Silence: the rule, when silence is an alert, and when the alert is resolved. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Span } from '../../../src/features/subscriptions/pushes.ts';
import { usualSilence } from '../../../src/features/subscriptions/pushes.ts';
import { pruneBefore } from '../pruning/prune-to.ts';
import {
  beginUs,
  dayUs,
  hourUs,
  minuteUs,
  moments,
  openContext,
  registration,
} from './watch-context.ts';

const hour = (at: number) => beginUs + at * hourUs;

/** Whole hours, some of them excluded, as ranges. */
const spansOf = (excluded: ReadonlySet<number>, until: number): Span[] =>
  Array.from({ length: until }, (_, at) => at)
    .filter((at) => !excluded.has(at))
    .map((at) => ({ fromUs: hour(at), toUs: hour(at + 1) }));

describe('the rule for silence', () => {
  it('allows twice the longest silence, without downtime and silences with lost events', () => {
    const until = 400;
    const hours = fc.integer({ min: 0, max: until - 1 });
    const history = fc.record({
      busy: fc.uniqueArray(hours, { minLength: 6, maxLength: 60 }),
      down: fc.uniqueArray(hours, { maxLength: 100 }),
      lost: fc.uniqueArray(hours, { maxLength: 5 }),
      pushes: fc.integer({ min: 1, max: 500 }),
    });
    fc.assert(
      fc.property(history, ({ busy, down, lost, pushes }) => {
        const downHours = new Set(down.filter((at) => !busy.includes(at)));
        const sorted = busy.toSorted((a, b) => a - b);
        // All pushes of an hour arrive at its start.
        const usual = usualSilence({
          arrivals: busy.map((at) => ({ hourUs: hour(at), pushes, lastAtUs: hour(at) })),
          watched: spansOf(downHours, until),
          lostHours: lost.map(hour),
        });
        const watchedUntil = (at: number) =>
          Array.from({ length: at }, (_, i) => i).filter((i) => !downHours.has(i)).length;
        const [last = 0] = sorted.slice(-1);
        expect(usual === null).toBe(watchedUntil(last) < 7 * 24);
        if (usual === null) return;
        const silences = sorted.slice(1).map((toHour, i) => ({ from: sorted[i] ?? 0, toHour }));
        const natural = silences.filter(
          ({ from, toHour }) => !lost.some((at) => at + 1 > from && at < toHour),
        );
        const lengths = natural.map(
          ({ from, toHour }) => watchedUntil(toHour) - watchedUntil(from),
        );
        expect(usual.longestUs).toBe(Math.max(0, ...lengths) * hourUs);
        expect(usual.lastPushAtUs).toBe(hour(last));
        const floorUs = Math.min(6, Math.max(1, 20 / pushes)) * hourUs;
        expect(usual.limitUs).toBeCloseTo(Math.max(2 * usual.longestUs, floorUs), -1);
      }),
    );
  });
});

describe('an alert of silence', () => {
  const weeks = 14 * 24;
  const hourly = [hour(weeks), moments(0, weeks)] as const;

  it('is raised once, with figures and a next step, and resolved by the next push', async () => {
    const { live, check, store, checkAt } = await openContext();
    await live(...hourly);
    expect(await check()).toEqual([]);
    await live(hour(weeks + 12));
    await check();
    const [alert, ...others] = await check();
    expect(others).toEqual([]);
    expect(alert).toMatchObject({ kind: 'silence', subject: 'alps', level: 'critical' });
    expect(alert?.text).toContain('No notification of the subscription alps has arrived for 13 h');
    expect(alert?.evidence[1]).toBe(
      'The longest silence in 13 days of observation was 60 min. The limit is 6 h.',
    );
    expect(alert?.nextStep).toContain('`earshot doctor`');
    await live(hour(weeks + 13), [hour(weeks + 12) + minuteUs]);
    expect(await check()).toEqual([]);
    await checkAt(hour(weeks + 13) + minuteUs);
    const all = await store.alerts.alerts({ all: true, limit: 9 });
    expect(all).toHaveLength(1);
  });

  it('is neither raised again nor resolved by a restart', async () => {
    const context = await openContext();
    await context.live(...hourly);
    await context.live(hour(weeks + 12));
    const before = await context.check();
    await context.restart();
    await context.check();
    // So long after the last push that all learned rates have expired.
    await context.live(hour(weeks) + 92 * dayUs);
    await context.restart();
    await context.check();
    expect(before).toHaveLength(1);
    const all = await context.store.alerts.alerts({ all: true, limit: 9 });
    const silences = all.filter(({ kind }) => kind === 'silence');
    expect(silences).toMatchObject([{ id: before[0]?.id, resolvedAtUs: null }]);
  });

  it('is not raised for our downtime, or for a gap of the subscription', async () => {
    const { live, store, checkAt } = await openContext();
    await live(...hourly);
    const downUntilUs = hour(weeks + 48);
    await store.completeness.recordUptime({ fromUs: downUntilUs, toUs: downUntilUs + hourUs });
    expect(await checkAt(downUntilUs + hourUs)).toEqual([]);
    const openGap = { subscription: 'alps', events: ['created'], filter: '', reason: 'It paused.' };
    await store.administration.commit({ openGap: { ...openGap, fromUs: downUntilUs + hourUs } });
    await store.completeness.recordUptime({ fromUs: downUntilUs, toUs: downUntilUs + dayUs });
    expect(await checkAt(downUntilUs + dayUs)).toEqual([]);
  });

  it.each([
    ['paused by you', { save: registration({ pausedSeenAtUs: hour(weeks), status: 'paused' }) }],
    ['removed', { removeRegistration: 'alps' }],
  ])('is resolved when the subscription is %s', async (_title, change) => {
    const { live, check, store } = await openContext();
    await live(...hourly);
    await live(hour(weeks + 12));
    expect(await check()).toHaveLength(1);
    await store.administration.commit(change);
    expect(await check()).toEqual([]);
  });
});

it.each([
  [4, []],
  [9, [expect.stringMatching(/silence in [89] days of observation/)]],
])('after pruning, the pushes of the last %i days are used', async (days, expected) => {
  const { live, check, store, restart } = await openContext();
  const untilHour = 14 * 24;
  await live(hour(untilHour), moments(0, untilHour));
  await pruneBefore(store, hour(untilHour - days * 24));
  await restart();
  await live(hour(untilHour + 12));
  expect((await check()).map(({ evidence }) => evidence[1])).toEqual(expected);
});
