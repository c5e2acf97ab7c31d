/** Maintenance beside a receiver: when a round comes, what is logged of it, and that it ends in time. */
import { performance } from 'node:perf_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { MaintenanceResult } from '../../src/admin/maintain.ts';
import { startMaintenance } from '../../src/cli/start/maintenance.ts';
import { AppError, errorText } from '../../src/domain/app-error.ts';
import type { RoundTimes } from '../../src/domain/job.ts';

type Round = () => Promise<MaintenanceResult[]>;

const quiet: MaintenanceResult = {
  name: 'alps',
  status: 'running',
  did: null,
  notes: [],
  news: false,
  failure: null,
};
const done: Round = async () => [quiet];
const fails: Round = () => Promise.reject(new AppError('unavailable', 'The catalogue is down.'));
const soon = { firstMs: 0, intervalMs: 3_600_000, retryMs: 3_600_000 };
/** Timers count whole milliseconds, and may be that much early. */
const earlyMs = 2;

/** Runs the rounds one after the other, the last one again and again; stopped with the test. */
function startLoop(
  rounds: Round[],
  timing: Partial<RoundTimes> = soon,
  random: () => number = () => 0.5,
) {
  const log: { level: string; fields: object; message: string }[] = [];
  const at = (level: string) => (fields: object, message: string) =>
    void log.push({ level, fields, message });
  const startedMs = performance.now();
  const timesMs: number[] = [];
  const left = [...rounds];
  const { stop } = startMaintenance({
    round: () => {
      timesMs.push(performance.now());
      const [round = done] = left.length > 1 ? left.splice(0, 1) : left;
      return round();
    },
    log: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') },
    random,
    timing,
  });
  onTestFinished(stop);
  /** The waits before each round, when there have been so many. */
  const waits = async (count: number) => {
    await vi.waitFor(() => expect(timesMs.length).toBeGreaterThanOrEqual(count), {
      timeout: 15_000,
      interval: 5,
    });
    return timesMs.slice(0, count).map((ms, i) => ms - (timesMs[i - 1] ?? startedMs));
  };
  /** The log, when it has so many lines. */
  const logged = async (count: number) => {
    await vi.waitFor(() => expect(log.length).toBeGreaterThanOrEqual(count), { timeout: 15_000 });
    return log;
  };
  return { stop, waits, logged, log, timesMs };
}

function expectAtLeast(waitsMs: readonly number[], leastMs: readonly number[]): void {
  expect(waitsMs).toHaveLength(leastMs.length);
  for (const [i, least] of leastMs.entries()) {
    expect(waitsMs[i]).toBeGreaterThanOrEqual(least - earlyMs);
  }
}

describe('rounds', () => {
  it('come after the first delay, then at the interval', async () => {
    const { waits } = startLoop([done], { firstMs: 60, intervalMs: 120 });
    expectAtLeast(await waits(3), [60, 120, 120]);
  });

  it('are spread by chance over a tenth before and a tenth after their time', async () => {
    const order: string[] = [];
    const noting = (name: string): Round => {
      return async () => {
        order.push(name);
        return [];
      };
    };
    const started = Object.entries({ late: 0.999, middle: 0.5, early: 0 }).map(([name, chance]) =>
      startLoop([noting(name)], { firstMs: 300 }, () => chance),
    );
    const waitsMs = await Promise.all(started.map(async ({ waits }) => (await waits(1))[0] ?? 0));
    expect(order).toEqual(['early', 'middle', 'late']);
    expectAtLeast(waitsMs, [329, 300, 270]);
  });

  it('draw chance anew for each wait', async () => {
    const random = vi.fn(() => 0.5);
    const { waits } = startLoop([done], { firstMs: 1, intervalMs: 1 }, random);
    await waits(5);
    expect(random.mock.calls.length).toBeGreaterThanOrEqual(5);
  });

  it('that fail are tried again after longer and longer', async () => {
    const { waits } = startLoop([fails], { firstMs: 0, intervalMs: 3_600_000, retryMs: 20 });
    expectAtLeast(await waits(6), [0, 20, 40, 80, 160, 320]);
  });

  it('that go on failing are never further apart than the interval', async () => {
    const { waits } = startLoop([fails], { firstMs: 0, intervalMs: 50, retryMs: 30 });
    const waitsMs = await waits(9);
    expectAtLeast(waitsMs, [0, 30, 50, 50, 50, 50, 50, 50, 50]);
    // Doubling without a bound, these would take 30 · (2^8 - 1) ms.
    expect(waitsMs.reduce((sum, ms) => sum + ms)).toBeLessThan(4_000);
  });

  it('start over with the shortest wait when one has gone well', async () => {
    const rounds = [...Array.from({ length: 9 }, () => fails), done, fails];
    const { waits } = startLoop(rounds, { firstMs: 0, intervalMs: 600, retryMs: 2 });
    const waitsMs = await waits(12);
    expectAtLeast(waitsMs, [0, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 2]);
    expect(waitsMs[11]).toBeLessThan(500);
  });

  it('count as failed when one of the subscriptions failed', async () => {
    const failed = { ...quiet, name: 'sea', failure: 'There is no room.' };
    const { waits } = startLoop([async () => [quiet, failed, quiet]], {
      firstMs: 0,
      intervalMs: 3_600_000,
      retryMs: 20,
    });
    expectAtLeast(await waits(3), [0, 20, 40]);
  });

  it('that throw before they begin harm nobody either', async () => {
    const throwing: Round = () => {
      throw new TypeError('a fault of ours');
    };
    const { waits } = startLoop([throwing], { ...soon, retryMs: 1 });
    await waits(3);
  });
});

describe('stopping', () => {
  it.each<[string, Round, Partial<RoundTimes>, number]>([
    ['the first round', done, { firstMs: 3_600_000 }, 0],
    ['the next round', done, soon, 1],
    ['another try', fails, soon, 1],
  ])('ends a wait for %s at once', async (_title, round, timing, rounds) => {
    const { stop, waits, timesMs } = startLoop([round], timing);
    await waits(rounds);
    await nextTurn();
    const beforeMs = performance.now();
    await stop();
    // Less than what a round that is under way is given.
    expect(performance.now() - beforeMs).toBeLessThan(2_500);
    expect(timesMs).toHaveLength(rounds);
  });

  it('waits for a round that is under way, and none comes after it', async () => {
    const { promise, resolve } = Promise.withResolvers<MaintenanceResult[]>();
    const { stop, waits, timesMs } = startLoop([() => promise], { firstMs: 0, intervalMs: 0 });
    await waits(1);
    let stopped = false;
    const stopping = stop().then(() => {
      stopped = true;
    });
    await nextTurn();
    expect(stopped).toBe(false);
    resolve([quiet]);
    await stopping;
    await nextTurn();
    expect(timesMs).toHaveLength(1);
  });

  it('does not wait for ever', async () => {
    const { promise, resolve } = Promise.withResolvers<MaintenanceResult[]>();
    const { stop, waits } = startLoop([() => promise]);
    await waits(1);
    const beforeMs = performance.now();
    await stop();
    expect(performance.now() - beforeMs).toBeLessThan(10_000);
    resolve([]);
  });

  it('makes no failure of a round that it cut short', async () => {
    const { promise, reject } = Promise.withResolvers<MaintenanceResult[]>();
    const { stop, waits, log } = startLoop([() => promise]);
    await waits(1);
    const stopping = stop();
    reject(new Error('the store is closed'));
    await stopping;
    expect(log).toEqual([]);
  });

  it('may be asked twice', async () => {
    const { stop } = startLoop([done]);
    await Promise.all([stop(), stop()]);
  });
});

describe('the log', () => {
  const message = 'maintenance failed; it is tried again, and intake goes on';

  it('tells the reason of a round that failed', async () => {
    const refusal = new AppError('configuration', 'The file has faults.', {
      details: ['subscriptions.Alps: use small letters'],
    });
    const { logged } = startLoop([() => Promise.reject(refusal)]);
    const fields = { reason: errorText(refusal), details: refusal.details };
    expect(await logged(1)).toEqual([{ level: 'error', fields, message }]);
  });

  it('makes no alarm of another program at work, and the round is tried again soon', async () => {
    const conflict = new AppError('conflict', 'Another earshot program is at work.');
    const { logged, waits } = startLoop([() => Promise.reject(conflict), done], {
      ...soon,
      retryMs: 10,
    });
    expect(await logged(1)).toEqual([
      {
        level: 'info',
        fields: { reason: errorText(conflict) },
        message: 'maintenance waits for another command',
      },
    ]);
    expectAtLeast(await waits(2), [0, 10]);
  });

  it.each([
    ['an error that nobody knows', new TypeError('a fault of ours')],
    ['a fault of the program', new AppError('internal', 'a fault of ours')],
    ['what is no error at all', 'a text'],
  ])('holds all of %s, for whoever is to mend it', async (_title, err) => {
    const { logged } = startLoop([() => Promise.reject(err)]);
    expect(await logged(1)).toEqual([{ level: 'error', fields: { err }, message }]);
  });

  it('tells what was done, what could not be done, and notes that are news', async () => {
    const notes = [
      { code: 'a', message: 'It is paused.' },
      { code: 'b', message: 'Its filter changed.' },
    ];
    const { logged } = startLoop([
      async () => [
        quiet,
        { ...quiet, name: 'ice', status: 'paused', did: 'resume' },
        { ...quiet, name: 'sea', status: 'gone', failure: 'There is no room.' },
        { ...quiet, name: 'old', status: 'paused', notes, news: true },
        { ...quiet, name: 'older', notes, news: false },
      ],
    ]);
    const old = { subscription: 'old', status: 'paused' };
    expect(await logged(4)).toEqual([
      {
        level: 'info',
        fields: { subscription: 'ice', status: 'paused', did: 'resume' },
        message: 'maintenance acted',
      },
      {
        level: 'error',
        fields: { subscription: 'sea', status: 'gone', reason: 'There is no room.' },
        message: 'maintenance could not act',
      },
      { level: 'warn', fields: { ...old, note: 'It is paused.' }, message: 'maintenance reports' },
      {
        level: 'warn',
        fields: { ...old, note: 'Its filter changed.' },
        message: 'maintenance reports',
      },
    ]);
  });
});
