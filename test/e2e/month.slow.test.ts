/** A simulated month with all kinds of faults: afterwards, the log contains exactly the expected events. */
import { expect, it, onTestFinished } from 'vitest';
import { hourUs } from '../../src/core/terms/dates.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { times } from '../helpers/thorough.ts';
import { type MonthContext, openMonthContext } from '../simulation/month-context.ts';
import { coverageFaults, readLog, resultOf, totalOf } from '../simulation/month-results.ts';
import { type SimulatedMonth, simulateMonth } from '../simulation/month-run.ts';

const seed = 20_261_121;
const startMs = Date.UTC(2026, 4, 1);
const days = times(16, 30);
const productsPerDay = times(110, 200);

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

function openStore(context: MonthContext) {
  const receiver = context.receiver();
  if (receiver === null) throw new Error('The receiver is closed.');
  return receiver.store;
}

const iso = (ms: number) => new Date(ms).toISOString();

it('a simulated month with outages, losses, pauses and a replacement ends with a log of exactly the expected events', async () => {
  const sandbox = {
    ...{ retryDelaysMs, faults, lateShare: 0.2, lateMaxMs: 12 * 3_600_000 },
    ...{ modifiedShare: 0.3, deletedShare: 0.1 },
  };
  const context = await openMonthContext({ folder: temporaryDirectory(), seed, startMs, sandbox });
  onTestFinished(() => context.close());
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
  const pushedLater = logged.filter((one) => one.source === 'reconcile' && one.pushedAtUs !== null);
  expect(pushedLater.length).toBeGreaterThan(0);
  const definitions = await openStore(context).completeness.definitions();
  expect(definitions).toMatchObject(month.periods.map(({ toUs: _, ...asIs }) => asIs));

  const { administration } = openStore(context);
  const gaps = await administration.gaps();
  expect(gaps.map(({ subscription }) => subscription)).toEqual(
    expect.arrayContaining(['acquisitions', 'deletions']),
  );
  const history = await administration.history({ subscription: 'deletions', limit: 100 });
  expect(history).toContainEqual(expect.objectContaining({ actor: 'maintain', action: 'resumed' }));

  const since = iso(month.fromMs);
  const { code, out, err } = await context.command(['coverage', '--since', since, '--json']);
  expect(code, err).toBe(0);
  const { missing, subscriptions } = JSON.parse(out);
  expect(missing).toBe(0);
  for (const { hours, complete } of subscriptions) {
    expect(complete).toBe(1);
    // Without the current hour and the one before it, which has not settled.
    const open = hours.slice(0, -2).filter(({ state }: { state: string }) => state === 'unknown');
    expect(open).toEqual([]);
  }
  await expectNothingLeft(context, month);
}, 180_000);
