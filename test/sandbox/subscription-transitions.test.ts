/** The specification's tables of transitions and of limits, row by row, over real HTTP. */
import { describe, expect, it } from 'vitest';
import { type AccountWorld, dayMs, startAccountWorld, startMs } from './account-world.ts';

const iso = (ms: number) => new Date(ms).toISOString();
const createdId = async ({ create }: AccountWorld, changes = {}) =>
  (await create(changes)).json.Id as string;
const statusOf = async ({ list }: AccountWorld, id: string): Promise<string | undefined> =>
  (await list()).find(({ Id }: { Id: string }) => Id === id)?.Status;

describe('a subscription', () => {
  it.each([
    ['with Status running', { Status: 'running' }, 'running'],
    ['without Status', { Status: undefined }, 'running'],
    ['with Status paused', { Status: 'paused' }, 'paused'],
  ])('created %s is %s', async (_, changes, expected) => {
    const world = await startAccountWorld();
    const { status, json } = await world.create(changes);
    expect([status, json.Status]).toEqual([201, expected]);
    expect(await statusOf(world, json.Id)).toBe(expected);
  });

  it('is paused and resumed by PATCH', async () => {
    const world = await startAccountWorld();
    const id = await createdId(world);
    const paused = await world.edit(id, { Status: 'paused' });
    expect([paused.status, paused.json.Status]).toEqual([200, 'paused']);
    expect(await statusOf(world, id)).toBe('paused');
    const resumed = await world.edit(id, { Status: 'running' });
    expect([resumed.status, resumed.json.Status]).toEqual([200, 'running']);
    expect(await statusOf(world, id)).toBe('running');
  });

  it.each(['running', 'paused'])('that is %s is gone after PATCH cancelled', async (Status) => {
    const world = await startAccountWorld();
    const id = await createdId(world, { Status });
    const { status, text } = await world.edit(id, { Status: 'cancelled' });
    expect([status, text]).toEqual([204, '']);
    expect(await world.list()).toEqual([]);
    expect((await world.edit(id, { Status: 'running' })).status).toBe(404);
  });

  it.each(['running', 'paused'])('that is %s is gone after DELETE', async (Status) => {
    const world = await startAccountWorld();
    const id = await createdId(world, { Status });
    const { status, text } = await world.call('DELETE', `/Subscriptions(${id})`);
    expect([status, text]).toEqual([204, '']);
    expect(await world.list()).toEqual([]);
    expect((await world.call('DELETE', `/Subscriptions(${id})`)).status).toBe(404);
  });
});

describe('after 60 days of inactivity', () => {
  it('a running subscription is paused, not a millisecond earlier', async () => {
    const world = await startAccountWorld();
    const id = await createdId(world);
    world.sandbox.clock.advance(60 * dayMs - 1);
    expect(await statusOf(world, id)).toBe('running');
    world.sandbox.clock.advance(1);
    expect(await statusOf(world, id)).toBe('paused');
  });

  it('the pause is dated to the end of the 60 days, however late somebody looks', async () => {
    const world = await startAccountWorld();
    await world.create();
    world.sandbox.clock.advance(200 * dayMs);
    const [seen] = world.sandbox.subscriptions();
    expect(seen).toMatchObject({ status: 'paused', statusDate: iso(startMs + 60 * dayMs) });
  });

  it('it can be resumed, and has 60 days again', async () => {
    const world = await startAccountWorld();
    const id = await createdId(world);
    world.sandbox.clock.advance(100 * dayMs);
    expect((await world.edit(id, { Status: 'running' })).json.Status).toBe('running');
    world.sandbox.clock.advance(60 * dayMs - 1);
    expect(await statusOf(world, id)).toBe('running');
    world.sandbox.clock.advance(1);
    expect(await statusOf(world, id)).toBe('paused');
  });

  it('an order to run counts as activity even for one that runs', async () => {
    const world = await startAccountWorld();
    const id = await createdId(world);
    world.sandbox.clock.advance(59 * dayMs);
    await world.edit(id, { Status: 'running' });
    world.sandbox.clock.advance(59 * dayMs);
    expect(await statusOf(world, id)).toBe('running');
  });

  it('another edit is no activity', async () => {
    const world = await startAccountWorld();
    const id = await createdId(world);
    world.sandbox.clock.advance(59 * dayMs);
    await world.edit(id, { NotificationEpPassword: 'another' });
    world.sandbox.clock.advance(dayMs);
    expect(await statusOf(world, id)).toBe('paused');
  });

  it('counts from the last notification', async () => {
    const { sandbox } = await startAccountWorld();
    const lastNotificationDate = iso(startMs - 10 * dayMs);
    const submissionDate = iso(startMs - 100 * dayMs);
    sandbox.addSubscription({ type: 'pull', submissionDate, lastNotificationDate });
    sandbox.clock.advance(50 * dayMs - 1);
    expect(sandbox.subscriptions()[0]?.status).toBe('running');
    sandbox.clock.advance(1);
    expect(sandbox.subscriptions()[0]?.status).toBe('paused');
  });

  it('makes room for another one that runs', async () => {
    const world = await startAccountWorld();
    await world.create();
    await world.create();
    expect((await world.create()).status).toBe(400);
    world.sandbox.clock.advance(60 * dayMs);
    expect((await world.create()).status).toBe(201);
  });
});

describe('after 365 days without a notification', () => {
  it.each(['running', 'paused'])('a %s subscription is gone', async (Status) => {
    const world = await startAccountWorld();
    const id = await createdId(world, { Status });
    world.sandbox.clock.advance(365 * dayMs - 1);
    expect(await statusOf(world, id)).toBe('paused');
    world.sandbox.clock.advance(1);
    expect(await world.list()).toEqual([]);
    expect((await world.edit(id, { Status: 'running' })).status).toBe(404);
    expect(world.sandbox.subscriptions()).toEqual([]);
  });

  it('being resumed in between does not save it', async () => {
    const world = await startAccountWorld();
    const id = await createdId(world);
    world.sandbox.clock.advance(364 * dayMs);
    expect((await world.edit(id, { Status: 'running' })).status).toBe(200);
    world.sandbox.clock.advance(dayMs);
    expect(await world.list()).toEqual([]);
  });

  it('a notification saves it', async () => {
    const { sandbox } = await startAccountWorld();
    const submissionDate = iso(startMs - 400 * dayMs);
    const lastNotificationDate = iso(startMs - dayMs);
    sandbox.addSubscription({ type: 'pull', submissionDate, lastNotificationDate });
    sandbox.clock.advance(364 * dayMs - 1);
    expect(sandbox.subscriptions()).toHaveLength(1);
    sandbox.clock.advance(1);
    expect(sandbox.subscriptions()).toHaveLength(0);
  });

  it('happens in one go with the pause, by one order on the control port', async () => {
    const { control, create, list } = await startAccountWorld();
    await create();
    const moved = await control('POST', '/clock', { advanceMs: 366 * dayMs });
    expect(moved.status).toBe(200);
    expect(await list()).toEqual([]);
  });
});

describe('the limits', () => {
  it('let two subscriptions run, and refuse the third with a reason', async () => {
    const { create, list } = await startAccountWorld();
    await create();
    await create({ SubscriptionType: 'pull', NotificationEndpoint: undefined });
    const { status, json } = await create();
    expect(status).toBe(400);
    expect(json.detail.message).toContain('running subscriptions (2)');
    expect(await list()).toHaveLength(2);
    expect((await create({ Status: 'paused' })).status).toBe(201);
  });

  it('refuse to resume a third one, which stays paused', async () => {
    const world = await startAccountWorld();
    const id = await createdId(world, { Status: 'paused' });
    await world.create();
    await world.create();
    const address = 'https://localhost:2/';
    const body = { Status: 'running', NotificationEndpoint: address };
    const { status, json } = await world.edit(id, body);
    expect(status).toBe(400);
    expect(json.detail.message).toContain('running subscriptions (2)');
    const { json: unchanged } = await world.call('GET', `/Subscriptions(${id})`);
    expect(unchanged.Status).toBe('paused');
    expect(unchanged.NotificationEndpoint).not.toBe(address);
  });

  it('let one that runs be told to run again', async () => {
    const world = await startAccountWorld();
    const id = await createdId(world);
    await world.create();
    expect((await world.edit(id, { Status: 'running' })).status).toBe(200);
    world.sandbox.service.change({ runningMax: 1 });
    expect((await world.edit(id, { Status: 'running' })).status).toBe(200);
  });

  it('let ten be there, pull and paused ones included', async () => {
    const { create, list, call } = await startAccountWorld();
    await create();
    await create({ SubscriptionType: 'pull' });
    for (let number = 3; number <= 10; number += 1) {
      expect((await create({ Status: 'paused' })).status).toBe(201);
    }
    const { status, json } = await create({ Status: 'paused' });
    expect(status).toBe(400);
    expect(json.detail.message).toContain('subscriptions (10)');
    const [first] = await list();
    await call('DELETE', `/Subscriptions(${first.Id})`);
    expect((await create()).status).toBe(201);
  });

  it('fix the priority at 1', async () => {
    const { create } = await startAccountWorld();
    const { status, json } = await create({ Priority: 7 });
    expect([status, json.Priority]).toEqual([201, 1]);
  });
});
