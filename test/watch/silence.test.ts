/**
 * Silence: the learned rates of a subscription, when silence is an alert, and when the alert is
 * resolved.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { silenceOdds } from '../../src/watch/check-silence.ts';
import { learnRates, type PushHistory, without } from '../../src/watch/learn-rates.ts';
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

/** A push at the start of each of these hours, with an uptime from the beginning. */
function history(hours: readonly number[], untilHour: number, rest: Partial<PushHistory> = {}) {
  return {
    arrivals: new Map(hours.map((at) => [hour(at), { pushes: 1, lastAtUs: hour(at) }])),
    watched: [{ fromUs: beginUs, toUs: hour(untilHour) }],
    lostHours: [],
    ...rest,
  };
}

const everyHour = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => from + i);

describe('the learned rates', () => {
  it('are per hour of the day, drawn towards the mean where few pushes were seen', () => {
    const noons = everyHour(0, 35).map((day) => day * 24 + 12);
    const learned = learnRates(history(noons, 35 * 24));
    expect(learned?.perHour[12]).toBeGreaterThan(0.65);
    expect(learned?.perHour[12]).toBeLessThan(1);
    expect(learned?.perHour[13]).toBeLessThan(0.05);
    expect(learned?.perHour[13]).toBeGreaterThan(0);
  });

  it('omit hours of downtime', () => {
    const hours = everyHour(0, 200);
    const broken = history([...hours, ...everyHour(600, 800)], 800, {
      watched: [
        { fromUs: hour(0), toUs: hour(200) },
        { fromUs: hour(600), toUs: hour(800) },
      ],
    });
    const learned = learnRates(broken);
    expect(learned?.watchedHours).toBeCloseTo(400);
    expect(learned?.perHour[5]).toBeCloseTo(1, 1);
    expect(learned?.longestSilence).toBeLessThan(2);
  });

  it('ignore silences in which an event was lost', () => {
    const hours = [...everyHour(0, 200), ...everyHour(260, 400)];
    expect(learnRates(history(hours, 400))?.longestSilence).toBeGreaterThan(30);
    const withLoss = learnRates(history(hours, 400, { lostHours: [hour(230)] }));
    expect(withLoss?.longestSilence).toBeLessThan(2);
  });

  it('need a push, and ignore the current silence', () => {
    expect(learnRates(history([], 400))).toBeNull();
    const [short, long] = [history(everyHour(0, 300), 310), history(everyHour(0, 300), 900)];
    expect(learnRates(long)).toEqual(learnRates(short));
  });

  it('have a high dispersion when pushes arrive in bursts', () => {
    const bursts = new Map(
      [3, 40, 77, 150, 161, 220, 300].map((at) => [hour(at), { pushes: 400, lastAtUs: hour(at) }]),
    );
    const learned = learnRates(history([], 400, { arrivals: bursts }));
    expect(learned?.dispersion).toBeGreaterThan(100);
    expect(learnRates(history(everyHour(0, 400), 400))?.dispersion).toBe(1);
  });
});

describe('the odds of a silence', () => {
  it('need a week of uptime, and more than a few busy hours', () => {
    const odds = (hours: readonly number[], until: number) => {
      const known = history(hours, until);
      const learned = learnRates(known);
      if (learned === null) throw new Error('There were pushes.');
      return silenceOdds(learned, known.watched, { fromUs: hour(until - 1), toUs: hour(until) });
    };
    expect(odds(everyHour(0, 160), 161)).toBeNull();
    expect(odds([0, 50, 100, 150, 200], 201)).toBeNull();
    expect(odds(everyHour(0, 170), 171)).toMatchObject({ isAlarm: false });
  });

  it('decrease during the silence, but not during downtime', () => {
    const silence = fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 2, maxLength: 9 });
    fc.assert(
      fc.property(silence, (lengths) => {
        const known = history(everyHour(0, 200), 200);
        const learned = learnRates(known);
        if (learned === null) throw new Error('There were pushes.');
        const oddsAfter = (us: number, isWatched: boolean) => {
          const span = { fromUs: beginUs, toUs: isWatched ? us : learned.lastPushAtUs };
          return silenceOdds(learned, [span], { fromUs: learned.lastPushAtUs, toUs: us })?.odds;
        };
        let us = learned.lastPushAtUs;
        let before = 1;
        for (const length of lengths) {
          us += length * hourUs;
          expect(oddsAfter(us, false)).toBe(1);
          const odds = oddsAfter(us, true) ?? 1;
          expect(odds).toBeLessThan(before);
          before = odds;
        }
      }),
      { numRuns: 30 },
    );
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
          const isIn = (spans: typeof left) => spans.some((s) => s.fromUs <= us && us < s.toUs);
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
    expect(alert?.evidence.join(' ')).toMatch(/About 1[23] pushes were expected/);
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
    const paused = registration({ pausedSeenAtUs: hour(weeks), heldBy: 'command' });
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
  expect(alert?.evidence.join(' ')).toContain('based on 9 days of observation');
});

it('pruning resolves alerts of missing events and unknown hours', async () => {
  const { live, check, store } = await openContext({ reconcile: true });
  await live(hour(20), moments(0, 20));
  await store.completeness.saveCoverage([covered(2, { pushed: 8, missing: 2 }), covered(19)]);
  expect((await check()).map(({ kind }) => kind).toSorted()).toEqual(['missing', 'unknown']);
  await pruneBefore(store, hour(18));
  expect(await check()).toEqual([]);
});
