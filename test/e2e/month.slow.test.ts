/** A simulated month with all kinds of faults: afterwards, the log contains exactly the expected events. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { hourUs } from '../../src/core/terms/time-units.ts';
import type { SandboxOptions } from '../../src/sandbox/sandbox-options.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { times } from '../helpers/thorough.ts';
import { type MonthContext, openMonthContext } from '../simulation/month-context.ts';
import {
  coverageFaults,
  eventKey,
  readLog,
  resultOf,
  type SubscriptionPeriod,
  totalOf,
} from '../simulation/month-results.ts';
import {
  createMonthAccount,
  createMonthHours,
  type SimulatedMonth,
  simulateMonth,
} from '../simulation/month-run.ts';

const seed = 20_261_121;
const startMs = Date.UTC(2026, 4, 1);
const days = times(16, 30);
const productsPerDay = times(110, 200);

async function openContext(sandbox: Partial<SandboxOptions>) {
  const context = await openMonthContext({ folder: temporaryDirectory(), seed, startMs, sandbox });
  onTestFinished(() => context.close());
  return context;
}

/** Delays of the three attempts: a push that fails in an outage may arrive 41 minutes late. */
const retryDelaysMs: [number, number, number] = [0, 60_000, 2_400_000];
/** Payload shapes and delivery faults that do not change the expected events, and a loss of 5 %. */
const faults = {
  ...{ ackIdAbsent: 0.1, arrayBody: 0.05, capitalValue: 0.05 },
  ...{ duplicate: 0.02, outOfOrder: 0.02, answerLost: 0.01, lost: 0.05 },
};

/** Checks that reconcile finds nothing more in the month, and compares the coverage of each hour. */
async function expectNothingLeft(context: MonthContext, month: SimulatedMonth): Promise<void> {
  const { expected, logged } = resultOf(context, month);
  const window = ['--since', iso(month.fromMs), '--until', iso(month.toMs)];
  const whole = await context.command(['reconcile', ...window, '--json']);
  expect(whole, whole.err).toMatchObject({ code: 0 });
  const again = await context.command(['reconcile', ...window, '--check']);
  expect(again, again.err).toMatchObject({ code: 0 });
  expect(again.err).toContain('Nothing is missing');
  expect(readLog(context.dataDir)).toEqual(logged);
  const fromUs = month.fromMs * 1_000;
  const toUs = Math.floor(month.toMs / 3_600_000) * hourUs;
  const { completeness } = openStore(context);
  const coverage = await completeness.coverage({ sinceUs: fromUs, untilUs: toUs });
  expect(coverage).toHaveLength(3 * ((toUs - fromUs) / hourUs));
  expect(coverageFaults(expected, logged, coverage, { fromUs, toUs })).toEqual([]);
}

/** Returns the subscription definitions in the store. */
async function definitionsOf(context: MonthContext) {
  const definitions = await openStore(context).completeness.definitions();
  return definitions.map(({ subscription, events, filter, fromUs }) => {
    return { subscription, events, filter, fromUs };
  });
}

function withoutEnds(periods: readonly SubscriptionPeriod[]) {
  return periods.map(({ toUs: _, ...asIs }) => asIs);
}

function openStore(context: MonthContext) {
  const receiver = context.receiver();
  if (receiver === null) throw new Error('The receiver is closed.');
  return receiver.store;
}

/** Returns the result of `coverage --json`: hours by subscription. */
async function reportedHours(context: MonthContext, since: string) {
  const { code, out, err } = await context.command(['coverage', '--since', since, '--json']);
  expect(code, err).toBe(0);
  return JSON.parse(out);
}

const iso = (ms: number) => new Date(ms).toISOString();

describe('a simulated month', () => {
  it('with outages, losses, pauses and a replacement ends with a log of exactly the expected events', async () => {
    const context = await openContext({
      ...{ retryDelaysMs, faults, lateShare: 0.2, lateMaxMs: 12 * 3_600_000 },
      ...{ modifiedShare: 0.3, deletedShare: 0.1 },
    });
    const pace = { productsPerDay, roundHours: 4 };
    const month = await simulateMonth(context, { seed, days, ...pace });

    const { counts, faults: wrong, expected, logged } = resultOf(context, month);
    expect(wrong).toEqual([]);
    const { pushed, late, recovered, superseded, deleted, ...all } = totalOf(counts);
    expect(pushed + late + recovered).toBe(logged.length);
    expect(pushed + late + recovered + superseded + deleted).toBe(all.expected);
    expect(all.expected).toBe(expected.length);
    // The month must contain all kinds of events and faults; otherwise the test proves nothing.
    expect(Object.keys(counts).toSorted()).toEqual([
      'acquisitions created',
      'acquisitions modified',
      'deletions deleted',
    ]);
    expect(all.expected).toBeGreaterThan(days * productsPerDay);
    const lostPushes = expected.filter(({ received }) => !received).length;
    expect(lostPushes).toBe(recovered + superseded + deleted);
    expect(recovered).toBeGreaterThan(0.1 * all.expected);
    expect(Math.min(late, superseded, deleted)).toBeGreaterThan(5);
    const pushedLater = logged.filter(
      (one) => one.source === 'reconcile' && one.pushedAtUs !== null,
    );
    expect(pushedLater.length).toBeGreaterThan(0);
    expect(await definitionsOf(context)).toEqual(withoutEnds(month.periods));

    const { administration } = openStore(context);
    const gaps = await administration.gaps();
    expect(gaps.map(({ subscription }) => subscription)).toEqual(
      expect.arrayContaining(['acquisitions', 'deletions']),
    );
    const history = await administration.history({ subscription: 'deletions', limit: 100 });
    expect(history).toContainEqual(
      expect.objectContaining({ actor: 'maintain', action: 'resumed' }),
    );

    const { missing, subscriptions } = await reportedHours(
      context,
      new Date(month.fromMs).toISOString(),
    );
    expect(missing).toBe(0);
    for (const { hours, complete } of subscriptions) {
      expect(complete).toBe(1);
      // Without the current hour and the one before it, which has not settled.
      const open = hours.slice(0, -2).filter(({ state }: { state: string }) => state === 'unknown');
      expect(open).toEqual([]);
    }
    await expectNothingLeft(context, month);
  }, 180_000);
});

describe('coverage', () => {
  it('is complete on an ordinary day, and shows the hours with losses on a day that loses 5 %', async () => {
    const context = await openContext({ modifiedShare: 0.3 });
    const account = createMonthAccount(context);
    const events = ['created', 'modified', 'deleted'] as const;
    await account.register({ everything: { events, filter: '' } });
    const hours = createMonthHours(context, { productsPerDay: 400, roundHours: 6 });
    const fromMs = context.nowMs();
    await hours.pass(24);
    await hours.calm(26);
    const dayFrom = new Date(fromMs).toISOString();
    const [ordinary] = (await reportedHours(context, dayFrom)).subscriptions;
    expect(ordinary).toMatchObject({ complete: 1, pushedShare: 1, recovered: 0, late: 0 });
    expect(ordinary.expected).toBeGreaterThan(450);
    const states = ordinary.hours.slice(0, -2).map(({ state }: { state: string }) => state);
    expect(new Set(states)).toEqual(new Set(['pushed', 'quiet']));

    const lossFromMs = context.nowMs();
    context.sandbox.faults.change({ lost: 0.05 });
    await hours.pass(24);
    context.sandbox.faults.change({ lost: 0 });
    await hours.calm(26);
    const month = {
      fromMs,
      toMs: context.nowMs(),
      periods: account.periods(),
      idsOf: account.idsOf,
    };
    const { expected: expectedEvents, faults: wrong, logged } = resultOf(context, month);
    expect(wrong).toEqual([]);
    // A modification that a later one replaced before the comparison is in no query result.
    const found = new Set(logged.map(eventKey));
    const lost = new Map<string, number>();
    for (const event of expectedEvents) {
      const { received, dateUs } = event;
      if (received || !found.has(eventKey(event))) continue;
      const hour = new Date(Math.floor(dateUs / 3.6e9) * 3.6e6).toISOString();
      lost.set(hour, (lost.get(hour) ?? 0) + 1);
    }
    const total = [...lost.values()].reduce((sum, count) => sum + count, 0);
    expect(total).toBeGreaterThan(10);
    const [lossy] = (await reportedHours(context, new Date(lossFromMs).toISOString()))
      .subscriptions;
    type Hour = { hour: string; recovered: number; state: string };
    const recoveredHours = (lossy.hours as Hour[]).filter(({ recovered }) => recovered > 0);
    expect(recoveredHours.every(({ state }) => state === 'recovered')).toBe(true);
    expect(
      new Map(
        recoveredHours.map(({ hour, recovered }) => [new Date(hour).toISOString(), recovered]),
      ),
    ).toEqual(lost);
    expect(lossy).toMatchObject({ complete: 1, recovered: total, missing: 0 });
    expect(lossy.pushedShare).toBeCloseTo(1 - total / lossy.expected, 10);
    await expectNothingLeft(context, month);
  }, 60_000);
});
