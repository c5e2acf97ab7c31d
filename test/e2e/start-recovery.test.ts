/** Automatic recovery by `earshot start` of events during a downtime, a pause, or a loss of pushes. */
import { expect, it } from 'vitest';
import {
  openRegistered,
  passBetweenRounds,
  publish,
  publishedIds,
  type StartContext,
} from './start-context.ts';

/** Returns the sorted ids of products in the log, optionally of one source. */
async function loggedIds(context: StartContext, source?: 'push' | 'reconcile'): Promise<string[]> {
  const entries = (await context.entries()).filter(
    (one) => source === undefined || one.source === source,
  );
  return entries.map(({ productId }) => productId ?? '').toSorted();
}

const hoursOf = ({ reader, sandbox }: StartContext) =>
  reader.completeness.coverage({ sinceUs: 0, untilUs: sandbox.clock.now() * 1_000 });

it('recovers events published while it was down, before the end of the hour', async () => {
  const context = await openRegistered();
  const { minuteMs } = context;
  await publish(context, 7);
  expect(context.sandbox.totals()).toMatchObject({ delivered: 0, lost: 7 });
  context.passMs(10 * minuteMs);
  const missed = publishedIds(context);
  const running = await context.start();
  await expect.poll(() => loggedIds(context)).toEqual(missed);
  await publish(context, 3);
  await expect.poll(() => loggedIds(context)).toEqual(publishedIds(context));
  expect(await loggedIds(context, 'reconcile')).toEqual(missed);
  // The hour has not ended, so it has no coverage.
  expect(await hoursOf(context)).toEqual([]);
  await context.stop(running);
  expect(await loggedIds(context)).toHaveLength(10);
});

it('recovers events missed in a pause that ended while it was running', async () => {
  const context = await openRegistered();
  const { minuteMs } = context;
  const running = await context.start();
  await publish(context, 2);
  const pushed = publishedIds(context);
  await expect.poll(() => loggedIds(context, 'push')).toEqual(pushed);
  await context.command('subscriptions', 'pause', 'default');
  await publish(context, 5);
  const resume = () => context.command('subscriptions', 'resume', 'default');
  await passBetweenRounds(context, 5 * minuteMs, resume);
  await expect.poll(() => loggedIds(context)).toEqual(publishedIds(context));
  expect(await loggedIds(context, 'push')).toEqual(pushed);
  expect(await context.reader.administration.gaps()).toMatchObject([{ toUs: expect.any(Number) }]);
  expect(await hoursOf(context)).toEqual([]);
  await context.stop(running);
});

it('compares the hours that are due, and records separate uptimes before and after a sleep of the machine', async () => {
  const context = await openRegistered();
  const { hourMs, minuteMs } = context;
  const beganUs = Math.trunc(context.sandbox.clock.now()) * 1_000;
  const running = await context.start();
  const uptimesSince = () => context.reader.completeness.uptimes(beganUs - 1);
  await expect.poll(uptimesSince).toHaveLength(1);
  await publish(context, 4);
  context.sandbox.faults.change({ lost: 1 });
  await publish(context, 2);
  // An hour is settled half an hour after its end.
  await passBetweenRounds(context, hourMs + 30 * minuteMs);
  const settled = { event: 'created', expected: 6, pushed: 4, recovered: 2, missing: 0, late: 0 };
  await expect.poll(() => hoursOf(context)).toMatchObject([settled]);
  expect(await loggedIds(context, 'reconcile')).toHaveLength(2);
  await context.stop(running);
  const uptimes = await uptimesSince();
  const sleptUs = 90 * minuteMs * 1_000;
  expect(uptimes).toHaveLength(2);
  const [before, after] = uptimes;
  expect((after?.fromUs ?? 0) - (before?.toUs ?? 0)).toBeGreaterThanOrEqual(sleptUs);
  expect(before?.toUs).toBeLessThan(beganUs + minuteMs * 1_000);
});
