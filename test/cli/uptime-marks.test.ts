/** Signs of life: one a minute, and a new time of being up after a sleep of the machine. */
import { expect, it, onTestFinished, vi } from 'vitest';
import { startUptimeMarks } from '../../src/cli/start/marks.ts';
import { AppError } from '../../src/domain/app-error.ts';
import { openStore } from '../../src/store/store.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const minuteUs = 60_000_000;

async function startMarks() {
  const clock = { us: Date.UTC(2026, 4, 2, 12) * 1_000 };
  const { completeness, close } = await openStore({
    dataDir: temporaryDirectory(),
    nowUs: () => clock.us,
  });
  onTestFinished(() => close());
  const { markUp } = completeness;
  let refused = 0;
  /** Marks are refused, as by a disk that is full, until it is called again. */
  const refuse = (isRefused: boolean) => {
    completeness.markUp = isRefused
      ? async () => {
          refused += 1;
          throw new AppError('unavailable', 'The disk is full.');
        }
      : markUp;
  };
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  onTestFinished(() => void vi.useRealTimers());
  const nothing = () => undefined;
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  const marks = startUptimeMarks({ completeness, nowUs: () => clock.us, log });
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
  const { clock, marks, uptimes, minute } = await startMarks();
  const beganUs = clock.us;
  expect(await uptimes()).toEqual([[beganUs, beganUs]]);
  await minute();
  await minute(2);
  expect(await uptimes()).toEqual([[beganUs, beganUs + 3 * minuteUs]]);
  clock.us += minuteUs / 2;
  await marks.stop();
  expect(await uptimes()).toEqual([[beganUs, beganUs + 3.5 * minuteUs]]);
});

it('begins anew when the machine has slept', async () => {
  const { clock, marks, uptimes, minute } = await startMarks();
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

it('begins anew when the clock is set back', async () => {
  const { clock, marks, uptimes, minute } = await startMarks();
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

it('begins anew when marks were refused: nothing else was taken either', async () => {
  const { clock, uptimes, minute, refuse, refused } = await startMarks();
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
