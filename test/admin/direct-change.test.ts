/** Commands that pause, resume and delete single managed subscriptions. */
import { describe, expect, it } from 'vitest';
import { applyDesired } from '../../src/admin/apply.ts';
import type { AccountContext } from '../../src/admin/changes.ts';
import { findManaged } from '../../src/admin/changes.ts';
import { changeStatus } from '../../src/admin/maintain.ts';
import { AppError } from '../../src/core/terms/app-error.ts';
import { expectNoEventLost } from './expect-settled.ts';
import {
  dayUs,
  desiredState,
  managed,
  otherFilter,
  pull,
  registrationOf,
  startUs,
  unmanaged,
} from './samples.ts';
import { type Cut, historyLines, openSetUp, round } from './set-up.ts';

const by = { actor: 'subscriptions', reason: 'by command' } as const;
const pause = (setUp: AccountContext) => changeStatus('alps', 'paused', setUp, by);
const resume = (setUp: AccountContext) => changeStatus('alps', 'running', setUp, by);

const alps = { subscriptions: [managed()], registrations: [registrationOf()] };

describe('a managed subscription', () => {
  const subscriptions = [unmanaged(), managed(), pull()];
  const double = [managed(), managed({ id: 'id-double' })];

  it('is found by its name or its Id, in any case', async () => {
    const setUp = await openSetUp({ ...alps, subscriptions });
    for (const word of ['alps', 'ALPS', 'id-alps', 'ID-Alps']) {
      const found = await findManaged(word, setUp.context());
      expect(found).toMatchObject({ name: 'alps', subscriptions: [{ id: 'id-alps' }] });
    }
    const another = await openSetUp({ ...alps, subscriptions: double });
    expect(await findManaged('alps', another.context())).toMatchObject({
      subscriptions: [{ id: 'id-alps' }, { id: 'id-double' }],
    });
    const gone = await openSetUp({ ...alps, subscriptions: [] });
    const none = { name: 'alps', subscriptions: [] };
    expect(await findManaged('alps', gone.context())).toEqual(none);
  });

  it.each([
    ['an unmanaged subscription', 'id-unmanaged', subscriptions, 'conflict', 'is unmanaged'],
    ['an unknown name', 'baltic', subscriptions, 'not_found', 'no subscription baltic'],
    ['one of several', 'id-double', double, 'conflict', /Several subscriptions/],
  ])('is not %s', async (_, word, subscriptions, code, message) => {
    const setUp = await openSetUp({ ...alps, subscriptions });
    const refused = findManaged(word, setUp.context());
    await expect(refused).rejects.toMatchObject({ code });
    await expect(refused).rejects.toThrow(message);
  });
});

describe('a command', () => {
  it('pauses the subscription and records the gap, and maintenance does not undo it', async () => {
    const setUp = await openSetUp(alps);
    await pause(setUp.context());
    expect(setUp.catalogue.subscriptions()).toMatchObject([{ status: 'paused' }]);
    const gap = { subscription: 'alps', filter: desiredState().filter, toUs: null };
    expect(await setUp.administration.gaps()).toMatchObject([gap]);
    expect(await historyLines(setUp)).toEqual(['subscriptions paused alps']);
    expect(await round(setUp)).toMatchObject([{ did: null, notes: [] }]);
    for (const days of [70, 100]) {
      setUp.pass(days * dayUs);
      expect(await round(setUp)).toMatchObject([{ did: null, status: 'paused' }]);
    }
    expect(setUp.catalogue.subscriptions()).toMatchObject([{ status: 'paused' }]);
  });

  const lostOne = {
    subscriptions: [managed({ status: 'paused' })],
    registrations: [registrationOf({ changedByPerson: true, pausedSeenAtUs: startUs - 9 })],
  };

  it('resumes the subscription, records the gap, and re-enables maintenance', async () => {
    const setUp = await openSetUp(lostOne);
    await resume(setUp.context());
    expect(setUp.catalogue.subscriptions()).toMatchObject([{ status: 'running' }]);
    expect(await setUp.administration.registrations()).toMatchObject([
      { changedByPerson: false, pausedSeenAtUs: null },
    ]);
    const gaps = await setUp.administration.gaps();
    expect(gaps).toMatchObject([{ fromUs: registrationOf().runningSeenAtUs }]);
    expect(gaps[0]?.toUs).not.toBe(null);
    setUp.pass(61 * dayUs);
    expect(await round(setUp)).toMatchObject([{ did: 'resume' }]);
  });

  it.each([
    ['that is not registered', [], /No subscription alps is registered/],
    ['whose id is gone', [registrationOf({ subscriptionId: 'id-gone' })], /not in the account/],
  ])('does not change a subscription %s', async (_title, registrations, words) => {
    const setUp = await openSetUp({ ...alps, registrations });
    const error = await pause(setUp.context()).catch((refusal: unknown) => refusal);
    expect(error).toMatchObject({ code: 'not_found', text: expect.stringMatching(words) });
    expect(setUp.catalogue.writes).toEqual([]);
  });

  it('deletes the subscription, and ends its maintenance and its gap', async () => {
    const setUp = await openSetUp({ ...alps, subscriptions: [managed(), unmanaged()] });
    await pause(setUp.context());
    await applyDesired({ desired: [], prune: 'alps' }, setUp.context(), by);
    expect(setUp.catalogue.subscriptions()).toEqual([unmanaged()]);
    expect((await setUp.administration.gaps())[0]?.toUs).not.toBe(null);
    expect(await setUp.administration.registrations()).toEqual([]);
    expect(await setUp.administration.history({ limit: 1 })).toMatchObject([
      { action: 'deleted', subscriptionId: 'id-alps' },
    ]);
    setUp.pass(400 * dayUs);
    expect(await round(setUp)).toEqual([]);
  });

  it('deletes the subscription permanently, even when the next list fails', async () => {
    const setUp = await openSetUp(alps);
    const { client } = setUp.catalogue;
    const { list, delete: remove } = client;
    client.delete = async (id) => {
      await remove(id);
      client.list = () => Promise.reject(new AppError('unavailable', 'No answer came.'));
    };
    await expect(
      applyDesired({ desired: [], prune: 'alps' }, setUp.context(), by),
    ).rejects.toMatchObject({
      code: 'unavailable',
      details: [expect.stringContaining('earshot subscriptions delete alps')],
    });
    client.list = list;
    expect(await round(setUp)).toEqual([]);
    expect(setUp.catalogue.subscriptions()).toEqual([]);
    expect(await setUp.administration.gaps()).toEqual([]);
  });

  it('keeps an interrupted change unfinished when the status is already as requested', async () => {
    const setUp = await openSetUp({
      subscriptions: [managed({ status: 'paused' })],
      registrations: [registrationOf({ filter: otherFilter, unfinished: true })],
    });
    await pause(setUp.context());
    expect(await setUp.administration.registrations()).toMatchObject([
      { status: 'paused', unfinished: true },
    ]);
    expect(await historyLines(setUp)).toEqual(['subscriptions paused alps']);
    expect(await round(setUp)).toMatchObject([{ did: 'finish' }]);
    expect(setUp.catalogue.subscriptions()).toMatchObject([
      { status: 'paused', filter: otherFilter },
    ]);
  });
});

describe('a command that is interrupted at any call', () => {
  const cuts = Array.from({ length: 10 }, (_, call) => call).flatMap((call) =>
    (['before', 'after'] as const).map((when): Cut => ({ call, when, how: 'killed' })),
  );
  const versions = [desiredState()];

  it.each(cuts)('loses no event outside a gap ($call, $when)', async (cut) => {
    const setUp = await openSetUp(alps);
    for (const command of [pause, resume]) {
      await command(setUp.context(cut)).catch(() => undefined);
      setUp.pass(dayUs);
      await command(setUp.context());
      setUp.pass(dayUs);
    }
    await round(setUp);
    const gaps = await setUp.administration.gaps();
    expectNoEventLost(setUp.moments, gaps, { name: 'alps', versions, fromUs: startUs });
    expect(gaps.filter(({ toUs }) => toUs === null)).toEqual([]);
  });
});
