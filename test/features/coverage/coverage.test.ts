/** A coverage report: the state of an hour, and counts that add up for any comparisons. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hourUs } from '../../../src/core/terms/dates.ts';
import {
  type SubscriptionEvent,
  subscriptionEvents,
} from '../../../src/core/terms/subscription.ts';
import type { Definition, HourCoverage } from '../../../src/features/coverage/completeness.ts';
import {
  type ReportedHour,
  reportCoverage,
  sumCounts,
} from '../../../src/features/coverage/coverage.ts';

/** Start of the first hour. */
const t0 = Date.UTC(2026, 4, 1) * 1000;
const at = (hours: number) => t0 + hours * hourUs;

/** Events expected from the given hour after `t0` on. */
function definition(
  hours: number,
  events: readonly SubscriptionEvent[] = ['created'],
  subscription = 'alps',
): Definition {
  return { subscription, fromUs: at(hours), events, filter: '' };
}

/** The comparison of the hour that begins the given number of hours after `t0`. */
function compared(
  hours: number,
  counts: Partial<HourCoverage> = {},
  event: SubscriptionEvent = 'created',
): HourCoverage {
  const { pushed = 0, late = 0, recovered = 0, missing = 0 } = counts;
  const expected = pushed + late + recovered + missing;
  const found = { expected, pushed, late, recovered, missing };
  return {
    ...{ subscription: 'alps', event, hourUs: at(hours), comparedAtUs: at(99) },
    ...found,
    ...(counts.subscription && { subscription: counts.subscription }),
  };
}

/** Reports the first hours after `t0`. */
function report(
  definitions: readonly Definition[],
  hours: readonly HourCoverage[],
  count = 1,
  unprunedSinceUs = 0,
) {
  const window = { sinceUs: t0, untilUs: at(count), unprunedSinceUs, nowUs: at(99) };
  return reportCoverage({ definitions, hours, ...window });
}

function states(definitions: readonly Definition[], hours: readonly HourCoverage[], count = 1) {
  return report(definitions, hours, count)[0]?.hours.map(({ state }) => state);
}

describe('an hour of a report', () => {
  it('is unknown until each expected kind of event has been compared', () => {
    const both = [definition(-9, ['created', 'deleted'])];
    expect(states(both, [])).toEqual(['unknown']);
    expect(states(both, [compared(0, { pushed: 1 })])).toEqual(['unknown']);
    const all = [compared(0, { pushed: 1 }), compared(0, {}, 'deleted')];
    expect(states(both, all)).toEqual(['pushed']);
  });

  it('is outside before the subscription, although a command compared it, and after its end', () => {
    const ended = [definition(1.5), definition(2.5, [])];
    expect(states(ended, [], 4)).toEqual(['outside', 'unknown', 'unknown', 'outside']);
    const [one] = report([definition(1)], [compared(0, { recovered: 3 })], 2);
    expect(one?.hours.map(({ state }) => state)).toEqual(['outside', 'unknown']);
    const nothing = { state: 'not-compared', expected: 0, complete: null, pushedShare: null };
    expect(one).toMatchObject(nothing);
  });

  it('is pending until half an hour after its end, unless a command has compared it', () => {
    const pending = (nowUs: number, hours: readonly HourCoverage[] = []) => {
      const window = { sinceUs: t0, untilUs: nowUs, unprunedSinceUs: 0, nowUs };
      return reportCoverage({ definitions: [definition(0.5)], hours, ...window })[0];
    };
    expect(pending(at(0.75))).toMatchObject({
      ...{ state: 'not-compared', pendingHours: 1, unknownHours: 0, nextDueAtUs: at(1.5) },
      hours: [{ state: 'pending' }],
    });
    expect(pending(at(1.49))?.hours.map(({ state }) => state)).toEqual(['pending', 'pending']);
    expect(pending(at(1.5))).toMatchObject({
      ...{ state: 'not-compared', pendingHours: 1, unknownHours: 1, nextDueAtUs: at(1.5) },
    });
    expect(pending(at(1.25), [compared(0, { pushed: 4 })])).toMatchObject({
      ...{ state: 'compared', comparedHours: 1, pendingHours: 1, nextDueAtUs: at(2.5) },
      ...{ expected: 4, complete: 1 },
    });
    expect(pending(at(2.6), [compared(0, { pushed: 4 })])?.state).toBe('partly-compared');
  });

  it('in which the subscription changed expects the events of both versions', () => {
    const changed = [definition(-9, ['created']), definition(0.5, ['deleted'])];
    expect(states(changed, [compared(0, { pushed: 1 })])).toEqual(['unknown']);
    expect(states(changed, [compared(0), compared(0, {}, 'deleted')])).toEqual(['quiet']);
    // Nothing of a version that was replaced at the moment it began.
    const corrected = [definition(0.5, ['created', 'deleted']), definition(0.5, ['created'])];
    expect(states(corrected, [compared(0, { pushed: 1 })])).toEqual(['pushed']);
  });
});

describe('a coverage report', () => {
  it('has the hours that intersect the window, from the hour of its start to before its end', () => {
    const window = { sinceUs: at(1.9), untilUs: at(3.1), unprunedSinceUs: 0, nowUs: at(99) };
    const [one] = reportCoverage({ definitions: [definition(-9)], hours: [], ...window });
    expect(one?.hours.map(({ hourUs: us }) => us)).toEqual([at(1), at(2), at(3)]);
  });

  it('omits hours from which notifications were pruned, whatever was known of them', () => {
    const hours = [
      compared(0, { missing: 3 }),
      compared(1, { pushed: 2 }),
      compared(2, { pushed: 4 }),
    ];
    const [one] = report([definition(0.5)], hours, 3, at(2));
    expect(one?.hours.map(({ state }) => state)).toEqual(['pruned', 'pruned', 'pushed']);
    expect(one).toMatchObject({
      ...{ expected: 4, pushed: 4, missing: 0, complete: 1 },
      ...{ comparedHours: 1, unknownHours: 0 },
    });
    // Before the first subscription, there is nothing to prune.
    expect(report([definition(1)], [], 3, at(2))[0]?.hours[0]?.state).toBe('outside');
  });

  it('derives completeness from stored and expected notifications, and the pushed share from pushes', () => {
    const hours = [compared(0, { pushed: 5, late: 1, recovered: 2, missing: 2 })];
    expect(report([definition(-9)], hours)).toMatchObject([{ complete: 0.8, pushedShare: 0.6 }]);
    const quiet = report([definition(-9)], [compared(0)]);
    expect(quiet).toMatchObject([{ complete: 1, pushedShare: 1, comparedHours: 1 }]);
  });

  it('adds up, and has each hour in one state, for any subscriptions and comparisons', () => {
    fc.assert(
      fc.property(arbitraryHistory(), ({ definitions, hours, count }) => {
        const reported = report(definitions, hours, count);
        for (const one of reported) {
          const subscribedHours = new Set(
            one.hours.filter(({ state }) => state !== 'outside').map(({ hourUs: us }) => us),
          );
          const own = hours.filter(
            ({ subscription, hourUs: us }) =>
              subscription === one.subscription && subscribedHours.has(us),
          );
          expect(sumCounts([one])).toEqual(sumCounts(own));
          expect(sumCounts(one.hours)).toEqual(sumCounts(own));
          expect(one.expected).toBe(one.pushed + one.late + one.recovered + one.missing);
          const outside = one.hours.filter(({ state }) => state === 'outside').length;
          expect(one.comparedHours + one.unknownHours + outside).toBe(count);
          expect(one.hours.map(({ hourUs: us }) => us)).toEqual([...Array(count).keys()].map(at));
          for (const hour of one.hours) expectTrue(hour);
          if (one.complete !== null) expect(one.complete === 1).toBe(one.missing === 0);
        }
      }),
    );
  });
});

/** The state agrees with the counts. */
function expectTrue({ state, expected, pushed, late, recovered, missing }: ReportedHour): void {
  expect(state === 'missing').toBe(missing > 0);
  if (state === 'outside') expect(expected).toBe(0);
  if (state === 'pushed') expect([expected, late, recovered]).toEqual([pushed, 0, 0]);
  if (state === 'quiet') expect(expected).toBe(0);
  if (state === 'late') expect(late > 0 && recovered === 0).toBe(true);
  if (state === 'recovered') expect(recovered).toBeGreaterThan(0);
}

function arbitraryHistory() {
  const name = fc.constantFrom('alps', 'sea');
  const number = fc.nat(3);
  const definitions = fc
    .array(
      fc
        .tuple(fc.integer({ min: -4, max: 12 }), fc.subarray([...subscriptionEvents]), name)
        .map(([quarters, events, subscription]) => definition(quarters / 2, events, subscription)),
      { maxLength: 6 },
    )
    .map((all) => all.toSorted((a, b) => a.fromUs - b.fromUs));
  const hours = fc.uniqueArray(
    fc
      .record({
        hour: fc.integer({ min: -1, max: 7 }),
        event: fc.constantFrom(...subscriptionEvents),
        counts: fc.record({
          subscription: name,
          pushed: number,
          late: number,
          recovered: number,
          missing: number,
        }),
      })
      .map(({ hour, event, counts }) => compared(hour, counts, event)),
    { selector: (one) => `${one.subscription} ${one.event} ${one.hourUs}`, maxLength: 12 },
  );
  return fc.record({ definitions, hours, count: fc.integer({ min: 1, max: 6 }) });
}
