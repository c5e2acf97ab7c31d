/** What `earshot start` makes good by itself: what it missed while it was down, or while nobody sent anything. */
import { expect, it } from 'vitest';
import {
  openRegistered,
  passBetweenRounds,
  publish,
  publishedIds,
  type StartWorld,
} from './start-world.ts';

/** The products in the log, sorted, of one source. */
async function loggedIds(world: StartWorld, source?: 'push' | 'reconcile'): Promise<string[]> {
  const entries = (await world.entries()).filter(
    (one) => source === undefined || one.source === source,
  );
  return entries.map(({ productId }) => productId ?? '').toSorted();
}

const hoursOf = ({ reader, sandbox }: StartWorld) =>
  reader.completeness.coverage({ sinceUs: 0, untilUs: sandbox.clock.now() * 1_000 });

it('looks up what was published while it was down, before the hour is over', async () => {
  const world = await openRegistered();
  const { minuteMs } = world;
  await publish(world, 7);
  expect(world.sandbox.totals()).toMatchObject({ delivered: 0, lost: 7 });
  world.passMs(10 * minuteMs);
  const missed = publishedIds(world);
  const running = await world.start();
  await expect.poll(() => loggedIds(world)).toEqual(missed);
  await publish(world, 3);
  await expect.poll(() => loggedIds(world)).toEqual(publishedIds(world));
  expect(await loggedIds(world, 'reconcile')).toEqual(missed);
  // The hour itself lasts: nothing is said of it.
  expect(await hoursOf(world)).toEqual([]);
  await world.stop(running);
  expect(await loggedIds(world)).toHaveLength(10);
});

it('looks up what a pause left out that ended while it was running', async () => {
  const world = await openRegistered();
  const { minuteMs } = world;
  const running = await world.start();
  await publish(world, 2);
  const told = publishedIds(world);
  await expect.poll(() => loggedIds(world, 'push')).toEqual(told);
  await world.command('subscriptions', 'pause', 'default');
  await publish(world, 5);
  const resume = () => world.command('subscriptions', 'resume', 'default');
  await passBetweenRounds(world, 5 * minuteMs, resume);
  await expect.poll(() => loggedIds(world)).toEqual(publishedIds(world));
  expect(await loggedIds(world, 'push')).toEqual(told);
  expect(await world.reader.administration.gaps()).toMatchObject([{ toUs: expect.any(Number) }]);
  expect(await hoursOf(world)).toEqual([]);
  await world.stop(running);
});

it('compares the hours that are due, and tells its uptime, apart where the machine slept', async () => {
  const world = await openRegistered();
  const { hourMs, minuteMs } = world;
  const beganUs = Math.trunc(world.sandbox.clock.now()) * 1_000;
  const running = await world.start();
  await publish(world, 4);
  world.sandbox.faults.change({ lost: 1 });
  await publish(world, 2);
  // Half an hour more until an hour counts as settled.
  await passBetweenRounds(world, hourMs + 30 * minuteMs);
  const settled = { event: 'created', expected: 6, pushed: 4, recovered: 2, missing: 0, late: 0 };
  await expect.poll(() => hoursOf(world)).toMatchObject([settled]);
  expect(await loggedIds(world, 'reconcile')).toHaveLength(2);
  await world.stop(running);
  const uptimes = await world.reader.completeness.uptimes(beganUs - 1);
  const sleptUs = 90 * minuteMs * 1_000;
  expect(uptimes).toHaveLength(2);
  const [before, after] = uptimes;
  expect((after?.fromUs ?? 0) - (before?.toUs ?? 0)).toBeGreaterThanOrEqual(sleptUs);
  expect(before?.toUs).toBeLessThan(beganUs + minuteMs * 1_000);
});
