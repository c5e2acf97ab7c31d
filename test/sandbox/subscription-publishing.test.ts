/** What subscriptions mean for publishing: when it begins, and what a seed brings them. */
import { describe, expect, it } from 'vitest';
import { startAccountWorld, startMs } from './account-world.ts';
import { startDeliveryWorld as startWorld } from './delivery-world.ts';
import { startTrustedEndpoint } from './recording-endpoint.ts';

const iso = (ms: number) => new Date(ms).toISOString();

describe('publishing by rate', () => {
  const byRate = { count: 5, ratePerSecond: 1_000, now: Date.now };

  it('waits until the first push subscription runs', async () => {
    const { subscribe, create, edit, sandbox, requests } = await startWorld(byRate);
    await create({ SubscriptionType: 'pull' });
    const id = await subscribe('one', { Status: 'paused' });
    await new Promise((resolve) => setImmediate(resolve));
    expect(sandbox.totals().published).toBe(0);
    await edit(id, { Status: 'running' });
    expect(await sandbox.finished).toMatchObject({ published: 5, delivered: 5 });
    expect(requests).toHaveLength(5);
  });

  it('still waits after a pause and a resumption on the control port, but publishes on order', async () => {
    const { control, publish, sandbox, subscribe } = await startWorld(byRate);
    await control('POST', '/pause');
    await control('POST', '/resume');
    expect((await publish(2)).json).toEqual({ published: 2 });
    expect(sandbox.totals().published).toBe(0);
    await subscribe('one');
    expect(await sandbox.finished).toMatchObject({ published: 5, delivered: 5 });
  });

  it('that never began ends when the sandbox is closed', async () => {
    const { sandbox } = await startWorld(byRate);
    await sandbox.close();
    expect(await sandbox.finished).toMatchObject({ published: 0 });
  });

  it('brings the same products and fates to the first subscription, however it was made', async () => {
    const fatesOf = async (registered: boolean) => {
      const { url, trustedCaPems } = await startTrustedEndpoint();
      const faults = { duplicate: 0.2, lost: 0.2, ackIdAbsent: 0.5 };
      const common = {
        trustedCaPems,
        faults,
        ...byRate,
        count: 40,
        retryDelaysMs: [0, 0, 0] as [number, number, number],
      };
      const given = { endpoint: url.href, username: 'a', password: 'b' };
      const { sandbox, create } = await startAccountWorld(
        registered ? common : { ...common, ...given },
      );
      const body = { NotificationEndpoint: url.href, FilterParam: '' };
      if (registered) expect((await create(body)).status).toBe(201);
      await sandbox.finished;
      const [id] = sandbox.subscriptions().map((subscription) => subscription.id);
      const entries = sandbox
        .entries()
        .map(({ productId, outcome, ackId, attempts }) => [
          productId,
          outcome,
          ackId === null,
          attempts.length,
        ]);
      return { id, entries };
    };
    expect(await fatesOf(true)).toEqual(await fatesOf(false));
  });
});

describe('a seed', () => {
  it.each([
    ['alone', []],
    ['beside another subscription', [{ endpoint: 'https://localhost:1/' }]],
  ])('brings the first subscription, %s, what it has always brought', async (_, strangers) => {
    const faults = { lost: 0.3, ackIdAbsent: 0.3 };
    const { sandbox, subscribe, publishAll } = await startWorld({ seed: 7, faults });
    const id = await subscribe('one');
    for (const stranger of strangers) sandbox.addSubscription(stranger);
    await publishAll(30);
    const entries = sandbox.entries().filter(({ subscriptionId }) => subscriptionId === id);
    expect(id).toBe('aefe8309-fbda-4cf3-9b9a-31bc09e2f694');
    expect(entries.map(({ outcome }) => outcome[0]).join('')).toBe(
      'llddlddddlddddddddlddlddllddld',
    );
    const ackIds = entries.map(({ ackId }) => (ackId === null ? '-' : 'a')).join('');
    expect(ackIds).toBe('aaaaa--aaa-aaa-aaa-a-aaaaa-aaa');
    expect(entries.at(-1)).toMatchObject({
      productName: 'S2B_MSIL2A_20260501T085506_N0511_R007_T37VEL_20260501T114743.SAFE',
      notificationDate: '2026-05-01T12:00:00.0004Z',
    });
  });

  it('brings another subscription other fates', async () => {
    const { subscribe, publishAll, sandbox } = await startWorld({ faults: { lost: 0.5 } });
    const ids = [await subscribe('one'), await subscribe('other')];
    await publishAll(30);
    const [one, other] = ids.map((id) =>
      sandbox.entries().filter(({ subscriptionId }) => subscriptionId === id),
    );
    const outcomesOf = (entries = one) => entries?.map(({ outcome }) => outcome);
    expect(outcomesOf(other)).toHaveLength(30);
    expect(outcomesOf(other)).not.toEqual(outcomesOf(one));
  });
});

describe('an endpoint given at the start', () => {
  it('is a running push subscription for all events', async () => {
    const { url } = await startTrustedEndpoint();
    const subscriptionId = '7CA682C3-7b21-4e9b-952e-874798101340';
    const given = { endpoint: url, username: 'a', password: 'b', subscriptionId };
    const { sandbox, list } = await startAccountWorld(given);
    expect(sandbox.subscriptionId).toBe(subscriptionId);
    expect(sandbox.subscriptions()).toEqual([
      {
        id: subscriptionId,
        type: 'push',
        status: 'running',
        statusDate: iso(startMs),
        events: ['created', 'modified', 'deleted'],
        filter: '',
        endpoint: url.href,
        submissionDate: iso(startMs),
        lastNotificationDate: null,
      },
    ]);
    expect(await list()).toMatchObject([{ Id: subscriptionId, Status: 'running' }]);
  });

  it.each([
    ['without credentials', { endpoint: 'https://localhost:1/' }],
    ['without a password', { endpoint: 'https://localhost:1/', username: 'a' }],
    ['missing beside its credentials', { username: 'a', password: 'b' }],
    ['missing beside an id', { subscriptionId: '7ca682c3-7b21-4e9b-952e-874798101340' }],
  ])('is refused %s', async (_, options) => {
    await expect(startAccountWorld(options)).rejects.toThrow(/endpoint: goes with username and/);
  });

  it('is not there when none is given', async () => {
    const { sandbox } = await startAccountWorld();
    expect(sandbox.subscriptionId).toBeNull();
    expect(sandbox.subscriptions()).toEqual([]);
  });
});
