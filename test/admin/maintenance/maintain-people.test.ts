/** Rounds of maintenance over what people did: told once, recorded, and left as it is. */
import { describe, expect, it } from 'vitest';
import { dayUs, held, otherFilter, registrationOf, startUs } from '../plan/plan-samples.ts';
import { alps, openWorld, round, told } from './maintenance.ts';

describe('what a person did', () => {
  it('is never undone, and told once', async () => {
    const world = await openWorld({
      held: [held({ status: 'paused' }), held({ name: 'baltic', filter: otherFilter })],
      registrations: ['alps', 'baltic', 'crete'].map((name) => registrationOf({ name })),
    });
    const first = await round(world);
    expect(first.map(({ news, notes }) => [news, ...notes.map(({ code }) => code)])).toEqual([
      [true, 'paused-by-person'],
      [true, 'drift-filter'],
      [true, 'gone'],
    ]);
    world.pass(20 * dayUs);
    const second = await round(world);
    expect(second.map(({ did }) => did)).toEqual([null, null, null]);
    expect(second.map(({ news }) => news)).toEqual([false, false, false]);
    expect(world.catalogue.writes).toEqual([]);
    expect(await told(world)).toEqual([
      'maintain noted crete',
      'maintain noted baltic',
      'maintain noted alps',
    ]);
  });

  it('is told again when it was otherwise in between', async () => {
    const world = await openWorld({ held: [held()], registrations: [registrationOf()] });
    const news: boolean[] = [];
    for (const filter of [otherFilter, otherFilter, held().filter, otherFilter]) {
      world.catalogue.put(held({ filter }));
      news.push(...(await round(world)).map((result) => result.news));
    }
    expect(news).toEqual([true, false, false, true]);
  });

  it('is not told again when something else comes beside it', async () => {
    const world = await openWorld({
      held: [held({ filter: otherFilter })],
      registrations: [registrationOf()],
    });
    await round(world);
    world.catalogue.put(held({ id: 'id-double' }));
    expect(await round(world)).toMatchObject([{ news: true, notes: [{}, { code: 'several' }] }]);
    const reasons = (await world.administration.history({ limit: 9 })).map((one) => one.reason);
    expect(reasons).toEqual([
      expect.stringContaining('2 subscriptions'),
      expect.stringContaining('filter'),
    ]);
  });

  it('as a second pause, after ours was undone, is not fought again', async () => {
    const world = await openWorld({ held: [alps.there], registrations: [alps.known] });
    await round(world);
    await world.catalogue.client.edit('id-alps', { status: 'paused' });
    world.pass(dayUs);
    expect(await round(world)).toMatchObject([
      { did: null, notes: [{ code: 'paused-by-person' }] },
    ]);
    world.pass(100 * dayUs);
    expect(await round(world)).toMatchObject([{ did: null, news: false }]);
  });
});

describe('a gap', () => {
  const lasting = {
    subscription: 'alps',
    events: ['created'],
    filter: '',
    fromUs: startUs - dayUs,
    reason: 'paused by command',
  };

  it('ends when the subscription is seen running, and no other', async () => {
    const world = await openWorld({
      held: [held(), held({ name: 'baltic', status: 'paused' })],
      registrations: [registrationOf(), registrationOf({ name: 'baltic', heldBy: 'command' })],
      gaps: [lasting, { ...lasting, subscription: 'baltic' }],
    });
    await round(world);
    const gaps = await world.administration.gaps();
    expect(gaps.find(({ subscription }) => subscription === 'alps')?.toUs).not.toBe(null);
    expect(gaps.find(({ subscription }) => subscription === 'baltic')?.toUs).toBe(null);
  });

  it('is recorded for a pause that a person began and ended', async () => {
    const world = await openWorld({ held: [held()], registrations: [registrationOf()] });
    await round(world);
    const ranAtUs = world.nowUs();
    world.catalogue.put(held({ status: 'paused' }));
    world.pass(dayUs);
    await round(world);
    world.pass(dayUs);
    world.catalogue.put(held());
    const resumedAtUs = world.nowUs();
    await round(world);
    const [gap, ...more] = await world.administration.gaps();
    expect(more).toEqual([]);
    expect(gap?.fromUs).toBeLessThanOrEqual(ranAtUs);
    expect(gap?.toUs).toBeGreaterThanOrEqual(resumedAtUs);
  });
});
