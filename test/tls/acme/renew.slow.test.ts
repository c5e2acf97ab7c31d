/** Renewals: by remaining lifetime, after changes of settings, and once for several processes. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, vi } from 'vitest';
import { renew } from '../../../src/tls/acme/renew.ts';
import { hasPebble, leaveAccount, type Pebble, startPebble } from '../../helpers/pebble.ts';
import {
  createClock,
  dayUs,
  it,
  minuteUs,
  openProgram,
  savedState,
  watchRequests,
} from './pebble-context.ts';
import { createVerifyingClient, servedSerial, startReceiver } from './receiver-context.ts';

const days = (count: number) => count * 24 * 3600;

/** Opens a process and obtains its first certificate. */
async function withCertificate(pebble: Pebble) {
  const program = openProgram(pebble);
  expect((await program.check()).outcome).toBe('renewed');
  const shown = await program.check();
  if (shown.outcome !== 'current') throw new Error(`It is ${shown.outcome}.`);
  return { ...program, certificate: shown.certificate, due: shown.due };
}

describe.skipIf(!hasPebble)('a certificate (needs pebble)', () => {
  it.each([
    ['90 days, with a third left', days(90), 1 / 3],
    ['six hours, with half of them left', 6 * 3600, 1 / 2],
  ])('with a lifetime of %s, is renewed once', async (_, validitySeconds, shareLeft) => {
    const pebble = await startPebble({ validitySeconds });
    const requests = watchRequests(pebble);
    const { clock, check, certificate, due, saved } = await withCertificate(pebble);
    const lifetimeMs = certificate.notAfter.getTime() - certificate.notBefore.getTime();
    const leftMs = certificate.notAfter.getTime() - due.atUs / 1000;
    expect(due.because).toBe('share');
    expect(leftMs / lifetimeMs).toBeGreaterThanOrEqual(shareLeft - 0.0001);
    expect(leftMs / lifetimeMs).toBeLessThanOrEqual(shareLeft + 0.0201);
    clock.set(due.atUs - 1);
    expect((await check()).outcome).toBe('current');
    expect((await check('asked')).outcome).toBe('current');
    expect(requests.orders()).toBe(1);
    clock.set(due.atUs);
    expect((await check()).outcome).toBe('renewed');
    expect(saved('certificate.json').chain).not.toBe(certificate.cert);
    for (let i = 0; i < 5; i += 1) await check();
    expect(requests.orders()).toBe(2);
  });

  it('is ordered immediately for another name and from another authority', async () => {
    const [pebble, other] = [await startPebble(), await startPebble()];
    const { clock, dataDir, saved } = await withCertificate(pebble);
    const settings = { host: 'other.example.org' };
    const renamed = await openProgram(pebble, { clock, dataDir, settings }).check();
    expect(renamed.outcome === 'renewed' && renamed.certificate.covers(settings.host)).toBe(true);
    const moved = openProgram(other, { clock, dataDir, settings });
    expect((await moved.check()).outcome).toBe('renewed');
    expect(saved('certificate.json').directoryUrl).toBe(other.directoryUrl);
    expect((await moved.check()).outcome).toBe('current');
    const names = readdirSync(join(dataDir, 'acme'));
    expect(names.filter((name) => name.startsWith('account-'))).toHaveLength(2);
  });

  it('is ordered once by two concurrent processes', async ({ pebble, requests }) => {
    const one = openProgram(pebble);
    const { clock, dataDir } = one;
    const two = openProgram(pebble, { clock, dataDir });
    const ends = await Promise.allSettled([one.check(), two.check()]);
    expect(ends.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
    expect(ends.find(({ status }) => status === 'rejected')).toMatchObject({
      reason: { code: 'conflict' },
    });
    expect(requests.orders()).toBe(1);
    // A waiting process uses the certificate of the other, even with `anyway`.
    const waiting = ({ context, acquireLock }: typeof one) =>
      renew(context, {
        when: 'anyway',
        acquireLock,
        lockWaitMs: 10_000,
        onIssued: () => undefined,
      });
    const outcomes = await Promise.all([waiting(one), waiting(two)]);
    expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(['current', 'renewed']);
    expect(requests.orders()).toBe(2);
  });
});

/** Opens a process with its first certificate and a function that reads its due date. */
async function withShortLived(pebble: Pebble) {
  const program = openProgram(pebble);
  expect((await program.check()).outcome).toBe('renewed');
  const readDue = async () => {
    const shown = await program.check();
    if (shown.outcome !== 'current') throw new Error(`It is ${shown.outcome}.`);
    return shown.due;
  };
  return { ...program, due: await readDue(), readDue };
}

describe.skipIf(!hasPebble)('a certificate (needs pebble)', () => {
  it('can be ordered manually at most five times in 24 hours', async ({ pebble, requests }) => {
    const { clock, dataDir, check, fail } = await withShortLived(pebble);
    const firstUs = clock.nowUs();
    for (let i = 0; i < 4; i += 1) {
      clock.advance(minuteUs);
      expect((await check('anyway')).outcome).toBe('renewed');
    }
    const endsUs = firstUs + dayUs;
    const until = new Date(endsUs / 1000).toISOString();
    expect(await fail('anyway')).toContain(`The next order is possible after ${until}.`);
    expect((await check()).outcome).toBe('current');
    const restarted = openProgram(pebble, { clock, dataDir });
    clock.set(endsUs - 1);
    expect(await restarted.fail('anyway')).toContain(
      'earshot has ordered its maximum number of certificates in 24 hours',
    );
    expect(requests.orders()).toBe(5);
    clock.set(endsUs);
    expect((await restarted.check('anyway')).outcome).toBe('renewed');
  });
});

describe.skipIf(!hasPebble)('a clock that is wrong (needs pebble)', () => {
  it('by a year ahead causes no flood of orders, nor does its correction', async () => {
    const pebble = await startPebble({ validitySeconds: days(90) });
    const requests = watchRequests(pebble);
    const { clock, check, readDue } = await withShortLived(pebble);
    const rightUs = clock.nowUs();
    clock.advance(365 * dayUs);
    expect((await check()).outcome).toBe('renewed');
    for (let i = 0; i < 20; i += 1) {
      clock.advance(minuteUs);
      expect((await check()).outcome).toBe('waiting');
    }
    for (let i = 0; i < 12; i += 1) {
      clock.advance(dayUs / 2);
      await check();
    }
    // Every certificate looks expired; still there are at most five orders within a week.
    expect(requests.orders()).toBe(5);
    clock.set(rightUs + minuteUs);
    const due = await readDue();
    expect(requests.orders()).toBe(5);
    clock.set(due.atUs - 1);
    expect((await check()).outcome).toBe('current');
    clock.set(due.atUs);
    expect((await check()).outcome).toBe('renewed');
  });

  it('by a year behind causes no order, and no wait of a year after a failure', async () => {
    const pebble = await startPebble({ validitySeconds: days(90) });
    const requests = watchRequests(pebble);
    const { clock, dataDir, due } = await withShortLived(pebble);
    const program = openProgram(pebble, { clock, dataDir });
    clock.advance(-365 * dayUs);
    for (let i = 0; i < 5; i += 1) expect((await program.check()).outcome).toBe('current');
    expect(requests.orders()).toBe(1);
    // A failure a year ahead; then the clock is corrected.
    leaveAccount(dataDir);
    await pebble.setAddress('127.0.0.2');
    clock.set(due.atUs + 365 * dayUs);
    await program.fail();
    clock.set(due.atUs);
    await program.fail();
    expect((await program.check()).outcome).toBe('waiting');
    expect(program.state().failures).toBe(2);
    await pebble.setAddress('127.0.0.1');
    clock.advance(2 * minuteUs);
    expect((await program.check()).outcome).toBe('renewed');
  });

  it('does not synchronize reattempts, since delays are random', async ({ pebble }) => {
    const clock = createClock();
    const closed = { openListener: () => Promise.reject(new Error('taken')), clock };
    const pauses: number[] = [];
    for (const draw of [0, 0.5, 0.999]) {
      const program = openProgram(pebble, { ...closed, random: () => draw });
      await program.fail();
      pauses.push(((program.state().nextTryAtUs ?? 0) - clock.nowUs()) / minuteUs);
    }
    expect(pauses[0]).toBe(1);
    expect(pauses[1]).toBeCloseTo(1.125, 3);
    expect(pauses[2]).toBeCloseTo(1.25, 3);
  });
});

const soon = { timeout: 10_000, interval: 10 };

const hourUs = 60 * minuteUs;

const validitySeconds = 10 * 24 * 3600;

/** Minutes between the first attempts; later attempts are every six hours. */
const firstPauses = [1, 2, 5, 10, 30, 60, 120, 240];

function attemptsWithin(minutes: number): number {
  let attempts = 1;
  let at = 0;
  for (let failures = 1; ; failures += 1) {
    at += firstPauses[failures - 1] ?? 360;
    if (at >= minutes) return attempts;
    attempts += 1;
  }
}

describe.skipIf(!hasPebble)('an authority that is down for two weeks (needs pebble)', () => {
  it('gets six attempts in the first hour, later one every six hours', async () => {
    const pebble = await startPebble({ validitySeconds });
    const program = openProgram(pebble);
    expect((await program.check()).outcome).toBe('renewed');
    await pebble.stop();
    const requests = watchRequests(pebble);
    const { clock, check, state } = program;
    clock.advance(6 * dayUs);
    const beganUs = clock.nowUs();
    // Checks every minute of the first day, then every half hour.
    const within = async (endUs: number, stepUs: number) => {
      for (; clock.nowUs() < endUs; clock.advance(stepUs)) await check().catch(() => undefined);
      expect(state().failures).toBe(requests.directories());
      return requests.directories();
    };
    expect(await within(beganUs + hourUs, minuteUs)).toBe(attemptsWithin(60));
    expect(attemptsWithin(60)).toBe(6);
    expect(await within(beganUs + dayUs, minuteUs)).toBe(attemptsWithin(24 * 60));
    expect(await within(beganUs + 14 * dayUs, 30 * minuteUs)).toBeLessThanOrEqual(65);
    expect(requests.asked).toHaveLength(requests.directories());
    await pebble.start();
    clock.advance(6 * hourUs);
    expect((await check()).outcome).toBe('renewed');
    expect(state()).toMatchObject({ failures: 0, nextTryAtUs: null });
  });

  it('does not stop the old certificate from being served, across restarts and after expiry', async () => {
    const pebble = await startPebble({ validitySeconds });
    const clock = createClock();
    let receiver = await startReceiver(pebble, { clock });
    const { dataDir } = receiver;
    await vi.waitFor(async () => expect(await servedSerial(receiver.port)).not.toBeNull(), soon);
    const state = () => savedState(dataDir);
    await vi.waitFor(() => expect(state().lastSuccessAtUs).toBe(clock.nowUs()), soon);
    const old = await servedSerial(receiver.port);
    const root = await pebble.readRoot();
    await pebble.stop();
    const requests = watchRequests(pebble);
    clock.advance(6 * dayUs);
    let failures = 0;
    for (let quarter = 0; quarter < 14 * 4; quarter += 1) {
      failures += 1;
      await vi.waitFor(() => expect(state().failures).toBe(failures), soon);
      if (quarter % 14 === 13) {
        await receiver.close();
        receiver = await startReceiver(pebble, { clock, dataDir });
      }
      expect(await servedSerial(receiver.port)).toBe(old);
      clock.advance(6 * hourUs);
    }
    expect(clock.nowUs()).toBeGreaterThan(Date.now() * 1000 + 19 * dayUs);
    expect(await createVerifyingClient(receiver.port, root)()).toBe(200);
    // Attempts, and as few requests for renewal information.
    expect(requests.asked.length).toBeLessThanOrEqual(2 * 14 * 4 + 2);
    const messages = receiver.lines.map(({ message }) => message);
    expect(messages).toContain('certificate has expired; the catalogue will reject it');
    await pebble.start();
    clock.advance(6 * hourUs);
    await vi.waitFor(async () => expect(await servedSerial(receiver.port)).not.toBe(old), soon);
    const ask = createVerifyingClient(receiver.port, await pebble.readRoot());
    expect(await ask()).toBe(200);
    await vi.waitFor(() => expect(state()).toMatchObject({ failures: 0, nextTryAtUs: null }), soon);
  }, 40_000);
});
