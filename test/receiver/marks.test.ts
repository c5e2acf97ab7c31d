/** Delivery marks: written soon, rarely and reliably, without delaying other work. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { DeliveryMark } from '../../src/admin/account.ts';
import { AppError } from '../../src/core/terms/app-error.ts';
import { startUptimeMarks } from '../../src/features/coverage/job.ts';
import { startDeliveryMarks } from '../../src/receiver/own-jobs.ts';
import { fakeIntervals } from '../helpers/fast-seconds.ts';
import { recordingLog, silentLog } from '../helpers/recording-log.ts';
import { openStore } from '../helpers/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

/** Starts marks on a fake clock, with a store that records them or fails. */
function startRecorded() {
  fakeIntervals();
  const clock = { us: 1_000 };
  const calls: (readonly DeliveryMark[])[] = [];
  const store: { answer: () => Promise<void> } = { answer: () => Promise.resolve() };
  const { log, lines: logged } = recordingLog();
  const administration = {
    markDeliveries: (given: readonly DeliveryMark[]) => {
      calls.push(given);
      return store.answer();
    },
  };
  const own = { nowUs: () => clock.us, log };
  const marks = startDeliveryMarks({ administration, shared: null }, own);
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  return { marks, calls, clock, store, logged, pass };
}

const failing = () => Promise.reject(new AppError('unavailable', 'The disk is full.'));

it('delivery marks reach the store within two seconds: the last time of each pair, once', async () => {
  const { marks, calls, clock, pass } = startRecorded();
  marks.note('alps', 'old');
  clock.us = 2_000;
  marks.note('alps', 'new');
  marks.note(null, 'new');
  clock.us = 3_000;
  marks.note('alps', 'old');
  expect(calls).toEqual([]);
  await pass(2_000);
  expect(calls).toEqual([
    [
      { subscription: 'alps', username: 'old', lastAtUs: 3_000 },
      { subscription: 'alps', username: 'new', lastAtUs: 2_000 },
      { subscription: null, username: 'new', lastAtUs: 2_000 },
    ],
  ]);
  await pass(60_000);
  expect(calls).toHaveLength(1);
});

describe('marks with a failing store', () => {
  it('are not lost, and no older time replaces a newer one', async () => {
    const { marks, calls, clock, store, pass } = startRecorded();
    const { promise, reject } = Promise.withResolvers<void>();
    store.answer = () => promise;
    marks.note('alps', 'user');
    marks.note('sea', 'user');
    await pass(2_000);
    clock.us = 9_000;
    marks.note('alps', 'user');
    marks.note('ice', 'user');
    reject(new AppError('unavailable', 'The disk is full.'));
    store.answer = () => Promise.resolve();
    await pass(2_000);
    expect(calls[1]).toEqual([
      { subscription: 'alps', username: 'user', lastAtUs: 9_000 },
      { subscription: 'sea', username: 'user', lastAtUs: 1_000 },
      { subscription: 'ice', username: 'user', lastAtUs: 9_000 },
    ]);
    await pass(60_000);
    expect(calls).toHaveLength(2);
  });

  it('cause no error elsewhere: later marks and stop work, and only debug lines are logged', async () => {
    const { marks, calls, store, logged, pass } = startRecorded();
    store.answer = failing;
    marks.note('alps', 'user');
    await pass(6_000);
    expect(calls).toHaveLength(3);
    marks.note('alps', 'other');
    await expect(marks.stop()).resolves.toBeUndefined();
    expect(calls[3]).toHaveLength(2);
    expect(logged).toEqual(
      calls.map(() =>
        expect.objectContaining({ level: 'debug', fields: { reason: 'The disk is full.' } }),
      ),
    );
  });

  it('do not fill the memory with invented names', async () => {
    const { marks, calls, store, pass } = startRecorded();
    store.answer = failing;
    for (let round = 0; round < 3; round += 1) {
      for (let i = 0; i < 1_500; i += 1) marks.note(`name-${round}-${i}`, 'user');
      await pass(2_000);
    }
    // Includes names that arrived while a write was failing.
    const { promise, reject } = Promise.withResolvers<void>();
    store.answer = () => promise;
    await pass(2_000);
    for (let i = 0; i < 1_500; i += 1) marks.note(`name-meanwhile-${i}`, 'user');
    reject(new Error('still failing'));
    store.answer = () => Promise.resolve();
    await pass(2_000);
    expect(calls.map((call) => call.length)).toEqual([1_000, 1_000, 1_000, 1_000, 1_000]);
    marks.note('alps', 'user');
    await pass(2_000);
    expect(calls.at(-1)).toMatchObject([{ subscription: 'alps' }]);
  });
});

const minuteUs = 60_000_000;

async function startUptime() {
  const clock = { us: Date.UTC(2026, 4, 2, 12) * 1_000 };
  const { completeness, close } = await openStore({
    dataDir: temporaryDirectory(),
  });
  onTestFinished(() => close());
  const { recordUptime } = completeness;
  let refused = 0;
  /** Makes the store refuse marks, as on a full disk, until it is called with false. */
  const refuse = (isRefused: boolean) => {
    completeness.recordUptime = isRefused
      ? async () => {
          refused += 1;
          throw new AppError('unavailable', 'The disk is full.');
        }
      : recordUptime;
  };
  fakeIntervals();
  const marks = startUptimeMarks({ completeness, nowUs: () => clock.us, log: silentLog });
  const uptimes = async () =>
    (await completeness.uptimes(0)).map(({ fromUs, toUs }) => [fromUs, toUs]);
  /** Advances the clock and the timer by minutes. */
  const minute = async (minutes = 1) => {
    const before = JSON.stringify(await uptimes());
    clock.us += minutes * minuteUs;
    vi.advanceTimersByTime(60_000);
    await expect.poll(async () => JSON.stringify(await uptimes())).not.toBe(before);
  };
  await expect.poll(uptimes).toHaveLength(1);
  return { clock, marks, uptimes, minute, refuse, refused: () => refused };
}

it('is written each minute and on stop, as one interval if nothing interrupted it', async () => {
  const { clock, marks, uptimes, minute } = await startUptime();
  const beganUs = clock.us;
  expect(await uptimes()).toEqual([[beganUs, beganUs]]);
  await minute();
  await minute(2);
  expect(await uptimes()).toEqual([[beganUs, beganUs + 3 * minuteUs]]);
  clock.us += minuteUs / 2;
  await marks.stop();
  expect(await uptimes()).toEqual([[beganUs, beganUs + 3.5 * minuteUs]]);
});

it('starts a new interval after the machine slept', async () => {
  const { clock, marks, uptimes, minute } = await startUptime();
  const beganUs = clock.us;
  await minute();
  await minute(240);
  await minute();
  const wokeUs = beganUs + 241 * minuteUs;
  const slept = [
    [beganUs, beganUs + minuteUs],
    [wokeUs, wokeUs + minuteUs],
  ];
  expect(await uptimes()).toEqual(slept);
  await marks.stop();
  expect(await uptimes()).toEqual(slept);
});

it('starts a new interval after refused marks, because notifications were refused, too', async () => {
  const { clock, uptimes, minute, refuse, refused } = await startUptime();
  const beganUs = clock.us;
  await minute();
  refuse(true);
  clock.us += minuteUs;
  vi.advanceTimersByTime(60_000);
  await expect.poll(refused).toBe(1);
  refuse(false);
  await minute();
  await minute();
  const againUs = beganUs + 3 * minuteUs;
  expect(await uptimes()).toEqual([
    [beganUs, beganUs + minuteUs],
    [againUs, againUs + minuteUs],
  ]);
});
