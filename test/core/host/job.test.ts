/** Jobs: timing of rounds, logged failures, and stopping. Time is a list of waits. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { type JobOptions, startJob } from '../../../src/core/host/job.ts';
import { AppError } from '../../../src/core/terms/app-error.ts';

const unavailable = new AppError('unavailable', 'The catalogue is down.', {
  details: ['The service reported it.'],
});
const conflict = new AppError('conflict', 'Another earshot program is at work.');
const every = { firstMs: 10, intervalMs: 100 };
const failed = 'the work failed';

type Round = JobOptions['run'];
const done: Round = async () => undefined;
const fails: Round = () => Promise.reject(unavailable);

/**
 * Runs the rounds one after the other, then waits forever. `grace` is the elapsed part of a grace
 * time: all, or nothing.
 */
function startRounds(
  rounds: readonly Round[],
  options: Partial<JobOptions> = {},
  {
    random = () => 0.5,
    grace = 'nothing',
  }: { random?: () => number; grace?: 'all' | 'nothing' } = {},
) {
  const waits: number[] = [];
  const lines: unknown[] = [];
  const log = (level: string) => (fields: object, message: string) =>
    void lines.push([level, fields, message]);
  const ended = Promise.withResolvers<void>();
  const untilAborted = (signal: AbortSignal) =>
    new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()));
  let ran = 0;
  const job = startJob(
    { every, failed, run: async (signal) => rounds[ran++]?.(signal), ...options },
    {
      pause: async (ms, signal) => {
        if (ms === options.stopGraceMs) return grace === 'all' ? undefined : untilAborted(signal);
        waits.push(ms);
        if (waits.length <= rounds.length) return;
        ended.resolve();
        if (!signal.aborted) await untilAborted(signal);
      },
      random,
      log: { debug: log('debug'), info: log('info'), warn: log('warn'), error: log('error') },
    },
  );
  onTestFinished(() => void job.stop());
  return { job, waits, lines, ended: ended.promise, ran: () => ran };
}

it.each<[string, Round[], Partial<JobOptions['every']>, number[]]>([
  ['start after the first delay, then at the interval', [done, done], {}, [10, 100, 100]],
  [
    'repeat with growing delays when they fail, up to the maximum',
    [fails, fails, fails, fails, fails],
    { retryMs: 20, retryMsMax: 120 },
    [10, 20, 40, 80, 120, 120],
  ],
  [
    'return to the shortest delay after a success',
    [fails, fails, done, fails],
    { retryMs: 20 },
    [10, 20, 40, 100, 20],
  ],
  ['fail by their result as well', [async () => false, done], { retryMs: 20 }, [10, 20, 100]],
  [
    'throw before they begin without further effect',
    [
      () => {
        throw new TypeError('a programming error');
      },
      done,
    ],
    { retryMs: 20 },
    [10, 20, 100],
  ],
])('rounds %s', async (_title, rounds, times, expected) => {
  const { ended, waits } = startRounds(rounds, { every: { ...every, ...times } });
  await ended;
  expect(waits).toEqual(expected);
});

describe('the lock', () => {
  it('is acquired for each round and released after it, also when the round fails', async () => {
    const release = vi.fn();
    const acquireLock = vi.fn(async () => release);
    const { ended } = startRounds([done, fails], { acquireLock });
    await ended;
    expect([acquireLock.mock.calls.length, release.mock.calls.length]).toEqual([2, 2]);
  });

  it.each<[string, Partial<JobOptions>, number, unknown[]]>([
    ['is not a failure by default, and not logged', {}, 100, []],
    [
      'is logged as information and retried early when a phrase is given',
      { busy: 'the work waits' },
      20,
      [['info', { a: 1, reason: conflict.message }, 'the work waits']],
    ],
  ])('that another program holds %s', async (_title, options, waitMs, logged) => {
    const run = vi.fn(done);
    const { ended, waits, lines } = startRounds([done], {
      ...{ every: { ...every, retryMs: 20 }, fields: { a: 1 }, run, ...options },
      acquireLock: () => Promise.reject(conflict),
    });
    await ended;
    expect(run).not.toHaveBeenCalled();
    expect(waits).toEqual([10, waitMs]);
    expect(lines).toEqual(logged);
  });
});

const bug = new TypeError('a programming error');
it.each<[string, unknown, object]>([
  [
    'has the name of an expected error',
    unavailable,
    { reason: unavailable.message, details: unavailable.details },
  ],
  ['has all details of an unknown error', bug, { err: bug }],
  ['has the value of a thrown non-error', 'a text', { err: 'a text' }],
])('the log %s', async (_title, error, fields) => {
  const { ended, lines } = startRounds([() => Promise.reject(error)], { fields: { a: 1 } });
  await ended;
  expect(lines).toEqual([['error', { a: 1, ...fields }, failed]]);
});

describe('stopping', () => {
  it('ends a wait at once, and may be called twice', async () => {
    const { job, ended, ran } = startRounds([done]);
    await ended;
    await Promise.all([job.stop(), job.stop()]);
    expect(ran()).toBe(1);
  });

  it('waits for the current round, and starts no other', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const { job, ran } = startRounds([() => promise, done], { stopGraceMs: 3_000 });
    await vi.waitFor(() => expect(ran()).toBe(1));
    const stopped = vi.fn();
    const stopping = job.stop().then(stopped);
    await nextTurn();
    expect(stopped).not.toHaveBeenCalled();
    resolve();
    await stopping;
    expect(ran()).toBe(1);
  });

  it('waits at most for the grace time', async () => {
    const rounds: Round[] = [() => new Promise(() => undefined)];
    const { job, ran } = startRounds(rounds, { stopGraceMs: 3_000 }, { grace: 'all' });
    await vi.waitFor(() => expect(ran()).toBe(1));
    await job.stop();
  });
});
