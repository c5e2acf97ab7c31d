/** Marks of deliveries: on their way to the store soon, never often, never lost, never in the way. */
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { startDeliveryMarks, startUptimeMarks } from '../../src/cli/start/marks.ts';
import type { DeliveryMark } from '../../src/domain/account.ts';
import { AppError } from '../../src/domain/app-error.ts';
import { openStore } from '../../src/store/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { recordingLog, silentLog } from './recording-log.ts';

/** Marks on a clock of the test's own, before a store that keeps what it is given, or fails. */
function startRecorded() {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const clock = { us: 1_000 };
  const calls: (readonly DeliveryMark[])[] = [];
  const store: { answer: () => Promise<void> } = { answer: () => Promise.resolve() };
  const { log, lines: logged } = recordingLog();
  const marks = startDeliveryMarks({
    administration: {
      markDeliveries: (given) => {
        calls.push(given);
        return store.answer();
      },
    },
    nowUs: () => clock.us,
    log,
  });
  const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
  return { marks, calls, clock, store, logged, pass };
}

const failing = () => Promise.reject(new AppError('unavailable', 'The disk is full.'));

describe('delivery marks', () => {
  it('reach the store within two seconds, the last time of each pair, and once', async () => {
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

  it('bother the store at most every two seconds, and not at all when nothing came', async () => {
    const { marks, calls, pass } = startRecorded();
    await pass(10_000);
    expect(calls).toEqual([]);
    for (let ms = 0; ms < 10_000; ms += 10) {
      marks.note('alps', 'user');
      await pass(10);
    }
    expect(calls).toHaveLength(5);
  });

  it('are kept at the end, and none after it', async () => {
    const { marks, calls, pass } = startRecorded();
    marks.note('alps', 'user');
    await marks.stop();
    expect(calls).toMatchObject([[{ subscription: 'alps', username: 'user' }]]);
    marks.note('alps', 'late');
    await pass(60_000);
    expect(calls).toHaveLength(1);
  });

  it('wait for the store at the end, and do not overtake one another', async () => {
    const { marks, calls, store, pass } = startRecorded();
    const { promise, resolve } = Promise.withResolvers<void>();
    store.answer = () => promise;
    marks.note('alps', 'user');
    await pass(2_000);
    marks.note('alps', 'later');
    await pass(10_000);
    expect(calls).toHaveLength(1);
    let stopped = false;
    const stopping = marks.stop().then(() => {
      stopped = true;
    });
    await pass(0);
    expect({ stopped, calls: calls.length }).toEqual({ stopped: false, calls: 1 });
    resolve();
    await stopping;
    expect(calls.map(([mark]) => mark?.username)).toEqual(['user', 'later']);
  });
});

describe('a store that fails', () => {
  it('loses no mark, nor a newer time to an older one', async () => {
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

  it('disturbs nobody: notes go on, the end is reached, and only debug tells', async () => {
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

  it('does not let invented names fill the memory', async () => {
    const { marks, calls, store, pass } = startRecorded();
    store.answer = failing;
    for (let round = 0; round < 3; round += 1) {
      for (let i = 0; i < 1_500; i += 1) marks.note(`name-${round}-${i}`, 'user');
      await pass(2_000);
    }
    // Those that came while the store was busy failing, too.
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
    nowUs: () => clock.us,
  });
  onTestFinished(() => close());
  const { recordUptime } = completeness;
  let refused = 0;
  /** Marks are refused, as by a disk that is full, until it is called again. */
  const refuse = (isRefused: boolean) => {
    completeness.recordUptime = isRefused
      ? async () => {
          refused += 1;
          throw new AppError('unavailable', 'The disk is full.');
        }
      : recordUptime;
  };
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const marks = startUptimeMarks({ completeness, nowUs: () => clock.us, log: silentLog });
  const uptimes = async () =>
    (await completeness.uptimes(0)).map(({ fromUs, toUs }) => [fromUs, toUs]);
  /** The clock, and a minute of the timer. */
  const minute = async (minutes = 1) => {
    const before = JSON.stringify(await uptimes());
    clock.us += minutes * minuteUs;
    vi.advanceTimersByTime(60_000);
    await expect.poll(async () => JSON.stringify(await uptimes())).not.toBe(before);
  };
  await expect.poll(uptimes).toHaveLength(1);
  return { clock, marks, uptimes, minute, refuse, refused: () => refused };
}

it('is told each minute and at the end, as one time while nothing came between', async () => {
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

it('begins again when the machine has slept', async () => {
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

it('begins again when the clock is set back', async () => {
  const { clock, marks, uptimes, minute } = await startUptime();
  const beganUs = clock.us;
  await minute(2);
  clock.us -= 32 * minuteUs;
  await minute(1);
  await minute(1);
  await marks.stop();
  const backUs = beganUs - 29 * minuteUs;
  expect(await uptimes()).toEqual([
    [backUs, backUs + minuteUs],
    [beganUs, beganUs + 2 * minuteUs],
  ]);
});

it('begins again when marks were refused: nothing else was taken either', async () => {
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
