/** An authority that is down for a fortnight: few tries, the old certificate all the while, and then a new one. */
import { describe, expect, it, vi } from 'vitest';
import { hasPebble, startPebble } from '../../helpers/pebble.ts';
import {
  createClock,
  dayUs,
  minuteUs,
  openProgram,
  savedState,
  watchRequests,
} from './pebble-world.ts';
import { createVerifyingClient, servedSerial, startReceiver } from './receiver-world.ts';

const soon = { timeout: 10_000, interval: 10 };
const hourUs = 60 * minuteUs;
const validitySeconds = 10 * 24 * 3600;

/** Minutes between the tries: then every six hours. */
const firstPauses = [1, 2, 5, 10, 30, 60, 120, 240];

function triesWithin(minutes: number): number {
  let tries = 1;
  let at = 0;
  for (let failures = 1; ; failures += 1) {
    at += firstPauses[failures - 1] ?? 360;
    if (at >= minutes) return tries;
    tries += 1;
  }
}

describe.skipIf(!hasPebble)('an authority that is down for a fortnight (needs pebble)', () => {
  it('is tried a handful of times in the first hour, then every six hours', async () => {
    const pebble = await startPebble({ validitySeconds });
    const program = openProgram(pebble);
    expect((await program.look()).outcome).toBe('renewed');
    await pebble.stop();
    const requests = watchRequests(pebble);
    const { clock, look, state } = program;
    clock.advance(6 * dayUs);
    const beganUs = clock.nowUs();
    // Looks at every minute of the first day, then every half hour.
    const within = async (endUs: number, stepUs: number) => {
      for (; clock.nowUs() < endUs; clock.advance(stepUs)) await look().catch(() => undefined);
      expect(state().failures).toBe(requests.directories());
      return requests.directories();
    };
    expect(await within(beganUs + hourUs, minuteUs)).toBe(triesWithin(60));
    expect(triesWithin(60)).toBe(6);
    expect(await within(beganUs + dayUs, minuteUs)).toBe(triesWithin(24 * 60));
    expect(await within(beganUs + 14 * dayUs, 30 * minuteUs)).toBeLessThanOrEqual(65);
    expect(requests.asked).toHaveLength(requests.directories());
    await pebble.start();
    clock.advance(6 * hourUs);
    expect((await look()).outcome).toBe('renewed');
    expect(state()).toMatchObject({ failures: 0, nextTryAtUs: null });
  });

  it('leaves the old certificate served, over restarts, and beyond its end', async () => {
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
    // Tries, and questions for advice, of which there are as few.
    expect(requests.asked.length).toBeLessThanOrEqual(2 * 14 * 4 + 2);
    const told = receiver.lines.map(({ message }) => message);
    expect(told).toContain('the certificate has expired; the catalogue will refuse it');
    await pebble.start();
    clock.advance(6 * hourUs);
    await vi.waitFor(async () => expect(await servedSerial(receiver.port)).not.toBe(old), soon);
    const ask = createVerifyingClient(receiver.port, await pebble.readRoot());
    expect(await ask()).toBe(200);
    await vi.waitFor(() => expect(state()).toMatchObject({ failures: 0, nextTryAtUs: null }), soon);
  }, 40_000);
});
