/** Other checks of the watchdog: each alert, its end, and that no check blocks the others. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { AppError } from '../../../src/core/terms/app-error.ts';
import {
  beginUs,
  dayUs,
  hourUs,
  minuteUs,
  openContext,
  quiet,
  registration,
} from './watch-context.ts';

const gib = 2 ** 30;

it('intake that refuses is an alert from the second check on, resolved after five minutes without a refusal', async () => {
  const { context, checkAt } = await openContext();
  const full = 'The disk is full.';
  for (const [minutes, refusal, isAlert] of [
    [0, full, false],
    [1, null, false],
    [2, full, false],
    [3, full, true],
    [4, null, true],
    [8, null, true],
    [9, null, false],
  ] as const) {
    context.probes = { ...quiet, intake: async () => refusal };
    const alerts = await checkAt(beginUs + minutes * minuteUs);
    const expected = isAlert ? [{ kind: 'intake', evidence: [full] }] : [];
    expect(alerts, `${minutes}`).toMatchObject(expected);
  }
});

describe('a subscription', () => {
  const pause = { pausedSeenAtUs: beginUs };

  it.each([
    ['that is paused is an alert after ten minutes', false, pause, 10],
    ['that maintenance will resume is an alert only after its next round', true, pause, 7 * 60],
    ['that is to be paused is no alert', false, { ...pause, status: 'paused' }, null],
  ] as const)('%s', async (_title, maintenance, fields, minutes) => {
    const { check, live, store } = await openContext({ maintenance }, [registration(fields)]);
    const kindsAt = async (minute: number) => {
      await live(beginUs + minute * minuteUs);
      return (await check()).map(({ kind, level }) => `${level} ${kind}`);
    };
    expect(await kindsAt((minutes ?? 24 * 60) - 1)).toEqual([]);
    if (minutes === null) return;
    expect(await kindsAt(minutes)).toEqual(['critical not-running']);
    await store.administration.commit({ save: registration() });
    expect(await kindsAt(minutes)).toEqual([]);
  });

  it('that is paused stays one alert over a restart, which is resolved when it is removed', async () => {
    const context = await openContext({}, [registration(pause)]);
    await context.live(beginUs + hourUs);
    const [raised] = await context.check();
    await context.restart();
    expect(await context.check()).toMatchObject([{ kind: 'not-running', id: raised?.id }]);
    await context.store.administration.commit({ removeRegistration: 'alps' });
    expect(await context.check()).toEqual([]);
    expect(await context.store.alerts.alerts({ all: true, limit: 9 })).toHaveLength(1);
  });

  it('that was paused during our downtime is an alert only after the first rounds', async () => {
    const { store, checkAt } = await openContext({ maintenance: true }, [registration(pause)]);
    const upUs = beginUs + 3 * dayUs;
    const at = async (minutes: number) => {
      await store.completeness.recordUptime({ fromUs: upUs, toUs: upUs + minutes * minuteUs });
      return (await checkAt(upUs + minutes * minuteUs)).length;
    };
    expect([await at(0.5), await at(29), await at(30)]).toEqual([0, 0, 1]);
  });
});

describe('a check', () => {
  const low = async () => ({ freeBytes: gib / 2, totalBytes: 100 * gib, reserveBytes: 0 });

  it('leaves an alert unchanged when its probe fails, and continues with the others', async () => {
    const { context, check } = await openContext({ probes: { ...quiet, disk: low } });
    await check();
    context.probes = {
      ...quiet,
      disk: () => Promise.reject(new AppError('unavailable', 'It cannot be asked.')),
      certificate: async () => ({ notAfterUs: beginUs, lifetimeUs: dayUs, lastFailure: null }),
    };
    expect((await check()).map(({ kind }) => kind).sort()).toEqual(['certificate', 'disk']);
    context.probes = { ...quiet, disk: async () => null };
    expect((await check()).map(({ kind }) => kind)).toEqual(['disk']);
  });

  it('does not wait for a probe that hangs', async () => {
    const pauses: number[] = [];
    const { check } = await openContext({
      probes: { ...quiet, certificate: () => new Promise(() => undefined), disk: low },
      pause: async (ms, signal) => {
        pauses.push(ms);
        // Time passes at once, after any answer.
        for (let turn = 0; turn < 50 && !signal.aborted; turn += 1) await nextTurn();
      },
    });
    expect(await check()).toMatchObject([{ kind: 'disk', level: 'critical' }]);
    expect(pauses).toContain(20_000);
  });
});

it('a backup alert is raised when no backup was made in two intervals, an hour after a start at the earliest', async () => {
  const { context, live, check, store } = await openContext({ backupEveryHours: 24 }, []);
  const run = (hour: number, error: string | null) => ({
    ...{ file: '/mnt/backups/b.db', bytes: 4_096, lastPosition: 7, error },
    ...{ startedAtUs: beginUs + hour * hourUs, endedAtUs: beginUs + hour * hourUs + minuteUs },
  });
  const at = async (hour: number) => {
    await live(beginUs + hour * hourUs);
    return check();
  };
  expect(await at(0.9)).toEqual([]);
  expect(await at(1.1)).toMatchObject([{ kind: 'backup', level: 'warning', evidence: [] }]);
  await store.backups.recordBackup(run(1, null));
  expect(await at(49)).toEqual([]);
  await store.backups.recordBackup(run(40, 'The disk is full (ENOSPC).'));
  expect(await at(50)).toMatchObject([
    {
      text: 'The last backup is 2 days old, although a backup should be made every 24 h.',
      evidence: [expect.stringContaining('The disk is full (ENOSPC).')],
    },
  ]);
  context.backupEveryHours = null;
  expect(await at(51)).toEqual([]);
});
