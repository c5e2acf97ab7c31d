/** Commands that pause, resume and delete single managed subscriptions. */
import { describe, expect, it } from 'vitest';
import type { AccountContext } from '../../src/admin/account-context.ts';
import { deleteByCommand, findManaged, setStatus } from '../../src/admin/direct-change.ts';
import { expectNoEventLost } from './expect-settled.ts';
import {
  dayUs,
  desiredState,
  managed,
  pull,
  registrationOf,
  startUs,
  unmanaged,
} from './samples.ts';
import { type Cut, openSetUp, round } from './set-up.ts';

/** Runs a command as the user does: finds the subscription and changes it. */
const commands = {
  pause: (name: string, setUp: AccountContext) => change(name, 'paused', setUp),
  resume: (name: string, setUp: AccountContext) => change(name, 'running', setUp),
  delete: async (name: string, setUp: AccountContext) =>
    deleteByCommand(await findManaged(name, setUp), setUp),
};

async function change(name: string, status: 'paused' | 'running', setUp: AccountContext) {
  const by = { actor: 'subscriptions', reason: 'by command' } as const;
  await setStatus(await findManaged(name, setUp), status, by, setUp);
}

const alps = { subscriptions: [managed()], registrations: [registrationOf()] };

describe('a managed subscription', () => {
  it('is found by its name or its Id, in any case', async () => {
    const setUp = await openSetUp({ ...alps, subscriptions: [unmanaged(), managed(), pull()] });
    for (const word of ['alps', 'ALPS', 'id-alps', 'ID-Alps']) {
      const ours = await findManaged(word, setUp.context());
      expect(ours).toMatchObject({ name: 'alps', current: { id: 'id-alps' }, isOnly: true });
    }
  });

  it('is found without a registration, by its endpoint', async () => {
    const setUp = await openSetUp({ subscriptions: [managed()] });
    const found = await findManaged('alps', setUp.context());
    expect(found).toMatchObject({ current: { id: 'id-alps' } });
  });

  it.each([
    ['an unmanaged subscription', 'id-unmanaged', 'conflict', 'is unmanaged'],
    ['a pull subscription', 'id-pull', 'conflict', 'is unmanaged'],
    ['an unknown name', 'baltic', 'not_found', 'no subscription baltic'],
  ])('is not %s', async (_, word, code, message) => {
    const setUp = await openSetUp({ ...alps, subscriptions: [unmanaged(), managed(), pull()] });
    const refused = findManaged(word, setUp.context());
    await expect(refused).rejects.toMatchObject({ code });
    await expect(refused).rejects.toThrow(message);
  });

  it('must be named by its Id when several have the same name', async () => {
    const setUp = await openSetUp({
      ...alps,
      subscriptions: [managed(), managed({ id: 'id-double' })],
    });
    const refused = findManaged('alps', setUp.context());
    await expect(refused).rejects.toThrow(/id-alps, id-double/);
    await expect(refused).rejects.toMatchObject({ code: 'conflict' });
    expect((await findManaged('id-double', setUp.context())).current.id).toBe('id-double');
  });
});

describe('a pause', () => {
  it('stops the subscription, records the gap, and is not undone by maintenance', async () => {
    const setUp = await openSetUp(alps);
    await commands.pause('alps', setUp.context());
    expect(setUp.catalogue.subscriptions()).toMatchObject([{ status: 'paused' }]);
    expect(await setUp.administration.gaps()).toMatchObject([
      { subscription: 'alps', filter: desiredState().filter, toUs: null },
    ]);
    expect(await setUp.administration.history({ limit: 9 })).toMatchObject([
      { action: 'paused', actor: 'subscriptions' },
    ]);
    expect(await setUp.administration.registrations()).toMatchObject([{ status: 'paused' }]);
    expect(await round(setUp)).toMatchObject([{ did: null, notes: [] }]);
    for (const days of [70, 100]) {
      setUp.pass(days * dayUs);
      expect(await round(setUp)).toMatchObject([{ did: null, status: 'paused' }]);
    }
    expect(setUp.catalogue.subscriptions()).toMatchObject([{ status: 'paused' }]);
  });

  it('of a configured subscription ends when the configuration is registered', async () => {
    const setUp = await openSetUp(alps);
    await commands.pause('alps', setUp.context());
    await setUp.register({ desired: [desiredState()] });
    expect(setUp.catalogue.subscriptions()).toMatchObject([{ status: 'running' }]);
    expect(await setUp.administration.registrations()).toMatchObject([{ status: 'running' }]);
  });
});

describe('a resumption', () => {
  const lostOne = {
    subscriptions: [managed({ status: 'paused' })],
    registrations: [registrationOf({ changedByPerson: true, pausedSeenAtUs: startUs - 9 })],
  };

  it('starts the subscription, records the gap, and re-enables maintenance', async () => {
    const setUp = await openSetUp(lostOne);
    await commands.resume('alps', setUp.context());
    expect(setUp.catalogue.subscriptions()).toMatchObject([{ status: 'running' }]);
    expect(await setUp.administration.registrations()).toMatchObject([
      { changedByPerson: false, pausedSeenAtUs: null, reported: [] },
    ]);
    const gaps = await setUp.administration.gaps();
    expect(gaps).toMatchObject([{ fromUs: registrationOf().runningSeenAtUs }]);
    expect(gaps[0]?.toUs).not.toBe(null);
    setUp.pass(61 * dayUs);
    expect(await round(setUp)).toMatchObject([{ did: 'resume' }]);
  });

  it('is refused without a request when too many run', async () => {
    const setUp = await openSetUp({
      ...lostOne,
      subscriptions: [...lostOne.subscriptions, unmanaged(), pull()],
    });
    const refused = commands.resume('alps', setUp.context());
    await expect(refused).rejects.toMatchObject({ code: 'conflict' });
    await expect(refused).rejects.toThrow('the account permits 2');
    expect(setUp.catalogue.writes).toEqual([]);
  });

  it('of a running subscription is allowed at the limit, and records nothing', async () => {
    const setUp = await openSetUp({ ...alps, subscriptions: [managed(), unmanaged()] });
    await commands.resume('alps', setUp.context());
    expect(await setUp.administration.history({ limit: 9 })).toEqual([]);
    expect(await setUp.administration.gaps()).toEqual([]);
  });
});

describe('a deletion', () => {
  it('removes the subscription and ends its maintenance', async () => {
    const setUp = await openSetUp({ ...alps, subscriptions: [managed(), unmanaged()] });
    await commands.delete('alps', setUp.context());
    expect(setUp.catalogue.writes).toEqual(['delete id-alps']);
    expect(setUp.catalogue.subscriptions()).toEqual([unmanaged()]);
    expect(await setUp.administration.registrations()).toEqual([]);
    expect(await setUp.administration.history({ limit: 9 })).toMatchObject([
      { action: 'deleted', subscriptionId: 'id-alps' },
    ]);
    setUp.pass(400 * dayUs);
    expect(await round(setUp)).toEqual([]);
  });

  it('keeps the maintenance of a second subscription with the same name', async () => {
    const setUp = await openSetUp({
      ...alps,
      subscriptions: [managed(), managed({ id: 'id-double' })],
    });
    await commands.delete('id-double', setUp.context());
    expect(await setUp.administration.registrations()).toMatchObject([{ name: 'alps' }]);
    expect(await round(setUp)).toMatchObject([{ name: 'alps', status: 'running', notes: [] }]);
  });

  it('ends an open gap', async () => {
    const setUp = await openSetUp(alps);
    await commands.pause('alps', setUp.context());
    await commands.delete('alps', setUp.context());
    expect((await setUp.administration.gaps())[0]?.toUs).not.toBe(null);
  });
});

describe('a command that is interrupted at any call', () => {
  const cuts = Array.from({ length: 6 }, (_, call) => call).flatMap((call) =>
    (['before', 'after'] as const).map((when): Cut => ({ call, when, how: 'killed' })),
  );
  const versions = [desiredState()];

  it.each(cuts)('loses no event outside a gap ($call, $when)', async (cut) => {
    const setUp = await openSetUp(alps);
    for (const command of ['pause', 'resume'] as const) {
      await commands[command]('alps', setUp.context(cut)).catch(() => undefined);
      setUp.pass(dayUs);
      await commands[command]('alps', setUp.context());
      setUp.pass(dayUs);
    }
    await round(setUp);
    const gaps = await setUp.administration.gaps();
    expectNoEventLost(setUp.moments, gaps, { name: 'alps', versions, fromUs: startUs });
    expect(gaps.filter(({ toUs }) => toUs === null)).toEqual([]);
  });
});
