/** Pausing, resuming, cancelling and deleting single subscriptions of ours by command. */
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  findOurs,
  pauseByCommand,
  removeByCommand,
  resumeByCommand,
} from '../../src/admin/direct-change.ts';
import type { AccountContext } from '../../src/admin/plan-context.ts';
import { expectNoEventLost } from './expect-settled.ts';
import { dayUs, held, pull, registrationOf, startUs, stranger, wanted } from './samples.ts';
import type { Cut } from './set-up.ts';
import { openPlanWorld, type PlanWorld, round, type Situation } from './set-up.ts';

async function openWorld(situation: Situation): Promise<PlanWorld> {
  const world = await openPlanWorld(situation);
  onTestFinished(world.close);
  return world;
}

/** One command as it is given: it finds, and acts. */
const commands = {
  pause: async (name: string, world: AccountContext) =>
    pauseByCommand(await findOurs(name, world), world),
  resume: async (name: string, world: AccountContext) =>
    resumeByCommand(await findOurs(name, world), world),
  delete: async (name: string, world: AccountContext) =>
    removeByCommand(await findOurs(name, world), 'delete', world),
  cancel: async (name: string, world: AccountContext) =>
    removeByCommand(await findOurs(name, world), 'cancel', world),
};

const alps = { held: [held()], registrations: [registrationOf()] };

describe('one of ours', () => {
  it('is found by its name or its Id, in any case', async () => {
    const world = await openWorld({ ...alps, held: [stranger(), held(), pull()] });
    for (const word of ['alps', 'ALPS', 'id-alps', 'ID-Alps']) {
      const ours = await findOurs(word, world.world());
      expect(ours).toMatchObject({
        name: 'alps',
        current: { id: 'id-alps' },
        registration: { name: 'alps' },
      });
      expect(ours.listed.map(({ status }) => status)).toEqual(['running', 'running', 'running']);
    }
  });

  it('is found without a registration, by its endpoint', async () => {
    const world = await openWorld({ held: [held()] });
    const found = await findOurs('alps', world.world());
    expect(found).toMatchObject({ current: { id: 'id-alps' }, registration: undefined });
  });

  it.each([
    ['that others made', 'id-stranger', 'conflict', 'is not ours'],
    ['that is a pull subscription', 'id-pull', 'conflict', 'is not ours'],
    ['that is not there', 'baltic', 'not_found', 'no subscription baltic'],
  ])('is none %s', async (_, word, code, message) => {
    const world = await openWorld({ ...alps, held: [stranger(), held(), pull()] });
    const refused = findOurs(word, world.world());
    await expect(refused).rejects.toMatchObject({ code });
    await expect(refused).rejects.toThrow(message);
  });

  it('has to be named by its Id when several carry the name', async () => {
    const world = await openWorld({ ...alps, held: [held(), held({ id: 'id-double' })] });
    const refused = findOurs('alps', world.world());
    await expect(refused).rejects.toThrow(/id-alps, id-double/);
    await expect(refused).rejects.toMatchObject({ code: 'conflict' });
    expect((await findOurs('id-double', world.world())).current.id).toBe('id-double');
  });
});

describe('a pause', () => {
  it('stops it, records the gap, and is not undone by maintenance', async () => {
    const world = await openWorld(alps);
    await commands.pause('alps', world.world());
    expect(world.catalogue.held()).toMatchObject([{ status: 'paused' }]);
    expect(await world.administration.gaps()).toMatchObject([
      { subscription: 'alps', filter: wanted().filter, toUs: null },
    ]);
    expect(await world.administration.history({ limit: 9 })).toMatchObject([
      { action: 'paused', actor: 'subscriptions' },
    ]);
    expect(await world.administration.registrations()).toMatchObject([{ heldBy: 'command' }]);
    expect(await round(world)).toMatchObject([{ notes: [{ code: 'paused-by-command' }] }]);
    for (const days of [70, 100]) {
      world.pass(days * dayUs);
      expect(await round(world)).toMatchObject([{ did: null, status: 'paused' }]);
    }
    expect(world.catalogue.held()).toMatchObject([{ status: 'paused' }]);
  });

  it('leaves what is wanted as it was, so that a registration resumes it', async () => {
    const world = await openWorld(alps);
    await commands.pause('alps', world.world());
    await world.register({ desired: [wanted()] });
    expect(world.catalogue.held()).toMatchObject([{ status: 'running' }]);
    expect(await world.administration.registrations()).toMatchObject([{ heldBy: null }]);
  });
});

describe('a resumption', () => {
  const lostOne = {
    held: [held({ status: 'paused' })],
    registrations: [registrationOf({ heldBy: 'person', pausedSeenAtUs: startUs - 9 })],
  };

  it('lets it run, records the gap, and puts it back under maintenance', async () => {
    const world = await openWorld(lostOne);
    await commands.resume('alps', world.world());
    expect(world.catalogue.held()).toMatchObject([{ status: 'running' }]);
    expect(await world.administration.registrations()).toMatchObject([
      { heldBy: null, pausedSeenAtUs: null, reported: null },
    ]);
    const gaps = await world.administration.gaps();
    expect(gaps).toMatchObject([{ fromUs: registrationOf().runningSeenAtUs }]);
    expect(gaps[0]?.toUs).not.toBe(null);
    world.pass(61 * dayUs);
    expect(await round(world)).toMatchObject([{ did: 'resume' }]);
  });

  it('is refused before it is tried when too many run', async () => {
    const world = await openWorld({ ...lostOne, held: [...lostOne.held, stranger(), pull()] });
    const refused = commands.resume('alps', world.world());
    await expect(refused).rejects.toMatchObject({ code: 'conflict' });
    await expect(refused).rejects.toThrow('lets 2 run');
    expect(world.catalogue.writes).toEqual([]);
  });

  it('of one that runs is nothing that the limit forbids, and no gap', async () => {
    const world = await openWorld({ ...alps, held: [held(), stranger()] });
    await commands.resume('alps', world.world());
    expect(await world.administration.gaps()).toEqual([]);
  });
});

describe.each(['delete', 'cancel'] as const)('to %s', (how) => {
  it('takes it away, and lets maintenance forget it', async () => {
    const world = await openWorld({ ...alps, held: [held(), stranger()] });
    await commands[how]('alps', world.world());
    expect(world.catalogue.writes).toEqual([`${how} id-alps`]);
    expect(world.catalogue.held()).toEqual([stranger()]);
    expect(await world.administration.registrations()).toEqual([]);
    expect(await world.administration.history({ limit: 9 })).toMatchObject([
      { action: how === 'cancel' ? 'cancelled' : 'deleted', subscriptionId: 'id-alps' },
    ]);
    world.pass(400 * dayUs);
    expect(await round(world)).toEqual([]);
  });

  it('one of two leaves the other one under maintenance', async () => {
    const world = await openWorld({ ...alps, held: [held(), held({ id: 'id-double' })] });
    await commands[how]('id-double', world.world());
    expect(await world.administration.registrations()).toMatchObject([{ name: 'alps' }]);
    expect(await round(world)).toMatchObject([{ name: 'alps', status: 'running', notes: [] }]);
  });

  it('ends a gap that lasted', async () => {
    const world = await openWorld(alps);
    await commands.pause('alps', world.world());
    await commands[how]('alps', world.world());
    expect((await world.administration.gaps())[0]?.toUs).not.toBe(null);
  });
});

describe('a command that is cut anywhere', () => {
  const cuts = Array.from({ length: 6 }, (_, call) => call).flatMap((call) =>
    (['before', 'after'] as const).map((when): Cut => ({ call, when, how: 'killed' })),
  );
  const versions = [wanted()];

  it.each(cuts)('loses no event outside a gap ($call, $when)', async (cut) => {
    const world = await openWorld(alps);
    for (const command of ['pause', 'resume'] as const) {
      await commands[command]('alps', world.world(cut)).catch(() => undefined);
      world.pass(dayUs);
      await commands[command]('alps', world.world());
      world.pass(dayUs);
    }
    await round(world);
    const gaps = await world.administration.gaps();
    expectNoEventLost(world.moments, gaps, { name: 'alps', versions, fromUs: startUs });
    expect(gaps.filter(({ toUs }) => toUs === null)).toEqual([]);
  });
});
