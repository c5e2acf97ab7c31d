/** How often a certificate is ordered at most: by hand, with a wrong clock, and after failures. */
import { describe, expect, it } from 'vitest';
import { hasPebble, leaveAccount, type Pebble, startPebble } from '../../helpers/pebble.ts';
import { createClock, dayUs, minuteUs, openProgram, watchRequests } from './pebble-world.ts';

const days = (count: number) => count * 24 * 3600;

/** A program that has its first certificate, and when the one that it has is due: each has its own time. */
async function withCertificate(pebble: Pebble) {
  const program = openProgram(pebble);
  expect((await program.look()).outcome).toBe('renewed');
  const readDue = async () => {
    const shown = await program.look();
    if (shown.outcome !== 'current') throw new Error(`It is ${shown.outcome}.`);
    return shown.due;
  };
  return { ...program, due: await readDue(), readDue };
}

describe.skipIf(!hasPebble)('a certificate (needs pebble)', () => {
  it('is ordered by hand five times in 24 hours, and not once more before they have passed', async () => {
    const pebble = await startPebble();
    const requests = watchRequests(pebble);
    const { clock, dataDir, look, fail } = await withCertificate(pebble);
    const firstUs = clock.nowUs();
    for (let i = 0; i < 4; i += 1) {
      clock.advance(minuteUs);
      expect((await look('anyway')).outcome).toBe('renewed');
    }
    const endsUs = firstUs + dayUs;
    const until = new Date(endsUs / 1000).toISOString();
    expect(await fail('anyway')).toContain(`The next one can be ordered after ${until}.`);
    expect((await look()).outcome).toBe('current');
    const restarted = openProgram(pebble, { clock, dataDir });
    clock.set(endsUs - 1);
    expect(await restarted.fail('anyway')).toContain('So many certificates were issued');
    expect(requests.orders()).toBe(5);
    clock.set(endsUs);
    expect((await restarted.look('anyway')).outcome).toBe('renewed');
  });
});

describe.skipIf(!hasPebble)('a clock that is wrong (needs pebble)', () => {
  it('by a year ahead makes no storm of orders, and set right makes none', async () => {
    const pebble = await startPebble({ validitySeconds: days(90) });
    const requests = watchRequests(pebble);
    const { clock, look, readDue } = await withCertificate(pebble);
    const rightUs = clock.nowUs();
    clock.advance(365 * dayUs);
    expect((await look()).outcome).toBe('renewed');
    for (let i = 0; i < 20; i += 1) {
      clock.advance(minuteUs);
      expect((await look()).outcome).toBe('waiting');
    }
    for (let i = 0; i < 12; i += 1) {
      clock.advance(dayUs / 2);
      await look();
    }
    // Every certificate looks as old; still there are no more than five within a week.
    expect(requests.orders()).toBe(5);
    clock.set(rightUs + minuteUs);
    const due = await readDue();
    expect(requests.orders()).toBe(5);
    clock.set(due.atUs - 1);
    expect((await look()).outcome).toBe('current');
    clock.set(due.atUs);
    expect((await look()).outcome).toBe('renewed');
  });

  it('by a year behind is no reason to order, nor to wait for a year after a failure', async () => {
    const pebble = await startPebble({ validitySeconds: days(90) });
    const requests = watchRequests(pebble);
    const { clock, dataDir, due } = await withCertificate(pebble);
    const program = openProgram(pebble, { clock, dataDir });
    clock.advance(-365 * dayUs);
    for (let i = 0; i < 5; i += 1) expect((await program.look()).outcome).toBe('current');
    expect(requests.orders()).toBe(1);
    // It fails a year ahead; then the clock is set right.
    leaveAccount(dataDir);
    await pebble.setAddress('127.0.0.2');
    clock.set(due.atUs + 365 * dayUs);
    await program.fail();
    clock.set(due.atUs);
    await program.fail();
    expect((await program.look()).outcome).toBe('waiting');
    expect(program.state().failures).toBe(2);
    await pebble.setAddress('127.0.0.1');
    clock.advance(2 * minuteUs);
    expect((await program.look()).outcome).toBe('renewed');
  });

  it('makes nobody come back at the same second: pauses are drawn', async () => {
    const pebble = await startPebble();
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
