/** How a subscription is replaced: in which order, with which gap, and what a refusal leaves. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { maintain } from '../../../src/admin/maintain.ts';
import { AppError } from '../../../src/domain/app-error.ts';
import { expectNoEventLost, expectSettled } from './expect-settled.ts';
import {
  dayUs,
  held,
  otherFilter,
  registrationOf,
  startUs,
  stranger,
  wanted,
} from './plan-samples.ts';
import { openPlanWorld, type PlanWorld, type Situation } from './plan-world.ts';

const options = { desired: [wanted({ filter: otherFilter })] };
const known = { registrations: [registrationOf()] };

async function openWorld(situation: Situation): Promise<PlanWorld> {
  const world = await openPlanWorld({ ...known, ...situation });
  onTestFinished(world.close);
  return world;
}

/** What the old and the new subscription were in turn: "running -", "running running", … */
function course({ moments }: PlanWorld): string[] {
  const words = moments.map(({ held: account }) => {
    const old = account.find(({ id }) => id === 'id-alps')?.status ?? '-';
    const fresh = account.find(({ id }) => id === 'made-1')?.status ?? '-';
    return `${old} ${fresh}`;
  });
  return words.filter((word, index) => word !== words[index - 1]);
}

/** The times within which nothing of ours ran. */
function silence({ moments }: PlanWorld) {
  const silent = moments.filter(
    ({ held: account }) =>
      !account.some(({ id, status }) => id !== 'id-stranger' && status === 'running'),
  );
  return { fromUs: silent[0]?.atUs, toUs: silent.at(-1)?.atUs };
}

describe('a replacement', () => {
  it('with room lets the new one run before the old one goes, without a gap', async () => {
    const world = await openWorld({ held: [held()] });
    await world.register(options);
    expect(course(world)).toEqual(['running -', 'running running', '- running']);
    expect(await world.administration.gaps()).toEqual([]);
  });

  it('without room to run makes the new one paused, and changes places within a gap', async () => {
    const world = await openWorld({ held: [held(), stranger()] });
    await world.register(options);
    expect(course(world)).toEqual([
      'running -',
      'running paused',
      'paused paused',
      'paused running',
      '- running',
    ]);
    const gaps = await world.administration.gaps();
    const { events, filter } = wanted({ filter: otherFilter });
    expect(gaps).toMatchObject([{ subscription: 'alps', events, filter }]);
    const [gap] = gaps;
    const { fromUs = 0, toUs = Number.POSITIVE_INFINITY } = silence(world);
    expect(gap?.fromUs).toBeLessThanOrEqual(fromUs);
    expect(gap?.toUs).toBeGreaterThanOrEqual(toUs);
  });

  it('without room at all deletes first, within a gap', async () => {
    const limits = { runningMax: 2, totalMax: 2 };
    const world = await openWorld({ held: [held(), stranger()], limits });
    await world.register(options);
    expect(course(world)).toEqual(['running -', '- -', '- running']);
    const gaps = await world.administration.gaps();
    // Of both: what the old one missed, and what the new one did.
    expect(gaps.map(({ filter }) => filter)).toEqual([wanted().filter, otherFilter]);
    const { fromUs = 0, toUs = Number.POSITIVE_INFINITY } = silence(world);
    for (const gap of gaps) {
      expect(gap.fromUs).toBeLessThanOrEqual(fromUs);
      expect(gap.toUs).toBeGreaterThanOrEqual(toUs);
    }
  });

  it('by a paused one records what was missed when it runs again', async () => {
    const world = await openWorld({ held: [held()] });
    await world.register({ desired: [wanted({ filter: otherFilter, status: 'paused' })] });
    expect(course(world)).toEqual(['running -', 'running paused', '- paused']);
    world.pass(dayUs);
    await world.register(options);
    const gaps = await world.administration.gaps();
    const versions = [wanted(), wanted({ filter: otherFilter })];
    expectNoEventLost(world.moments, gaps, { name: 'alps', versions, fromUs: startUs });
  });

  it('of one that stood still records what was missed since it was last seen running', async () => {
    const runningSeenAtUs = startUs - 3 * dayUs;
    const world = await openWorld({
      held: [held({ status: 'paused' })],
      registrations: [registrationOf({ runningSeenAtUs, pausedSeenAtUs: startUs - dayUs })],
    });
    await world.register(options);
    expect(await world.administration.gaps()).toMatchObject([
      { fromUs: runningSeenAtUs, toUs: expect.any(Number), filter: otherFilter },
    ]);
  });

  it('is told in the history, with the reason and what is gone', async () => {
    const world = await openWorld({ held: [held(), stranger()] });
    await world.register(options);
    expect(await world.administration.history({ limit: 10 })).toMatchObject([
      {
        subscription: 'alps',
        subscriptionId: 'made-1',
        action: 'replaced',
        actor: 'register',
        reason: expect.stringMatching(/other filter.*id-alps is gone.*gap/),
      },
    ]);
  });
});

describe('what the catalogue refuses', () => {
  /** A catalogue that refuses what `refuses` says. */
  function refusing(world: PlanWorld, refuses: (call: string) => boolean): void {
    const { client } = world.catalogue;
    const { create, edit } = client;
    const refuse = (call: string) => {
      if (refuses(call)) throw new AppError('invalid', 'The filter is incorrect.');
    };
    client.create = async (given) => {
      refuse(`create ${given.filter}`);
      return create(given);
    };
    client.edit = async (id, changes) => {
      refuse(`edit ${id} ${changes.status}`);
      return edit(id, changes);
    };
  }

  it.each([
    ['with room', [held()], 10],
    ['without room to run', [held(), stranger()], 10],
  ])('as a filter leaves the old one as it was (%s)', async (_, account, totalMax) => {
    const world = await openWorld({ held: account, limits: { runningMax: 2, totalMax } });
    refusing(world, (call) => call.startsWith('create'));
    await expect(world.register(options)).rejects.toMatchObject({ code: 'invalid' });
    expect(world.catalogue.held()).toEqual(account);
    expect(await world.administration.registrations()).toEqual([registrationOf()]);
    expect((await world.plan({ desired: [wanted()] })).plan.steps).toEqual([]);
  });

  it('as a filter when the old one had to go is mended by maintenance, with the old filter', async () => {
    const limits = { runningMax: 1, totalMax: 1 };
    const world = await openWorld({ held: [held()], limits });
    refusing(world, (call) => call.includes(otherFilter));
    await expect(world.register(options)).rejects.toMatchObject({ code: 'invalid' });
    await maintain({ inFile: null }, world.world());
    await expectSettled(world, { desired: [wanted()] });
    const gaps = await world.administration.gaps();
    const versions = [wanted(), wanted({ filter: otherFilter })];
    expectNoEventLost(world.moments, gaps, { name: 'alps', versions, fromUs: startUs });
  });

  it('as an edit leaves what is wanted as it was', async () => {
    const account = [held({ status: 'paused' })];
    const world = await openWorld({ held: account });
    refusing(world, (call) => call.startsWith('edit'));
    await expect(world.register({ desired: [wanted()] })).rejects.toThrow('incorrect');
    expect(world.catalogue.held()).toEqual(account);
    expect(await world.administration.registrations()).toEqual([registrationOf()]);
  });

  it('as a creation leaves nothing to finish', async () => {
    const world = await openWorld({ registrations: [] });
    refusing(world, (call) => call.startsWith('create'));
    await expect(world.register({ desired: [wanted()] })).rejects.toThrow('incorrect');
    expect(await world.administration.registrations()).toEqual([]);
  });

  it('when the new one is to run lets the old one run again', async () => {
    const world = await openWorld({ held: [held(), stranger()] });
    refusing(world, (call) => call === 'edit made-1 running');
    await expect(world.register(options)).rejects.toThrow('incorrect');
    const account = world.catalogue.held();
    expect(account.find(({ id }) => id === 'id-alps')).toMatchObject({ status: 'running' });
    expect(account.find(({ id }) => id === 'made-1')).toMatchObject({ status: 'paused' });
    const versions = [wanted()];
    const gaps = await world.administration.gaps();
    expectNoEventLost(world.moments, gaps, { name: 'alps', versions, fromUs: startUs });
  });

  it('when the new one is to run is told with the first reason, should nothing run again', async () => {
    const world = await openWorld({ held: [held(), stranger()] });
    refusing(world, (call) => call.endsWith(' running'));
    await expect(world.register(options)).rejects.toThrow('incorrect');
    const gaps = await world.administration.gaps();
    expect(gaps).toMatchObject([{ subscription: 'alps', toUs: null }]);
  });
});
