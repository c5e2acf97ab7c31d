/** What else the watchdog looks at: each alert, how it ends, and that nothing stands in the way of a look. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { watchProbes } from '../../src/cli/start/watch-probes.ts';
import { AppError } from '../../src/domain/app-error.ts';
import type { Probes } from '../../src/watch/situation.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { beginUs, dayUs, hourUs, minuteUs, openWorld, registration } from './watch-world.ts';

const quiet: Probes = {
  certificate: async () => null,
  disk: async () => null,
  intake: async () => null,
};
const gib = 2 ** 30;

/** What a probe says next. */
function saying<Said>(first: Said) {
  const probe = { said: first };
  return { probe, ask: async () => probe.said };
}

describe('a certificate', () => {
  const certificate = (leftDays: number, lifetimeDays = 90) => ({
    notAfterUs: beginUs + leftDays * dayUs,
    lifetimeUs: lifetimeDays * dayUs,
    lastFailure: 'The authority answered 500.',
  });

  it('near its end is an alert, critical two days before, over when it is renewed', async () => {
    const { probe, ask } = saying(certificate(15.1));
    const { look, lasting, told, store } = await openWorld({
      probes: { ...quiet, certificate: ask },
    });
    await look();
    expect(await lasting()).toEqual([]);
    probe.said = certificate(14.9);
    await look();
    const [alert] = await lasting();
    expect(alert).toMatchObject({ kind: 'certificate', subject: '', severity: 'warning' });
    expect(alert?.cause).toContain('ends in 14 days');
    expect(alert?.evidence[1]).toContain('The authority answered 500.');
    probe.said = certificate(15.1);
    await look();
    expect(await lasting()).toHaveLength(1);
    probe.said = certificate(1.9);
    await look();
    expect(await lasting()).toMatchObject([{ severity: 'critical' }]);
    probe.said = certificate(90);
    await look();
    expect(await lasting()).toEqual([]);
    expect(await store.alerts.alerts({ all: true, limit: 9 })).toHaveLength(1);
    expect(told).toEqual([]);
  });

  it.each([
    ['of 6 days', 1.1, 6, null],
    ['of 6 days, with less than a day left', 0.9, 6, 'warning'],
    ['of a year, with 40 days left', 40, 365, null],
    ['of a year, with 29 days left', 29, 365, 'warning'],
    ['of 40 days, with 6.9 days left', 6.9, 40, 'warning'],
    ['that has ended', -1, 90, 'critical'],
  ])('%s is judged by its lifetime', async (_name, leftDays, lifetimeDays, severity) => {
    const { ask } = saying(certificate(leftDays, lifetimeDays));
    const { look, lasting } = await openWorld({ probes: { ...quiet, certificate: ask } });
    await look();
    expect((await lasting()).map((alert) => alert.severity)).toEqual(
      severity === null ? [] : [severity],
    );
  });
});

describe('a disk', () => {
  it('that fills is an alert, which ends when a fifth more is free than what began it', async () => {
    const { probe, ask } = saying({
      freeBytes: 5.1 * gib,
      totalBytes: 100 * gib,
      reserveBytes: 0.3 * gib,
    });
    const { look, lasting } = await openWorld({ probes: { ...quiet, disk: ask } });
    const severities = async (freeGib: number) => {
      probe.said = { ...probe.said, freeBytes: freeGib * gib };
      await look();
      return (await lasting()).map(({ severity }) => severity);
    };
    expect(await severities(5.1)).toEqual([]);
    expect(await severities(4.9)).toEqual(['warning']);
    expect(await severities(0.9)).toEqual(['critical']);
    expect(await severities(1.1)).toEqual(['critical']);
    expect(await severities(1.3)).toEqual(['warning']);
    expect(await severities(5.9)).toEqual(['warning']);
    expect(await severities(6.1)).toEqual([]);
  });

  it.each([
    ['none', 'of 15 GiB, with 2 free', 15, 2, 0.3, []],
    ['none', 'of 2 GiB, with half of it free', 1.9, 0.95, 0.1, []],
    ['critical', 'of 2 GiB, with a tenth of it free', 1.9, 0.19, 0.1, ['critical']],
    ['a warning', 'of 2 GiB, with less than three times what is kept', 1.9, 0.29, 0.1, ['warning']],
    ['a warning', 'of which much is kept', 100, 59, 20, ['warning']],
    ['critical', 'of which much is kept, with less than twice that', 100, 39, 20, ['critical']],
    ['none', 'of which nothing is kept', 100, 6, 0, []],
  ])('is judged by its size: %s %s', async (_state, _name, total, free, reserve, expected) => {
    const said = { freeBytes: free * gib, totalBytes: total * gib, reserveBytes: reserve * gib };
    const { ask } = saying(said);
    const { look, lasting } = await openWorld({ probes: { ...quiet, disk: ask } });
    await look();
    expect((await lasting()).map(({ severity }) => severity)).toEqual(expected);
  });

  it('whose file system has no size cannot be judged', async () => {
    const world = { nowUs: () => beginUs };
    const ports = { checkWritable: async () => undefined };
    const tls = { kind: 'off' } as const;
    const probe = (dataDir: string) => watchProbes({ tls, dataDir }, ports, world).disk();
    expect(await probe('/proc')).toBeNull();
    const found = await probe(temporaryDirectory());
    expect(found?.totalBytes).toBeGreaterThan(found?.freeBytes ?? Number.POSITIVE_INFINITY);
  });
});

describe('intake that refuses', () => {
  it('is an alert from the second look on, and over after five minutes without a refusal', async () => {
    const { probe, ask } = saying<string | null>('The disk is full.');
    const { look, lasting, setNow } = await openWorld({ probes: { ...quiet, intake: ask } });
    const refusals = async (minutes: number, said: string | null) => {
      probe.said = said;
      setNow(beginUs + minutes * minuteUs);
      await look();
      return (await lasting()).map(({ kind, evidence }) => [kind, ...evidence]);
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
  it('that does not run, though it should, is an alert after ten minutes', async () => {
    const paused = registration({ pausedSeenAtUs: beginUs });
    const { look, lasting, setNow, store } = await openWorld({}, [paused]);
    await look();
    expect(await lasting()).toEqual([]);
    setNow(beginUs + 10 * minuteUs);
    await look();
    expect(await lasting()).toMatchObject([{ kind: 'not-running', severity: 'critical' }]);
    await store.administration.commit({ save: registration() });
    await look();
    expect(await lasting()).toEqual([]);
  });

  it('that maintenance resumes by itself is given the time of its round', async () => {
    const paused = registration({ pausedSeenAtUs: beginUs });
    const { look, lasting, setNow } = await openWorld({ maintenance: true }, [paused]);
    setNow(beginUs + 6 * hourUs);
    await look();
    expect(await lasting()).toEqual([]);
    setNow(beginUs + 7 * hourUs);
    await look();
    expect(await lasting()).toMatchObject([{ kind: 'not-running' }]);
  });

  it('that was paused while we were down is given the time of the first rounds', async () => {
    const paused = registration({ pausedSeenAtUs: beginUs });
    const { look, lasting, setNow, store } = await openWorld({ maintenance: true }, [paused]);
    const upUs = beginUs + 3 * dayUs;
    const at = async (minutes: number) => {
      await store.completeness.markUp({ fromUs: upUs, toUs: upUs + minutes * minuteUs });
      setNow(upUs + minutes * minuteUs);
      await look();
      return (await lasting()).map(({ kind }) => kind);
    };
    expect(await at(0.5)).toEqual([]);
    expect(await at(29)).toEqual([]);
    expect(await at(30)).toEqual(['not-running']);
  });

  it.each([
    ['that is to be paused', registration({ status: 'paused', pausedSeenAtUs: beginUs })],
    [
      'that a command of the user paused',
      registration({ heldBy: 'command', pausedSeenAtUs: beginUs }),
    ],
  ])('%s is none', async (_name, one) => {
    const { look, lasting, setNow } = await openWorld({}, [one]);
    setNow(beginUs + dayUs);
    await look();
    expect(await lasting()).toEqual([]);
  });

  it('that the catalogue will pause or delete is an alert in time, from its last delivery on', async () => {
    const asked: (number | null)[] = [];
    const ahead = { pausesAtUs: beginUs + 15 * dayUs, cancelsAtUs: beginUs + 31 * dayUs };
    const { look, lasting, setNow, store } = await openWorld({
      lifetimes: ({ lastDeliveryAtUs }) => {
        asked.push(lastDeliveryAtUs);
        return ahead;
      },
    });
    await store.administration.markDeliveries([
      { subscription: 'alps', username: 'u', lastAtUs: beginUs - dayUs },
      { subscription: 'alps', username: 'v', lastAtUs: beginUs + 90 * dayUs },
    ]);
    await look();
    expect(asked).toEqual([beginUs - dayUs]);
    expect(await lasting()).toEqual([]);
    setNow(beginUs + 2 * dayUs);
    await look();
    expect((await lasting()).map(({ kind, severity }) => `${kind} ${severity}`).sort()).toEqual([
      'auto-pause warning',
      'cancellation warning',
    ]);
    setNow(beginUs + 13 * dayUs);
    await look();
    expect(await lasting()).toContainEqual(
      expect.objectContaining({ kind: 'auto-pause', severity: 'critical' }),
    );
    // Over when a day more is left than where it began.
    const left = async (pauseDays: number, cancelDays: number) => {
      ahead.pausesAtUs = beginUs + (13 + pauseDays) * dayUs;
      ahead.cancelsAtUs = beginUs + (13 + cancelDays) * dayUs;
      await look();
      return (await lasting()).map(({ kind }) => kind).sort();
    };
    expect(await left(15, 31)).toEqual(['auto-pause', 'cancellation']);
    expect(await left(15.1, 31)).toEqual(['cancellation']);
    expect(await left(15, 31.1)).toEqual([]);
    expect(await left(14.1, 30.1)).toEqual([]);
  });
});

describe('a look', () => {
  const low = async () => ({ freeBytes: gib / 2, totalBytes: 100 * gib, reserveBytes: 0 });

  it('leaves an alert as it is when its probe cannot look, and goes on with the others', async () => {
    const { world, look, lasting, logged } = await openWorld({ probes: { ...quiet, disk: low } });
    await look();
    world.probes = {
      ...quiet,
      disk: () => Promise.reject(new AppError('unavailable', 'It cannot be asked.')),
      certificate: async () => ({ notAfterUs: beginUs, lifetimeUs: dayUs, lastFailure: null }),
    };
    await look();
    expect((await lasting()).map(({ kind }) => kind).sort()).toEqual(['certificate', 'disk']);
    expect(logged).toContainEqual(
      expect.objectContaining({
        level: 'warn',
        fields: { kind: 'disk', reason: 'It cannot be asked.' },
      }),
    );
    world.probes = { ...quiet, disk: async () => null };
    await look();
    expect((await lasting()).map(({ kind }) => kind)).toEqual(['disk']);
  });

  it('does not wait for a probe that hangs', async () => {
    const pauses: number[] = [];
    const { look, lasting } = await openWorld({
      probes: { ...quiet, certificate: () => new Promise(() => undefined), disk: low },
      pause: async (ms, signal) => {
        pauses.push(ms);
        // Time goes by at once, after whatever answers.
        for (let turn = 0; turn < 50 && !signal.aborted; turn += 1) await nextTurn();
      },
    });
    await look();
    expect(await lasting()).toMatchObject([{ kind: 'disk', severity: 'critical' }]);
    expect(pauses).toContain(20_000);
  });
});
