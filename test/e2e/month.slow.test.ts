/** A simulated month with all kinds of faults: afterwards, the log contains exactly the expected events. */
import { expect, it } from 'vitest';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { times } from '../helpers/thorough.ts';
import { openMonth, simulateMonth } from '../simulation/month.ts';
import { readLog, resultOf } from '../simulation/month-results.ts';

const seed = 20_261_121;
const days = times(16, 30);
const productsPerDay = times(110, 200);

/** Payload shapes and delivery faults that do not change the expected events, and a loss of 5 %. */
const faults = {
  ...{ ackIdAbsent: 0.1, arrayBody: 0.05, capitalValue: 0.05 },
  ...{ duplicate: 0.02, outOfOrder: 0.02, answerLost: 0.01, lost: 0.05 },
};

const iso = (ms: number) => new Date(ms).toISOString();

it('a simulated month with outages, losses, pauses and a replacement ends with a log of exactly the expected events', async () => {
  const month = await openMonth(temporaryDirectory(), seed, {
    // A push that fails in an outage may arrive 41 minutes late.
    ...{ retryDelaysMs: [0, 60_000, 2_400_000], faults, lateShare: 0.2, lateMaxMs: 12 * 3_600_000 },
    ...{ modifiedShare: 0.3, deletedShare: 0.1 },
  });
  const { fromMs, toMs } = await simulateMonth(month, { seed, days, productsPerDay });

  const { counts, faults: wrong, expected, logged } = resultOf(month);
  expect(wrong).toEqual([]);
  const { pushed, late, recovered, superseded, deleted } = counts;
  expect(pushed + late + recovered).toBe(logged.length);
  // The month must contain all kinds of events and faults; otherwise the test proves nothing.
  expect(new Set(expected.map(({ event }) => event)).size).toBe(3);
  expect(expected.length).toBeGreaterThan(days * productsPerDay);
  expect(recovered).toBeGreaterThan(0.1 * expected.length);
  expect(Math.min(late, superseded, deleted)).toBeGreaterThan(5);
  expect(logged.some((one) => one.source === 'reconcile' && one.pushedAtUs !== null)).toBe(true);

  const { administration, completeness } = month.store();
  expect(await completeness.definitions()).toMatchObject(
    month.periods.map(({ toUs: _, ...asIs }) => asIs),
  );
  const gaps = await administration.gaps();
  expect(gaps.map(({ subscription }) => subscription)).toEqual(
    expect.arrayContaining(['acquisitions', 'deletions']),
  );
  const history = await administration.history({ subscription: 'deletions', limit: 100 });
  expect(history).toContainEqual(expect.objectContaining({ actor: 'maintain', action: 'resumed' }));

  const { out } = await month.command(['coverage', '--since', iso(fromMs), '--json']);
  const { missing, subscriptions } = JSON.parse(out);
  expect(missing).toBe(0);
  for (const { hours, complete } of subscriptions) {
    expect(complete).toBe(1);
    // Without the current hour and the one before it, which has not settled.
    const open = hours.slice(0, -2).filter(({ state }: { state: string }) => state === 'unknown');
    expect(open).toEqual([]);
  }
  const window = ['--since', iso(fromMs), '--until', iso(toMs)];
  for (const flag of ['--json', '--check']) {
    const { code, err } = await month.command(['reconcile', ...window, flag]);
    expect(code, err).toBe(0);
  }
  expect(readLog(month.dataDir)).toEqual(logged);
}, 180_000);
