/**
 * Alerts based on the comparison with the catalogue: lost pushes, missing events, a stopped comparison.
 */
import { describe, expect, it } from 'vitest';
import { pruneBefore } from '../pruning/prune-to.ts';
import {
  beginUs,
  covered,
  dayUs,
  hourUs,
  minuteUs,
  moments,
  openContext,
} from './watch-context.ts';

const hour = (at: number) => beginUs + at * hourUs;
const hours = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

describe('lost pushes', () => {
  const ordinary = hours(0, 48).map((at) => covered(at));
  const lossy = { pushed: 7, recovered: 3 };

  it('are an alert from a fifth of the events on, resolved below a tenth', async () => {
    const { live, check, store } = await openContext();
    await live(hour(50));
    await store.completeness.saveCoverage(ordinary);
    expect(await check()).toEqual([]);
    const lose = async (from: number, to: number, share: object) => {
      await live(hour(to + 2));
      await store.completeness.saveCoverage(hours(from, to).map((at) => covered(at, share)));
      return check();
    };
    expect(await lose(48, 63, lossy)).toEqual([]);
    const [alert] = await lose(63, 64, lossy);
    expect(alert).toMatchObject({ kind: 'lost-pushes', subject: 'alps', level: 'warning' });
    expect(alert?.text).toContain('did not deliver 48 of 240 events of the subscription alps');
    expect(alert?.evidence[0]).toContain('That is 20 % since');
    // Eight lossy hours are left in the day: too few to raise the alert, too many to resolve it.
    expect(await lose(64, 80, {})).toHaveLength(1);
    expect(await lose(80, 81, {})).toEqual([]);
    expect(await lose(81, 95, { pushed: 0, recovered: 10 })).toMatchObject([{ level: 'critical' }]);
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
    const newest = covered(48, {
      ...{ expected: 100, pushed: 20, recovered: 80 },
      comparedAtUs: hour(49.5),
    });
    await store.completeness.saveCoverage([...late, newest]);
    await check();
    await live(hour(50) + 9 * minuteUs);
    expect(await check()).toEqual([]);
    await live(hour(50) + 10 * minuteUs);
    expect(await check()).toMatchObject([{ kind: 'lost-pushes' }]);
  });

  it('are no alert with fewer than three in a day', async () => {
    const { live, check, store } = await openContext();
    await live(hour(50));
    const rare = (at: number, every: number) =>
      covered(at, at % every > 0 ? { expected: 0, pushed: 0 } : { expected: 1, recovered: 1 });
    await store.completeness.saveCoverage(hours(0, 48).map((at) => rare(at, 12)));
    expect(await check()).toEqual([]);
    await store.completeness.saveCoverage(hours(0, 48).map((at) => rare(at, 8)));
    expect(await check()).toMatchObject([{ kind: 'lost-pushes', level: 'critical' }]);
  });
});

describe('missing events', () => {
  it('are an alert only when they were found an hour ago and not recovered since', async () => {
    const { live, check, store } = await openContext();
    const at = async (minute: number, fields: object) => {
      const comparedAtUs = hour(30) + minute * minuteUs;
      await live(comparedAtUs);
      await store.completeness.saveCoverage([covered(7, { comparedAtUs, ...fields })]);
      return (await check()).map(({ text }) => text);
    };
    for (const minute of [0, 59]) expect(await at(minute, { missing: 1 })).toEqual([]);
    expect(await at(59, { pushed: 9, recovered: 1 })).toEqual([]);
    // Compared repeatedly and never recovered.
    for (const minute of [60, 90, 119]) expect(await at(minute, { missing: 1 })).toEqual([]);
    expect(await at(120, { expected: 9_999, missing: 1_234 })).toEqual([
      '1,234 events of the subscription alps are missing from the log.',
    ]);
    expect(await at(121, { pushed: 9, recovered: 1 })).toEqual([]);
  });

  it('are an alert with the command that recovers them, until their notifications are pruned', async () => {
    const { live, check, store } = await openContext({ reconcile: true });
    await live(hour(20), moments(0, 20));
    await store.completeness.saveCoverage([covered(2, { pushed: 8, missing: 2 }), covered(18)]);
    const [alert] = await check();
    expect(alert).toMatchObject({ kind: 'missing', subject: 'alps', level: 'warning' });
    expect(alert?.nextStep).toMatch(
      /`earshot reconcile --since \S+T02:00Z --until \S+T03:00Z --subscription alps`/,
    );
    await pruneBefore(store, hour(18));
    expect(await check()).toEqual([]);
  });
});

describe('a comparison that has stopped', () => {
  it('is an alert 6.5 hours after the last compared hour, until it has nearly caught up', async () => {
    const { live, check, store } = await openContext({ reconcile: true });
    const compare = (from: number, to: number) =>
      store.completeness.saveCoverage(hours(from, to).map((at) => covered(at)));
    await compare(0, 10);
    await live(hour(16) + 29 * minuteUs);
    expect(await check()).toEqual([]);
    await live(hour(16) + 30 * minuteUs);
    const [alert] = await check();
    expect(alert).toMatchObject({ kind: 'missing', subject: 'alps', level: 'warning' });
    expect(alert?.text).toContain('no hour has been compared with the catalogue for 6.5 h');
    expect(alert?.nextStep).toMatch(/--since \S+T10:00Z --until \S+T16:00Z --subscription alps`/);
    await compare(10, 14);
    expect(await check()).toHaveLength(1);
    await compare(14, 15);
    expect(await check()).toEqual([]);
  });

  it('is no alert shortly after a start or a sleep, or without automatic comparisons', async () => {
    const off = await openContext();
    await off.live(hour(100));
    expect(await off.check()).toEqual([]);
    const { live, checkAt, store } = await openContext({ reconcile: true });
    await live(hour(1));
    const upUs = beginUs + 10 * dayUs;
    const kindsAfter = async (uptimeUs: number) => {
      await store.completeness.recordUptime({ fromUs: upUs, toUs: upUs + uptimeUs });
      return (await checkAt(upUs + uptimeUs)).map(({ kind }) => kind);
    };
    expect(await checkAt(upUs)).toEqual([]);
    expect(await kindsAfter(6 * hourUs)).toEqual([]);
    expect(await kindsAfter(7 * hourUs)).toEqual(['missing']);
  });
});
