/** A disk that becomes full and free again, and kills, at random moments of commits, checkpoints and growth. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createRandom } from '../../src/sandbox/clock.ts';
import { times } from '../helpers/thorough.ts';
import { expectNothingLost, openDiskContext } from './disk-context.ts';
import { canMount } from './disk-small.ts';

const kills = times(3, 16);
const fillsPerRound = 5;

it.skipIf(!canMount)(
  `loses nothing over ${kills * fillsPerRound} moments with a full disk and ${kills} kills (needs root to mount a disk)`,
  async () => {
    // Larger than all notifications of the rounds on a fast machine.
    const context = await openDiskContext(256);
    const { disk, answered } = context;
    const random = createRandom(20_261_121);
    // The random delay is the moment of the change; the test waits for no condition here.
    const randomDelay = () => delay(random.integer(0, 250));
    let refused = 0;
    for (let round = 0; round < kills; round += 1) {
      // Half of the rounds have no disk reserve, so that the disk becomes full at any write.
      const receiver = await context.start(round % 2 === 0 ? { EARSHOT_DISK_RESERVE: '0' } : {});
      const atStart = answered.length;
      receiver.startLoad();
      const answers = () => answered.length + receiver.refused();
      await expect.poll(answers, { timeout: 20_000, interval: 5 }).toBeGreaterThan(atStart);
      for (let fill = 0; fill < fillsPerRound; fill += 1) {
        await randomDelay();
        disk.fill();
        await randomDelay();
        // Every third receiver is killed, and started again, on a full disk.
        if (fill < fillsPerRound - 1 || round % 3 !== 2) disk.free();
      }
      await randomDelay();
      expect(await receiver.end('SIGKILL')).toBeNull();
      refused += receiver.refused();
    }
    disk.free();
    const last = await context.start();
    const before = answered.length;
    last.startLoad();
    await expect.poll(() => answered.length, { timeout: 20_000 }).toBeGreaterThan(before + 100);
    expect(await last.end('SIGTERM'), last.log()).toBe(0);
    expect(refused).toBeGreaterThan(kills);
    expectNothingLost(context);
  },
  360_000,
);
