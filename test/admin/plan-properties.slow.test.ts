/** Properties of plans for random accounts, registrations and desired states. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { times } from '../helpers/thorough.ts';
import { type RandomAccount, randomAccount } from './arbitrary-account.ts';
import { expectNoEventLost, expectSettled } from './expect-settled.ts';
import { minuteUs, startUs } from './samples.ts';
import type { Cut } from './set-up.ts';
import { type AccountSetUp, openAccount } from './set-up.ts';

const withinLimits = randomAccount().filter(({ fits }) => fits);
const beyondLimits = randomAccount().filter(({ fits }) => !fits);
const anyCut = fc.record<Cut>({
  call: fc.nat(40),
  when: fc.constantFrom('before', 'after'),
  how: fc.constantFrom('killed', 'unavailable'),
});

/** Runs a property with a separate account each time. */
function holds<Also>(
  accounts: fc.Arbitrary<RandomAccount>,
  also: fc.Arbitrary<Also>,
  property: (setUp: AccountSetUp, account: RandomAccount, also: Also) => Promise<void>,
  numRuns: number,
): Promise<void> {
  return fc.assert(
    fc.asyncProperty(accounts, also, async (account, given) => {
      const setUp = await openAccount(account.situation);
      try {
        await property(setUp, account, given);
      } finally {
        setUp.close();
      }
    }),
    { numRuns },
  );
}

const nothing = fc.constant(null);

describe('a plan for any account', () => {
  it('reaches the desired state without exceeding a limit or repeating a request', async () => {
    await holds(
      withinLimits,
      nothing,
      async (setUp, { options, others }) => {
        const { limitErrors } = await setUp.register(options);
        expect(limitErrors).toEqual([]);
        await expectSettled(setUp, options, others);
        const { writes } = setUp.catalogue;
        expect(writes).toEqual([...new Set(writes)]);
      },
      times(150, 1_000),
    );
  });

  it('is not started when the desired state exceeds the limits', async () => {
    await holds(
      beyondLimits,
      nothing,
      async (setUp, { situation, options }) => {
        const { limitErrors } = await setUp.register(options);
        expect(limitErrors.length).toBeGreaterThan(0);
        expect(setUp.catalogue.subscriptions()).toEqual(situation.subscriptions);
        expect(setUp.catalogue.writes).toEqual([]);
        const byName = situation.registrations.toSorted((a, b) => a.name.localeCompare(b.name));
        expect(await setUp.administration.registrations()).toEqual(byName);
      },
      300,
    );
  });

  it('changes nothing unless it is applied', async () => {
    await holds(
      randomAccount(),
      nothing,
      async (setUp, { situation, options }) => {
        const before = await setUp.administration.registrations();
        await setUp.plan(options);
        expect(setUp.catalogue.subscriptions()).toEqual(situation.subscriptions);
        expect(await setUp.administration.registrations()).toEqual(before);
      },
      100,
    );
  });

  it('never changes unmanaged subscriptions, even when it is cut', async () => {
    await holds(
      randomAccount(),
      anyCut,
      async (setUp, { options, unmanaged }, cut) => {
        await setUp.register(options, cut).catch(() => undefined);
        const ids = new Set(unmanaged.map(({ id }) => id));
        expect(setUp.catalogue.subscriptions().filter(({ id }) => ids.has(id))).toEqual(unmanaged);
      },
      300,
    );
  });

  it('reaches the desired state after repeated cuts at any call', async () => {
    await holds(
      withinLimits,
      fc.array(anyCut, { minLength: 1, maxLength: 4 }),
      async (setUp, { options, others }, cuts) => {
        for (const cut of cuts) {
          await setUp.register(options, cut).catch(() => undefined);
          setUp.pass(minuteUs);
        }
        setUp.catalogue.refusals.length = 0;
        expect((await setUp.register(options)).limitErrors).toEqual([]);
        await expectSettled(setUp, options, others);
      },
      times(150, 1_000),
    );
  });

  it('loses no event outside a recorded gap', async () => {
    await holds(
      withinLimits,
      fc.option(anyCut),
      async (setUp, { situation, options }, cut) => {
        await setUp.register(options, cut).catch(() => undefined);
        setUp.pass(minuteUs);
        const { plan } = await setUp.register(options);
        const gaps = await setUp.administration.gaps();
        for (const { name, status, events, filter } of options.desired) {
          if (status === 'paused') continue;
          const known = situation.registrations.find((one) => one.name === name);
          const ours = situation.subscriptions.filter(
            ({ id, endpoint }) =>
              id === known?.subscriptionId || endpoint?.includes(`/notifications/${name}`),
          );
          const ran = ours.some((one) => one.status === 'running');
          if (!ran && typeof known?.runningSeenAtUs !== 'number') continue;
          const versions = [{ events, filter }, ...ours];
          const ids = ours.map(({ id }) => id);
          expectNoEventLost(setUp.moments, gaps, { name, ids, versions, fromUs: startUs });
          const isUnchanged = plan.unchanged.includes(name);
          if (isUnchanged) continue;
          const lasting = gaps.filter(({ subscription, toUs }) => subscription === name && !toUs);
          expect(lasting).toEqual([]);
        }
      },
      times(150, 1_000),
    );
  });
});
