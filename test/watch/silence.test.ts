/** Silence: what is learned of a subscription, when it is an alarm, and when it is over. */
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

/** One push at the beginning of each of the hours, watched from the beginning. */
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

describe('what is learned', () => {
  it('is the rate of each hour of the day, drawn towards the mean where little was seen', () => {
    const noons = everyHour(0, 35).map((day) => day * 24 + 12);
    const learned = learnRates(history(noons, 35 * 24));
    expect(learned?.perHour[12]).toBeGreaterThan(0.65);
    expect(learned?.perHour[12]).toBeLessThan(1);
    expect(learned?.perHour[13]).toBeLessThan(0.05);
    expect(learned?.perHour[13]).toBeGreaterThan(0);
  });

  it('leaves out hours in which nobody watched', () => {
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

  it('takes no silence for natural in which an event was lost', () => {
    const hours = [...everyHour(0, 200), ...everyHour(260, 400)];
    expect(learnRates(history(hours, 400))?.longestSilence).toBeGreaterThan(30);
    const withLoss = learnRates(history(hours, 400, { lostHours: [hour(230)] }));
    expect(withLoss?.longestSilence).toBeLessThan(2);
  });

  it('is nothing without a push, and does not grow used to the silence that lasts', () => {
    expect(learnRates(history([], 400))).toBeNull();
    const [short, long] = [history(everyHour(0, 300), 310), history(everyHour(0, 300), 900)];
    expect(learnRates(long)).toEqual(learnRates(short));
  });

  it('is uneven where pushes come in bursts', () => {
    const bursts = new Map(
      [3, 40, 77, 150, 161, 220, 300].map((at) => [hour(at), { pushes: 400, lastAtUs: hour(at) }]),
    );
    const learned = learnRates(history([], 400, { arrivals: bursts }));
    expect(learned?.dispersion).toBeGreaterThan(100);
    expect(learnRates(history(everyHour(0, 400), 400))?.dispersion).toBe(1);
  });
});

describe('the odds of a silence', () => {
  it('need a week of watching, and more than a few busy hours', () => {
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

  it('fall as it lasts, and never while nobody watches', () => {
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
  it('lose what is cut out, whatever its order', () => {
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

  it('is raised once, told with figures and a next step, and ends with the next push', async () => {
    const { live, look, store, lookAt } = await openContext();
    await live(...hourly);
    expect(await look()).toEqual([]);
    await live(hour(weeks + 12));
    await look();
    const [alert, ...others] = await look();
    expect(others).toEqual([]);
    expect(alert).toMatchObject({ kind: 'silence', subject: 'alps', severity: 'critical' });
    expect(alert?.cause).toContain('No push of the subscription alps has arrived for 13 h');
    expect(alert?.evidence.join(' ')).toMatch(/About 1[23] pushes were expected/);
    expect(alert?.nextStep).toContain('`earshot doctor`');
    await live(hour(weeks + 13), [hour(weeks + 12) + minuteUs]);
    expect(await look()).toEqual([]);
    await lookAt(hour(weeks + 13) + minuteUs);
    const all = await store.alerts.alerts({ all: true, limit: 9 });
    expect(all).toHaveLength(1);
  });

  it('is neither raised again nor resolved by a restart', async () => {
    const context = await openContext();
    await context.live(...hourly);
    await context.live(hour(weeks + 12));
    const before = await context.look();
    await context.restart();
    await context.look();
    // So long after the last push that all of what was learned is forgotten.
    await context.live(hour(weeks) + 92 * dayUs);
    await context.restart();
    await context.look();
    expect(before).toHaveLength(1);
    expect(await context.lasting()).toMatchObject(before.map(({ id }) => ({ id })));
    expect(await context.store.alerts.alerts({ all: true, limit: 9 })).toHaveLength(1);
  });

  it('is not raised for a time in which we were down, or in which nothing was sent', async () => {
    const { live, store, lookAt } = await openContext();
    await live(...hourly);
    const downUntilUs = hour(weeks + 48);
    await store.completeness.recordUptime({ fromUs: downUntilUs, toUs: downUntilUs + hourUs });
    expect(await lookAt(downUntilUs + hourUs)).toEqual([]);
    const openGap = { subscription: 'alps', events: ['created'], filter: '', reason: 'It paused.' };
    await store.administration.commit({ openGap: { ...openGap, fromUs: downUntilUs + hourUs } });
    await store.completeness.recordUptime({ fromUs: downUntilUs, toUs: downUntilUs + dayUs });
    expect(await lookAt(downUntilUs + dayUs)).toEqual([]);
  });

  it('is over when the subscription is no longer to run, or is given up', async () => {
    const { live, look, store } = await openContext();
    await live(...hourly);
    await live(hour(weeks + 12));
    expect(await look()).toHaveLength(1);
    await store.administration.commit({ removeRegistration: 'alps' });
    expect(await look()).toEqual([]);
  });

  it('of most of several subscriptions is told once, with their names', async () => {
    const names = ['alps', 'andes', 'atlas', 'altai'];
    const { live, look, store } = await openContext(
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
    const [alert, ...others] = await look();
    expect(others).toEqual([]);
    expect(alert).toMatchObject({ kind: 'silence', subject: '', severity: 'critical' });
    expect(alert?.cause).toContain('4 of 4 subscriptions are silent');
    expect(alert?.evidence[0]).toContain('alps, altai, andes, atlas');
    // Two of four are no longer most of them: each speaks for itself.
    await push('alps', [hour(weeks + 12)]);
    await push('andes', [hour(weeks + 12)]);
    await live(hour(weeks + 12) + minuteUs);
    expect((await look()).map(({ subject }) => subject).sort()).toEqual(['altai', 'atlas']);
  });

  it('is not judged while the subscription does not run', async () => {
    const paused = registration({ pausedSeenAtUs: hour(weeks), heldBy: 'command' });
    const { live, look } = await openContext({}, [paused]);
    await live(...hourly);
    await live(hour(weeks + 48));
    expect(await look()).toEqual([]);
  });
});

const weeks = 14 * 24;

it('does not teach that silence is usual, nor is it taken for one', async () => {
  const context = await openContext();
  const { store, live } = context;
  await live(hour(weeks), moments(0, weeks));
  // The four days that are left are not enough to learn from.
  await pruneBefore(store, hour(weeks - 4 * 24));
  await context.restart();
  await live(hour(weeks + 12));
  expect(await context.look()).toEqual([]);
});

it('is learned from no more, while what is left still is', async () => {
  const context = await openContext();
  await context.live(hour(weeks), moments(0, weeks));
  await pruneBefore(context.store, hour(weeks - 9 * 24));
  await context.restart();
  await context.live(hour(weeks + 12));
  const [alert] = await context.look();
  expect(alert).toMatchObject({ kind: 'silence' });
  expect(alert?.evidence.join(' ')).toContain('based on 9 days of observation');
});

it('ends alerts of what is missing or unknown there', async () => {
  const { live, look, store } = await openContext({ reconcile: true });
  await live(hour(20), moments(0, 20));
  await store.completeness.saveCoverage([covered(2, { pushed: 8, missing: 2 }), covered(19)]);
  expect((await look()).map(({ kind }) => kind).toSorted()).toEqual(['missing', 'unknown']);
  await pruneBefore(store, hour(18));
  expect(await look()).toEqual([]);
});
