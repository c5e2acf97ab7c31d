/** What holds for plans of any account, any registrations and any wishes. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { times } from '../helpers/thorough.ts';
import { type RandomAccount, randomAccount } from './arbitrary-account.ts';
import { expectNoEventLost, expectSettled } from './expect-settled.ts';
import { minuteUs, startUs } from './samples.ts';
import type { Cut } from './set-up.ts';
import { openPlanWorld, type PlanWorld } from './set-up.ts';

const withRoom = randomAccount().filter(({ fits }) => fits);
const withoutRoom = randomAccount().filter(({ fits }) => !fits);
const anyCut = fc.record<Cut>({
  call: fc.nat(40),
  when: fc.constantFrom('before', 'after'),
  how: fc.constantFrom('killed', 'unavailable'),
});

/** Runs a property in a world of its own each time. */
function holds<Also>(
  accounts: fc.Arbitrary<RandomAccount>,
  also: fc.Arbitrary<Also>,
  property: (world: PlanWorld, account: RandomAccount, also: Also) => Promise<void>,
  numRuns: number,
): Promise<void> {
  return fc.assert(
    fc.asyncProperty(accounts, also, async (account, given) => {
      const world = await openPlanWorld(account.situation);
      try {
        await property(world, account, given);
      } finally {
        world.close();
      }
    }),
    { numRuns },
  );
}

const nothing = fc.constant(null);

describe('a plan for any account', () => {
  it('ends in what is wanted, within the limits on the way, with nothing done twice', async () => {
    await holds(
      withRoom,
      nothing,
      async (world, { options, others }) => {
        const { excess } = await world.register(options);
        expect(excess).toEqual([]);
        await expectSettled(world, options, others);
        const { writes } = world.catalogue;
        expect(writes).toEqual([...new Set(writes)]);
      },
      times(300, 1_000),
    );
  });

  it('is not begun when what is wanted has no room', async () => {
    await holds(
      withoutRoom,
      nothing,
      async (world, { situation, options }) => {
        const { excess } = await world.register(options);
        expect(excess.length).toBeGreaterThan(0);
        expect(world.catalogue.held()).toEqual(situation.held);
        expect(world.catalogue.writes).toEqual([]);
        const byName = situation.registrations.toSorted((a, b) => a.name.localeCompare(b.name));
        expect(await world.administration.registrations()).toEqual(byName);
      },
      300,
    );
  });

  it('changes nothing when it is only looked at', async () => {
    await holds(
      randomAccount(),
      nothing,
      async (world, { situation, options }) => {
        const before = await world.administration.registrations();
        await world.plan(options);
        expect(world.catalogue.held()).toEqual(situation.held);
        expect(await world.administration.registrations()).toEqual(before);
      },
      100,
    );
  });

  it('never touches what others made, also when it is cut', async () => {
    await holds(
      randomAccount(),
      anyCut,
      async (world, { options, strangers }, cut) => {
        await world.register(options, cut).catch(() => undefined);
        const ids = new Set(strangers.map(({ id }) => id));
        expect(world.catalogue.held().filter(({ id }) => ids.has(id))).toEqual(strangers);
      },
      300,
    );
  });

  it('ends the same when it is cut anywhere, again and again', async () => {
    await holds(
      withRoom,
      fc.array(anyCut, { minLength: 1, maxLength: 4 }),
      async (world, { options, others }, cuts) => {
        for (const cut of cuts) {
          await world.register(options, cut).catch(() => undefined);
          world.pass(minuteUs);
        }
        world.catalogue.refusals.length = 0;
        expect((await world.register(options)).excess).toEqual([]);
        await expectSettled(world, options, others);
      },
      times(300, 1_000),
    );
  });

  it('loses no event on the way that is not inside a recorded gap', async () => {
    await holds(
      withRoom,
      fc.option(anyCut),
      async (world, { situation, options }, cut) => {
        await world.register(options, cut).catch(() => undefined);
        world.pass(minuteUs);
        const { plan } = await world.register(options);
        const gaps = await world.administration.gaps();
        for (const { name, status, events, filter } of options.desired) {
          if (status === 'paused') continue;
          const known = situation.registrations.find((one) => one.name === name);
          const ours = situation.held.filter(
            ({ id, endpoint }) =>
              id === known?.subscriptionId || endpoint?.includes(`/notifications/${name}`),
          );
          const ran = ours.some((one) => one.status === 'running');
          if (!ran && typeof known?.runningSeenAtUs !== 'number') continue;
          const versions = [{ events, filter }, ...ours];
          const ids = ours.map(({ id }) => id);
          expectNoEventLost(world.moments, gaps, { name, ids, versions, fromUs: startUs });
          const isUnchanged = plan.unchanged.includes(name);
          if (isUnchanged) continue;
          const lasting = gaps.filter(({ subscription, toUs }) => subscription === name && !toUs);
          expect(lasting).toEqual([]);
        }
      },
      times(300, 1_000),
    );
  });
});
