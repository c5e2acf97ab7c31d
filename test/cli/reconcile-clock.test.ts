/** `earshot reconcile` with a clock that is wrong, and with a run that was left long ago. */
import { expect, it } from 'vitest';
import { hourUs, nowUs, openReconcileWorld } from './reconcile-world.ts';

const dayUs = 24 * hourUs;

it('calls no hour complete that lasts yet by the catalogue’s clock, though ours is a day ahead', async () => {
  const world = await openReconcileWorld();
  await world.register('sea-ice');
  const { code } = await world.run(['reconcile', '--from', '3d'], { nowUs: () => nowUs + dayUs });
  expect(code).toBe(0);
  const hours = await world.withStore(({ completeness }) =>
    completeness.coverage({ sinceUs: 0, untilUs: nowUs + 9 * dayUs }),
  );
  // The whole hours of two days: the third one is to come.
  expect(hours).toHaveLength(3 * 47);
  const latestUs = Math.max(...hours.map((hour) => hour.hourUs + hourUs));
  expect(latestUs).toBe(Date.UTC(2026, 4, 2, 12) * 1_000);
  expect(Math.max(...hours.map(({ comparedAtUs }) => comparedAtUs))).toBeLessThan(nowUs + hourUs);
  // What was found meanwhile stands in the log with the right time.
  const { out } = await world.run(['reconcile', '--from', '3d', '--json']);
  expect(JSON.parse(out)).toMatchObject({ fetched: 0 });
});

it('goes on with a run within two hours, and begins anew after that', async () => {
  const world = await openReconcileWorld();
  await world.register('sea-ice');
  let atUs = nowUs;
  const clock = () => atUs;
  const cut = async (afterUs: number) => {
    atUs += afterUs;
    let asked = 0;
    const stopping: typeof fetch = async (input, init) => {
      asked += 1;
      if (asked === 3) running.stop();
      return fetch(input, init);
    };
    const running = world.start(['reconcile', '--from', '3d'], { fetch: stopping, nowUs: clock });
    return (await running.ended).err;
  };
  expect(await cut(0)).not.toContain('Going on');
  expect(await cut(2 * hourUs)).toContain('Going on with what began 120 min ago.');
  expect(await cut(1)).not.toContain('Going on');
});
