/** Other checks of the watchdog: each alert, its end, and that no check blocks the others. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { watchProbes } from '../../src/cli/start/watch-probes.ts';
import { AppError } from '../../src/domain/app-error.ts';
import type { BackupRun } from '../../src/domain/ports.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
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

/** A probe whose next result can be changed. */
function changeableProbe<Result>(first: Result) {
  const probe = { result: first };
  return { probe, run: async () => probe.result };
}

describe('a certificate', () => {
  const certificate = (leftDays: number, lifetimeDays = 90) => ({
    notAfterUs: beginUs + leftDays * dayUs,
    lifetimeUs: lifetimeDays * dayUs,
    lastFailure: 'The authority answered 500.',
  });

  it('near its end is an alert, critical two days before, resolved by the renewal', async () => {
    const { probe, run } = changeableProbe(certificate(18.1));
    const { check, sent, store } = await openContext({
      probes: { ...quiet, certificate: run },
    });
    expect(await check()).toEqual([]);
    probe.result = certificate(17.9);
    const [alert] = await check();
    expect(alert).toMatchObject({ kind: 'certificate', subject: '', severity: 'warning' });
    expect(alert?.cause).toContain('expires in 17 days');
    expect(alert?.evidence[1]).toContain('The authority answered 500.');
    probe.result = certificate(18.1);
    expect(await check()).toHaveLength(1);
    probe.result = certificate(1.9);
    expect(await check()).toMatchObject([{ severity: 'critical' }]);
    probe.result = certificate(90);
    expect(await check()).toEqual([]);
    expect(await store.alerts.alerts({ all: true, limit: 9 })).toHaveLength(1);
    expect(sent).toEqual([]);
  });
});

describe('a disk', () => {
  it('that fills up is an alert, resolved when the free space exceeds the threshold by a fifth', async () => {
    const { probe, run } = changeableProbe({
      freeBytes: 5.1 * gib,
      totalBytes: 100 * gib,
      reserveBytes: 0.3 * gib,
    });
    const { check } = await openContext({ probes: { ...quiet, disk: run } });
    const severities = async (freeGib: number) => {
      probe.result = { ...probe.result, freeBytes: freeGib * gib };
      return (await check()).map(({ severity }) => severity);
    };
    expect(await severities(5.1)).toEqual([]);
    expect(await severities(4.9)).toEqual(['warning']);
    expect(await severities(0.9)).toEqual(['critical']);
    expect(await severities(1.1)).toEqual(['critical']);
    expect(await severities(1.3)).toEqual(['warning']);
    expect(await severities(5.9)).toEqual(['warning']);
    expect(await severities(6.1)).toEqual([]);
  });

  it('is not checked when its file system reports no size', async () => {
    const ports = { checkWritable: async () => undefined };
    const tls = { kind: 'off' } as const;
    const probe = (dataDir: string) => watchProbes({ tls, dataDir }, ports).disk();
    expect(await probe('/proc')).toBeNull();
    const found = await probe(temporaryDirectory());
    expect(found?.totalBytes).toBeGreaterThan(found?.freeBytes ?? Number.POSITIVE_INFINITY);
  });
});

describe('intake that refuses', () => {
  it('is an alert from the second check on, resolved after five minutes without a refusal', async () => {
    const { probe, run } = changeableProbe<string | null>('The disk is full.');
    const { checkAt } = await openContext({ probes: { ...quiet, intake: run } });
    const refusals = async (minutes: number, result: string | null) => {
      probe.result = result;
      return (await checkAt(beginUs + minutes * minuteUs)).map(({ kind, evidence }) => [
        kind,
        ...evidence,
      ]);
    };
    expect(await refusals(0, 'The queue is full.')).toEqual([]);
    expect(await refusals(1, null)).toEqual([]);
    expect(await refusals(2, 'The disk is full.')).toEqual([]);
    const alert = [['intake', 'The disk is full.']];
    expect(await refusals(3, 'The disk is full.')).toEqual(alert);
    expect(await refusals(4, null)).toEqual(alert);
    expect(await refusals(8, null)).toEqual(alert);
    expect(await refusals(9, null)).toEqual([]);
  });
});

describe('a subscription', () => {
  it('that is paused unintentionally is an alert after ten minutes', async () => {
    const paused = registration({ pausedSeenAtUs: beginUs });
    const { check, store, checkAt } = await openContext({}, [paused]);
    expect(await check()).toEqual([]);
    expect(await checkAt(beginUs + 10 * minuteUs)).toMatchObject([
      { kind: 'not-running', severity: 'critical' },
    ]);
    await store.administration.commit({ save: registration() });
    expect(await check()).toEqual([]);
  });

  it('that maintenance will resume is an alert only after the next round', async () => {
    const paused = registration({ pausedSeenAtUs: beginUs });
    const { checkAt } = await openContext({ maintenance: true }, [paused]);
    expect(await checkAt(beginUs + 6 * hourUs)).toEqual([]);
    expect(await checkAt(beginUs + 7 * hourUs)).toMatchObject([{ kind: 'not-running' }]);
  });

  it('that was paused during our downtime is an alert only after the first rounds', async () => {
    const paused = registration({ pausedSeenAtUs: beginUs });
    const { store, checkAt } = await openContext({ maintenance: true }, [paused]);
    const upUs = beginUs + 3 * dayUs;
    const at = async (minutes: number) => {
      await store.completeness.recordUptime({ fromUs: upUs, toUs: upUs + minutes * minuteUs });
      return (await checkAt(upUs + minutes * minuteUs)).map(({ kind }) => kind);
    };
    expect(await at(0.5)).toEqual([]);
    expect(await at(29)).toEqual([]);
    expect(await at(30)).toEqual(['not-running']);
  });

  it.each([
    ['that is to be paused', registration({ status: 'paused', pausedSeenAtUs: beginUs })],
    [
      'that a command of the user paused',
      registration({ status: 'paused', pausedSeenAtUs: beginUs }),
    ],
  ])('%s is no alert', async (_name, one) => {
    const { checkAt } = await openContext({}, [one]);
    expect(await checkAt(beginUs + dayUs)).toEqual([]);
  });

  it('that the catalogue will pause or delete is an alert in time, counted from its last delivery', async () => {
    const asked: (number | null)[] = [];
    const ahead = { pausesAtUs: beginUs + 15 * dayUs, cancelsAtUs: beginUs + 31 * dayUs };
    const { check, activeAlerts, store, checkAt } = await openContext({
      lifetimes: ({ lastDeliveryAtUs }) => {
        asked.push(lastDeliveryAtUs);
        return ahead;
      },
    });
    await store.administration.markDeliveries([
      { subscription: 'alps', username: 'u', lastAtUs: beginUs - dayUs },
      { subscription: 'alps', username: 'v', lastAtUs: beginUs + 90 * dayUs },
    ]);
    await check();
    expect(asked).toEqual([beginUs - dayUs]);
    expect(await activeAlerts()).toEqual([]);
    const [alert, ...others] = await checkAt(beginUs + 2 * dayUs);
    expect(others).toEqual([]);
    expect(alert).toMatchObject({ kind: 'lifetime', severity: 'warning' });
    expect(alert?.cause).toContain('will delete the subscription alps in 29 days');
    expect(await checkAt(beginUs + 13 * dayUs)).toMatchObject([
      { severity: 'critical', cause: expect.stringContaining('will pause the subscription alps') },
    ]);
    // Resolved with a day more than the threshold.
    const left = async (pauseDays: number, cancelDays: number) => {
      ahead.pausesAtUs = beginUs + (13 + pauseDays) * dayUs;
      ahead.cancelsAtUs = beginUs + (13 + cancelDays) * dayUs;
      return (await check()).map(({ cause }) => cause.split(' ').slice(3, 4).join());
    };
    expect(await left(15, 31.1)).toEqual(['pause']);
    expect(await left(15.1, 31)).toEqual(['delete']);
    expect(await left(15.1, 31.1)).toEqual([]);
    expect(await left(14.1, 30.1)).toEqual([]);
  });
});

describe('a check', () => {
  const low = async () => ({ freeBytes: gib / 2, totalBytes: 100 * gib, reserveBytes: 0 });

  it('leaves an alert unchanged when its probe fails, and continues with the others', async () => {
    const { context, check, logged } = await openContext({ probes: { ...quiet, disk: low } });
    await check();
    context.probes = {
      ...quiet,
      disk: () => Promise.reject(new AppError('unavailable', 'It cannot be asked.')),
      certificate: async () => ({ notAfterUs: beginUs, lifetimeUs: dayUs, lastFailure: null }),
    };
    expect((await check()).map(({ kind }) => kind).sort()).toEqual(['certificate', 'disk']);
    expect(logged).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        fields: { kinds: ['disk'], reason: 'It cannot be asked.' },
      }),
    );
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
    expect(await check()).toMatchObject([{ kind: 'disk', severity: 'critical' }]);
    expect(pauses).toContain(20_000);
  });
});

const made = (hour: number): BackupRun => ({
  file: '/mnt/backups/earshot-20261119T000000Z.db',
  startedAtUs: beginUs + hour * hourUs,
  endedAtUs: beginUs + hour * hourUs + 60e6,
  bytes: 4_096,
  lastPosition: 7,
  error: null,
});

const failed = (hour: number): BackupRun => ({
  ...made(hour),
  bytes: null,
  lastPosition: null,
  error: 'The disk of /mnt/backups is full (ENOSPC).',
});

/** Active alerts at this hour, after an uptime since the beginning. */
async function alertsAt(context: Awaited<ReturnType<typeof openContext>>, hour: number) {
  await context.live(beginUs + hour * hourUs);
  return context.check();
}

it('a backup alert is raised when the last backup is older than two intervals, and resolved by the next', async () => {
  const context = await openContext({ backupEveryHours: 24 }, []);
  await context.store.backups.recordBackup(made(0));
  expect(await alertsAt(context, 48)).toEqual([]);
  await context.store.backups.recordBackup(failed(40));
  expect(await alertsAt(context, 49)).toEqual([
    expect.objectContaining({
      kind: 'backup',
      severity: 'warning',
      cause: 'The last backup is 2 days old, although a backup should be made every 24 h.',
      evidence: [
        expect.stringContaining('/mnt/backups/earshot-20261119T000000Z.db'),
        expect.stringContaining('The disk of /mnt/backups is full (ENOSPC).'),
      ],
    }),
  ]);
  await context.store.backups.recordBackup(made(49));
  expect(await alertsAt(context, 50)).toEqual([]);
});

it('a backup alert is raised when there is no backup, after enough time for the first', async () => {
  const context = await openContext({ backupEveryHours: 24 }, []);
  expect(await alertsAt(context, 0.9)).toEqual([]);
  const [alert] = await alertsAt(context, 1.1);
  expect(alert).toMatchObject({ kind: 'backup', evidence: ['No backup was ever made.'] });
});

it('a backup alert is neither raised nor kept without configured backups', async () => {
  const context = await openContext({ backupEveryHours: null }, []);
  await context.store.backups.recordBackup(made(0));
  expect(await alertsAt(context, 500)).toEqual([]);
  context.context.backupEveryHours = 24;
  expect(await alertsAt(context, 501)).toHaveLength(1);
  context.context.backupEveryHours = null;
  expect(await alertsAt(context, 502)).toEqual([]);
});
