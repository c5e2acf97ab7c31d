/** Silence: the rule, when silence is an alert, and when the alert is resolved. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Span, without } from '../../src/watch/pushes.ts';
import { usualSilence } from '../../src/watch/silence.ts';
import { delivery, notification } from '../helpers/deliveries.ts';
import { pruneBefore } from '../store/pruning/prune-to.ts';
import {
  beginUs,
  covered,
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

  it('needs a push in six hours', () => {
    const arrivals = [0, 50, 100, 150, 200].map((at) => {
      return { hourUs: hour(at), pushes: 9, lastAtUs: hour(at) };
    });
    const watched = spansOf(new Set(), 400);
    expect(usualSilence({ arrivals, watched, lostHours: [] })).toBeNull();
  });
});

describe('spans', () => {
  it('exclude other spans, in any order', () => {
    const span = fc
      .tuple(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 1, max: 20 }))
      .map(([fromUs, length]) => ({ fromUs, toUs: fromUs + length }));
    fc.assert(
      fc.property(fc.array(span, { maxLength: 6 }), (others) => {
        const left = without([{ fromUs: 10, toUs: 60 }], others);
        for (let us = 0; us < 80; us += 1) {
          const isIn = (spans: readonly Span[]) => spans.some((s) => s.fromUs <= us && us < s.toUs);
          expect(isIn(left)).toBe(us >= 10 && us < 60 && !isIn(others));
        }
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
    expect(alert).toMatchObject({ kind: 'silence', subject: 'alps', severity: 'critical' });
    expect(alert?.cause).toContain('No push of the subscription alps has arrived for 13 h');
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
    expect(await context.activeAlerts()).toMatchObject(before.map(({ id }) => ({ id })));
    expect(await context.store.alerts.alerts({ all: true, limit: 9 })).toHaveLength(1);
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

  it('is resolved when the subscription is removed', async () => {
    const { live, check, store } = await openContext();
    await live(...hourly);
    await live(hour(weeks + 12));
    expect(await check()).toHaveLength(1);
    await store.administration.commit({ removeRegistration: 'alps' });
    expect(await check()).toEqual([]);
  });

  it('of most subscriptions is raised once, with their names', async () => {
    const names = ['alps', 'andes', 'atlas', 'altai'];
    const { live, check, store } = await openContext(
      {},
      names.map((name) => registration({ name })),
    );
    const push = (name: string, hours: readonly number[]) =>
      Promise.all(
        hours.map((receivedAtUs, i) => {
          const made = notification(1e6 + i, { AckId: `${name} ${receivedAtUs}` });
          return store.accept(delivery(made, { subscription: name, receivedAtUs }));
        }),
      );
    await live(...hourly);
    for (const name of names.slice(1)) await push(name, moments(0, weeks));
    await live(hour(weeks + 12));
    const [alert, ...others] = await check();
    expect(others).toEqual([]);
    expect(alert).toMatchObject({ kind: 'silence', subject: '', severity: 'critical' });
    expect(alert?.cause).toContain('4 of 4 subscriptions are silent');
    expect(alert?.evidence[0]).toContain('alps, altai, andes, atlas');
    // Two of four are not most of them: each has its own alert.
    await push('alps', [hour(weeks + 12)]);
    await push('andes', [hour(weeks + 12)]);
    await live(hour(weeks + 12) + minuteUs);
    expect((await check()).map(({ subject }) => subject).sort()).toEqual(['altai', 'atlas']);
  });

  it('is not raised while the subscription is paused', async () => {
    const paused = registration({ pausedSeenAtUs: hour(weeks), status: 'paused' });
    const { live, check } = await openContext({}, [paused]);
    await live(...hourly);
    await live(hour(weeks + 48));
    expect(await check()).toEqual([]);
  });
});

const weeks = 14 * 24;

it('pruned pushes neither make silence usual nor count as silence', async () => {
  const context = await openContext();
  const { store, live } = context;
  await live(hour(weeks), moments(0, weeks));
  // The remaining four days are not enough to learn from.
  await pruneBefore(store, hour(weeks - 4 * 24));
  await context.restart();
  await live(hour(weeks + 12));
  expect(await context.check()).toEqual([]);
});

it('silence is still detected from the pushes that pruning left', async () => {
  const context = await openContext();
  await context.live(hour(weeks), moments(0, weeks));
  await pruneBefore(context.store, hour(weeks - 9 * 24));
  await context.restart();
  await context.live(hour(weeks + 12));
  const [alert] = await context.check();
  expect(alert).toMatchObject({ kind: 'silence' });
  expect(alert?.evidence.join(' ')).toMatch(/silence in [89] days of observation/);
});

it('pruning resolves alerts of missing events and unknown hours', async () => {
  const { live, check, store } = await openContext({ reconcile: true });
  await live(hour(20), moments(0, 20));
  await store.completeness.saveCoverage([covered(2, { pushed: 8, missing: 2 }), covered(19)]);
  expect((await check()).map(({ kind }) => kind)).toEqual(['missing']);
  await pruneBefore(store, hour(18));
  expect(await check()).toEqual([]);
});
