/**
 * Promises about the account: random accounts and desired states, each call interrupted before or after its effect, until
 * nothing differs.
 */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { applyDesired } from '../../src/admin/apply.ts';
import { times } from '../helpers/thorough.ts';
import { arbitraryCut, type RandomAccount, randomAccount } from './arbitrary-account.ts';
import { expectNoEventLost, expectSettled } from './expect-settled.ts';
import { desiredState, managed, minuteUs, otherFilter, startUs } from './samples.ts';
import { type AccountSetUp, openAccount, openSetUp, round } from './set-up.ts';

const withinLimits = randomAccount().filter(({ fits }) => fits);
const beyondLimits = randomAccount().filter(({ fits }) => !fits);
const interruption = fc.record({
  cut: arbitraryCut(60),
  by: fc.constantFrom('register', 'register', 'maintain'),
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

/** Events of a subscription that ran before must be sent, or be in a recorded gap. */
async function expectNothingLost(
  setUp: AccountSetUp,
  { situation, options }: RandomAccount,
): Promise<void> {
  const gaps = await setUp.administration.gaps();
  for (const { name, status, events, filter } of options.desired) {
    if (status === 'paused') continue;
    const known = situation.registrations.find((one) => one.name === name);
    const ours = situation.subscriptions.filter(
      ({ id, endpoint }) =>
        id === known?.subscriptionId || endpoint?.includes(`/notifications/${name}`),
    );
    if (typeof known?.runningSeenAtUs !== 'number') continue;
    const versions = [{ events, filter }, known, ...ours];
    const ids = ours.map(({ id }) => id);
    expectNoEventLost(setUp.moments, gaps, { name, ids, versions, fromUs: startUs });
    const lasting = gaps.filter(({ subscription, toUs }) => subscription === name && !toUs);
    expect(lasting).toEqual([]);
  }
}

describe('the account', () => {
  it('reaches the desired state without exceeding a limit or repeating a request, and stays there', async () => {
    await holds(
      withinLimits,
      fc.constant(null),
      async (setUp, account) => {
        await setUp.register(account.options);
        await expectSettled(setUp, account.options, account.others);
        await expectNothingLost(setUp, account);
        const { writes } = setUp.catalogue;
        expect(writes).toEqual([...new Set(writes)]);
        const before = writes.length;
        await setUp.register(account.options);
        await round(setUp, account.options.desired);
        expect(writes).toHaveLength(before);
      },
      times(40, 1_000),
    );
  });

  it('removes a paused duplicate first if a full account needs its place', async () => {
    const duplicate = { name: 'baltic', status: 'paused' };
    const setUp = await openSetUp({
      subscriptions: [
        ...[managed(), managed({ name: 'crete' })],
        ...[managed({ ...duplicate, id: 'one' }), managed({ ...duplicate, id: 'two' })],
      ],
      limits: { runningMax: 2, totalMax: 4 },
    });
    const crete = desiredState({ name: 'crete', filter: otherFilter, status: 'paused' });
    await setUp.register({ desired: [crete, desiredState({ name: 'baltic' })] });
    expect(setUp.catalogue.writes.slice(0, 2)).toEqual(['edit one credentials', 'delete two']);
  });

  it('is not changed without endpoint credentials, unless it has pull subscriptions only', async () => {
    const setUp = await openSetUp({});
    const context = { ...setUp.context(), credentials: null };
    const apply = (type: 'push' | 'pull') =>
      applyDesired({ desired: [desiredState({ type })] }, context, { actor: 'register' });
    await expect(apply('push')).rejects.toMatchObject({
      text: expect.stringMatching(/no endpoint credentials.*credentials create/),
    });
    expect([setUp.catalogue.writes, await setUp.administration.registrations()]).toEqual([[], []]);
    await apply('pull');
    expect(setUp.catalogue.writes).toEqual(['create pull running']);
  });

  it('reaches the desired state after interruptions at any call, and changes no other subscription', async () => {
    await holds(
      withinLimits,
      fc.array(interruption, { minLength: 1, maxLength: 4 }),
      async (setUp, account, interruptions) => {
        const { options, unmanaged } = account;
        const ids = new Set(unmanaged.map(({ id }) => id));
        for (const { cut, by } of interruptions) {
          const done =
            by === 'register' ? setUp.register(options, cut) : round(setUp, options.desired, cut);
          await done.catch(() => undefined);
          setUp.pass(minuteUs);
          const others = setUp.catalogue.subscriptions().filter(({ id }) => ids.has(id));
          expect(others).toEqual(unmanaged);
        }
        // A request without an answer may be repeated and refused.
        setUp.catalogue.refusals.length = 0;
        await setUp.register(options);
        await expectSettled(setUp, options, account.others);
        await expectNothingLost(setUp, account);
      },
      times(60, 1_500),
    );
  });

  it('is not changed if the desired state exceeds its limits', async () => {
    await holds(
      beyondLimits,
      fc.constant(null),
      async (setUp, { situation, options }) => {
        await expect(setUp.register(options)).rejects.toMatchObject({ code: 'conflict' });
        expect(setUp.catalogue.subscriptions()).toEqual(situation.subscriptions);
        expect(setUp.catalogue.writes).toEqual([]);
      },
      times(30, 300),
    );
  });
});
