/** What the account's subscriptions mean for delivery: who is sent what, where to, and from when on. */
import { describe, expect, it, vi } from 'vitest';
import { dayMs, startMs } from './account-world.ts';
import { startDeliveryWorld as startWorld } from './delivery-world.ts';
import type { Answer, ReceivedRequest } from './recording-endpoint.ts';

const jsonOf = ({ body }: ReceivedRequest) => JSON.parse(body.toString());
const basicOf = ({ headers }: ReceivedRequest) =>
  Buffer.from(headers.authorization?.split(' ')[1] ?? '', 'base64').toString();
const iso = (ms: number) => new Date(ms).toISOString();

describe('an event', () => {
  it('goes to every running subscription that has it, under its own id and credentials', async () => {
    const { subscribe, publishAll, sentTo, sandbox } = await startWorld();
    const one = await subscribe('one', { SubscriptionEvent: ['created', 'modified'] });
    const other = await subscribe('other', { NotificationEpPassword: 'other-password' });
    await publishAll(3);
    await publishAll(2, 'modified');
    expect(sentTo('one').map((sent) => jsonOf(sent).SubscriptionId)).toEqual(Array(5).fill(one));
    expect(sentTo('other').map((sent) => jsonOf(sent).SubscriptionId)).toEqual(
      Array(3).fill(other),
    );
    expect(
      sentTo('one')
        .map((sent) => jsonOf(sent).SubscriptionEvent)
        .sort(),
    ).toEqual(['created', 'created', 'created', 'modified', 'modified']);
    expect(new Set(sentTo('one').map(basicOf))).toEqual(
      new Set(['user-one:hunter2-not-to-be-told']),
    );
    expect(new Set(sentTo('other').map(basicOf))).toEqual(new Set(['user-other:other-password']));
    expect(sandbox.totals()).toMatchObject({ published: 8, delivered: 8 });
    expect(sandbox.entries().filter(({ subscriptionId }) => subscriptionId === other)).toHaveLength(
      3,
    );
  });

  it('is numbered for each subscription by itself', async () => {
    const { subscribe, publishAll, sentTo } = await startWorld();
    const ids = [await subscribe('one'), await subscribe('other')];
    await publishAll(3);
    for (const [index, name] of ['one', 'other'].entries()) {
      const ackIds = sentTo(name).map((sent) => atob(jsonOf(sent).AckId));
      const expected = [0, 1, 2].map((number) => `${startMs}-${number}:${ids[index]}`);
      expect(ackIds.sort()).toEqual(expected);
    }
  });

  it('is owed to nobody when no push subscription has it', async () => {
    const { subscribe, create, publishAll, sandbox, requests } = await startWorld();
    await subscribe('one', { SubscriptionEvent: ['deleted'], FilterParam: '' });
    await create({ SubscriptionType: 'pull' });
    await publishAll(2);
    expect(sandbox.totals().published).toBe(0);
    expect(requests).toHaveLength(0);
  });

  it('comes without credentials when none are registered', async () => {
    const { subscribe, publishAll, requests } = await startWorld();
    await subscribe('one', { NotificationEpUsername: null, NotificationEpPassword: null });
    await publishAll(1);
    expect(requests[0]?.headers).not.toHaveProperty('authorization');
  });

  it('is not held up by the endpoint of another subscription that hangs', async () => {
    const answer: Answer = (_, { path }) => (path?.endsWith('/one') ? 'hang' : 200);
    const { subscribe, publish, sentTo } = await startWorld({}, answer);
    await subscribe('one');
    await subscribe('other');
    await publish(40);
    await vi.waitFor(() => expect(sentTo('other')).toHaveLength(40), 10_000);
    expect(sentTo('one')).toHaveLength(8);
  });
});

describe('a pause', () => {
  it('keeps events away, and they are not sent later', async () => {
    const { subscribe, edit, publishAll, requests } = await startWorld();
    const id = await subscribe('one');
    await publishAll(1);
    await edit(id, { Status: 'paused' });
    await publishAll(5);
    expect(requests).toHaveLength(1);
    await edit(id, { Status: 'running' });
    await publishAll(1);
    expect(requests).toHaveLength(2);
  });

  it('by inactivity keeps events away, too', async () => {
    const { subscribe, publishAll, requests, sandbox } = await startWorld();
    await subscribe('one');
    sandbox.clock.advance(60 * dayMs);
    await publishAll(1);
    expect(requests).toHaveLength(0);
  });
});

describe('an edit between two attempts', () => {
  it('of the credentials counts for the next one', async () => {
    const retryDelaysMs: [number, number, number] = [60_000, 60_000, 60_000];
    const answer: Answer = (_, sent) => (basicOf(sent).endsWith(':new') ? 200 : 401);
    const { subscribe, publish, edit, sandbox, requests } = await startWorld(
      { retryDelaysMs },
      answer,
    );
    const id = await subscribe('one', { NotificationEpPassword: 'old' });
    await publish(1);
    await expect.poll(() => sandbox.totals().attempts).toBe(1);
    await edit(id, { NotificationEpPassword: 'new' });
    sandbox.clock.advance(60_000);
    await expect.poll(() => sandbox.totals().delivered).toBe(1);
    expect(requests.map(basicOf)).toEqual(['user-one:old', 'user-one:new']);
  });

  it('of the endpoint counts for the next one', async () => {
    const retryDelaysMs: [number, number, number] = [60_000, 60_000, 60_000];
    const answer: Answer = (_, { path }) => (path?.endsWith('/other') ? 200 : 503);
    const { subscribe, publish, edit, sandbox, requests } = await startWorld(
      { retryDelaysMs },
      answer,
    );
    const id = await subscribe('one');
    await publish(1);
    await expect.poll(() => sandbox.totals().attempts).toBe(1);
    const endpoint = sandbox.subscriptions()[0]?.endpoint;
    await edit(id, { NotificationEndpoint: endpoint?.replace('/one', '/other') });
    sandbox.clock.advance(60_000);
    await expect.poll(() => sandbox.totals().delivered).toBe(1);
    expect(requests.map(({ path }) => path?.split('/').at(-1))).toEqual(['one', 'other']);
  });

  it('that deletes the subscription does not stop what is in hand', async () => {
    const retryDelaysMs: [number, number, number] = [60_000, 60_000, 60_000];
    const answer: Answer = (nth) => (nth === 1 ? 503 : 200);
    const { subscribe, publish, call, sandbox, requests } = await startWorld(
      { retryDelaysMs },
      answer,
    );
    const id = await subscribe('one');
    await publish(1);
    await expect.poll(() => sandbox.totals().attempts).toBe(1);
    await call('DELETE', `/Subscriptions(${id})`);
    await publish(3);
    sandbox.clock.advance(60_000);
    await expect.poll(() => sandbox.totals()).toMatchObject({ delivered: 1, published: 1 });
    expect(requests.map(basicOf)).toEqual(Array(2).fill('user-one:hunter2-not-to-be-told'));
    expect(sandbox.subscriptions()).toEqual([]);
  });
});

describe('LastNotificationDate', () => {
  it('is absent at first, then the time of the last success', async () => {
    const { subscribe, publishAll, list, sandbox } = await startWorld();
    await subscribe('one');
    expect((await list())[0]).not.toHaveProperty('LastNotificationDate');
    sandbox.clock.advance(5_000);
    await publishAll(1);
    expect((await list())[0].LastNotificationDate).toBe(iso(startMs + 5_000));
    sandbox.clock.advance(5_000);
    expect((await list())[0].LastNotificationDate).toBe(iso(startMs + 5_000));
    await publishAll(1);
    expect((await list())[0].LastNotificationDate).toBe(iso(startMs + 10_000));
  });

  it('is not changed by a delivery that fails', async () => {
    const { subscribe, publishAll, list, sandbox } = await startWorld({}, () => 503);
    await subscribe('one');
    await publishAll(1);
    expect(sandbox.totals().lost).toBe(1);
    expect((await list())[0]).not.toHaveProperty('LastNotificationDate');
  });

  it('is not changed by a success that the sender does not see', async () => {
    const { subscribe, publishAll, list, sandbox } = await startWorld({
      faults: { answerLost: 1 },
    });
    await subscribe('one');
    await publishAll(1);
    expect(sandbox.totals()).toMatchObject({ lost: 1, accepted: 1 });
    expect((await list())[0]).not.toHaveProperty('LastNotificationDate');
  });

  it('puts off the pause and the end', async () => {
    const { subscribe, publishAll, list, sandbox } = await startWorld();
    await subscribe('one');
    sandbox.clock.advance(59 * dayMs);
    await publishAll(1);
    sandbox.clock.advance(60 * dayMs - 1);
    expect((await list())[0].Status).toBe('running');
    sandbox.clock.advance(1);
    expect((await list())[0].Status).toBe('paused');
    sandbox.clock.advance(305 * dayMs - 1);
    expect(await list()).toHaveLength(1);
    sandbox.clock.advance(1);
    expect(await list()).toEqual([]);
  });
});
