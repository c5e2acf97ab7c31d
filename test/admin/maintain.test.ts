/** Rounds of maintenance: what the service did is undone; what people did is reported once and left. */
import { describe, expect, it } from 'vitest';
import { maintain } from '../../src/admin/maintain.ts';
import { AppError } from '../../src/domain/app-error.ts';
import {
  dayUs,
  held,
  minuteUs,
  otherCredentials,
  otherFilter,
  pull,
  registrationOf,
  startUs,
  stranger,
  wanted,
} from './samples.ts';
import { alps, baltic, long, openWorld, round, silentOne, told } from './set-up.ts';

describe('without registrations', () => {
  it('nobody is asked anything', async () => {
    const world = await openWorld({ held: [held(), stranger()] });
    expect(await round(world)).toEqual([]);
    expect(world.calls()).toEqual(['administration.registrations']);
  });
});

describe('what the service paused', () => {
  it('is resumed, with a reason in the history and the gap recorded', async () => {
    const world = await openWorld({ held: [alps.there], registrations: [alps.known] });
    expect(await round(world)).toMatchObject([
      { name: 'alps', status: 'paused', did: 'resume', failure: null },
    ]);
    expect(world.catalogue.writes).toEqual(['edit id-alps status=running']);
    expect(await world.administration.history({ limit: 10 })).toMatchObject([
      { action: 'resumed', actor: 'maintain', reason: expect.stringContaining('60 days') },
    ]);
    const fromUs = alps.known.runningSeenAtUs;
    expect(await world.administration.gaps()).toMatchObject([
      { subscription: 'alps', fromUs, toUs: expect.any(Number) },
    ]);
    expect(await round(world)).toMatchObject([{ status: 'running', did: null, notes: [] }]);
  });

  it('is only resumed: what else somebody changed stays', async () => {
    const endpoint = 'https://elsewhere.example.org/alps';
    const changed = { filter: otherFilter, endpoint, credentials: otherCredentials };
    const world = await openWorld({
      held: [{ ...alps.there, ...changed }],
      registrations: [alps.known],
    });
    await round(world);
    expect(world.catalogue.held()).toMatchObject([{ ...changed, status: 'running' }]);
    expect(world.catalogue.writes).toEqual(['edit id-alps status=running']);
  });

  it('stays paused when too many run, and says so, while the others are maintained', async () => {
    const world = await openWorld({
      held: [alps.there, baltic.there, pull()],
      registrations: [alps.known, baltic.known],
    });
    const results = await round(world);
    expect(results).toMatchObject([
      { name: 'alps', did: 'resume', failure: null },
      { name: 'baltic', did: null, failure: expect.stringContaining('lets 2 run') },
    ]);
    expect(world.catalogue.refusals).toEqual([]);
    expect(world.catalogue.held()).toMatchObject([
      { status: 'running' },
      { status: 'paused' },
      pull(),
    ]);
  });

  it('is tried again in the next round when the catalogue does not answer', async () => {
    const world = await openWorld({ held: [alps.there], registrations: [alps.known] });
    const { edit } = world.catalogue.client;
    world.catalogue.client.edit = () => Promise.reject(new AppError('unavailable', 'No answer.'));
    expect(await round(world)).toMatchObject([{ did: null, failure: 'No answer.' }]);
    world.catalogue.client.edit = edit;
    world.pass(dayUs);
    expect(await round(world)).toMatchObject([{ did: 'resume', failure: null }]);
    expect(world.catalogue.held()).toMatchObject([{ status: 'running' }]);
  });
});

describe('what the service deleted', () => {
  const ages = startUs - 366 * dayUs;
  const gone = registrationOf({ activityAtUs: ages, notifiedAtUs: ages, runningSeenAtUs: ages });

  it('is made anew, with the gap recorded, after a look at the endpoint', async () => {
    const world = await openWorld({ held: [stranger()], registrations: [gone] });
    expect(await round(world)).toMatchObject([{ status: 'gone', did: 'recreate', failure: null }]);
    expect(world.catalogue.writes).toEqual(['create alps running']);
    expect(await told(world)).toEqual(['maintain recreated alps']);
    expect(await world.administration.gaps()).toMatchObject([{ fromUs: ages }]);
    expect(await round(world)).toMatchObject([{ status: 'running', did: null, notes: [] }]);
  });

  it('is not made anew before an endpoint that does not answer, and says why', async () => {
    const world = await openWorld({ registrations: [gone] });
    const fault = { stage: 'connection', message: 'nobody listens.', advice: 'Start it.' } as const;
    const blind = {
      ...world.world(),
      probe: async () => ({ fault, status: null, tls: null }),
    };
    const [result] = await maintain({ inFile: null }, blind);
    expect(result).toMatchObject({ did: null, failure: expect.stringContaining('nobody listens') });
    expect(world.catalogue.writes).toEqual([]);
  });

  it('is not made anew where the account is full', async () => {
    const world = await openWorld({
      held: [stranger(), pull()],
      registrations: [gone],
    });
    const [result] = await round(world);
    expect(result).toMatchObject({ did: null, failure: expect.stringContaining('number 3') });
    expect(world.catalogue.writes).toEqual([]);
  });
});

describe('one that fails', () => {
  it('keeps none of the others from being maintained', async () => {
    const crete = silentOne('crete');
    const world = await openWorld({
      held: [alps.there, baltic.there, crete.there],
      registrations: [alps.known, baltic.known, crete.known],
      limits: { runningMax: 3, totalMax: 10 },
    });
    const { edit } = world.catalogue.client;
    world.catalogue.client.edit = (id, changes) =>
      id === 'id-alps'
        ? Promise.reject(new AppError('invalid', 'Refused.', { details: ['A detail.'] }))
        : edit(id, changes);
    expect(await round(world)).toMatchObject([
      { name: 'alps', did: null, failure: 'Refused. A detail.' },
      { name: 'baltic', did: 'resume', failure: null },
      { name: 'crete', did: 'resume', failure: null },
    ]);
  });

  it('is the whole round when the account cannot be looked at', async () => {
    const world = await openWorld({ registrations: [alps.known] });
    world.catalogue.client.list = () => Promise.reject(new AppError('unauthorized', 'No token.'));
    await expect(round(world)).rejects.toMatchObject({ code: 'unauthorized' });
    expect(await world.administration.registrations()).toEqual([alps.known]);
  });
});

describe('deliveries that came here', () => {
  it('are signs of life of the subscription whose path they came to', async () => {
    const world = await openWorld({
      held: [
        { ...alps.there, lastNotificationAtUs: null },
        { ...baltic.there, lastNotificationAtUs: null },
      ],
      registrations: [alps.known, baltic.known],
    });
    const lastAtUs = startUs - minuteUs;
    await world.administration.markDeliveries([
      { subscription: 'alps', username: 'catalogue', lastAtUs: long },
      { subscription: 'alps', username: 'earlier', lastAtUs },
      { subscription: null, username: 'catalogue', lastAtUs },
    ]);
    expect(await round(world)).toMatchObject([
      { name: 'alps', did: null, notes: [{ code: 'paused-by-person' }] },
      { name: 'baltic', did: 'resume' },
    ]);
  });
});

describe('a change that was cut short', () => {
  it('is finished, as it was wanted last', async () => {
    const desired = { filter: otherFilter, unfinished: true };
    const world = await openWorld({
      held: [held(), stranger()],
      registrations: [registrationOf(desired)],
    });
    expect(await round(world)).toMatchObject([{ did: 'finish', failure: null }]);
    expect((await world.plan({ desired: [wanted({ filter: otherFilter })] })).plan.steps).toEqual(
      [],
    );
    expect(world.catalogue.held().map(({ filter }) => filter)).toContain(otherFilter);
    expect(await told(world)).toEqual(['maintain replaced alps']);
  });
});

describe('a file', () => {
  it('that names it no longer keeps it from being maintained', async () => {
    const world = await openWorld({
      held: [alps.there, baltic.there],
      registrations: [alps.known, baltic.known],
    });
    expect(await round(world, [wanted()])).toMatchObject([
      { name: 'alps', did: 'resume' },
      { name: 'baltic', did: null, notes: [{ code: 'unwanted' }] },
    ]);
  });
});

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
