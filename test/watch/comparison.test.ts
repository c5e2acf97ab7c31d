/**
 * Alerts based on the comparison with the catalogue: lost pushes, missing events, unknown hours.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { areTooMany, lostPushOdds, oddsOf, usualShareOf } from '../../src/watch/check-silence.ts';
import { beginUs, covered, dayUs, hourUs, minuteUs, openContext } from './watch-context.ts';

const hour = (at: number) => beginUs + at * hourUs;
const hours = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

describe('the odds of lost pushes', () => {
  it('are never below the exact ones, and decrease with every loss', () => {
    /** The upper tail of the binomial distribution, term by term. */
    const exact = (n: number, k: number, p: number) => {
      let term = (1 - p) ** n;
      let below = 0;
      for (let i = 0; i < k; i += 1) {
        below += term;
        term *= ((n - i) / (i + 1)) * (p / (1 - p));
      }
      return 1 - below;
    };
    const sample = fc.record({
      expected: fc.integer({ min: 1, max: 200 }),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
      usual: fc.double({ min: 0.001, max: 0.1, noNaN: true }),
    });
    fc.assert(
      fc.property(sample, ({ expected, share, usual }) => {
        const lost = Math.round(expected * share);
        expect(oddsOf({ expected, lost }, usual)).toBeGreaterThanOrEqual(
          exact(expected, lost, usual) - 1e-9,
        );
        const more = Math.min(expected, lost + 1);
        expect(oddsOf({ expected, lost: more }, usual)).toBeLessThanOrEqual(
          oddsOf({ expected, lost }, usual),
        );
      }),
    );
    expect(oddsOf({ expected: 2, lost: 2 }, 0.001)).toBeCloseTo(1e-6, 12);
    // Found by the property: rounding gave more than 1 here.
    expect(oddsOf({ expected: 10, lost: 1 }, 0.09999999960524988)).toBe(1);
  });

  it('use a usual share with a lower and an upper limit', () => {
    expect(usualShareOf({ expected: 0, lost: 0 })).toBe(0.001);
    expect(usualShareOf({ expected: 100_000, lost: 0 })).toBe(0.001);
    expect(usualShareOf({ expected: 100_000, lost: 5_000 })).toBeCloseTo(0.05, 2);
    expect(usualShareOf({ expected: 100_000, lost: 90_000 })).toBe(0.1);
  });
});

describe('the dispersion of lost pushes', () => {
  const odds = (lostOf: (at: number) => number) => {
    const past = hours(0, 700).map((at) => ({
      startUs: hour(at),
      expected: 100,
      lost: lostOf(at),
    }));
    const latest = hours(700, 724).map((at) => ({ startUs: hour(at), expected: 100, lost: 0 }));
    const burst = { startUs: hour(724), expected: 100, lost: 20 };
    return lostPushOdds([...past, ...latest, burst], hour(726));
  };

  it('makes another burst likely after earlier bursts, but not after single losses', () => {
    const single = odds((at) => (at % 5 === 0 ? 1 : 0));
    const bursts = odds((at) => (at % 100 === 0 ? 20 : 0));
    expect(single?.usual).toBeCloseTo(bursts?.usual ?? 0, 5);
    expect(single?.dispersion).toBe(1);
    expect(bursts?.dispersion).toBeGreaterThan(15);
    expect(single && areTooMany(single, false)).toBe(true);
    expect(bursts && areTooMany(bursts, false)).toBe(false);
  });

  it('never makes a total loss usual', () => {
    const always = odds((at) => (at % 100 === 0 ? 100 : 0));
    expect(always?.dispersion).toBe(30);
  });
});

describe('lost pushes', () => {
  const ordinary = hours(0, 48).map((at) => covered(at));
  const lossy = { pushed: 7, recovered: 3 };

  it('are an alert when there are more than usual, resolved a day after they stop', async () => {
    const { live, check, store } = await openContext();
    await live(hour(50));
    await store.completeness.saveCoverage(ordinary);
    expect(await check()).toEqual([]);
    await live(hour(56));
    await store.completeness.saveCoverage(hours(48, 54).map((at) => covered(at, lossy)));
    const [alert] = await check();
    expect(alert).toMatchObject({ kind: 'lost-pushes', subject: 'alps', severity: 'warning' });
    expect(alert?.cause).toContain('18 of 240 events were not pushed');
    expect(alert?.evidence[0]).toContain('0.1 % is usual');
    // Three lossy hours are left in the day: too few to raise the alert, too many to resolve it.
    await live(hour(77));
    await store.completeness.saveCoverage(hours(54, 75).map((at) => covered(at)));
    expect(await check()).toHaveLength(1);
    await live(hour(80));
    await store.completeness.saveCoverage(hours(75, 78).map((at) => covered(at)));
    expect(await check()).toEqual([]);
  });

  it('during our own downtime are no alert', async () => {
    const { live, check, store, setNow } = await openContext();
    await live(hour(40));
    await store.completeness.recordUptime({ fromUs: hour(46), toUs: hour(56) });
    setNow(hour(56));
    const recovered = hours(40, 46).map((at) => covered(at, { pushed: 0, recovered: 10 }));
    const later = hours(46, 54).map((at) => covered(at));
    await store.completeness.saveCoverage([...ordinary, ...recovered, ...later]);
    expect(await check()).toEqual([]);
  });

  it('are no alert when the catalogue pushes an hour late, but are one when it does not push', async () => {
    const { live, check, store } = await openContext();
    await live(hour(50));
    const late = hours(0, 48).map((at) => covered(at, { pushed: 5, late: 5 }));
    // Compared half an hour after its end: later pushes were recovered by then.
    const newest = covered(48, { pushed: 5, recovered: 5, comparedAtUs: hour(49.5) });
    await store.completeness.saveCoverage([...late, newest]);
    await check();
    await live(hour(50) + 9 * minuteUs);
    expect(await check()).toEqual([]);
    await live(hour(50) + 10 * minuteUs);
    expect(await check()).toMatchObject([{ kind: 'lost-pushes' }]);
  });

  it('are noticed with few events, over a longer period', async () => {
    const { live, check, store } = await openContext();
    await live(hour(20 * 24));
    const none = { expected: 0, pushed: 0 };
    const one = (at: number) =>
      at > 12 * 24
        ? { expected: 1, pushed: 0, recovered: 1 }
        : { expected: 1, pushed: 1, recovered: 0 };
    const known = hours(0, 20 * 24 - 2).map((at) => covered(at, at % 72 === 0 ? one(at) : none));
    await store.completeness.saveCoverage(known);
    const [alert] = await check();
    expect(alert?.cause).toContain('2 of 5 events were not pushed');
  });
});

describe('missing events', () => {
  it('that a person finds and recovers within an hour are no alert', async () => {
    const { live, check, activeAlerts, store } = await openContext();
    const missing = (comparedAtUs: number, count = 1) =>
      store.completeness.saveCoverage([covered(7, { pushed: 9, missing: count, comparedAtUs })]);
    await live(hour(30));
    await missing(hour(30));
    await check();
    await live(hour(30) + 59 * minuteUs);
    expect(await check()).toEqual([]);
    await store.completeness.saveCoverage([covered(7, { pushed: 9, recovered: 1 })]);
    await check();
    // Checked repeatedly and never recovered.
    for (const minute of [60, 90, 119]) {
      await live(hour(30) + minute * minuteUs);
      await missing(hour(30) + minute * minuteUs);
      expect(await check()).toEqual([]);
    }
    await live(hour(32));
    await missing(hour(32), 1_234);
    await check();
    const cause = expect.stringContaining('1,234 events of the subscription alps are missing from');
    expect(await activeAlerts()).toMatchObject([{ kind: 'missing', cause }]);
  });

  it('are an alert with the command that recovers them, until they are recovered', async () => {
    const { live, check, store } = await openContext();
    await live(hour(30));
    const lost = covered(7, { pushed: 9, missing: 1 });
    await store.completeness.saveCoverage([...hours(0, 28).map((at) => covered(at)), lost]);
    const [alert] = await check();
    expect(alert).toMatchObject({ kind: 'missing', subject: 'alps', severity: 'warning' });
    expect(alert?.nextStep).toMatch(
      /`earshot reconcile --since \S+T07:00Z --until \S+T08:00Z --subscription alps`/,
    );
    await store.completeness.saveCoverage([covered(7, { pushed: 9, recovered: 1 })]);
    expect(await check()).toEqual([]);
  });

  it('from long ago are noticed, and resolved, within an hour', async () => {
    const { live, check, store } = await openContext();
    await live(hour(20 * 24));
    const checkRounds = async (rounds: number) => {
      for (let round = 0; round < rounds; round += 1) await check();
    };
    await checkRounds(1);
    await store.completeness.saveCoverage([covered(7, { pushed: 9, missing: 1 })]);
    await checkRounds(59);
    expect(await check()).toMatchObject([{ kind: 'missing' }]);
    await store.completeness.saveCoverage([covered(7)]);
    await checkRounds(59);
    expect(await check()).toEqual([]);
  });
});

describe('unknown hours', () => {
  it('are an alert when they stay unknown for long, resolved when nearly all are known', async () => {
    const { live, check, store } = await openContext({ reconcile: true });
    const compare = (from: number, to: number) =>
      store.completeness.saveCoverage(hours(from, to).map((at) => covered(at)));
    await compare(0, 10);
    await live(hour(17) + 29 * minuteUs);
    expect(await check()).toEqual([]);
    await live(hour(17) + 30 * minuteUs);
    const [alert] = await check();
    expect(alert).toMatchObject({ kind: 'unknown', subject: 'alps', severity: 'warning' });
    expect(alert?.cause).toContain('1 hours have not been compared');
    await compare(10, 13);
    expect(await check()).toHaveLength(1);
    await compare(13, 16);
    expect(await check()).toEqual([]);
  });

  it('are no alert shortly after a start, or without comparisons', async () => {
    const off = await openContext();
    await off.live(hour(100));
    expect(await off.check()).toEqual([]);
    const lagging = await openContext({ reconcile: true });
    await lagging.live(hour(1));
    const upUs = beginUs + 10 * dayUs;
    await lagging.store.completeness.recordUptime({ fromUs: upUs, toUs: upUs + hourUs });
    expect(await lagging.checkAt(upUs + hourUs)).toEqual([]);
    await lagging.store.completeness.recordUptime({ fromUs: upUs, toUs: upUs + 7 * hourUs });
    expect(await lagging.checkAt(upUs + 7 * hourUs)).toMatchObject([{ kind: 'unknown' }]);
  });
});
