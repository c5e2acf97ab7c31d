/** A disk that is full and free again at random moments of commits, checkpoints and growth, and kills among them. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createRandom } from '../../src/sandbox/clock.ts';
import { expectNothingLost, openDiskContext } from './disk-context.ts';
import { canMount } from './disk-small.ts';

const kills = 8;
const fillsPerRound = 5;

it.skipIf(!canMount)(
  `loses nothing over ${kills * fillsPerRound} moments without room and ${kills} kills (needs root to mount a disk)`,
  async () => {
    // More than all rounds store on a fast machine.
    const context = await openDiskContext(256);
    const { disk, answered } = context;
    const random = createRandom(20_261_121);
    // The moment itself is what is random here, not a wait for something to happen.
    const passing = () => delay(random.integer(0, 250));
    let refused = 0;
    for (let round = 0; round < kills; round += 1) {
      // Without a limit, so that the disk is full wherever it is written to; and with the usual one.
      const receiver = await context.start(round % 2 === 0 ? { EARSHOT_DISK_RESERVE: '0' } : {});
      const atStart = answered.length;
      receiver.load();
      const answers = () => answered.length + receiver.refused();
      await expect.poll(answers, { timeout: 20_000, interval: 5 }).toBeGreaterThan(atStart);
      for (let fill = 0; fill < fillsPerRound; fill += 1) {
        await passing();
        disk.fill();
        await passing();
        // Every third is killed, and started again, on a full disk.
        if (fill < fillsPerRound - 1 || round % 3 !== 2) disk.free();
      }
      await passing();
      expect(await receiver.end('SIGKILL')).toBeNull();
      refused += receiver.refused();
    }
    disk.free();
    const last = await context.start();
    const before = answered.length;
    last.load();
    await expect.poll(() => answered.length, { timeout: 20_000 }).toBeGreaterThan(before + 100);
    expect(await last.end('SIGTERM'), last.log()).toBe(0);
    expect(refused).toBeGreaterThan(kills);
    expectNothingLost(context);
  },
  360_000,
);
